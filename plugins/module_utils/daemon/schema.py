# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading a settings schema: which settings there are, and what each one is worth knowing for.

A schema is JSON Schema (2020-12) as Python source, since only .py files travel. An object with ``properties`` is a
section, everything else is a setting. Beside the standard words a setting may have:

- ``x-unit``: what a number counts, for example ``seconds``;
- ``x-reloadable``: it takes effect on reload (SIGHUP) without a restart; said of a section it holds for all in it;
- ``x-secret``: its value is never shown;
- ``x-expected``: a phrase for people that says what ``pattern`` says;
- ``x-less-than``: the name of a setting in the same section whose value is greater;
- ``x-file``: its value is the path of a file that must be there.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

Schema = t.Mapping[str, t.Any]
#: Keys and list positions from the top of the file down.
KeyPath = tuple[t.Union[str, int], ...]

# What Kubernetes puts into every container of a namespace for a Service "nodeops-dra-agent": none of our doing.
_SERVICE_LINK = re.compile(r"(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT|PORT_\d+_(?:TCP|UDP|SCTP)(?:_.*)?)")


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of a schema; ``reloadable`` and ``secret`` also when a section around it says so."""

    path: tuple[str, ...]
    schema: Schema
    reloadable: bool
    secret: bool
    required: bool

    @property
    def key(self) -> str:
        """The path as people write it: ``http.port``."""
        return dotted(self.path)

    @property
    def variable(self) -> str:
        """What follows the daemon's prefix in the name of its environment variable: ``HTTP_PORT``."""
        return "_".join(self.path).upper()

    @property
    def greater(self) -> tuple[str, ...]:
        """The path of the setting whose value is always greater; empty when there is none."""
        name = self.schema.get("x-less-than")
        return (*self.path[:-1], name) if name else ()

    @property
    def types(self) -> tuple[str, ...]:
        """The JSON types that its value may have; empty when the schema does not say."""
        return types_of(self.schema)


def types_of(schema: Schema) -> tuple[str, ...]:
    """The JSON types that a schema names."""
    found = schema.get("type", ())
    return (found,) if isinstance(found, str) else tuple(found)


def dotted(path: KeyPath) -> str:
    """A path as people write it: ``drivers[2].name``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def settings_of(schema: Schema) -> list[Setting]:
    """Every setting in the order of the schema."""
    return list(_walk(schema, (), reloadable=False, secret=False))


def _walk(schema: Schema, path: tuple[str, ...], *, reloadable: bool, secret: bool) -> t.Iterator[Setting]:
    required = set(schema.get("required", ()))
    for name, inner in schema.get("properties", {}).items():
        flags = {
            "reloadable": bool(inner.get("x-reloadable", reloadable)),
            "secret": bool(inner.get("x-secret", secret)),
        }
        if "properties" in inner:
            yield from _walk(inner, (*path, name), **flags)
        else:
            yield Setting((*path, name), inner, required=name in required, **flags)


def schema_at(schema: Schema, path: KeyPath) -> Schema:
    """The schema of the value at ``path``; empty when none is known."""
    for part in path:
        if isinstance(part, int):
            schema = schema.get("items", {})
            continue
        free = schema.get("additionalProperties")
        schema = schema.get("properties", {}).get(part) or (free if isinstance(free, dict) else {})
    return schema


def is_service_link(variable: str) -> bool:
    """Whether what follows our prefix is one of the names that Kubernetes makes for a Service of the same name."""
    return _SERVICE_LINK.fullmatch(variable) is not None


def value_at(values: t.Any, path: t.Sequence[str]) -> t.Any:
    """The value at ``path`` of values that are nested as in the file and complete."""
    for part in path:
        values = values[part]
    return values


def with_defaults(schema: Schema, values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """``values`` with each setting that is absent at its default, in the order of the schema."""
    filled: dict[str, t.Any] = {}
    for name, inner in schema.get("properties", {}).items():
        if "properties" in inner:
            filled[name] = with_defaults(inner, values.get(name) or {})
        elif name in values:
            filled[name] = values[name]
        elif "default" in inner:
            filled[name] = inner["default"]
    return filled


def schema_faults(schema: Schema) -> list[str]:
    """What is missing or contradictory in a schema, one line each; each daemon has a test that there is none."""
    import jsonschema

    faults: list[str] = []
    variables: dict[str, str] = {}
    for section in _sections(schema, ()):
        inner = schema_at(schema, section)
        if inner.get("additionalProperties") is not False:
            faults.append(f"{dotted(section) or 'the top'}: additionalProperties is not false, unknown keys pass")
        if section and not inner.get("description"):
            faults.append(f"{dotted(section)}: a section without description")
    for setting in settings_of(schema):
        faults += [f"{setting.key}: {fault}" for fault in _setting_faults(setting)]
        greater = setting.greater
        if greater and not ("default" in setting.schema and "default" in schema_at(schema, greater)):
            faults.append(f"{setting.key}: it is less than {dotted(greater)}, and one of them has no default")
        other = variables.setdefault(setting.variable, setting.key)
        if other != setting.key:
            faults.append(f"{setting.key}: its environment variable is also that of {other}")
        if "default" in setting.schema:
            validator = jsonschema.Draft202012Validator(setting.schema)
            if not validator.is_valid(setting.schema["default"]):
                faults.append(f"{setting.key}: its default is not valid")
            faults += [
                f"{setting.key}: its example {example!r} is not valid"
                for example in setting.schema.get("examples", ())
                if not validator.is_valid(example)
            ]
    return faults


def _sections(schema: Schema, path: tuple[str, ...]) -> t.Iterator[tuple[str, ...]]:
    yield path
    for name, inner in schema.get("properties", {}).items():
        if "properties" in inner:
            yield from _sections(inner, (*path, name))


def _setting_faults(setting: Setting) -> t.Iterator[str]:
    schema = setting.schema
    if not schema.get("description", "").endswith("."):
        yield "no description, or none that ends with a full stop"
    if "default" not in schema and not setting.required:
        yield "neither a default nor required"
    if not setting.types and "enum" not in schema:
        yield "no type"
    if {"integer", "number"} & set(setting.types) and "x-unit" not in schema:
        yield "a number without x-unit"
    if any(
        isinstance(schema.get(key), dict) and "properties" in schema[key] for key in ("items", "additionalProperties")
    ):
        yield "mappings inside it, whose keys would have no documentation, default or variable"
    if "pattern" in schema and "x-expected" not in schema:
        yield "a pattern without x-expected"
    if is_service_link(setting.variable):
        yield "Kubernetes sets its environment variable for a Service of the daemon's name"
    if "default" in schema and schema["default"] in (None, {}, []) and not schema.get("examples"):
        yield "no default that shows how a value looks, and no examples"
