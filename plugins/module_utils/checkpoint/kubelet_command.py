# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Recognise a kubelet by its command line, in the shapes that distributions give it, and read its options."""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import dataclass

from .procfs import Process

DEFAULT_ROOTS: t.Final[t.Mapping[str, str]] = {
    "kubelet": "/var/lib/kubelet",
    "k3s": "/var/lib/kubelet",
    "rke2": "/var/lib/kubelet",
    "k0s": "/var/lib/k0s/kubelet",
    "microk8s": "/var/snap/microk8s/common/var/lib/kubelet",
}
"""The kubelet's root directory where no option moves it, by distribution (``kubelet`` is the plain binary)."""

_ASKS_ONLY: t.Final = frozenset(("--version", "--help", "-h", "help", "version"))
_ROLES: t.Final = frozenset(("server", "agent"))
_ROOT_OPTION: t.Final = re.compile(
    r"""(?<![\w-])(?:--)?(?:kubelet[-_])?root[-_]dir[=\s]+(?:"([^"]+)"|'([^']+)'|([^\s"',\]\\]+))"""
)
_DATA_OPTION: t.Final = re.compile(r"""(?<![\w-])--data-dir[=\s]+["']?([^\s"',\]\\]+)""")


@dataclass(frozen=True)
class KubeletCommand:
    """A command line that runs a kubelet.

    ``distribution`` is a key of :data:`DEFAULT_ROOTS`. ``root_option`` is the root directory that the command line
    gives, None if it gives none. ``arguments_file`` (microk8s) holds the kubelet's options. ``is_supervisor``: the
    process starts a kubelet as its child, which then counts instead of it.
    """

    distribution: str
    root_option: str | None
    config_path: str | None = None
    arguments_file: str | None = None
    is_supervisor: bool = False


def recognise(process: Process) -> KubeletCommand | None:
    """Return how ``process`` runs a kubelet; None when it does not (or only prints a version or help)."""
    words = list(process.argv)
    if len(words) == 1 and " " in words[0]:
        # k3s and rke2 overwrite their command line with one text, so that no token shows: "/usr/bin/k3s server".
        words = words[0].split()
    if not words or _ASKS_ONLY.intersection(words[1:]):
        return None
    names = {os.path.basename(words[0]), process.name, os.path.basename(process.executable or "")}
    second = words[1] if len(words) > 1 else ""
    if "kubelet" in names or ("hyperkube" in names and second == "kubelet"):
        return KubeletCommand("kubelet", option(words, "root-dir"), option(words, "config"))
    if "kubelite" in names:
        return KubeletCommand("microk8s", None, arguments_file=option(words, "kubelet-args-file"))
    for name in ("k3s", "rke2"):
        role = second if name in names else next((role for role in _ROLES if f"{name}-{role}" in names), "")
        if role in _ROLES and "--disable-agent" not in words:
            return KubeletCommand(name, _kubelet_argument(words), is_supervisor=name == "rke2")
    if "k0s" in names and _k0s_runs_a_worker(words):
        return KubeletCommand("k0s", _k0s_root(words), is_supervisor=True)
    return None


def option(words: t.Sequence[str], name: str) -> str | None:
    """Return the value of the kubelet option ``--name=value`` or ``--name value``; the last one counts.

    Like the kubelet, takes ``_`` for ``-`` in names. None when it is missing or empty.
    """
    values = _values(words, name)
    return values[-1] if values and values[-1] else None


def root_in_text(text: str, *, k0s: bool = False) -> str | None:
    """Return the kubelet's root directory that a unit, environment, arguments or k3s configuration file sets.

    The last setting counts; comments do not. With ``k0s`` a ``--data-dir`` sets it too. None when nothing does, or
    when the value holds a variable that only the starting shell knows.
    """
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", ";")))
    live = "\n".join(lines)
    roots = [a or b or c for a, b, c in _ROOT_OPTION.findall(live)]
    if not roots and k0s:
        roots = [os.path.join(directory, "kubelet") for directory in _DATA_OPTION.findall(live)]
    usable = [root for root in roots if "$" not in root]
    return usable[-1] if usable else None


def _values(words: t.Sequence[str], name: str) -> list[str]:
    values = []
    for place, word in enumerate(words):
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        if not flag.startswith("--") or flag[2:].replace("_", "-") != name:
            continue
        if equals:
            values.append(value)
        elif place + 1 < len(words):
            values.append(words[place + 1])
    return values


def _kubelet_argument(words: t.Sequence[str]) -> str | None:
    """Return ``/x`` of the last ``--kubelet-arg=root-dir=/x``, the way k3s and rke2 pass kubelet options on."""
    pairs = (value.lstrip("-").partition("=") for value in _values(words, "kubelet-arg"))
    roots = [value for key, _unused, value in pairs if key.replace("_", "-") == "root-dir"]
    return roots[-1] if roots else None


def _k0s_runs_a_worker(words: t.Sequence[str]) -> bool:
    if len(words) < 2 or words[1] not in ("worker", "controller"):
        return False
    return words[1] == "worker" or any(
        word in ("--enable-worker", "--enable-worker=true", "--single", "--single=true") for word in words
    )


def _k0s_root(words: t.Sequence[str]) -> str | None:
    data = option(words, "data-dir")
    return option(words, "kubelet-root-dir") or (os.path.join(data, "kubelet") if data else None)
