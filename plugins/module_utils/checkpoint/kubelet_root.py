# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which state file is meant when nobody gave its path, and how we know."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from .errors import DraError
from .file_errors import shown
from .kubelet import find_kubelets
from .kubelet_command import DEFAULT_ROOTS
from .kubelet_settings import configured_roots
from .open_directory import PathText, check_directory_path
from .procfs import inside, resolve_below

STATE_FILE_NAME: t.Final = "dra_manager_state"
"""Name of the kubelet's DRA state file inside its root directory (kubelet: draManagerStateFileName)."""


class AmbiguousRootError(DraError):
    """More than one kubelet root directory is possible. Facts: ``candidates``, each with ``root`` and ``reason``."""


@dataclass(frozen=True)
class StatePath:
    """The path of the state file and of its directory, the kubelet's root, both without symbolic links on the way.

    ``source``: ``option`` (given), ``process`` (a running kubelet), ``configuration`` (a unit or settings file),
    ``found`` (the one known place that holds a state file) or ``default``; ``reason`` says it in words.
    """

    path: str
    kubelet_root: str
    source: str
    reason: str


def default_state_path(
    kubelet_root: PathText | None = None, *, proc_root: PathText = "/proc", fs_root: PathText = "/"
) -> StatePath:
    """Return the kubelet's state file: below ``kubelet_root`` if given, else where this node's kubelet keeps it.

    Asked in turn: running kubelets, settings of a kubelet that is down, known places that hold a state file, the
    default /var/lib/kubelet. Within one step, several answers are narrowed to those that hold a state file; if that
    leaves more than one, AmbiguousRootError asks for ``kubelet_root``. Kubelets in containers count only if their
    root directory is one of ours too. The file need not exist.
    """
    if kubelet_root is not None:
        return _at(os.path.realpath(check_directory_path(kubelet_root)), "option", "option kubelet_root")
    steps: t.Sequence[tuple[str, t.Callable[[], t.Iterable[tuple[str, str]]]]] = (
        ("process", lambda: _of_processes(proc_root, fs_root)),
        ("configuration", lambda: _of_settings(fs_root)),
        ("found", lambda: _of_known_places(fs_root)),
    )
    for source, ask in steps:
        answers: dict[str, str] = {}
        for root, reason in ask():
            answers.setdefault(root, reason)
        if answers:
            root, reason = _the_one(answers)
            return _at(root, source, reason)
    default = DEFAULT_ROOTS["kubelet"]
    return _at(_here(default, fs_root), "default", "default of the kubelet; none runs and no settings were found")


def _of_processes(proc_root: PathText, fs_root: PathText) -> t.Iterator[tuple[str, str]]:
    for kubelet in find_kubelets(proc_root=proc_root, fs_root=fs_root):
        if kubelet.host_root is not None:
            yield kubelet.host_root, kubelet.root_source


def _of_settings(fs_root: PathText) -> t.Iterator[tuple[str, str]]:
    for setting in configured_roots(fs_root):
        yield _here(setting.root, fs_root), setting.file


def _of_known_places(fs_root: PathText) -> t.Iterator[tuple[str, str]]:
    for distribution, root in DEFAULT_ROOTS.items():
        here = _here(root, fs_root)
        if _has_state(here):
            yield here, f"holds a state file, default of {distribution}"


def _the_one(answers: t.Mapping[str, str]) -> tuple[str, str]:
    likely = {root: reason for root, reason in answers.items() if _has_state(root)} or answers
    if len(likely) > 1:
        listed = ", ".join(f"{shown(root)} ({reason})" for root, reason in sorted(likely.items()))
        raise AmbiguousRootError(
            f"{len(likely)} kubelet root directories are possible, expected one: {listed}.",
            "Say which one with kubelet_root (or the path of the state file itself).",
            candidates=[{"root": shown(root), "reason": reason} for root, reason in sorted(likely.items())],
        )
    return next(iter(likely.items()))


def _has_state(root: str) -> bool:
    return os.path.lexists(os.path.join(root, STATE_FILE_NAME))


def _here(root: str, fs_root: PathText) -> str:
    return inside(fs_root, resolve_below(fs_root, root))


def _at(root: str, source: str, reason: str) -> StatePath:
    return StatePath(os.path.join(root, STATE_FILE_NAME), root, source, reason)
