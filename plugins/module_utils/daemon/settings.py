# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a daemon: one YAML file, overridden by environment variables, checked by a schema."""

from __future__ import annotations

import dataclasses
import os
import stat
import typing as t

from ..checkpoint.file_errors import from_os_error
from .environment import Overrides, read_overrides
from .problems import Problem, SettingsError
from .schema import KeyPath, Schema, Setting, settings_of, value_at, with_defaults
from .settings_check import check_files, check_order, check_values
from .settings_text import MAX_BYTES, read_document

T = t.TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Checked values with all defaults filled in. ``values`` is nested as in the file."""

    schema: Schema
    values: t.Mapping[str, t.Any]

    def section(self, kind: type[T], *path: str) -> T:
        """The section at ``path`` (none: everything) as the dataclass ``kind``, whose fields must be its keys."""
        return typed(kind, value_at(self.values, path))

    def value(self, path: t.Sequence[str]) -> t.Any:
        """One value by its path."""
        return value_at(self.values, path)

    def __repr__(self) -> str:
        return "Settings(...)"  # a value may be secret


@dataclasses.dataclass(frozen=True)
class Change:
    """Other values than before: ``applied`` take effect at once, ``pending`` only by a restart."""

    applied: tuple[Setting, ...]
    pending: tuple[Setting, ...]


def load_settings(
    schema: Schema, name: str, file: str, environ: t.Mapping[str, str], *, with_files: bool = False
) -> Settings:
    """The settings of the daemon ``name`` from ``file`` and its environment variables.

    Files that they name may come later; ``with_files`` wants them to be there now.

    Raises SettingsError with every problem there is; StoreError when the file cannot be read.
    """
    document = read_document(_read(file), file)
    if any(not problem.key for problem in document.problems):
        # The form is broken: what the rest would be held against is not what its writer meant.
        raise SettingsError(file, document.problems)
    overrides = read_overrides(schema, name, environ)
    overrides.apply(document.values)
    values = _without_nothing(schema, document.values)
    locate = _locator(file, document.lines, overrides)
    told = {problem.key for problem in document.problems}
    problems = [problem for problem in check_values(schema, values, locate) if problem.key not in told]
    problems = [*document.problems, *overrides.problems, *problems]
    if not problems:
        complete = with_defaults(schema, values)
        problems = check_order(schema, complete, locate)
        if with_files:
            problems += check_files(schema, complete, locate)
    if problems:
        raise SettingsError(file, sorted(problems, key=_line_order))
    return Settings(schema, complete)


def default_settings(schema: Schema) -> Settings:
    """All defaults, as of an empty file."""
    return Settings(schema, with_defaults(schema, {}))


def changed(old: Settings, new: Settings) -> tuple[Settings, Change]:
    """What a reload puts into effect: ``old`` with those new values that need no restart, and what differs."""
    applied, pending = [], []
    values = with_defaults(old.schema, old.values)
    for setting in settings_of(old.schema):
        if old.value(setting.path) == new.value(setting.path):
            continue
        if not setting.reloadable:
            pending.append(setting)
            continue
        applied.append(setting)
        section = values
        for part in setting.path[:-1]:
            section = section[part]
        section[setting.path[-1]] = new.value(setting.path)
    return Settings(old.schema, values), Change(tuple(applied), tuple(pending))


def typed(kind: type[T], values: t.Any) -> T:
    """Nested values as a dataclass: fields of dataclass type take mappings, tuples take lists."""
    hints = t.get_type_hints(kind)
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if names != set(values):
        raise TypeError(f"{kind.__name__} has the fields {sorted(names)}, the settings have {sorted(values)}")
    return kind(**{name: _typed_value(hints[name], values[name]) for name in names})


def _typed_value(hint: t.Any, value: t.Any) -> t.Any:
    if isinstance(value, dict) and dataclasses.is_dataclass(hint):
        return typed(t.cast("type[t.Any]", hint), value)
    if isinstance(value, list):
        inner = (t.get_args(hint) or (t.Any,))[0]
        return tuple(_typed_value(inner, item) for item in value)
    if hint is float and isinstance(value, int):
        return float(value)
    return value


def _without_nothing(schema: Schema, values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Drop null where its writer means nothing at all: a section of comments only, a setting that may be null."""
    made: dict[str, t.Any] = {}
    for key, value in values.items():
        inner = schema.get("properties", {}).get(key, {})
        if value is None and ("properties" in inner or inner.get("default", "") is None):
            continue
        made[key] = _without_nothing(inner, value) if "properties" in inner and isinstance(value, dict) else value
    return made


def _locator(file: str, lines: t.Mapping[KeyPath, int], overrides: Overrides) -> t.Callable[[KeyPath], str]:
    def locate(path: KeyPath) -> str:
        for length in range(len(path), -1, -1):
            part = path[:length]
            if part in overrides.variables:
                return f"environment variable {overrides.variables[part]}"
            if part in lines:
                return f"{file} line {lines[part]}"
        return file

    return locate


def _line_order(problem: Problem) -> tuple[int, int, str]:
    place, _space, line = problem.where.rpartition(" line ")
    return (0, int(line), problem.key) if place and line.isdigit() else (1, 0, problem.where)


def _read(file: str) -> str:
    try:
        # Never waits: a pipe or device in the place of the file is refused below.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SettingsError(file, [Problem(file, "", "no regular file", "a YAML file")])
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise from_os_error(error, file, "could not be read for settings") from error
    if len(data) > MAX_BYTES:
        raise SettingsError(file, [Problem(file, "", f"more than {MAX_BYTES} bytes", "a settings file")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Problem(f"{file} line {line}", "", "bytes that are no UTF-8", "UTF-8 text")
        raise SettingsError(file, [problem]) from None
