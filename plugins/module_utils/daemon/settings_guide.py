# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a daemon as reStructuredText, from the schema alone."""

from __future__ import annotations

import json
import typing as t

from .environment import variable_prefix
from .schema import Schema, Setting, dotted, settings_of


def settings_rst(schema: Schema, name: str) -> str:
    """One entry a setting: what it is, its type, unit, default, limits, examples, variable, and how it is changed."""
    lines: list[str] = []
    sections = {"": schema}
    for setting in settings_of(schema):
        inner, path = schema, ""
        for part in setting.path[:-1]:
            inner, path = inner["properties"][part], f"{path}.{part}" if path else part
            if path not in sections:
                sections[path] = inner
                lines += [f"``{path}``", "~" * (len(path) + 4), "", inner["description"], ""]
        lines += _entry(setting, variable_prefix(name))
    return "\n".join(lines).rstrip() + "\n"


def _entry(setting: Setting, prefix: str) -> list[str]:
    schema = setting.schema
    about = [f"Type: {_type(schema)}."]
    if "default" in schema:
        about.append(f"Default: {_literal(schema['default'])}.")
    if setting.required:
        about.append("Required.")
    about += _limits(schema)
    if setting.greater:
        about.append(f"Less than ``{dotted(setting.greater)}``.")
    if schema.get("examples"):
        about.append("Examples: " + ", ".join(map(_literal, schema["examples"])) + ".")
    about.append(f"Variable: ``{prefix}{setting.variable}``.")
    about.append("Takes effect on reload." if setting.reloadable else "Takes effect on restart.")
    return [f"``{setting.key}``", f"   {schema['description']}", "", "   " + " ".join(about), ""]


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(_literal, schema["enum"]))
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    text = " or ".join(types)
    return f"{text} ({schema['x-unit']})" if "x-unit" in schema else text


def _limits(schema: Schema) -> t.Iterator[str]:
    words = {"minimum": "At least", "exclusiveMinimum": "More than", "maximum": "At most"}
    for key, word in words.items():
        if key in schema:
            yield f"{word} {schema[key]}."
    if "x-expected" in schema:
        yield f"It is {schema['x-expected']}."


def _literal(value: t.Any) -> str:
    if value is None:
        return "none"
    return f"``{value if isinstance(value, str) else json.dumps(value)}``" if value != "" else "empty"
