# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Go types that appear in driver files beyond those of the kubelet's own state file (`gotypes`).

They are only decoded and written as JSON: nobody hashes a dump of them.
"""

from __future__ import annotations

import re
import typing as t

from . import gotime, jsontext
from .godecode import DecodeStoppedError, Recorder
from .gojson import Node, quote
from .gotypes import Decoding, GoList, GoType, Pointer, RawExtension, Slice, Str, Struct

_INTEGER_DIGITS = 20
_QUANTITY = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[numkKMGTPE]i?|[eE][-+]?[0-9]+)?", re.ASCII)


class _WithoutDump(GoType):
    """A type that never enters a hashed dump."""

    def dump(self, value: t.Any) -> str:
        raise NotImplementedError(f"{self.label} is not part of any hashed dump")


class Int(_WithoutDump):
    """A signed integer of 64 bits (``int``, ``int64``, ``time.Duration``), or of another range given by its limits."""

    def __init__(self, label: str = "int", low: int = -(1 << 63), high: int = (1 << 63) - 1) -> None:
        self.label = label
        self.low = low
        self.high = high

    def zero(self) -> int:
        return 0

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return old
        spelled = node.value if node.kind == "number" else ""
        if spelled.lstrip("-").isdigit() and len(spelled) <= _INTEGER_DIGITS:
            number = int(spelled)
            if self.low <= number <= self.high and not (self.low == 0 and spelled.startswith("-")):
                return number
        into.mismatch(path, self.label, node)
        return old

    def encode(self, value: t.Any) -> str:
        return str(value)


UINT32 = Int("uint32", 0, (1 << 32) - 1)


class Bool(_WithoutDump):
    """A bool."""

    label = "bool"

    def zero(self) -> bool:
        return False

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "bool":
            return node.value
        if node.kind != "null":
            into.mismatch(path, "bool", node)
        return old

    def encode(self, value: t.Any) -> str:
        return "true" if value else "false"


class RawJson(RawExtension):
    """``runtime.RawExtension`` where it is written again: the encoder compacts what the type hands it."""

    def encode(self, value: t.Any) -> str:
        return "null" if value is None else jsontext.compact(str(value))


class Time(_WithoutDump):
    """``time.Time`` as nanoseconds (see `gotime`). It looks at the text between the quotes without decoding escapes."""

    label = "time.Time"

    def zero(self) -> int:
        return gotime.ZERO

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return old
        if node.kind != "string":
            raise DecodeStoppedError("Time.UnmarshalJSON: input is not a JSON string")
        return _moment(into.text[node.start + 1 : node.end - 1])


class ApiTime(_WithoutDump):
    """``metav1.Time`` as nanoseconds: null is the zero time, and writing drops the fraction and the offset."""

    label = "v1.Time"

    def zero(self) -> int:
        return gotime.ZERO

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return gotime.ZERO
        if node.kind != "string":
            raise DecodeStoppedError("string", node)
        return _moment(node.value)

    def encode(self, value: t.Any) -> str:
        return "null" if value == gotime.ZERO else f'"{gotime.format_rfc3339(value)}"'


def _moment(text: str) -> int:
    try:
        return gotime.parse_rfc3339(text)
    except gotime.GoTimeError as error:
        raise DecodeStoppedError(str(error)) from None


class Quantity(_WithoutDump):
    """``resource.Quantity`` as it is spelled.

    Every file that a plugin wrote has the canonical spelling, which stays as it is. One that a person respelled would
    come back canonical in Go and does not here.
    """

    label = "resource.Quantity"

    def zero(self) -> str:
        return "0"

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return "0"
        spelled = into.text[node.start : node.end]
        if node.kind == "string":
            spelled = spelled[1:-1]
        spelled = spelled.strip()
        if _QUANTITY.fullmatch(spelled) is None:
            raise DecodeStoppedError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        return spelled

    def encode(self, value: t.Any) -> str:
        return quote(value)


class ApiStruct(Struct):
    """A struct that leaves out empty fields as ``encoding/json`` does.

    A pointer is empty when it is nil, whatever it points to; a struct never is. That is where `Struct`, which only
    knows the kubelet's own file, would be wrong.
    """

    def encode(self, value: t.Any) -> str:
        parts = []
        for field in self.fields:
            item = value[field.name] if field.name in value else field.type.zero()
            if field.omit_empty and _is_empty(field.type, item):
                continue
            parts.append(f'"{field.name}":{field.type.encode(item)}')
        return f"{{{','.join(parts)}}}"


class ApiStr(Str):
    """A string, kept once for all places where a document has it."""

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        value = super().decode(node, old, path, into)
        return into.shared(value) if isinstance(into, Recorder) else value


class ApiList(Slice):
    """A slice that is a plain list wherever nothing of an earlier value hides behind it, which is nearly always."""

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        value = super().decode(node, old, path, into)
        return list(value) if isinstance(value, GoList) and not value.spare else value


def _is_empty(form: GoType, value: t.Any) -> bool:
    if isinstance(form, Pointer):
        return value is None
    return not isinstance(form, Struct) and not value
