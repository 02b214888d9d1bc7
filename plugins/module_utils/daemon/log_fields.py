# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From a log record to its event text and its fields.

The code logs constant text and ``key=value`` fields in one format string: ``"lease acquired lease=%s/%s identity=%s"``.
The fields are found in that format string, before the values are put in, so a value with blanks or an equals sign in
it stays one value, and no value can pass itself off as a field of its own.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import typing as t

from ..checkpoint.errors import DraError

OUR_PREFIX = "ansible_collections.nodeops.dra.plugins.module_utils."

_FIELD = re.compile(r"(?:(?<=\s)|^)([A-Za-z_][\w.]*)=(\S+)")
_PLACEHOLDER = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[a-zA-Z])")
_BLANKS = re.compile(r"\s+")
# Whatever a record has beside these was given by ``extra=``.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@dataclasses.dataclass(frozen=True)
class Line:
    """What one record says. ``facts`` are those of a DraError that was logged; they are for machines."""

    event: str
    fields: t.Mapping[str, str]
    facts: t.Mapping[str, t.Any]


def short_name(logger: str) -> str:
    """The name of a logger as lines carry it: ``kube.lease`` for ours, the whole name for others."""
    return logger[len(OUR_PREFIX) :] if logger.startswith(OUR_PREFIX) else logger


def line_of(record: logging.LogRecord) -> Line:
    """Text and fields of a record."""
    arguments = record.args if isinstance(record.args, tuple) else None
    facts: dict[str, t.Any] = {}
    for value in (*(arguments or ()), *(record.exc_info or ())):
        if isinstance(value, DraError):
            facts.update(value.facts)
    extra = {key: str(value) for key, value in vars(record).items() if key not in _STANDARD}
    event, fields = (None, {}) if arguments is None else _split(str(record.msg), arguments)
    if event is None:
        return Line(_whole(record), extra, facts)
    return Line(event, {**fields, **extra}, facts)


def _split(template: str, arguments: tuple[t.Any, ...]) -> tuple[str | None, dict[str, str]]:
    """Event and fields; event is None when the format string is not of our sort."""
    left = list(arguments)

    def filled(part: str) -> str:
        used = [left.pop(0) for mark in _PLACEHOLDER.findall(part) if mark != "%%"]
        return part % tuple(used) if arguments else part

    fields: dict[str, str] = {}
    texts: list[str] = []
    position = 0
    try:
        for match in _FIELD.finditer(template):
            value = match.group(2)
            # "claim_uid=%s: %s": the colon belongs to the sentence that follows.
            ending = value[-1] if value[-1] in ":;," and len(value) > 1 else ""
            texts.append(filled(template[position : match.start()]))
            fields[match.group(1)] = filled(value[: len(value) - len(ending)])
            texts.append(ending)
            position = match.end()
        texts.append(filled(template[position:]))
    except (IndexError, TypeError, ValueError):
        return None, {}
    if left:
        return None, {}
    event = _BLANKS.sub(" ", "".join(texts)).strip()
    return re.sub(r"\s+([:;,])", r"\1", event) if fields else event, fields


def _whole(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        # A format string and arguments that do not fit: somebody's bug, but what they had to say is worth a line.
        return f"{record.msg!s} {record.args!r}"
