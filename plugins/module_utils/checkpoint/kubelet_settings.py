# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where files say that the kubelet's root directory is: units, environment files, k3s, rke2, k0s and microk8s settings.

Needed just when it matters most: a kubelet that refuses its state file is down, so no command line tells its root.
The files are searched for the option, not interpreted: best effort, and every answer names its file.
"""

from __future__ import annotations

import fnmatch
import os
import typing as t
from dataclasses import dataclass

from .kubelet_command import root_in_text
from .open_directory import PathText
from .procfs import inside, resolve_below

_MAX_SIZE: t.Final = 1024 * 1024

# Later ones win, as a drop-in wins over its unit.
_UNIT_DIRECTORIES: t.Final = (
    "/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/run/systemd/system",
    "/etc/systemd/system",
)
_UNITS: t.Final[t.Mapping[str, t.Sequence[str]]] = {
    "kubelet": ("kubelet.service",),
    "k3s": ("k3s.service", "k3s-agent.service"),
    "rke2": ("rke2-server.service", "rke2-agent.service"),
    "k0s": ("k0scontroller.service", "k0sworker.service"),
}
_FILES: t.Final[t.Mapping[str, t.Sequence[str]]] = {
    "kubelet": ("/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet"),
    "k3s": ("/etc/rancher/k3s/config.yaml", "/etc/rancher/k3s/config.yaml.d/*.yaml"),
    "rke2": ("/etc/rancher/rke2/config.yaml", "/etc/rancher/rke2/config.yaml.d/*.yaml"),
    "microk8s": ("/var/snap/microk8s/current/args/kubelet",),
}
_SNAP_VARIABLES: t.Final = (
    ("${SNAP_COMMON}", "/var/snap/microk8s/common"),
    ("$SNAP_COMMON", "/var/snap/microk8s/common"),
    ("${SNAP_DATA}", "/var/snap/microk8s/current"),
    ("$SNAP_DATA", "/var/snap/microk8s/current"),
)


@dataclass(frozen=True)
class RootSetting:
    """A root directory that a file sets; ``root`` and ``file`` are paths inside the file system looked at."""

    distribution: str
    root: str
    file: str


def configured_root(distribution: str, fs_root: PathText = "/") -> RootSetting | None:
    """Return the root directory that the files of ``distribution`` set, the last one counts; None if none does."""
    found = None
    for path in _files_of(distribution, fs_root):
        root = _root_in(path, fs_root, k0s=distribution == "k0s")
        if root is not None:
            found = RootSetting(distribution, root, path)
    return found


def configured_roots(fs_root: PathText = "/") -> list[RootSetting]:
    """Return what the files of every known distribution set."""
    names = dict.fromkeys((*_UNITS, *_FILES))
    return [setting for name in names if (setting := configured_root(name, fs_root)) is not None]


def arguments_root(path: str, fs_root: PathText = "/") -> str | None:
    """Return the root directory that microk8s' file of kubelet arguments sets; None if it does not."""
    return _root_in(path, fs_root)


def _files_of(distribution: str, fs_root: PathText) -> t.Iterator[str]:
    for unit in _UNITS.get(distribution, ()):
        for directory in _UNIT_DIRECTORIES:
            yield f"{directory}/{unit}"
        yield from (f"/etc/systemd/system/{unit}.env",)
        for directory in _UNIT_DIRECTORIES:
            yield from _matching(f"{directory}/{unit}.d", "*.conf", fs_root)
    for path in _FILES.get(distribution, ()):
        directory, _unused, name = path.rpartition("/")
        yield from _matching(directory, name, fs_root) if "*" in name else (path,)


def _matching(directory: str, pattern: str, fs_root: PathText) -> list[str]:
    try:
        names = os.listdir(inside(fs_root, resolve_below(fs_root, directory)))
    except OSError:
        return []
    return [f"{directory}/{name}" for name in sorted(names) if fnmatch.fnmatchcase(name, pattern)]


def _root_in(path: str, fs_root: PathText, *, k0s: bool = False) -> str | None:
    try:
        with open(inside(fs_root, resolve_below(fs_root, path)), encoding="utf-8", errors="replace") as file:
            text = file.read(_MAX_SIZE)
    except OSError:
        return None
    for variable, value in _SNAP_VARIABLES:
        text = text.replace(variable, value)
    root = root_in_text(text, k0s=k0s)
    return root if root is not None and root.startswith("/") else None
