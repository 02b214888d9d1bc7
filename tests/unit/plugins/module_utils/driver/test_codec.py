# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims to bytes and bytes to devices. Bytes are written by hand where the point is the wire."""

from __future__ import annotations

import contextlib
import json
import random
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver import codec
from ansible_collections.nodeops.dra.plugins.module_utils.driver.claims import ClaimRef, Device, Health, ResourceHandle
from ansible_collections.nodeops.dra.plugins.module_utils.driver.errors import AnswerError
from ansible_collections.nodeops.dra.plugins.module_utils.wire.messages import api

CLAIM = ClaimRef("u-1", "team-a", "c1")
GENERATIONS = ["v1", "v1beta1", "v1alpha4"]


def message(api_name: str, name: str, **fields: t.Any) -> bytes:
    return api(api_name).message(name)(**fields).SerializeToString()


@pytest.mark.parametrize("generation", [*GENERATIONS, "v1alpha3"])
@pytest.mark.parametrize("prepare", [True, False])
def test_requests_of_claims_without_handles_are_the_same_in_every_batched_generation(
    generation: str, prepare: bool
) -> None:
    data = codec.encode_batch(codec.batch_method(generation, prepare), [(CLAIM, None)])
    assert data == b"\x0a\x11\x0a\x06team-a\x12\x03u-1\x1a\x02c1"


def test_handles_go_into_field_4_of_v1alpha3() -> None:
    data = codec.encode_batch(codec.batch_method("v1alpha3", True), [(CLAIM, ResourceHandle("d", "opaque"))])
    assert data == b"\x0a\x19\x0a\x06team-a\x12\x03u-1\x1a\x02c1\x22\x06opaque"


def test_structured_handles_replace_the_data() -> None:
    structured = {
        "vendorClassParameters": {"a": 1},
        "nodeName": "n",
        "results": [{"vendorRequestParameters": {"b": []}, "namedResources": {"name": "gpu-7"}}, {}],
    }
    handle = ResourceHandle("d", "ignored", structured)
    method = codec.batch_method("v1alpha3", True)
    (claim,) = t.cast("t.Any", method.request.FromString(codec.encode_batch(method, [(CLAIM, handle)]))).claims
    assert claim.resource_handle == ""
    (sent,) = claim.structured_resource_handle
    assert json.loads(sent.vendorClassParameters.raw) == {"a": 1}
    assert not sent.HasField("vendorClaimParameters")
    assert sent.nodeName == "n"
    assert json.loads(sent.results[0].vendorRequestParameters.raw) == {"b": []}
    assert sent.results[0].allocationResultModel.namedResources.name == "gpu-7"
    assert len(sent.results) == 2
    single = codec.single_method(True)
    request = t.cast("t.Any", single.request.FromString(codec.encode_single(single, CLAIM, handle)))
    assert request.structured_resource_handle[0].SerializeToString() == sent.SerializeToString()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_devices_and_errors_are_read(generation: str) -> None:
    device = {"request_names": ["a", "b"], "pool_name": "p", "device_name": "d", "cdi_device_ids": ["x.y/z=1"]}
    data = message(
        f"dra/{generation}",
        "NodePrepareResourcesResponse",
        claims={"u-1": {"devices": [device, {}]}, "u-2": {"devices": [device], "error": "no"}},
    )
    method = codec.batch_method(generation, True)
    expected = {"u-1": (Device("p", "d", ("a", "b"), ("x.y/z=1",)), Device("", "")), "u-2": "no"}
    assert codec.decode_prepare(method, data) == expected
    if generation == "v1alpha4":
        assert codec.decode_classic_prepare(data) == expected


def test_share_id_is_read_where_it_exists() -> None:
    data = message("dra/v1", "NodePrepareResourcesResponse", claims={"u-1": {"devices": [{"share_id": ""}, {}]}})
    first, second = codec.decode_prepare(codec.batch_method("v1", True), data)["u-1"]
    assert (first.share_id, second.share_id) == ("", None)
    # An older generation takes the same bytes and knows no share.
    assert codec.decode_prepare(codec.batch_method("v1beta1", True), data)["u-1"] == (Device("", ""), Device("", ""))


@pytest.mark.report("F015")
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(
    "entry", [b"\x0a\x03u-1\x12\x00", b"\x0a\x03u-1"], ids=["empty message", "message not even there"]
)
def test_a_claim_with_an_empty_answer_is_success_without_devices(generation: str, entry: bytes) -> None:
    data = b"\x0a" + bytes([len(entry)]) + entry
    assert codec.decode_prepare(codec.batch_method(generation, True), data) == {"u-1": ()}
    assert codec.decode_classic_prepare(data) == {"u-1": ()}
    assert codec.decode_unprepare(codec.batch_method(generation, False), data) == {"u-1": ()}


@pytest.mark.report("F028")
def test_answers_of_one_path_are_told_apart_by_their_shape() -> None:
    old = message(
        "dra/v1alpha3", "NodePrepareResourcesResponse", claims={"u-1": {"cdi_devices": ["a.b/c=1", "a.b/c=2"]}}
    )
    assert codec.decode_classic_prepare(old) == {"u-1": (Device("", "", (), ("a.b/c=1", "a.b/c=2")),)}
    names = ["n" * 300, "é" * 100]  # lengths and characters that are no text when read as the other shape
    new = message(
        "dra/v1alpha4",
        "NodePrepareResourcesResponse",
        claims={name: {"devices": [{"pool_name": name, "cdi_device_ids": ["a.b/c=1"]}]} for name in names},
    )
    assert codec.decode_classic_prepare(new) == {name: (Device(name, "", (), ("a.b/c=1",)),) for name in names}


@pytest.mark.report("F028")
def test_every_device_is_told_from_a_cdi_name() -> None:
    chance = random.Random(7)
    for _unused in range(300):
        text = [chance.choice(["", "a", "gpu", "x" * 130]) for _unused in range(4)]
        fields = {"request_names": [text[0]], "pool_name": text[1], "device_name": text[2], "cdi_device_ids": [text[3]]}
        data = message("dra/v1alpha4", "NodePrepareResourcesResponse", claims={"u": {"devices": [fields]}})
        assert codec.decode_classic_prepare(data) == {"u": (Device(text[1], text[2], (text[0],), (text[3],)),)}


def test_error_texts_are_read_in_the_old_shape() -> None:
    data = message("dra/v1alpha3", "NodePrepareResourcesResponse", claims={"u-1": {"error": "é no"}})
    assert codec.decode_classic_prepare(data) == {"u-1": "é no"}


def test_nonsense_is_an_answer_error_with_the_length() -> None:
    for decode in (
        lambda data: codec.decode_prepare(codec.batch_method("v1", True), data),
        codec.decode_classic_prepare,
        lambda data: codec.decode_unprepare(codec.batch_method("v1", False), data),
        lambda data: codec.decode_single_prepare(codec.single_method(True), data),
        lambda data: codec.decode_health(codec.health_method("v1"), data),
    ):
        with pytest.raises(AnswerError, match=r"4 bytes are no .*Response"):
            decode(b"\xff\xff\xff\xff")


@pytest.mark.parametrize("shape", ["v1alpha3", "v1alpha4"])
def test_damaged_answers_give_devices_or_an_answer_error(shape: str) -> None:
    entry = {"cdi_devices": ["a.b/c=1"]} if shape == "v1alpha3" else {"devices": [{"pool_name": "p"}]}
    data = message(f"dra/{shape}", "NodePrepareResourcesResponse", claims={"u-1": entry, "u-2": {"error": "x"}})
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with contextlib.suppress(AnswerError):
                codec.decode_classic_prepare(bytes(damaged))
        with contextlib.suppress(AnswerError):
            codec.decode_classic_prepare(data[:position])


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_health_reports_are_normalised(version: str) -> None:
    def entry(name: str, **fields: t.Any) -> dict[str, t.Any]:
        return {"device": {"pool_name": "p", "device_name": name}, **fields}

    data = message(
        f"health/{version}",
        "NodeWatchResourcesResponse",
        devices=[
            entry("d0", health=1, health_check_timeout_seconds=7),
            entry("d1", health=2, health_check_timeout_seconds=-1, message="é" * 600),
            entry("d2", health=9),
            {},
        ],
    )
    reports = codec.decode_health(codec.health_method(version), data)
    assert [(r.device_name, r.health, r.timeout) for r in reports] == [
        ("d0", Health.HEALTHY, 7.0),
        ("d1", Health.UNHEALTHY, 30.0),
        ("d2", Health.UNKNOWN, 30.0),
        ("", Health.UNKNOWN, 30.0),
    ]
    assert reports[1].message == "é" * 510 + "..."
    assert len(reports[1].message.encode()) <= 1024
