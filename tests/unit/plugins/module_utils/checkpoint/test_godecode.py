# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoding, writing and error texts against what Go itself recorded; see fixtures/godecode."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import (
    godecode,
    gojson,
    gotime,
    health,
    lazyjson,
    nvidia_layouts,
)

RECORDED = json.loads(
    (pathlib.Path(__file__).parents[3] / "fixtures" / "godecode" / "recorded.json").read_text(encoding="utf-8")
)
PLUGIN = nvidia_layouts.LAYOUTS[nvidia_layouts.GPU][nvidia_layouts.VERSIONS.index(nvidia_layouts.V0_4)]


def recorded(kind: str) -> list[dict[str, t.Any]]:
    return [case for case in RECORDED if case["kind"] == kind]


def decoded(form: t.Any, data: bytes) -> godecode.Decoded:
    text = gojson.decode_bytes(data)
    return godecode.decode(form, lazyjson.read_root(text), text, form.zero())


@pytest.mark.parametrize("case", recorded("time"), ids=lambda case: repr(case["text"]))
def test_times_are_read_as_by_go(case: dict[str, t.Any]) -> None:
    if case["err"]:
        with pytest.raises(gotime.GoTimeError) as caught:
            gotime.parse_rfc3339(case["text"])
        assert str(caught.value) == case["err"]
        return
    moment = gotime.parse_rfc3339(case["text"])
    assert divmod(moment, 10**9) == (case["sec"], case["ns"])
    assert gotime.format_rfc3339(moment) == case["fmt"]


@pytest.mark.parametrize("case", recorded("nvidia"))
def test_documents_are_decoded_and_written_again_as_by_go(case: dict[str, t.Any]) -> None:
    found = decoded(PLUGIN.document, case["text"].encode("latin-1"))
    assert found.go_message.partition(" of type")[0] == case["err"]
    if case["err"]:
        return
    assert PLUGIN.document.encode({"checksum": 0, "v1": found.value["v1"]}) == case["v1"]
    if found.value["v2"] is None:
        assert "v2" not in case
    else:
        assert PLUGIN.v2 is not None
        assert PLUGIN.v2.encode({**found.value["v2"], "checksum": 0}) == case["v2"]


@pytest.mark.parametrize("case", recorded("nvidia"))
def test_one_decoding_serves_every_version(case: dict[str, t.Any]) -> None:
    data = case["text"].encode("latin-1")
    text = gojson.decode_bytes(data)
    root = lazyjson.read_root(text)
    wide = decoded(nvidia_layouts.DECODER[nvidia_layouts.GPU], data)
    if not wide.go_message:
        assert PLUGIN.document.encode({"checksum": 0, "v1": wide.value["v1"]}) == case["v1"]
        return
    error = godecode.same_error(PLUGIN.document, root, text, wide)
    assert error is None or error.partition(" of type")[0] == case["err"]


@pytest.mark.parametrize("case", recorded("health"))
def test_health_files_are_read_as_by_go(case: dict[str, t.Any]) -> None:
    verdict = health.read_health(case["text"].encode("latin-1")).verdicts[health.NEWEST]
    assert verdict == (not case["err"], case["devices"], case["panics"], case["err"])


def test_a_long_number_is_cut_in_the_message() -> None:
    found = decoded(PLUGIN.document, b'{"checksum":' + b"1" * 1000000 + b"}")
    number = "1" * 80
    assert found.go_message == (
        f"json: cannot unmarshal number {number}... into Go struct field Checkpoint.checksum of type checksum.Checksum"
    )


def test_an_error_from_inside_a_time_names_the_place() -> None:
    found = decoded(
        PLUGIN.document, b'{"v1":{"preparedClaims":{"u":{"status":{"allocation":{"allocationTimestamp":7}}}}}}'
    )
    assert found.stopped
    assert found.go_message == (
        "json: cannot unmarshal number into Go struct field "
        "AllocationResult.v1.preparedClaims.status.allocation.allocationTimestamp of type string"
    )


def test_not_more_faults_are_kept_than_anybody_reads() -> None:
    found = decoded(PLUGIN.document, b'{"v1":{"preparedClaims":{"u":{"preparedDevices":[' + b"1," * 5000 + b"1]}}}}")
    assert len(found.faults) == 50
    assert found.faults[0] == ("v1.preparedClaims[u].preparedDevices[0]", "object", "number")
