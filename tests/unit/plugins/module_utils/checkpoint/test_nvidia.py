# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the NVIDIA plugins: checksums, the verdict of five versions, and what is said about a file."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import nvidia
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.bytedump import fnv_of_bytes
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.findings import Finding
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.nvidia_layouts import (
    COMPUTE_DOMAIN,
    GPU,
    MAIN,
    V0_4,
    V25_3,
    V25_8,
    V25_12,
    VERSIONS,
)

from . import vectors

EXPECTED: dict[str, dict[str, t.Any]] = json.loads((vectors.FOLDER / "nvidia" / "expected.json").read_text())
BOOT = "0f8fad5b-d9cb-469f-a165-70867728950e"
CLAIM = "c0de0001-1111-4222-8333-000000000001"


def read(name: str, **options: t.Any) -> nvidia.NvidiaReading:
    return nvidia.read_nvidia(vectors.read(f"nvidia/{name}"), **options)


def by_code(reading: nvidia.NvidiaReading) -> dict[str, Finding]:
    return {finding.code: finding for finding in reading.findings}


def sealed(v1: t.Any, v2: t.Any = None) -> bytes:
    """A file with right checksums for its own members."""
    text = json.dumps({"checksum": 0, **({} if v1 is None else {"v1": v1})}, separators=(",", ":"))
    document = {"checksum": fnv_of_bytes(text)}
    if v1 is not None:
        document["v1"] = v1
    if v2 is not None:
        text = json.dumps({"checksum": 0, **v2}, separators=(",", ":"))
        document["v2"] = {"checksum": fnv_of_bytes(text), **v2}
    return json.dumps(document, separators=(",", ":")).encode()


STATUS = {"allocation": {"devices": {"results": [{"request": "r", "driver": GPU, "pool": "n", "device": "gpu-0"}]}}}
DEVICE = {"Requests": ["r"], "PoolName": "n", "DeviceName": "gpu-0", "CDIDeviceIDs": ["a/b=c"]}


def claim(devices: t.Any, state: str = "PrepareCompleted", **more: t.Any) -> dict[str, t.Any]:
    groups = [{"devices": devices, "configState": {"mpsControlDaemonID": ""}}]
    return {"checkpointState": state, "status": STATUS, "preparedDevices": groups, **more}


@pytest.mark.parametrize("name", EXPECTED)
def test_checksums_and_verdicts(name: str) -> None:
    expected = EXPECTED[name]
    reading = read(name, driver=expected["driver"])
    verdict = reading.verdicts[expected["written_by"] or name.split("/")[1].rpartition("_")[2]]
    assert {
        "v1_checksum_stored": reading.v1.stored,
        "v1_checksum_computed": reading.v1.computed,
        "v1_checksum_ok": reading.v1.ok,
        "v2_checksum_stored": reading.v2.stored,
        "v2_checksum_computed": reading.v2.computed,
        "v2_checksum_ok": reading.v2.ok,
        "error_class": verdict.error_class,
        "claims_loaded": verdict.claims,
        "readable_by": list(reading.readable_by),
        "go_error": verdict.go_message or None,
    } == {key: expected.get(key) for key in (*KEYS, "go_error")}


KEYS = [f"v{part}_checksum_{what}" for part in (1, 2) for what in ("stored", "computed", "ok")] + [
    "error_class",
    "claims_loaded",
    "readable_by",
]


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]["written_by"]])
def test_the_writing_version_is_among_the_guesses(name: str) -> None:
    expected = EXPECTED[name]
    reading = read(name)
    assert expected["written_by"] in reading.written_by
    assert reading.layout == ("v1" if expected["written_by"] == V25_3 else "v1+v2")
    assert reading.driver == expected["driver"] or not reading.claims
    severe = {finding.code for finding in reading.findings if finding.severity != "info"}
    assert severe <= {"nvidia_prepare_started"}


@pytest.mark.parametrize(
    ("name", "writers"),
    [
        ("v25.3.0/one_claim", (V25_3,)),
        ("v25.8.0/one_claim", (V25_8, V25_12, V0_4)),
        ("v25.12.0/one_claim", (V25_12, V0_4)),
        ("v0.4.1/one_claim", (V0_4,)),
        ("main-2026-08-07/one_claim", (MAIN,)),
    ],
)
def test_who_could_have_written_a_file(name: str, writers: tuple[str, ...]) -> None:
    assert read(f"gpu.nvidia.com/{name}.json").written_by == writers


@pytest.mark.report("F045")
def test_an_undamaged_file_of_another_version_is_told_apart_from_a_damaged_one() -> None:
    skew = by_code(read("gpu.nvidia.com/v0.4.1/two_claims_mixed.json"))["nvidia_version_skew"]
    assert skew.severity == "info"
    assert skew.facts["readable_by"] == [V0_4]
    assert skew.facts["reasons"] == {
        V25_3: "it expects info, not concrete, for a MIG device",
        V25_8: "it does not know nodeBootID, it does not know the name and namespace of a claim, "
        "it expects info, not concrete, for a MIG device",
        V25_12: "it does not know nodeBootID",
        MAIN: "it leaves out an empty mpsControlDaemonID",
    }


# The table of which version refuses what: file, refused by.
@pytest.mark.parametrize(
    ("name", "refused_by"),
    [
        ("gpu.nvidia.com/v25.3.0/one_claim.json", [MAIN]),
        ("gpu.nvidia.com/v25.8.0/one_claim.json", [MAIN]),
        ("gpu.nvidia.com/v25.3.0/two_claims_mixed.json", [V25_12, V0_4, MAIN]),
        ("gpu.nvidia.com/v25.8.0/two_claims_mixed.json", [V25_12, V0_4, MAIN]),
        ("gpu.nvidia.com/v25.12.0/one_claim.json", [V25_8, MAIN]),
        ("gpu.nvidia.com/v25.12.0/two_claims_mixed.json", [V25_3, V25_8, MAIN]),
        ("gpu.nvidia.com/v0.4.1/one_claim.json", [V25_8, V25_12, MAIN]),
        ("gpu.nvidia.com/v0.4.1/two_claims_mixed.json", [V25_3, V25_8, V25_12, MAIN]),
        ("gpu.nvidia.com/main-2026-08-07/one_claim.json", [V25_3, V25_8, V25_12, V0_4]),
        ("gpu.nvidia.com/main-2026-08-07/empty.json", [V25_8, V25_12]),
        ("compute-domain.nvidia.com/v0.4.1/two_claims_mixed.json", [V25_8, V25_12]),
        ("compute-domain.nvidia.com/v25.12.0/two_claims_mixed.json", []),
    ],
)
def test_version_skew_names_who_refuses(name: str, refused_by: list[str]) -> None:
    skew = by_code(read(name)).get("nvidia_version_skew")
    assert (skew.facts["refused_by"] if skew else []) == refused_by
    if skew:
        assert "it would write the file differently" not in skew.facts["reasons"].values()
    for version in VERSIONS:
        told = by_code(read(name, plugin_version=version)).get("nvidia_version_skew")
        assert (told is not None and told.severity == "error") == (version in refused_by)


@pytest.mark.report("F048")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("bad_v1_checksum", {"nvidia_checksum_v1"}),
        ("bad_v2_checksum", {"nvidia_checksum_v2"}),
        ("document_empty_object", {"nvidia_checksum_v1"}),
        ("document_null", {"nvidia_checksum_v1"}),
        ("empty_file", {"nvidia_unreadable"}),
        ("not_json_text", {"nvidia_unreadable"}),
        ("truncated_half", {"nvidia_unreadable"}),
        ("two_documents", {"nvidia_unreadable"}),
        ("unknown_field_in_v1", {"nvidia_unknown_field", "nvidia_version_skew"}),
        ("unknown_top_level_field", {"nvidia_version_skew"}),
        ("keys_reordered_in_v1", {"nvidia_version_skew"}),
        ("v1_removed", {"nvidia_checksum_v1"}),
        ("value_changed_stale_checksums", {"nvidia_checksum_v1", "nvidia_checksum_v2"}),
        ("zero_filled_whole", {"nvidia_unreadable"}),
    ],
)
def test_every_damage_has_its_code(name: str, found: set[str]) -> None:
    for driver in (GPU, COMPUTE_DOMAIN):
        assert set(by_code(read(f"damaged/{driver}_v0.4.1/{name}.json", driver=driver))) == found


def test_a_checksum_finding_says_what_would_be_forgotten_and_how_to_go_on() -> None:
    finding = by_code(read("damaged/gpu.nvidia.com_v0.4.1/bad_v2_checksum.json"))["nvidia_checksum_v2"]
    assert finding.place == "v2.checksum"
    assert finding.facts == {
        "stored": 3878613890,
        "computed": 3878613891,
        "claims": [CLAIM],
        "claims_total": 1,
    }
    assert "checksum 3878613890, its v2 gives 3878613891" in finding.text
    assert "cp.lock" in finding.remedy


def test_findings_are_plain_and_complete() -> None:
    for name in EXPECTED:
        for finding in read(name, boot_id="another", driver=EXPECTED[name]["driver"]).findings:
            assert finding.place
            assert finding.text.endswith(".")
            assert finding.severity == "info" or finding.remedy
            json.dumps(finding.to_dict())


@pytest.mark.report("F050")
def test_a_file_from_before_a_reboot() -> None:
    name = "gpu.nvidia.com/v0.4.1/one_claim.json"
    assert read(name).written_in_this_boot is None
    same = read(name, boot_id=f"{BOOT}\n")
    assert (same.written_in_this_boot, "nvidia_boot_id_differs" in by_code(same)) == (True, False)
    other = read(name, boot_id="11111111-d9cb-469f-a165-70867728950e")
    assert other.written_in_this_boot is False
    assert by_code(other)["nvidia_boot_id_differs"].facts["claims"] == [CLAIM]
    without = read("gpu.nvidia.com/v25.12.0/one_claim.json", boot_id=BOOT)
    assert without.written_in_this_boot is None
    assert "nvidia_boot_id_missing" in by_code(without)


@pytest.mark.report("F054")
def test_half_prepared_claims() -> None:
    reading = read("compute-domain.nvidia.com/v0.4.1/prepare_started_and_completed.json")
    assert sorted(claim.state for claim in reading.claims) == ["PrepareCompleted", "PrepareStarted"]
    finding = by_code(reading)["nvidia_prepare_started"]
    assert finding.severity == "warning"
    assert finding.place == f'v2.preparedClaims["{finding.facts["claim_uid"]}"]'


def test_claims_with_everything_the_file_has() -> None:
    reading = read("gpu.nvidia.com/v0.4.1/two_claims_mixed.json")
    assert [entry.uid for entry in reading.claims] == [CLAIM, "c0de0002-1111-4222-8333-000000000002"]
    assert reading.boot_id == BOOT
    assert reading.claims[1].to_dict() == {
        "uid": "c0de0002-1111-4222-8333-000000000002",
        "name": "claim-2",
        "namespace": "team-<a>&b",
        "state": "PrepareCompleted",
        "devices": [
            {
                "kind": "gpu",
                "pool": "node-1",
                "device": "gpu-2",
                "requests": ["gpu"],
                "cdi_devices": ["k8s.gpu.nvidia.com/claim=c0de0002-1111-4222-8333-000000000002-gpu-2"],
                "share_id": None,
                "uuid": "GPU-4404041a-04cf-1ccf-9e70-000000000002",
            },
            {
                "kind": "mig",
                "pool": "node-1",
                "device": "gpu-1-mig-3",
                "requests": [],
                "cdi_devices": [],
                "share_id": None,
                "uuid": "MIG-4404041a-04cf-1ccf-9e70-000000000003",
            },
        ],
        "pods": ["b0d00001-aaaa-4bbb-8ccc-000000000001"],
        "pod_names": ["pod-2"],
    }
    old = read("gpu.nvidia.com/v25.3.0/two_claims_mixed.json").claims[1]
    assert (old.name, old.state, old.devices[1].uuid) == ("", "PrepareCompleted", reading.claims[1].devices[1].uuid)
    channel = read("compute-domain.nvidia.com/v25.3.0/one_claim.json").claims[0].devices[0]
    assert (channel.kind, channel.device) == ("channel", "channel-1")


def test_the_rest_of_a_claim_s_status_is_written_again_as_it_was() -> None:
    """Fields that the recorded files do not have, each as its type writes it."""
    result = {
        **STATUS["allocation"]["devices"]["results"][0],
        "adminAccess": False,
        "tolerations": [{"key": "k", "tolerationSeconds": 0}, {"operator": "Exists"}],
        "bindingConditions": ["c"],
        "shareID": "",
        "consumedCapacity": {"memory": "1536Mi", "slots": "0"},
    }
    status = {
        "allocation": {
            "devices": {
                "results": [result],
                "config": [
                    {"source": "FromClass", "opaque": {"driver": GPU, "parameters": {"b": 1.50, "a": [None]}}},
                    {"source": "FromClaim", "requests": ["r"], "opaque": {"driver": "x", "parameters": None}},
                ],
            },
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "n", "operator": "In", "values": ["v"]}]}, {}]
            },
            "allocationTimestamp": "2026-05-14T10:11:12Z",
        },
        "reservedFor": [{"apiGroup": "g", "resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {
                "driver": "d",
                "pool": "p",
                "device": "x",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "observedGeneration": 3,
                        "lastTransitionTime": None,
                        "reason": "r",
                        "message": "",
                    }
                ],
                "data": {"k": 1},
                "networkData": {"ips": ["10.0.0.1/32"]},
            },
            {"driver": "", "pool": "", "device": "", "conditions": None},
        ],
    }
    entry = {**claim([{"gpu": {"info": {"uuid": "G"}, "device": DEVICE}, "mig": None}]), "status": status}
    old = {key: entry[key] for key in ("status", "preparedDevices")}
    data = sealed({"preparedClaims": {CLAIM: old}}, {"preparedClaims": {CLAIM: entry}})
    assert nvidia.read_nvidia(data, driver=GPU).readable_by == (V25_3, V25_8, V25_12, V0_4)


@pytest.mark.parametrize(
    ("entry", "readers"),
    [
        pytest.param({"vfio": {"info": {"uuid": "V"}, "device": DEVICE}}, (V25_12, V0_4), id="vfio"),
        pytest.param(
            {"vfio": {"info": {"uuid": "V", "pciBusID": "0:1"}, "device": DEVICE}}, (V0_4,), id="vfio with bus"
        ),
    ],
)
def test_devices_that_only_some_versions_know(entry: dict[str, t.Any], readers: tuple[str, ...]) -> None:
    whole = claim([{"gpu": None, "mig": None, **entry}], name="n", namespace="s")
    old = {key: whole[key] for key in ("status", "preparedDevices")}
    reading = nvidia.read_nvidia(sealed({"preparedClaims": {"u": old}}, {"preparedClaims": {"u": whole}}), driver=GPU)
    assert reading.readable_by == readers
    assert [device.kind for device in reading.claims[0].devices] == ["vfio"]


@pytest.mark.parametrize(
    ("more", "readers"),
    [
        ({"ShareID": "s"}, (V0_4, MAIN)),
        ({"ShareID": ""}, (V0_4, MAIN)),
        ({"ShareID": None}, ()),
        (
            {"Metadata": {"Attributes": {"model": {"string": ""}, "n": {"ints": [1]}}, "NetworkData": None}},
            (V0_4, MAIN),
        ),
    ],
)
def test_what_a_shared_device_has_more(more: dict[str, t.Any], readers: tuple[str, ...]) -> None:
    device = {"channel": {"info": {"id": 0}, "device": {**DEVICE, **more}}, "daemon": None}
    groups = [{"devices": [device], "configState": {"Type": "channel", "ComputeDomain": "c"}}]
    old = {"status": STATUS, "preparedDevices": groups}
    whole = {"checkpointState": "PrepareCompleted", **old}
    data = sealed({"preparedClaims": {"u": old}}, {"preparedClaims": {"u": whole}})
    reading = nvidia.read_nvidia(data, driver=COMPUTE_DOMAIN)
    assert reading.readable_by == readers
    assert reading.claims[0].devices[0].share_id == more.get("ShareID")
    assert ("nvidia_unknown_version" in by_code(reading)) == (not readers)


def test_an_aborted_claim_is_known_from_0_4_on() -> None:
    entry = {
        "checkpointState": "PrepareAborted",
        "status": STATUS,
        "name": "n",
        "namespace": "s",
        "abortedAt": "2026-05-14T10:11:12Z",
    }
    reading = nvidia.read_nvidia(sealed({}, {"preparedClaims": {"u": entry}}), driver=COMPUTE_DOMAIN)
    assert reading.readable_by == (V25_3, V0_4, MAIN)
    assert set(by_code(reading)) == {"nvidia_prepare_aborted", "nvidia_version_skew"}
    gpu = nvidia.read_nvidia(sealed({}, {"preparedClaims": {"u": {**entry, "abortedAt": None}}}), driver=GPU)
    assert "nvidia_unknown_state" in by_code(gpu)


@pytest.mark.parametrize(
    ("groups", "place"),
    [
        ([None], "[0]"),
        ([{"devices": [{"gpu": None, "mig": None}], "configState": {"mpsControlDaemonID": ""}}], "[0].devices[0]"),
        (
            [
                {
                    "devices": [{"gpu": {"info": None, "device": None}, "mig": None}],
                    "configState": {"mpsControlDaemonID": ""},
                }
            ],
            "[0].devices[0]",
        ),
    ],
)
def test_null_entries_load_and_hurt_later(groups: t.Any, place: str) -> None:
    entry = {"checkpointState": "PrepareCompleted", "status": STATUS, "preparedDevices": groups}
    old = {"status": STATUS, "preparedDevices": groups}
    reading = nvidia.read_nvidia(sealed({"preparedClaims": {"u": old}}, {"preparedClaims": {"u": entry}}), driver=GPU)
    assert V0_4 in reading.readable_by
    assert by_code(reading)["nvidia_null_device"].place == f'v2.preparedClaims["u"].preparedDevices{place}'


def test_a_claim_without_its_allocation() -> None:
    entry = {"checkpointState": "PrepareCompleted", "status": {}}
    reading = nvidia.read_nvidia(sealed({"preparedClaims": {"u": {"status": {}}}}, {"preparedClaims": {"u": entry}}))
    assert by_code(reading)["nvidia_no_allocation"].place == 'v2.preparedClaims["u"].status'


def release_candidate(checksum: int | None = None) -> bytes:
    device = {"request_names": ["channel"], "pool_name": "n", "device_name": "channel-1", "cdi_device_ids": ["a/b=c"]}
    group = {
        "devices": [{"channel": {"info": {"id": 1}, "device": device}, "daemon": None}],
        "configState": {"Type": "channel", "ComputeDomain": "c"},
    }
    document = json.loads(sealed({"preparedClaims": {"u": [group]}}))
    return json.dumps({**document, **({} if checksum is None else {"checksum": checksum})}).encode()


def test_the_compute_domain_plugin_reads_the_layout_of_a_release_candidate() -> None:
    reading = nvidia.read_nvidia(release_candidate(), driver=COMPUTE_DOMAIN)
    assert reading.layout == "v1-2503rc2"
    assert reading.readable_by == VERSIONS
    assert [(device.device, device.requests) for device in reading.claims[0].devices] == [("channel-1", ("channel",))]
    broken = nvidia.read_nvidia(release_candidate(7), driver=COMPUTE_DOMAIN).verdicts[V0_4]
    assert broken == (
        "checksum_mismatch",
        "error verifying checksum for main.Checkpoint2503RC2: checkpoint is corrupted",
        None,
    )
    assert nvidia.read_nvidia(release_candidate(), driver=GPU).verdicts[V0_4].error_class == "wrong_type"


@pytest.mark.parametrize(
    ("data", "gpu"),
    [
        (b"[]", "json: cannot unmarshal array into Go value of type main.Checkpoint"),
        (
            b'{"checksum":-1}',
            "json: cannot unmarshal number -1 into Go struct field Checkpoint.checksum of type checksum.Checksum",
        ),
        (
            b'{"v1":{"preparedClaims":{"u":{"preparedDevices":{}}}}}',
            "json: cannot unmarshal object into Go struct field PreparedClaimV1.v1.preparedClaims.preparedDevices "
            "of type main.PreparedDevices",
        ),
    ],
)
def test_wrong_types(data: bytes, gpu: str) -> None:
    reading = nvidia.read_nvidia(data, driver=GPU)
    assert reading.verdicts[V0_4] == ("wrong_type", gpu, None)
    assert set(by_code(reading)) == {"nvidia_wrong_type"}
    assert nvidia.read_nvidia(data, driver=COMPUTE_DOMAIN).verdicts[V0_4].error_class == "unparsable"


def test_25_3_does_not_look_at_v2() -> None:
    reading = nvidia.read_nvidia(b'{"checksum":1083090442,"v1":{},"v2":7}', driver=GPU)
    assert reading.readable_by == (V25_3,)
    assert reading.verdicts[V25_8].error_class == "wrong_type"
    reading = nvidia.read_nvidia(b'{"checksum":1083090442}', driver=GPU)
    assert reading.readable_by == (V25_3,)


def test_an_intact_file_that_no_known_version_would_accept() -> None:
    data = sealed({"preparedClaims": {}}, {"preparedClaims": {}, "future": 1})
    reading = nvidia.read_nvidia(data, driver=GPU)
    assert (reading.v1.ok, reading.v2.ok, reading.readable_by) == (True, True, ())
    assert set(by_code(reading)) == {"nvidia_unknown_version"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v25.3.0", V25_3),
        ("25.3.2", V25_3),
        ("25.8", V25_8),
        (" v25.8.1 ", V25_8),
        ("25.12.0-rc.1", V25_12),
        ("0.4.0", V0_4),
        ("main-2026-08-07", MAIN),
        ("0.5.0", MAIN),
        ("1.0", MAIN),
    ],
)
def test_versions_of_the_plugin(text: str, version: str) -> None:
    assert nvidia.version_for(text) == version


@pytest.mark.parametrize("options", [{"plugin_version": "latest"}, {"plugin_version": "v"}, {"driver": "x.example"}])
def test_unknown_names_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(DraError) as caught:
        nvidia.read_nvidia(b"{}", **options)
    assert caught.value.hint
