# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The Go types that state files are made of: decoding as ``json.Unmarshal`` does, and the dump text that is hashed.

Decoded values are plain: a string, an int, None for nil, `GoList`, a dict for a map, and for a struct a dict with one
item a field. A type error does not stop the decoder, as in Go: it is collected, and the field keeps its value.
"""

from __future__ import annotations

import typing as t

from .gojson import Node, encode_text, quote


class TypeFault(t.NamedTuple):
    """A JSON value of the wrong kind: where it is, what belongs there, what was found."""

    path: str
    expected: str
    found: str


class TooManyFaultsError(Exception):
    """A document with `MOST_FAULTS` type faults: no use in looking for more, and no room to remember them."""


MOST_FAULTS = 1000


class Decoding:
    """What one decoding pass shares: the text that nodes point into, and the type faults met so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.faults: list[TypeFault] = []

    def mismatch(self, path: str, expected: str, node: Node) -> None:
        """Remember a fault. Raises `TooManyFaultsError` at the last one that is remembered."""
        self.faults.append(TypeFault(path, expected, node.kind))
        if len(self.faults) >= MOST_FAULTS:
            raise TooManyFaultsError


class GoList(list[t.Any]):
    """A slice. ``spare`` is what a longer, earlier value left behind in its backing array.

    Go decodes a repeated key into the elements that are there already, so fields that the repeat leaves out keep their
    earlier value. That decides checksums, hence it is copied.
    """

    def __init__(self, items: t.Iterable[t.Any] = (), spare: t.Iterable[t.Any] = ()) -> None:
        super().__init__(items)
        self.spare = list(spare)


class GoType:
    """A Go type; ``label`` is its name in the dump text of a struct field."""

    label = ""

    def zero(self) -> t.Any:
        """The value that Go starts from."""
        return None

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        """The value after reading ``node`` over ``old``."""
        raise NotImplementedError  # each type below says how

    def dump(self, value: t.Any) -> str:
        """The text of go-spew's ``%#v`` without the type in parentheses, which the enclosing struct writes."""
        raise NotImplementedError  # each type below says how

    def encode(self, value: t.Any) -> str:
        """The JSON text that ``json.Marshal`` writes."""
        raise NotImplementedError  # each type below says how


class Str(GoType):
    """A string, or a named string type."""

    def __init__(self, label: str = "string") -> None:
        self.label = label

    def zero(self) -> str:
        return ""

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "string":
            return node.value
        if node.kind != "null":
            into.mismatch(path, "string", node)
        return old

    def dump(self, value: t.Any) -> str:
        return str(value)

    def encode(self, value: t.Any) -> str:
        return quote(value)


class Uint(GoType):
    """An unsigned integer of ``bits`` bits."""

    def __init__(self, label: str, bits: int) -> None:
        self.label = label
        self.limit = 1 << bits
        self.bits = bits

    def zero(self) -> int:
        return 0

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "number" and node.value.isdigit() and len(node.value) <= 20 and int(node.value) < self.limit:
            return int(node.value)
        if node.kind != "null":
            into.mismatch(path, f"unsigned integer of {self.bits} bits", node)
        return old

    def dump(self, value: t.Any) -> str:
        return str(value)

    def encode(self, value: t.Any) -> str:
        return str(value)


class Slice(GoType):
    """A slice of one element type."""

    def __init__(self, label: str, item: GoType) -> None:
        self.label = label
        self.item = item

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return None
        if node.kind != "array":
            into.mismatch(path, "list", node)
            return old
        if not node.value:
            return GoList()
        memory: list[t.Any] = []
        if old is not None:
            memory = list(old) + list(getattr(old, "spare", ()))
        items: list[t.Any] = []
        for index, element in enumerate(node.value):
            before = memory[index] if index < len(memory) else self.item.zero()
            items.append(self.item.decode(element, before, f"{path}[{index}]", into))
        return GoList(items, memory[len(items) :])

    def dump(self, value: t.Any) -> str:
        if value is None:
            return "<nil>"
        dump = self.item.dump
        return f"[{' '.join([dump(item) for item in value])}]"

    def encode(self, value: t.Any) -> str:
        if value is None:
            return "null"
        encode = self.item.encode
        return f"[{','.join([encode(item) for item in value])}]"


class Map(GoType):
    """A map with string keys; a repeated key starts anew."""

    def __init__(self, label: str, item: GoType) -> None:
        self.label = label
        self.item = item

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return None
        if node.kind != "object":
            into.mismatch(path, "object", node)
            return old
        result: dict[str, t.Any] = {} if old is None else old
        for key, element in node.value:
            result[key] = self.item.decode(element, self.item.zero(), f"{path}[{key}]", into)
        return result

    def dump(self, value: t.Any) -> str:
        if value is None:
            return "<nil>"
        dump = self.item.dump
        return f"map[{' '.join([f'{key}:{dump(value[key])}' for key in sorted(value)])}]"

    def encode(self, value: t.Any) -> str:
        if value is None:
            return "null"
        encode = self.item.encode
        return f"{{{','.join([f'{quote(key)}:{encode(value[key])}' for key in sorted(value)])}}}"


class Field(t.NamedTuple):
    """A struct field: its JSON name, its type, its Go name where that differs, and whether it is left out if empty."""

    name: str
    type: GoType
    go_name: str = ""
    omit_empty: bool = False


def fold(key: str) -> str:
    """A key as Go compares it when no exact match exists: simple case folding, for the ASCII names that we look for."""
    return key.replace("\u017f", "s").replace("\u212a", "k").lower()


def members_named(node: Node, name: str) -> list[Node]:
    """The members of an object that Go would read into the field ``name``, in file order."""
    return [member for key, member in node.members() if fold(key) == fold(name)]


class Struct(GoType):
    """A struct; keys match exactly or case-insensitively, unknown keys are skipped, the last occurrence wins."""

    def __init__(self, label: str, fields: t.Sequence[Field]) -> None:
        self.label = label
        self.fields = tuple(fields)
        self.names = tuple(field.name for field in fields)
        self._exact = {field.name: field for field in fields}
        self._folded = {fold(field.name): field for field in fields}

    def zero(self) -> dict[str, t.Any]:
        return {field.name: field.type.zero() for field in self.fields}

    def field(self, name: str) -> Field:
        """The field with exactly this name."""
        return self._exact[name]

    def field_for(self, key: str) -> Field | None:
        """The field that Go fills from ``key``, if any."""
        return self._exact.get(key) or self._folded.get(fold(key))

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return old
        if node.kind != "object":
            into.mismatch(path, "object", node)
            return old
        for key, element in node.value:
            field = self.field_for(key)
            if field is not None:
                place = f"{path}.{field.name}" if path else field.name
                old[field.name] = field.type.decode(element, old[field.name], place, into)
        return old

    def dump(self, value: t.Any) -> str:
        parts = []
        for field in self.fields:
            text = field.type.dump(value[field.name] if field.name in value else field.type.zero())
            parts.append(f"{field.go_name or field.name}:({field.type.label}){text}")
        return f"{{{' '.join(parts)}}}"

    def encode(self, value: t.Any) -> str:
        parts = []
        for field in self.fields:
            item = value[field.name] if field.name in value else field.type.zero()
            if not (field.omit_empty and not item):
                parts.append(f"{quote(field.name)}:{field.type.encode(item)}")
        return f"{{{','.join(parts)}}}"


class Pointer(GoType):
    """A pointer; nil is None."""

    def __init__(self, item: GoType) -> None:
        self.label = f"*{item.label}"
        self.item = item

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        if node.kind == "null":
            return None
        return self.item.decode(node, self.item.zero() if old is None else old, path, into)

    def dump(self, value: t.Any) -> str:
        return "<nil>" if value is None else self.item.dump(value)

    def encode(self, value: t.Any) -> str:
        return "null" if value is None else self.item.encode(value)


class RawExtension(GoType):
    """``runtime.RawExtension``: the JSON text as it stands in the file, or None for ``null``."""

    label = "runtime.RawExtension"

    def decode(self, node: Node, old: t.Any, path: str, into: Decoding) -> t.Any:
        return old if node.kind == "null" else into.text[node.start : node.end]

    def dump(self, value: t.Any) -> str:
        raw = "<nil>" if value is None else f"[{' '.join(str(byte) for byte in encode_text(value))}]"
        return f"{{Raw:([]uint8){raw} Object:(runtime.Object)<nil>}}"

    def encode(self, value: t.Any) -> str:
        return "null" if value is None else str(value)
