# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Temporaries that a killed writer left beside the state files: found for diagnosis, removed only on request."""

from __future__ import annotations

import os
import re
import time
import typing as t
from dataclasses import dataclass

from .file_errors import from_os_error, shown
from .open_directory import OpenDirectory, PathText

# The kubelet's own pattern is shared by its checkpoint manager in drivers and by this collection.
_WRITERS: t.Final[t.Sequence[tuple[re.Pattern[str], str]]] = (
    (re.compile(r"\.[0-9]+"), "checkpoint"),
    (re.compile(r"dra_health_state\.tmp[0-9]*"), "health"),
    (re.compile(r"tmp-checkpoint-[0-9]+"), "example-driver"),
)


@dataclass(frozen=True)
class StaleTemporary:
    """A left-over file. ``kind``: ``checkpoint`` (kubelet, NVIDIA driver, this collection), ``health`` (the kubelet's
    health file) or ``example-driver``; ``size`` in bytes, ``age`` in seconds since the last write.
    """

    path: str
    name: str
    kind: str
    size: int
    age: float
    device: int
    inode: int


def stale_temporaries(directory: PathText, *, now: t.Callable[[], float] = time.time) -> list[StaleTemporary]:
    """List left-over temporaries in ``directory``, oldest first; nothing is touched.

    A young one may belong to a writer at work. Only regular files count, links are ignored. Raises StoreError when
    the directory cannot be read.
    """
    found = []
    with OpenDirectory(directory) as opened:
        for name, facts in opened.regular_files():
            kind = _kind_of(name)
            if kind is not None:
                age = max(0.0, now() - facts.st_mtime)
                path = opened.path_of(name)
                found.append(StaleTemporary(path, name, kind, facts.st_size, age, facts.st_dev, facts.st_ino))
    return sorted(found, key=lambda one: (-one.age, one.name))


def remove_stale(
    directory: PathText, temporaries: t.Iterable[StaleTemporary], *, min_age: float = 60.0
) -> list[StaleTemporary]:
    """Remove ``temporaries``, as listed before in ``directory``, that are at least ``min_age`` seconds old.

    Returns those that were removed. One that is gone or is another file by now is left alone. StoreError names the
    first one that could not be removed; those before it are gone.
    """
    removed = []
    with OpenDirectory(directory) as opened:
        for one in temporaries:
            if one.age < min_age or _kind_of(one.name) is None:
                continue
            try:
                facts = os.stat(one.name, dir_fd=opened.fileno(), follow_symlinks=False)
                if (facts.st_dev, facts.st_ino) == (one.device, one.inode):
                    os.unlink(one.name, dir_fd=opened.fileno())
                    removed.append(one)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise from_os_error(error, one.path, "could not be removed", removed=_paths(removed)) from error
        opened.sync()
    return removed


def _paths(temporaries: t.Iterable[StaleTemporary]) -> list[str]:
    return [shown(one.path) for one in temporaries]


def _kind_of(name: str) -> str | None:
    return next((kind for pattern, kind in _WRITERS if pattern.fullmatch(name)), None)
