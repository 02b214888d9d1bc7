# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Checking a document against the schema, with jsonschema where it is installed and without it elsewhere.

Both ways lead to the same problems in the same words: nodes differ in what they have installed, findings must not. The
built-in way knows just the keywords that the schema of this layer uses.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .names import quoted
from .schema import Schema

Path = tuple[t.Union[str, int], ...]

_TYPES: t.Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
}
_TYPE_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
}


#: Keyword to "does this value break its limit".
_CHECKS: t.Mapping[str, t.Callable[[t.Any, t.Any], bool]] = {
    "enum": lambda allowed, value: value not in allowed,
    "pattern": lambda pattern, value: re.search(pattern, value) is None,
    "minLength": lambda limit, value: len(value) < limit,
    "maxLength": lambda limit, value: len(value) > limit,
    "minItems": lambda limit, value: len(value) < limit,
    "minimum": lambda limit, value: value < limit,
    "maximum": lambda limit, value: value > limit,
}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a spec. A fatal one makes runtimes refuse the file."""

    path: Path
    text: str
    fatal: bool = True
    #: The rule that was broken: a schema keyword, empty for rules in code.
    rule: str = ""


@dataclass(frozen=True)
class _Violation:
    path: Path
    keyword: str
    schema: Schema
    value: t.Any


def schema_problems(document: t.Any, schema: Schema, *, builtin: bool = False) -> list[Problem]:
    """Every violation of ``schema``, sorted by place. ``builtin`` keeps away from jsonschema even where it is there.

    The built-in way looks first, since it is ten times as fast and nearly all files are good; where it finds a fault,
    jsonschema has the last word.
    """
    violations = list(_violations(document, schema, ()))
    if violations and not builtin:
        found = _with_jsonschema(document, schema)
        violations = found if found is not None else violations
    # jsonschema goes on after a wrong type and says of 1.5 that it is too small as well.
    mistyped = {violation.path for violation in violations if violation.keyword == "type"}
    violations = [v for v in violations if v.keyword == "type" or v.path not in mistyped]
    problems = {problem for violation in violations for problem in _explain(violation)}
    return sorted(problems, key=lambda problem: (_sortable(problem.path), problem.text))


def _with_jsonschema(document: t.Any, schema: Schema) -> list[_Violation] | None:
    try:
        import jsonschema
    except ImportError:
        return None
    validator = getattr(jsonschema, "Draft7Validator", None)
    if validator is None:  # older than 3.0
        return None
    return [
        _Violation(tuple(error.absolute_path), str(error.validator), t.cast("Schema", error.schema), error.instance)
        for error in validator(schema).iter_errors(document)
    ]


def _violations(value: t.Any, schema: Schema, path: Path) -> t.Iterator[_Violation]:
    kind = schema.get("type")
    if kind is not None and not has_type(value, kind):
        yield _Violation(path, "type", schema, value)
        return
    for keyword, limit in schema.items():
        broken = _CHECKS.get(keyword)
        if broken is not None and broken(limit, value):
            yield _Violation(path, keyword, schema, value)
    if isinstance(value, dict):
        yield from _object_violations(value, schema, path)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _violations(item, schema["items"], (*path, index))


def _object_violations(value: dict[str, t.Any], schema: Schema, path: Path) -> t.Iterator[_Violation]:
    properties: t.Mapping[str, Schema] = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    if any(name not in value for name in schema.get("required", ())):
        yield _Violation(path, "required", schema, value)
    if others is False and any(name not in properties for name in value):
        yield _Violation(path, "additionalProperties", schema, value)
    for name, item in value.items():
        if name in properties:
            yield from _violations(item, properties[name], (*path, name))
        elif isinstance(others, t.Mapping):
            yield from _violations(item, others, (*path, name))


def has_type(value: t.Any, kind: str) -> bool:
    """Whether a JSON value has this schema type; 1.0 is a whole number, true is not."""
    if kind == "integer":
        return not isinstance(value, bool) and (
            isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        )
    return isinstance(value, _TYPES[kind])


def _explain(violation: _Violation) -> t.Iterator[Problem]:
    value, schema, path, rule = violation.value, violation.schema, violation.path, violation.keyword
    if rule == "required":
        for name in schema["required"]:
            if name not in value:
                yield Problem((*path, name), "is missing", rule=rule)
    elif rule == "additionalProperties":
        for name in value:
            if name not in schema["properties"]:
                yield Problem((*path, name), "is not a field of a CDI spec", rule=rule)
    else:
        yield Problem(path, _sentence(rule, schema, value), rule=rule)


def _sentence(rule: str, schema: Schema, value: t.Any) -> str:
    if rule == "type":
        return f"is {shown(value)}, expected {_TYPE_WORDS[schema['type']]}"
    if rule == "enum":
        allowed = ", ".join(quoted(item) for item in schema["enum"] if item)
        return f"is {shown(value)}, expected one of {allowed}"
    if rule == "pattern":
        wanted = "NAME=VALUE" if "=" in schema["pattern"] else "letters of r, w and m, or none"
        return f"is {shown(value)}, expected {wanted}"
    if rule in ("minLength", "minItems"):
        return "is empty"
    if rule == "maxLength":
        return f"has {len(value)} characters, at most {schema['maxLength']} are allowed"
    bounds = f"{schema['minimum']} to {schema['maximum']}"
    return f"is {shown(value)}, expected a whole number from {bounds}"


def shown(value: t.Any) -> str:
    """A JSON value in few printable words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quoted(value, 60)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, (int, float)):
        return f"the number {value}" if abs(value) < 1e25 else "a huge number"
    return "null" if value is None else f"a {type(value).__name__}"


def path_text(path: Path) -> str:
    """``devices[0].containerEdits`` for the steps of a path, empty for the document itself."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z0-9_]{1,60}", step):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step, 60)}]"
    return text


def _sortable(path: Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple((isinstance(s, str), s if isinstance(s, int) else 0, s if isinstance(s, str) else "") for s in path)
