# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Bodies in protobuf, as kubectl sends them for a few kinds."""

from __future__ import annotations

import random
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver import protobuf_bodies
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.failures import ApiError


def field(number: int, value: bytes) -> bytes:
    """A field with a length below 128."""
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


METADATA = field(1, b"team-a") + field(11, field(1, b"a") + field(2, b"b")) + field(14, b"x.example/y")
NAMESPACE = envelope(b"v1", b"Namespace", field(1, METADATA) + field(3, b"") + field(2, field(1, b"kubernetes")))


def test_a_namespace() -> None:
    assert protobuf_bodies.can_read(NAMESPACE)
    assert protobuf_bodies.from_protobuf(NAMESPACE) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team-a", "labels": {"a": "b"}, "finalizers": ["x.example/y"]},
        "spec": {"finalizers": ["kubernetes"]},
    }


def test_numbers_flags_and_times() -> None:
    owner = field(4, b"u") + bytes([6 << 3, 1])
    metadata = bytes([7 << 3, 0xAC, 0x02]) + field(8, bytes([1 << 3, 0x80, 0x9C, 0xDF, 0xB0, 0x06])) + field(13, owner)
    raw = field(1, metadata) + bytes([4 << 3, 1])
    body = protobuf_bodies.from_protobuf(envelope(b"v1", b"ConfigMap", raw))
    assert body["immutable"] is True
    assert body["metadata"]["generation"] == 300
    assert body["metadata"]["creationTimestamp"].startswith("2024-")
    assert body["metadata"]["ownerReferences"] == [{"uid": "u", "controller": True}]


@pytest.mark.parametrize(
    "data", [b"{}", b"k8s\x00", envelope(b"v1", b"Pod", b""), envelope(b"v2", b"Namespace", b"")], ids=repr
)
def test_what_is_not_known(data: bytes) -> None:
    assert not protobuf_bodies.can_read(data)


def code_of(data: bytes) -> int:
    """Status code that a body leads to; 0 when it can be read."""
    try:
        if protobuf_bodies.can_read(data):
            protobuf_bodies.from_protobuf(data)
    except ApiError as refusal:
        return refusal.code
    return 0


def test_damage_is_refused_or_read_but_never_worse() -> None:
    source = random.Random(7)
    for _round in range(2000):
        data = bytearray(NAMESPACE)
        for _change in range(source.randint(1, 3)):
            data[source.randrange(4, len(data))] = source.randrange(256)
        assert code_of(bytes(data[: source.randint(4, len(data))])) in (0, 400)


@pytest.mark.asyncio
async def test_through_the_server(client: t.Any) -> None:
    media_type = protobuf_bodies.MEDIA_TYPE
    status, _data, headers = await client.raw("POST", "/api/v1/namespaces", NAMESPACE, media_type)
    assert (status, headers["Content-Type"].partition(";")[0]) == (201, "application/json")
    unknown = envelope(b"v1", b"Pod", b"")
    status, _answer = await client.ask("POST", "/api/v1/namespaces/default/pods", unknown, media_type)
    assert status == 415
