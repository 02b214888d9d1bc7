# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Setting up the log of a daemon: the standard error stream, once, and again when settings change."""

from __future__ import annotations

import logging
import os
import sys
import threading
import typing as t

from .common_settings import LogSettings
from .log_fields import OUR_PREFIX
from .log_lines import LineFormatter, is_journal
from .log_repeats import RepeatFilter

log = logging.getLogger(__name__)

#: Before the settings are known.
FIRST = LogSettings(level="info", format="text", levels={}, repeat_burst=5, repeat_window=60.0)


class LogOutput(logging.Handler):
    """Writes records to a stream. A stream that cannot be written (full disk, closed pipe) never stops the daemon.

    ``lost`` counts the lines that could not be written, ``written`` those of each level that could.
    """

    def __init__(self, stream: t.TextIO, environ: t.Mapping[str, str]) -> None:
        super().__init__()
        self.lost = 0
        self.written: dict[str, int] = dict.fromkeys(("debug", "info", "warning", "error", "critical"), 0)
        self._stream = stream
        self._journal = is_journal(_fileno(stream), environ)
        self._levels: set[str] = set()
        self._repeats: RepeatFilter | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            self._stream.write(self.format(record) + "\n")
            self._stream.flush()
        except Exception:
            # There is no other place to tell it, and the daemon's work goes on: metrics show the count.
            self.lost += 1
            return
        level = record.levelname.lower()
        self.written[level] = self.written.get(level, 0) + 1

    def use(self, settings: LogSettings) -> None:
        """Take these settings from now on."""
        debug = settings.level == "debug"
        self.setFormatter(LineFormatter(as_json=settings.format == "json", journal=self._journal, debug=debug))
        self.finish()
        self._repeats = RepeatFilter(settings.repeat_burst, settings.repeat_window)
        self._repeats.tell_with(self.handle_held_back)
        self.addFilter(self._repeats)
        # Other people's debug lines are about their inside, and may quote what they send.
        logging.getLogger().setLevel(logging.WARNING)
        logging.getLogger(OUR_PREFIX.rstrip(".")).setLevel(settings.level.upper())
        for name in self._levels - set(settings.levels):
            logging.getLogger(OUR_PREFIX + name).setLevel(logging.NOTSET)
        for name, level in settings.levels.items():
            logging.getLogger(OUR_PREFIX + name).setLevel(level.upper())
        self._levels = set(settings.levels)

    def handle_held_back(self, record: logging.LogRecord) -> None:
        """Write a record that tells of others, past the filter."""
        with self.lock or threading.RLock():
            self.emit(record)

    def finish(self) -> None:
        """Tell what repeated lines were held back."""
        if self._repeats is not None:
            self.removeFilter(self._repeats)
            self._repeats.flush()
            self._repeats = None


def start_log(stream: t.TextIO | None = None, environ: t.Mapping[str, str] | None = None) -> LogOutput:
    """Send all logging of this process to ``stream`` (standard error), and bugs in threads too."""
    output = LogOutput(stream or sys.stderr, os.environ if environ is None else environ)
    output.use(FIRST)
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
    root.addHandler(output)
    logging.captureWarnings(True)
    threading.excepthook = _thread_died
    return output


def _thread_died(arguments: threading.ExceptHookArgs) -> None:
    error = arguments.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    name = arguments.thread.name if arguments.thread else "unknown"
    log.error("a thread ended by a bug thread=%s", name, exc_info=error)


def _fileno(stream: t.TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return -1
