# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of dra-example-driver: the verdicts of both layouts' readers, and what is said about a file."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import example_driver as ex
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.bytedump import fnv_of_bytes

from . import vectors

EXPECTED: dict[str, dict[str, t.Any]] = json.loads(
    (vectors.FOLDER / "dra-example-driver" / "expected.json").read_text()
)
GOOD = '"kind":"Checkpoint","apiVersion":"checkpoint.internal.example.com/v1"'


def read(name: str) -> ex.ExampleReading:
    return ex.read_example_driver(vectors.read(f"dra-example-driver/{name}"))


def codes(reading: ex.ExampleReading) -> list[str]:
    return [finding.code for finding in reading.findings]


def new_verdict(text: str) -> tuple[bool | None, int | None, str]:
    verdict = ex.read_example_driver(text.encode("utf-8", "surrogateescape")).verdicts[ex.NEW]
    return None if verdict.error_class is None else verdict.ok, verdict.claims, verdict.go_message


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("version", ex.VERSIONS)
def test_verdicts(name: str, version: str) -> None:
    expected = EXPECTED[name][version]
    verdict = read(name).verdicts[version]
    assert (verdict.ok, verdict.claims, verdict.go_message) == (
        expected["ok"],
        expected.get("claims"),
        expected.get("error", ""),
    )


@pytest.mark.parametrize("name", [name for name in EXPECTED if "v1_checksum_ok" in EXPECTED[name]])
def test_checksums(name: str) -> None:
    pair = read(name).checksum
    assert (pair.stored, pair.computed, pair.ok) == tuple(
        EXPECTED[name][f"v1_checksum_{what}"] for what in ("stored", "computed", "ok")
    )


@pytest.mark.report("F052")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("v0.1-v0.2/empty", ["example_old_layout"]),
        ("v0.1-v0.2/four_claims_mixed", ["example_old_layout"]),
        ("v0.3-v0.4/three_claims", ["example_new_layout"]),
        (
            "v0.3-v0.4/empty_uid_and_duplicate",
            ["example_new_layout", "example_empty_uid", "example_duplicate_claim"],
        ),
        ("damaged_v0.1-v0.2/bad_checksum", ["example_checksum"]),
        ("damaged_v0.1-v0.2/truncated_half", ["example_unreadable"]),
        ("damaged_v0.3-v0.4/document_empty_object", ["example_no_claims"]),
        ("damaged_v0.3-v0.4/document_null", ["example_no_claims"]),
        ("damaged_v0.3-v0.4/empty_file", ["example_empty_file"]),
        ("damaged_v0.3-v0.4/foreign_kind", ["example_wrong_kind"]),
        ("damaged_v0.3-v0.4/future_apiVersion", ["example_wrong_kind"]),
        ("damaged_v0.3-v0.4/lowercase_key_variants", ["example_new_layout", "example_key_case"]),
        ("damaged_v0.3-v0.4/missing_kind_and_apiVersion", ["example_no_kind"]),
        ("damaged_v0.3-v0.4/wrong_type_uid", ["example_wrong_type"]),
        ("damaged_v0.3-v0.4/zero_filled_whole", ["example_unreadable"]),
    ],
)
def test_every_state_has_its_code(name: str, found: list[str]) -> None:
    assert codes(read(f"{name}.json")) == found


def test_good_files_raise_no_alarm_but_that_of_a_forgetful_upgrade() -> None:
    for name in EXPECTED:
        if name.startswith("v0") and "duplicate" not in name:
            for finding in read(name).findings:
                assert finding.severity == ("warning" if finding.facts.get("claims") and "v0.1" in name else "info")


def test_an_upgrade_that_forgets_claims_says_how_many() -> None:
    finding = read("v0.1-v0.2/four_claims_mixed.json").findings[0]
    assert "forgets 4 claims" in finding.text
    assert len(finding.facts["claims"]) == 4


def test_findings_are_plain_and_complete() -> None:
    for name in EXPECTED:
        for finding in read(name).findings:
            assert finding.place
            assert finding.text.endswith(".")
            assert finding.severity == "info" or finding.remedy
            json.dumps(finding.to_dict())


def test_claims_of_the_old_layout_have_devices() -> None:
    reading = read("v0.1-v0.2/four_claims_mixed.json")
    assert reading.layout == ex.OLD
    assert [(claim.uid[:8], len(claim.devices)) for claim in reading.claims] == [
        ("c0de0001", 1),
        ("c0de0002", 2),
        ("c0de0004", 1),
        ("c0de0005", 0),
    ]
    assert reading.claims[0].devices[0].to_dict() == {
        "kind": "",
        "pool": "node-1",
        "device": "gpu-1",
        "requests": ["gpu"],
        "cdi_devices": [
            "k8s.gpu.example.com/gpu=common",
            "k8s.gpu.example.com/gpu=c0de0001-1111-4222-8333-000000000001-gpu-1",
        ],
        "share_id": None,
        "uuid": "",
    }
    assert [claim.uid for claim in read("v0.3-v0.4/odd_uid.json").claims] == ['a<b>&"\\\n\u2028é😀']


def test_container_edits_are_written_again_as_they_were() -> None:
    edits = {
        "env": ["A=b"],
        "deviceNodes": [{"path": "/dev/x", "major": 1, "fileMode": 0, "uid": 0}, {"path": ""}, None],
        "hooks": [{"hookName": "h", "path": "p", "timeout": 0}],
        "mounts": [{"hostPath": "", "containerPath": "c", "options": ["ro"]}],
        "intelRdt": {"closID": "c", "enableCMT": True},
        "additionalGids": [5],
    }
    v1 = {"preparedClaims": {"u": [{"pool_name": "p", "ContainerEdits": edits}, {"ContainerEdits": {}}, None]}}
    text = json.dumps({"checksum": 0, "v1": v1}, separators=(",", ":"))
    data = json.dumps({"checksum": fnv_of_bytes(text), "v1": v1}).encode()
    assert ex.read_example_driver(data).verdicts[ex.OLD] == ("ok", "", 1)


def test_the_old_reader_has_an_empty_v1_before_it_reads() -> None:
    assert ex.read_example_driver(b'{"checksum":1083090442}').verdicts[ex.OLD].ok
    assert not ex.read_example_driver(b'{"checksum":1083090442,"v1":null}').verdicts[ex.OLD].ok


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param(f'{{{GOOD},"preparedClaims":[{{"uid":"a"}},null,{{}}]}}', (True, 3, ""), id="null claim"),
        pytest.param(f'{{{GOOD},"preparedClaims":null}}', (True, 0, ""), id="no list"),
        pytest.param(
            '{"Kind":"Checkpoint","APIVERSION":"checkpoint.internal.example.com/v1","preparedClaims":[{"UID":"a"}]}',
            (True, 1, ""),
            id="the kind is found in any case",
        ),
        pytest.param(
            '{"apiVersion":"checkpoint.internal.example.com/v1","preparedClaims":[{}]}', (True, 1, ""), id="v1"
        ),
        pytest.param('{"kind":"Checkpoint","preparedClaims":[{}]}', (True, 0, ""), id="kind only"),
        pytest.param('{"PreparedClaims":[{"UID":"a"}]}', (True, 1, ""), id="the internal type's own names"),
        pytest.param(
            '{"apiVersion":"v1"}',
            (False, None, 'unmarshal JSON from FILE: no kind "Checkpoint" is registered for version "v1"'),
            id="other group",
        ),
        pytest.param(
            '{"kind":"Other"}',
            (
                False,
                None,
                'unmarshal JSON from FILE: no kind "Other" is registered for the internal version of group '
                '"checkpoint.internal.example.com"',
            ),
            id="other kind",
        ),
        pytest.param(
            '{"apiVersion":"a/b/c"}',
            (False, None, "unmarshal JSON from FILE: unexpected GroupVersion string: a/b/c"),
            id="no version",
        ),
        pytest.param(
            '{"kind":7}',
            (
                False,
                None,
                "unmarshal JSON from FILE: couldn't get version/kind; json parse error: json: cannot unmarshal number "
                "into Go struct field .kind of type string",
            ),
            id="kind of the wrong type",
        ),
        pytest.param("\n \n", (True, 0, ""), id="blank"),
        pytest.param("kind: Checkpoint\n", (None, None, "not JSON; the driver tries to read it as YAML"), id="yaml"),
        pytest.param("off", (None, None, "not JSON; the driver tries to read it as YAML"), id="a word of yaml"),
    ],
)
def test_the_new_reader(text: str, verdict: tuple[bool | None, int | None, str]) -> None:
    assert new_verdict(text) == verdict


def test_yaml_is_not_called_broken() -> None:
    reading = ex.read_example_driver(b"kind: Checkpoint\n")
    assert codes(reading) == ["example_unreadable"]
    assert "YAML" in reading.findings[0].text
