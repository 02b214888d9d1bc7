# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A directory of files that are made from what is prepared: brought to what it should hold, whatever it holds now."""

from __future__ import annotations

import functools
import os
import stat
import typing as t
from dataclasses import dataclass

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError, StoreError, from_os_error
from ..checkpoint.leftovers import remove_stale, stale_temporaries
from ..checkpoint.store import StateDirectory
from .container_file_texts import MARKER, is_our_name

_LIMIT = 4 * 1024 * 1024


class UnsafeDirectoryError(DraError):
    """Others could change what is in the directory. Facts: ``directory``."""


@dataclass(frozen=True)
class _Known:
    """A file as we left it."""

    identity: tuple[int, int, int]
    data: bytes


class ContainerFileDirectory:
    """Ours are the files with our first line; all others are left alone. Methods block, one call at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.foreign: tuple[str, ...] = ()
        self.count = 0
        """How many files of ours there are."""
        self._known: dict[str, _Known] = {}

    def bring(self, wanted: t.Mapping[str, bytes]) -> None:
        """Write what is missing or different, remove files of ours that are not wanted. Idempotent.

        ``foreign`` are then the wanted names that somebody else's file has. Removing goes first, and everything is
        tried before the first failure is raised: a file that names what is no longer prepared is worse than none.
        """
        _make(self.path)
        failures: list[DraError] = []
        with StateDirectory(self.path) as directory:
            if not self._known:
                remove_stale(self.path, stale_temporaries(self.path), min_age=0.0)
            present = _entries(directory)
            self._known = {name: known for name, known in self._known.items() if name in present}
            for name in sorted(present.keys() - wanted.keys()):
                if is_our_name(name) and _is_ours(directory, name):
                    _attempt(failures, functools.partial(self._remove, directory, name))
            foreign = []
            for name, data in wanted.items():
                facts = present.get(name)
                if facts is not None and self._known.get(name) == _Known(_identity(facts), data):
                    continue
                if facts is not None and not _is_ours(directory, name):
                    foreign.append(name)
                else:
                    _attempt(failures, functools.partial(self._write, directory, name, data))
            self.foreign, self.count = tuple(sorted(foreign)), len(self._known)
        if failures:
            raise failures[0]

    def _remove(self, directory: StateDirectory, name: str) -> None:
        directory.remove(name)
        self._known.pop(name, None)

    def _write(self, directory: StateDirectory, name: str, data: bytes) -> None:
        directory.write(name, data)
        facts = os.stat(name, dir_fd=directory.fileno(), follow_symlinks=False)
        self._known[name] = _Known(_identity(facts), data)


def _make(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        facts = os.lstat(path)
    except OSError as error:
        raise from_os_error(error, path, "could not be made as directory for containers") from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid not in (0, os.geteuid()) or facts.st_mode & 0o022:
        raise UnsafeDirectoryError(
            f"{path} is not used for containers: it is a link, is not owned by root or the agent, or others may write.",
            "Make it a directory of its own with mode 0700 or 0755, or give another one as node.container_files.",
            directory=path,
        )


def _entries(directory: StateDirectory) -> dict[str, os.stat_result]:
    """Everything in the directory, whatever its kind."""
    found = {}
    for name in os.listdir(directory.fileno()):
        try:
            found[name] = os.stat(name, dir_fd=directory.fileno(), follow_symlinks=False)
        except FileNotFoundError:
            continue
    return found


def _identity(facts: os.stat_result) -> tuple[int, int, int]:
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _is_ours(directory: StateDirectory, name: str) -> bool:
    """Whether the file has our first line. Links and the like are refused by the read."""
    try:
        return bytes(directory.read(name, limit=_LIMIT).data).startswith(f"{MARKER}\n".encode())
    except MissingFileError:
        return True  # gone meanwhile: the name is free
    except StoreError:
        return False


def _attempt(failures: list[DraError], work: t.Callable[[], None]) -> None:
    try:
        work()
    except DraError as error:
        failures.append(error)
    except OSError as error:
        failures.append(from_os_error(error, str(error.filename or ""), "could not be brought up to date"))
