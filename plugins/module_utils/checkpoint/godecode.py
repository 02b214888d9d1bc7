# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Filling a Go type from a document, and the error that ``json.Unmarshal`` would return for it.

Two kinds of error exist. A value of the wrong type is remembered and decoding goes on; the first one is what Go
returns. An error of a type's own ``UnmarshalJSON`` ends decoding on the spot, and what was complete by then stays.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .gojson import Node
from .gotypes import Decoding, GoType, Map, Pointer, Slice, Struct, TypeFault

_MOST_FAULTS = 50
_SHOWN = 80
_SHARED_LENGTH = 64
_MOST_SHARED = 10000
_NUMERIC = ("int", "uint", "float", "time.Duration", "checksum.Checksum", "os.FileMode")


class DecodeStoppedError(Exception):
    """A type's own ``UnmarshalJSON`` failed; the message is Go's.

    With ``fault`` the failure is a type error from inside, to which Go adds the place; the message is the type wanted.
    """

    def __init__(self, message: str, fault: Node | None = None) -> None:
        super().__init__(message)
        self.fault = fault


class _EnoughFaultsError(Exception):
    """So much is wrong that the rest of the value serves nobody."""


class Recorder(Decoding):
    """A decoding pass that also keeps the node of the first fault, and not more faults than anybody reads.

    Where the value itself does not matter once it is faulty, decoding ends with the last fault that is kept.
    """

    def __init__(self, text: str, to_the_end: bool) -> None:
        super().__init__(text)
        self.first: Node | None = None
        self.to_the_end = to_the_end
        self._shared: dict[str, str] = {}

    def shared(self, value: str) -> str:
        """The one object for a text that occurs again and again, as names of drivers, pools and requests do."""
        if len(value) > _SHARED_LENGTH:
            return value
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        return self._shared.setdefault(value, value)

    def mismatch(self, path: str, expected: str, node: Node) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(TypeFault(path, expected, node.kind))
            self.first = self.first or node
        elif not self.to_the_end:
            raise _EnoughFaultsError


@dataclasses.dataclass
class Decoded:
    """What a document left in a value: the value, Go's error text (empty when there is none), and the type faults.

    ``stopped`` tells that decoding ended early, so that members after that place are missing. ``first`` is the value
    that is of the wrong type, if that is the error.
    """

    value: t.Any
    go_message: str = ""
    faults: t.Sequence[TypeFault] = ()
    stopped: bool = False
    first: Node | None = None


def decode(form: GoType, root: Node, text: str, value: t.Any, to_the_end: bool = False) -> Decoded:
    """Read ``root`` over ``value``, which is changed in place as far as Go would.

    Of a document with very many faults the value is incomplete unless it is asked for ``to_the_end``.
    """
    recorder = Recorder(text, to_the_end)
    try:
        value = form.decode(root, value, "", recorder)
    except _EnoughFaultsError:
        pass
    except DecodeStoppedError as stop:
        message = str(stop)
        if stop.fault is not None:
            message = _type_error(form, root, stop.fault, text, message) or ""
        return Decoded(value, message, recorder.faults, stopped=True)
    if recorder.first is None:
        return Decoded(value)
    return Decoded(value, _type_error(form, root, recorder.first, text) or "", recorder.faults, first=recorder.first)


def same_error(form: GoType, root: Node, text: str, wider: Decoded) -> str | None:
    """The error for ``form``, when a type with the same fields and more has been decoded already with ``wider``.

    None where that does not tell, because the first fault is in a field that ``form`` has not.
    """
    return None if wider.first is None else _type_error(form, root, wider.first, text)


def _type_error(form: GoType, root: Node, fault: Node, text: str, type_name: str = "") -> str | None:
    """``UnmarshalTypeError.Error()`` for the value at ``fault``, None where decoding does not get there."""
    way = _way_to(form, root, fault.start)
    if way is None:
        return None
    struct, fields, wanted = way
    wanted = type_name or wanted
    value = fault.kind
    if value == "number" and wanted.startswith(_NUMERIC):
        spelled = text[fault.start : min(fault.end, fault.start + _SHOWN)]
        value = f"number {spelled}{'...' if fault.end - fault.start > _SHOWN else ''}"
    if fields:
        return f"json: cannot unmarshal {value} into Go struct field {struct}.{'.'.join(fields)} of type {wanted}"
    return f"json: cannot unmarshal {value} into Go value of type {wanted}"


def _way_to(form: GoType, node: Node, start: int) -> tuple[str, list[str], str] | None:
    """The innermost struct, the names of the fields that lead to the value at ``start``, and its Go type."""
    struct = ""
    fields: list[str] = []
    while True:
        while isinstance(form, Pointer):
            form = form.item
        if node.start == start:
            return struct, fields, form.label
        found: tuple[GoType, Node] | None = None
        if isinstance(form, Struct):
            for key, child in node.value:
                field = form.field_for(key)
                if field is not None and child.start <= start < child.end:
                    struct = "" if form.label.startswith("struct {") else form.label.rpartition(".")[2]
                    fields.append(field.go_name or field.name)
                    found = (field.type, child)
                    break
        elif isinstance(form, Map):
            found = next(
                ((form.item, child) for _unused, child in node.value if child.start <= start < child.end), None
            )
        elif isinstance(form, Slice):
            found = next(((form.item, child) for child in node.value if child.start <= start < child.end), None)
        if found is None:
            return None
        form, node = found
