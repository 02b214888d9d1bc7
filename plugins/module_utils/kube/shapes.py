# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Turning JSON from the API into objects that hold only the fields that are used.

msgspec skips what a type does not name without making an object of it, so the price of a field nobody reads is a scan.
A shape is any type that msgspec decodes. Two kinds are meant:

- a ``TypedDict``: the result is a plain dict with just the named keys, ready for ``resource/``;
- a dataclass with snake_case fields: ``struct_of`` turns it into a msgspec Struct (``resourceVersion`` in the JSON
  becomes ``resource_version``), a few dozen bytes an object. The dataclass itself is only the description, since
  msgspec may not be imported when a module is loaded; attributes are the same, ``isinstance`` is not.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing as t

T = t.TypeVar("T")

#: What comes from the network.
Buffer = t.Union[bytes, bytearray, memoryview]


class RawJson:
    """In a shape: this value is kept as bytes, to be decoded later. At run time it is a ``msgspec.Raw``."""


def struct_of(shape: type[T]) -> type[T]:
    """The msgspec Struct for a dataclass; any other type unchanged.

    Fields are renamed to camelCase unless ``dataclasses.field(metadata={"json": "name"})`` says otherwise; a trailing
    underscore (``continue_``) is not part of the JSON name. Methods and properties of the dataclass come along.
    """
    return t.cast("type[T]", _converted(shape))


def decoder(shape: type[T]) -> t.Callable[[Buffer], T]:
    """A function from JSON bytes to ``shape``. It raises ``ValueError`` when the bytes are something else."""
    return t.cast("t.Callable[[Buffer], T]", _decoder(t.cast("t.Hashable", shape)))


def encode(value: t.Any) -> bytes:
    """JSON bytes of dicts, lists and scalars."""
    import msgspec

    return msgspec.json.encode(value)


def decode_any(raw: Buffer) -> t.Any:
    """Plain dicts, lists and scalars of JSON bytes. Raises ``ValueError`` when they are no JSON."""
    import msgspec

    return msgspec.json.decode(raw)


@functools.cache
def _decoder(shape: t.Any) -> t.Any:
    import msgspec

    return msgspec.json.Decoder(_converted(shape)).decode


def _camel(name: str) -> str:
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


@functools.cache
def _struct(shape: type) -> type:
    import msgspec

    hints = t.get_type_hints(shape)
    fields: list[t.Any] = []
    names: dict[str, str] = {}
    for field in dataclasses.fields(shape):
        names[field.name] = field.metadata.get("json") or _camel(field.name)
        entry: tuple[t.Any, ...] = (field.name, _converted(hints[field.name]))
        if field.default is not dataclasses.MISSING:
            entry += (field.default,)
        elif field.default_factory is not dataclasses.MISSING:
            entry += (msgspec.field(default_factory=_factory(field.default_factory)),)
        fields.append(entry)
    extras = {
        name: value
        for name, value in vars(shape).items()
        if isinstance(value, (types.FunctionType, property, classmethod, staticmethod)) and not name.startswith("__")
    }
    return msgspec.defstruct(
        shape.__name__, fields, rename=names, namespace=extras, module=shape.__module__, frozen=True, gc=False
    )


def _factory(factory: t.Any) -> t.Any:
    """A default that is itself a shape has to become its Struct too."""
    return _struct(factory) if isinstance(factory, type) and dataclasses.is_dataclass(factory) else factory


def _converted(hint: t.Any) -> t.Any:
    """The type with every dataclass and ``RawJson`` inside it replaced."""
    if hint is RawJson:
        import msgspec

        return msgspec.Raw
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _struct(hint)
    arguments = t.get_args(hint)
    if not arguments:
        return hint
    converted = tuple(_converted(argument) for argument in arguments)
    if converted == arguments:
        return hint
    origin = t.get_origin(hint)
    if origin is t.Union or origin is getattr(types, "UnionType", None):
        return t.Union[converted]
    return t.cast("t.Any", origin)[converted]


# Shapes that every part of this layer reads.


@dataclasses.dataclass(frozen=True)
class HeadMeta:
    """The metadata that identifies an object and its state."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


@dataclasses.dataclass(frozen=True)
class Head:
    """Any object, by its metadata alone."""

    metadata: HeadMeta = dataclasses.field(default_factory=HeadMeta)


@dataclasses.dataclass(frozen=True)
class ListMeta:
    """Metadata of a list page; ``continue_`` is empty on the last one."""

    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None


@dataclasses.dataclass(frozen=True)
class ListPage:
    """One page of a list with its items still as bytes."""

    metadata: ListMeta = dataclasses.field(default_factory=ListMeta)
    items: list[RawJson] | None = None


def meta_of(obj: t.Any) -> HeadMeta:
    """Name, namespace, UID and resourceVersion of a decoded object, dict or struct."""
    if isinstance(obj, dict):
        metadata = obj.get("metadata") or {}
        return t.cast("type[HeadMeta]", _struct(HeadMeta))(
            metadata.get("name", ""),
            metadata.get("namespace", ""),
            metadata.get("uid", ""),
            metadata.get("resourceVersion", ""),
        )
    return t.cast("HeadMeta", obj.metadata)
