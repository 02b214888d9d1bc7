# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Specs kept in memory by a daemon that asks often: after every prepare, for a handful of names among thousands."""

from __future__ import annotations

import os
import threading
import typing as t

from .directories import SpecDirectory, spec_directories
from .names import InvalidNameError, parse_name, spec_stem
from .registry import FileCache, Registry, cached_file
from .spec import EXTENSIONS, SpecFile, load_file

_ROOM = 256
"""How many names may be added before the index looks for files that have gone since."""


class SpecIndex:
    """Answers "does this resolve" from a few files where that is possible, and reads the directories where it is not.

    Blocking: call it from a worker thread. It may be used by several threads at once.
    """

    def __init__(self, directories: t.Iterable[str] | None = None) -> None:
        self._directories = list(directories) if directories is not None else None
        self._cache: FileCache = {}
        self._paths: dict[str, str] = {}
        self._tidy_at = _ROOM
        self._lock = threading.Lock()

    def registry(self) -> Registry:
        """The present content of the directories; only changed files are read."""
        with self._lock:
            return self._refresh()

    def missing(self, names: t.Iterable[str], claim_uid: str = "") -> list[str]:
        """Those of ``names`` that do not resolve now.

        A name counts as resolved as soon as one file that loads defines it: where it was last time, or where a driver
        of this claim would write it. All directories are read only for what is not found so, therefore a conflict
        between two files is seen by ``registry`` and not always here.
        """
        with self._lock:
            directories = spec_directories(self._directories)
            left = [name for name in dict.fromkeys(names) if not self._found_at_once(name, claim_uid, directories)]
            return self._refresh().unresolved(left) if left else []

    def _refresh(self) -> Registry:
        registry = Registry.load(self._directories, self._cache)
        self._paths = {name: device.spec.path for name, device in registry.devices.items()}
        return registry

    def _found_at_once(self, name: str, claim_uid: str, directories: tuple[SpecDirectory, ...]) -> bool:
        try:
            wanted = parse_name(name)
        except InvalidNameError:
            return False
        last = self._paths.get(name)
        candidates = [(last, d.priority) for d in directories if last and os.path.dirname(last) == d.path]
        if claim_uid and "/" not in claim_uid:
            stem = spec_stem(wanted.vendor, wanted.class_name, claim_uid)
            candidates += [
                (os.path.join(directory.path, stem + ending), directory.priority)
                for directory in reversed(directories)
                for ending in EXTENSIONS
            ]
        allowed = [directory.real_path for directory in directories]
        for path, priority in candidates:
            file = self._load(path, priority, allowed)
            spec = file.spec if file is not None else None
            if spec is not None and spec.kind == wanted.kind and wanted.device in spec.devices:
                self._remember(name, path)
                return True
        return False

    def _remember(self, name: str, path: str) -> None:
        """Note where a name is. Files of claims come and go for as long as the daemon runs, so those gone must go."""
        self._paths[name] = path
        if len(self._paths) > self._tidy_at:
            self._cache = {one: file for one, file in self._cache.items() if os.path.lexists(one)}
            self._paths = {one: place for one, place in self._paths.items() if place in self._cache}
            self._tidy_at = 2 * len(self._paths) + _ROOM

    def _load(self, path: str, priority: int, allowed: t.Sequence[str]) -> SpecFile | None:
        if not os.path.lexists(path):
            self._cache.pop(path, None)
            return None
        file = cached_file(path, priority, self._cache) or load_file(path, priority, allowed)
        if file is not None:
            self._cache[path] = file
        return file
