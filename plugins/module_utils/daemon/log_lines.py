# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How log lines look: text of key=value for people, JSON for collectors, both with the journal's priority in front."""

from __future__ import annotations

import datetime
import json
import logging
import os
import re
import traceback
import typing as t

from ..checkpoint.errors import DraError
from .log_fields import Line, line_of, short_name

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_SIMPLE = re.compile(r"[^\s\"'=\\]+")


def priority_of(level: int) -> int:
    """The syslog priority of a level."""
    return next((priority for least, priority in _PRIORITIES if level >= least), 7)


def is_journal(fd: int, environ: t.Mapping[str, str]) -> bool:
    """Whether the journal reads what is written to ``fd``: systemd names that stream in ``JOURNAL_STREAM``."""
    device, _colon, inode = environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(fd)
        return (int(device), int(inode)) == (status.st_dev, status.st_ino)
    except (OSError, ValueError):
        return False


class LineFormatter(logging.Formatter):
    """Both forms. With ``journal`` each line has its priority and no time, which the journal adds by itself.

    A stack trace is shown for bugs; for an error that is told to people only when ``debug`` is on.
    """

    def __init__(self, *, as_json: bool = False, journal: bool = False, debug: bool = False) -> None:
        super().__init__()
        self._as_json, self._journal, self._debug = as_json, journal, debug

    def format(self, record: logging.LogRecord) -> str:
        """The line or lines of a record, without a line feed at the end."""
        line = line_of(record)
        trace = self._trace(record)
        lines = [self._json(record, line, trace)] if self._as_json else [self._text(record, line), *trace]
        if self._journal:
            # Each physical line is an entry of its own there; one without a priority would be filed as information.
            return "\n".join(f"<{priority_of(record.levelno)}>{text}" for text in lines)
        return "\n".join(lines)

    def _trace(self, record: logging.LogRecord) -> list[str]:
        if not record.exc_info or record.exc_info[1] is None:
            return []
        if isinstance(record.exc_info[1], DraError) and not self._debug:
            return []
        text = "".join(traceback.format_exception(record.exc_info[1]))
        return [f"  {_plain(one)}" for one in text.splitlines()]

    def _text(self, record: logging.LogRecord, line: Line) -> str:
        parts = [] if self._journal else [_time(record)]
        parts += [record.levelname, f"{short_name(record.name)}:", _plain(line.event)]
        parts += [f"{key}={_quoted(value)}" for key, value in line.fields.items()]
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and "error" not in line.fields:
            parts.append(f"error={_quoted(str(error) or type(error).__name__)}")
        return " ".join(parts)

    def _json(self, record: logging.LogRecord, line: Line, trace: list[str]) -> str:
        entry: dict[str, t.Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": short_name(record.name),
            "message": line.event,
        }
        # A field must not take the place of what every line has.
        entry.update({(f"{key}_" if key in entry else key): value for key, value in line.fields.items()})
        if record.exc_info and record.exc_info[1] is not None:
            entry.setdefault("error", str(record.exc_info[1]) or type(record.exc_info[1]).__name__)
        if line.facts:
            entry.setdefault("facts", dict(line.facts))
        if trace:
            entry["trace"] = "\n".join(trace)
        return json.dumps(entry, ensure_ascii=False, default=str)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(text: str) -> str:
    """Text on one line, without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _quoted(value: str) -> str:
    if _SIMPLE.fullmatch(value) and value.isprintable():
        return value
    return '"' + _plain(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'
