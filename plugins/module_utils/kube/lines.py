# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Cutting a stream of chunks into lines. Chunks end anywhere: inside a line, inside a character."""

from __future__ import annotations

import typing as t

#: An object in etcd has at most 1.5 MiB; a line longer than this is no watch event.
LONGEST_LINE = 64 << 20


class LineTooLongError(ValueError):
    """A line does not end. What comes is no stream of events."""


class LineSplitter:
    """Bytes in, whole lines out. Works on bytes, so characters that are cut in two need no care."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> t.Iterator[bytes]:
        """The lines that ``chunk`` completes, without line ends; blank lines are left out.

        Each byte is looked at once, however many chunks a line comes in. Raises ``LineTooLongError``.
        """
        start = 0
        while True:
            end = chunk.find(b"\n", start)
            if end < 0:
                break
            line = chunk[start:end]
            if self._pieces:
                self._pieces.append(line)
                line = b"".join(self._pieces)
                self._pieces.clear()
                self._size = 0
            start = end + 1
            if line.strip():
                yield line
        if start < len(chunk):
            self._pieces.append(chunk[start:] if start else chunk)
            self._size += len(chunk) - start
            if self._size > self._longest:
                raise LineTooLongError(f"a line has more than {self._longest} bytes")

    @property
    def pending(self) -> int:
        """Bytes of a line whose end has not come."""
        return self._size
