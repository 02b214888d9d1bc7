# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Bodies in the protobuf form of Kubernetes, for the few kinds that kubectl sends that way.

kubectl since 1.35 creates namespaces, config maps, service accounts and access reviews in protobuf. The form: four
bytes of magic, then a message with the type and the raw object. Only the fields that we know are read.
"""

from __future__ import annotations

import base64
import datetime
import typing as t

from .failures import bad_request
from .json_text import Json
from .settings import time_text

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

# Field number -> (name, type). Types: text, bytes, number, flag, time, map, bytes_map, or a table for a message; a
# list with one of these repeats.
_Table = t.Mapping[int, "tuple[str, t.Any]"]

_OWNER: _Table = {
    1: ("kind", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
    6: ("controller", "flag"),
    7: ("blockOwnerDeletion", "flag"),
}
_METADATA: _Table = {
    1: ("name", "text"),
    2: ("generateName", "text"),
    3: ("namespace", "text"),
    5: ("uid", "text"),
    6: ("resourceVersion", "text"),
    7: ("generation", "number"),
    8: ("creationTimestamp", "time"),
    11: ("labels", "map"),
    12: ("annotations", "map"),
    13: ("ownerReferences", [_OWNER]),
    14: ("finalizers", ["text"]),
}
_ATTRIBUTES: _Table = {
    number: (name, "text")
    for number, name in enumerate(("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1)
}
_REVIEW: _Table = {
    1: ("resourceAttributes", _ATTRIBUTES),
    2: ("nonResourceAttributes", {1: ("path", "text"), 2: ("verb", "text")}),
}
_KINDS: t.Mapping[tuple[str, str], _Table] = {
    ("v1", "Namespace"): {1: ("metadata", _METADATA), 2: ("spec", {1: ("finalizers", ["text"])})},
    ("v1", "ConfigMap"): {
        1: ("metadata", _METADATA),
        2: ("data", "map"),
        3: ("binaryData", "bytes_map"),
        4: ("immutable", "flag"),
    },
    ("v1", "ServiceAccount"): {1: ("metadata", _METADATA), 4: ("automountServiceAccountToken", "flag")},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {1: ("metadata", _METADATA), 2: ("spec", _REVIEW)},
}
_ENVELOPE: _Table = {1: ("type", {1: ("apiVersion", "text"), 2: ("kind", "text")}), 2: ("raw", "bytes")}


def can_read(data: bytes) -> bool:
    """Whether a body is protobuf of a kind that is known here."""
    return data.startswith(_MAGIC) and _type_of(data) in _KINDS


def _type_of(data: bytes) -> tuple[str, str]:
    kind = _message(data[len(_MAGIC) :], _ENVELOPE).get("type", {})
    return kind.get("apiVersion", ""), kind.get("kind", "")


def from_protobuf(data: bytes) -> Json:
    """The object as JSON would have it. ApiError 400 when the bytes are damaged."""
    api_version, kind = _type_of(data)
    envelope = _message(data[len(_MAGIC) :], _ENVELOPE)
    body = _message(base64.b64decode(envelope.get("raw", "")), _KINDS[api_version, kind])
    return {"apiVersion": api_version, "kind": kind, **body}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise bad_request("proto: unexpected end of the body")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _fields(data: bytes) -> t.Iterator[tuple[int, int | bytes]]:
    """Field number and value of each field: a number, or the bytes of whatever has a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = 0
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise bad_request(f"proto: wire type {wire} is not known")
        if at + size > len(data):
            raise bad_request("proto: unexpected end of the body")
        yield number, data[at : at + size]
        at += size


def _message(data: bytes, table: _Table) -> Json:
    result: Json = {}
    for number, value in _fields(data):
        if number not in table:
            continue
        name, kind = table[number]
        if isinstance(kind, list):
            result.setdefault(name, []).append(_value(value, kind[0]))
        elif kind in ("map", "bytes_map"):
            entry = _message(_bytes(value), {1: ("key", "text"), 2: ("value", "text" if kind == "map" else "bytes")})
            result.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        else:
            result[name] = _value(value, kind)
    return result


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise bad_request("proto: a number where bytes are expected")
    return value


def _value(value: int | bytes, kind: t.Any) -> t.Any:
    if isinstance(kind, dict):
        return _message(_bytes(value), kind)
    if kind in ("number", "flag"):
        return bool(value) if kind == "flag" else value
    if kind == "text":
        return _bytes(value).decode("utf-8", "replace")
    if kind == "time":
        seconds = _message(_bytes(value), {1: ("seconds", "number")}).get("seconds", 0)
        return time_text(datetime.datetime.fromtimestamp(min(seconds, 253402300799), datetime.timezone.utc))
    return base64.b64encode(_bytes(value)).decode()
