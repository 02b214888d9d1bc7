# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From the text of a spec file to plain data, as the YAML library of the runtimes reads it.

Runtimes read .json files with their YAML parser too. JSON is tried first here because every Python has it; PyYAML does
the rest where it is installed. The document is built from parser events with a limit on depth and size: PyYAML's own
fast loader overflows the C stack on deep nesting, its safe one lets aliases grow without bound, and both take the last
of two equal keys, where the runtimes refuse the file.
"""

from __future__ import annotations

import json
import re
import typing as t

from ..checkpoint.errors import DraError
from .names import quoted
from .schema import Schema

MAX_DEPTH = 32
MAX_NODES = 500_000
#: PyYAML without its C parser takes about 15 s for this much.
MAX_SLOW_YAML = 1024 * 1024

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUES = frozenset(word for base in ("y", "yes", "true", "on") for word in (base, base.capitalize(), base.upper()))
_FALSES = frozenset(word for base in ("n", "no", "false", "off") for word in (base, base.capitalize(), base.upper()))
_INTEGERS = (
    (re.compile(r"[-+]?0b[01_]+"), 2),
    (re.compile(r"[-+]?0x[0-9A-Fa-f_]+"), 16),
    (re.compile(r"[-+]?0o?[0-7_]+"), 8),
    (re.compile(r"[-+]?(?:0|[1-9][0-9_]*)"), 10),
)
_SCALAR = re.compile(r'\s*(?:null|true|false|"[^"\\]*"|-?\d{1,300})\s*\Z')
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_STANDARD_TAG = "tag:yaml.org,2002:"


class UndecodableError(DraError):
    """A text is neither JSON nor YAML, or more than a spec can sensibly be. Facts: none; the caller knows the file."""


class NoYamlError(UndecodableError):
    """The text is not JSON, and this Python has no YAML parser (or one that is too slow for the size)."""


def decode(text: str) -> t.Any:
    """The first document in ``text``. Raises ``UndecodableError`` or ``NoYamlError``, never anything else."""
    body = text[1:] if text.startswith("\ufeff") else text
    if "\x00" in body:
        raise UndecodableError(f"it has a NUL byte at character {body.index(chr(0))}", _REWRITE)
    if not body.strip():
        return None
    json_error: UndecodableError | None = None
    if body.lstrip()[:1] in ("{", "["):
        try:
            return _from_json(body)
        except UndecodableError as error:
            json_error = error
    try:
        return _from_yaml(body)
    except UndecodableError as error:
        if isinstance(error, NoYamlError) and _SCALAR.match(body):
            # No spec either, but that much can be said without YAML.
            return _from_json(body)
        raise json_error or error from None


_REWRITE = "Let the driver write it again, or move it away."


# JSON


def _from_json(text: str) -> t.Any:
    try:
        document = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except UndecodableError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise UndecodableError(
            f"it is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}", _REWRITE
        ) from None
    except ValueError:
        raise UndecodableError("it holds a number with thousands of digits", _REWRITE) from None
    if _is_deeper(document, MAX_DEPTH):
        raise _too_deep()
    return document


def _without_duplicates(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise _duplicate(key)
            seen.add(key)
    return result


def _refuse_constant(word: str) -> t.NoReturn:
    raise UndecodableError(f"it is not valid JSON: {word} is no JSON value", _REWRITE)


def _is_deeper(document: t.Any, limit: int) -> bool:
    level = [document] if isinstance(document, (dict, list)) else []
    for _depth in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _too_deep() -> UndecodableError:
    return UndecodableError(f"it is nested deeper than {MAX_DEPTH} levels, which no CDI spec is", _REWRITE)


def _duplicate(key: str) -> UndecodableError:
    return UndecodableError(f"the key {quoted(key, 60)} appears twice in one object", "Keep one of the two.")


# YAML


def _from_yaml(text: str) -> t.Any:
    try:
        import yaml
    except ImportError:
        raise NoYamlError(
            "it is YAML, and this Python cannot read YAML",
            "Install PyYAML for the Python that runs this (python3-pyyaml on RHEL, python3-yaml on Debian and Ubuntu).",
        ) from None
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None and len(text) > MAX_SLOW_YAML:
        raise NoYamlError(
            f"it is YAML of {len(text)} characters, too much for PyYAML without its C parser",
            "Install a PyYAML that was built with libyaml.",
        )
    try:
        return _Builder().build(yaml.parse(text, Loader=loader or yaml.SafeLoader))
    except UnicodeEncodeError:
        raise UndecodableError("it holds half of a surrogate pair", _REWRITE) from None
    except yaml.YAMLError as error:
        raise UndecodableError(f"it is not valid YAML: {_yaml_problem(error)}", _REWRITE) from None
    except (RecursionError, MemoryError):
        raise _too_deep() from None


def _yaml_problem(error: Exception) -> str:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "syntax error")
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return quoted(problem)[1:-1] + where


class _Frame:
    __slots__ = ("anchor", "key", "mapping", "merges", "sequence", "size")

    def __init__(self, mapping: dict[str, t.Any] | None, sequence: list[t.Any] | None, anchor: str | None) -> None:
        self.mapping = mapping
        self.sequence = sequence
        self.anchor = anchor
        self.key: str | None = None
        self.merges: list[t.Any] = []
        self.size = 1


class _Builder:
    """Builds the first document from parser events, without recursion."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[t.Any, int]] = {}
        self.root: t.Any = None

    def build(self, events: t.Iterable[t.Any]) -> t.Any:
        for event in events:
            kind = type(event).__name__
            if kind == "ScalarEvent":
                self._add(_scalar(event, is_key=self._wants_key()), 1, event.anchor)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._open({} if kind.startswith("M") else None, None if kind.startswith("M") else [], event.anchor)
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._close()
            elif kind == "AliasEvent":
                self._alias(event.anchor)
            elif kind == "DocumentEndEvent":
                break
        return self.root

    def _wants_key(self) -> bool:
        return bool(self.frames) and self.frames[-1].mapping is not None and self.frames[-1].key is None

    def _open(self, mapping: dict[str, t.Any] | None, sequence: list[t.Any] | None, anchor: str | None) -> None:
        if self._wants_key():
            raise UndecodableError("a key is a list or an object, expected text", _REWRITE)
        if len(self.frames) >= MAX_DEPTH:
            raise _too_deep()
        self.frames.append(_Frame(mapping, sequence, anchor))

    def _close(self) -> None:
        frame = self.frames.pop()
        if frame.mapping is not None:
            for merged in frame.merges:
                for key, value in merged.items():
                    frame.mapping.setdefault(key, value)
        self._add(frame.mapping if frame.mapping is not None else frame.sequence, frame.size, frame.anchor)

    def _alias(self, anchor: str) -> None:
        if anchor not in self.anchors:
            raise UndecodableError(f"the alias {quoted(anchor, 60)} names nothing before it", _REWRITE)
        value, size = self.anchors[anchor]
        if self._wants_key() and not isinstance(value, str):
            raise UndecodableError("a key is a list or an object, expected text", _REWRITE)
        self._add(value, size, None)

    def _add(self, value: t.Any, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        if not self.frames:
            self.root = value
            return
        frame = self.frames[-1]
        frame.size += size
        if frame.size > MAX_NODES:
            raise UndecodableError(f"it holds more than {MAX_NODES} values once its aliases are filled in", _REWRITE)
        if frame.sequence is not None:
            frame.sequence.append(value)
        elif frame.mapping is not None and frame.key is None:
            frame.key = t.cast("str", value)
        elif frame.mapping is not None and frame.key is not None:
            self._set(frame, frame.mapping, frame.key, value)
            frame.key = None

    def _set(self, frame: _Frame, mapping: dict[str, t.Any], key: str, value: t.Any) -> None:
        if key == "<<":
            merges = value if isinstance(value, list) else [value]
            if not all(isinstance(merged, dict) for merged in merges):
                raise UndecodableError("the merge key << has something else than objects", _REWRITE)
            frame.merges += merges
            return
        if key in mapping:
            raise _duplicate(key)
        mapping[key] = value


def _scalar(event: t.Any, *, is_key: bool) -> t.Any:
    text: str = event.value
    tag: str | None = event.tag
    if tag is not None and tag.startswith(_STANDARD_TAG):
        tag = tag[len(_STANDARD_TAG) :]
    if tag is not None and tag not in ("!", "str", "int", "float", "bool", "null"):
        raise UndecodableError(f"it uses the YAML tag {quoted(str(event.tag), 60)}, which no CDI spec needs", _REWRITE)
    # Keys are texts in the end, whatever they look like. The style of a plain scalar is None or empty, by the parser.
    if is_key or tag in ("!", "str") or (tag is None and event.style):
        return text
    return plain_value(text)


def plain_value(text: str) -> t.Any:
    """What an unquoted YAML scalar means to the runtimes: no dates, no base-60 numbers."""
    if text in _NULLS:
        return None
    if text in _TRUES:
        return True
    if text in _FALSES:
        return False
    for pattern, base in _INTEGERS:
        if pattern.fullmatch(text):
            return _integer(text, base)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _integer(text: str, base: int) -> t.Any:
    digits = text.replace("_", "")
    if len(digits) > 300:
        return float("inf")
    try:
        value = int(digits, base)
    except ValueError:  # only a prefix such as 0x_
        return text
    return value if -(2**63) <= value < 2**64 else float(value)


# Go's reading


def as_runtimes_read(value: t.Any, schema: Schema) -> t.Any:
    """A copy of a document in which nulls are gone and plain values are texts where the schema wants texts.

    Runtimes convert YAML to the types of their structures, so ``name: 0`` names a device "0". Only JSON types are left.
    """
    kind = schema.get("type")
    if isinstance(value, dict):
        properties = schema.get("properties", {}) if kind == "object" else {}
        others = schema.get("additionalProperties") if kind == "object" else None
        rest: Schema = others if isinstance(others, dict) else {}
        return {
            str(key): as_runtimes_read(item, properties.get(key, rest))
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        items: Schema = schema.get("items", {}) if kind == "array" else {}
        return [as_runtimes_read(item, items) for item in value]
    if kind == "string" and isinstance(value, (bool, int, float)):
        return _as_text(value)
    return value


def _as_text(value: t.Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value) if abs(value) < 10**300 else repr(float("inf"))
