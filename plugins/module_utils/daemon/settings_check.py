# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Holding values against a schema, every problem at once."""

from __future__ import annotations

import difflib
import os
import typing as t

from .problems import Problem, shown
from .schema import KeyPath, Schema, dotted, schema_at, settings_of, types_of, value_at

if t.TYPE_CHECKING:
    import jsonschema

_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}

#: Tells where the value or key at a path stands: ``/etc/x.yml line 3``.
Locator = t.Callable[[KeyPath], str]


def check_values(schema: Schema, values: t.Mapping[str, t.Any], locate: Locator) -> list[Problem]:
    """Every problem, in the order of the schema's own walk; empty when the values can be used."""
    import jsonschema

    checker = _Checker(schema, locate)
    found: list[Problem] = []
    for error in jsonschema.Draft202012Validator(schema).iter_errors(values):
        found += checker.problems(error)
    return list(dict.fromkeys(found))


def check_order(schema: Schema, values: t.Mapping[str, t.Any], locate: Locator) -> list[Problem]:
    """Numbers of ``values``, which are complete, that are not less than another one as the schema wants it."""
    found = []
    for setting in settings_of(schema):
        if not setting.greater:
            continue
        value, limit = value_at(values, setting.path), value_at(values, setting.greater)
        if not value < limit:
            expected = f"less than {dotted(setting.greater)}, which is {limit:g}"
            hint = setting.schema.get("description", "")
            found.append(Problem(locate(setting.path), setting.key, f"{value:g}", expected, hint))
    return found


def check_files(schema: Schema, values: t.Mapping[str, t.Any], locate: Locator) -> list[Problem]:
    """Files that ``values``, which are complete, name, and that are not there or may not be read."""
    found = []
    for setting in settings_of(schema):
        path = value_at(values, setting.path) if setting.schema.get("x-file") else None
        if path is None or (os.path.isfile(path) and os.access(path, os.R_OK)):
            continue
        if not os.path.exists(path):
            fault = "which does not exist"
        else:
            fault = "which may not be read" if os.path.isfile(path) else "which is no file"
        # The path in full: its end tells what it is.
        hint = setting.schema.get("description", "")
        found.append(Problem(locate(setting.path), setting.key, f"{path}, {fault}", "a file that can be read", hint))
    return found


class _Checker:
    def __init__(self, schema: Schema, locate: Locator) -> None:
        self._schema = schema
        self._locate = locate
        self._settings = settings_of(schema)

    def problems(self, error: jsonschema.ValidationError) -> list[Problem]:
        path: KeyPath = tuple(error.absolute_path)
        wanted: t.Any = error.validator_value
        instance: t.Any = error.instance
        if error.validator == "additionalProperties" and isinstance(instance, dict):
            known = schema_at(self._schema, path).get("properties", {})
            return [self._unknown((*path, key), known) for key in instance if key not in known]
        if error.validator == "required":
            return [self._missing((*path, key), "") for key in wanted if key not in instance]
        if error.validator == "dependentRequired":
            return [
                self._missing((*path, key), f"{dotted((*path, other))} needs it.")
                for other, keys in wanted.items()
                if other in instance
                for key in keys
                if key not in instance
            ]
        expected, hint = self._expected(error)
        found = shown(error.instance, secret=self._is_secret(path))
        return [Problem(self._locate(path), dotted(path), found, expected, hint)]

    def _is_secret(self, path: KeyPath) -> bool:
        """Whether the value belongs to a secret setting, or holds one."""
        names = tuple(part for part in path if isinstance(part, str))
        return any(
            setting.secret and setting.path[: len(names)] == names[: len(setting.path)] for setting in self._settings
        )

    def _unknown(self, path: KeyPath, known: t.Iterable[str]) -> Problem:
        near = self._nearest(path, list(known))
        hint = f"Did you mean {near}?" if near else f"Known here: {', '.join(sorted(known)) or 'nothing'}."
        return Problem(self._locate(path), dotted(path), "an unknown key", "a key that is known", hint)

    def _nearest(self, path: KeyPath, known: list[str]) -> str:
        name = str(path[-1])
        close = difflib.get_close_matches(name, known, n=1)
        if close:
            return dotted((*path[:-1], close[0]))
        # The right name in the wrong section, or a dotted key written as one.
        elsewhere = {setting.path[-1]: setting.key for setting in reversed(self._settings)}
        elsewhere.update({setting.key: setting.key for setting in self._settings})
        close = difflib.get_close_matches(name, list(elsewhere), n=1, cutoff=0.7)
        return elsewhere[close[0]] if close else ""

    def _missing(self, path: KeyPath, why: str) -> Problem:
        hint = schema_at(self._schema, path).get("description", "")
        return Problem(self._locate(path[:-1]), dotted(path), "nothing", "a value", " ".join(filter(None, (why, hint))))

    def _expected(self, error: jsonschema.ValidationError) -> tuple[str, str]:
        """What the schema wants, and a hint."""
        wanted: t.Any = error.validator_value
        schema: Schema = error.schema if isinstance(error.schema, dict) else {}
        unit = schema.get("x-unit", "")
        if error.validator == "enum":
            close = difflib.get_close_matches(str(error.instance), [str(one) for one in wanted], n=1)
            return "one of " + ", ".join(map(str, wanted)), f"Did you mean {close[0]}?" if close else ""
        texts: dict[str, str] = {
            "type": " or ".join(_TYPE_NAMES[name] for name in types_of(schema)),
            "minimum": f"at least {wanted} {unit}",
            "exclusiveMinimum": f"more than {wanted} {unit}",
            "maximum": f"at most {wanted} {unit}",
            "exclusiveMaximum": f"less than {wanted} {unit}",
            "minLength": "text that is not empty" if wanted == 1 else f"at least {wanted} characters",
            "maxLength": f"at most {wanted} characters",
            "minItems": f"at least {wanted} items",
            "uniqueItems": "each item once",
            "pattern": str(schema.get("x-expected", f"text that matches {wanted}")),
        }
        other = str(schema.get("x-expected", "another value"))
        return texts.get(str(error.validator), other).strip(), ""
