# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Between every two formats: the very bytes that a kubelet of the target writes, and every loss named."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import RELEASES, format_for
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import plan_convert, plan_repair

from . import builders as b
from . import vectors

GPU, NET = "gpu.example.com", "net.example.org"
CDI = {GPU: ["vendor.example.com/gpu=dev-1", "vendor.example.com/gpu=dev-2"], NET: ["vendor.example.com/nic=0"]}
STRUCTURED = {
    "vendorClassParameters": {"a": 1},
    "vendorClaimParameters": None,
    "nodeName": "node-1",
    "results": [{"vendorRequestParameters": None, "namedResources": {"name": "gpu-1"}}],
}


def handle(driver: str, **more: t.Any) -> dict[str, t.Any]:
    return {"driverName": driver, **more}


def device(name: str, cdi: list[str], share_id: t.Any) -> dict[str, t.Any]:
    pool = "node-1" if name else ""
    requests = ["req-0"] if name else None
    return b.device(PoolName=pool, DeviceName=name, ShareID=share_id, RequestNames=requests, CDIDeviceIDs=cdi)


def classic(release: str, handles: t.Any, class_name: str = "class-1", cdi: t.Any = None) -> bytes:
    """A file of 1.27 to 1.30 with one claim of two drivers."""
    claim = b.fnv_claim(ClassName=class_name, ResourceHandles=handles, CDIDevices=CDI if cdi is None else cdi)
    return b.fnv_file(claim, release=release)


def modern(*, share_id: t.Any, named: bool) -> bytes:
    """A file of 1.31 or later with the same claim; its devices have names only if no classic file came before."""
    names = ("gpu-1", "gpu-2", "nic-0") if named else ("", "", "")
    one = [device(names[0], CDI[GPU][:1], share_id), device(names[1], CDI[GPU][1:], ... if share_id is ... else None)]
    gpu = one if named else [device("", CDI[GPU], share_id)]
    nic = [device(names[2], CDI[NET], ... if share_id is ... else None)]
    state = {GPU: {"Devices": gpu}, NET: {"Devices": nic}}
    return b.crc_file(b.crc_claim(DriverState=state))


BARE = classic("1.27", ...)
HANDLES = [handle(GPU, data="x"), handle(NET)]
SOURCES = {
    "fnv-1.27": BARE,
    "fnv-1.28": classic("1.28", HANDLES),
    "fnv-1.30": None,  # further down: its checksum covers structured data
    "crc-1.31": modern(share_id=..., named=True),
    "crc-1.35": modern(share_id="share-1", named=True),
}
NAMES = [
    f"pool, device and request names of {GPU}/node-1/gpu-1",
    f"pool, device and request names of {GPU}/node-1/gpu-2",
    f"pool, device and request names of {NET}/node-1/nic-0",
]
SHARED = [NAMES[0], "share ID share-1", *NAMES[1:]]
CLASS = "class class-1"
DATA = f"handle data of driver {GPU}: x"
FROM_NEW = [handle(GPU), handle(NET)]
PAIRS = [
    ("fnv-1.27", "1.28", classic("1.28", [handle(GPU)]), []),
    ("fnv-1.27", "1.29", classic("1.28", [handle(GPU)]), []),
    ("fnv-1.27", "1.30", classic("1.30", [handle(GPU)]), []),
    ("fnv-1.27", "1.31", modern(share_id=..., named=False), [CLASS]),
    ("fnv-1.27", "1.36", modern(share_id=None, named=False), [CLASS]),
    ("fnv-1.28", "1.27", BARE, [DATA]),
    ("fnv-1.28", "1.30", classic("1.30", HANDLES), []),
    ("fnv-1.28", "1.34", modern(share_id=..., named=False), [CLASS, DATA]),
    ("fnv-1.28", "1.35", modern(share_id=None, named=False), [CLASS, DATA]),
    ("crc-1.31", "1.27", classic("1.27", ..., ""), NAMES),
    ("crc-1.31", "1.29", classic("1.29", FROM_NEW, ""), NAMES),
    ("crc-1.31", "1.30", classic("1.30", FROM_NEW, ""), NAMES),
    ("crc-1.31", "1.35", modern(share_id=None, named=True), []),
    ("crc-1.35", "1.27", classic("1.27", ..., ""), SHARED),
    ("crc-1.35", "1.28", classic("1.28", FROM_NEW, ""), SHARED),
    ("crc-1.35", "1.30", classic("1.30", FROM_NEW, ""), SHARED),
    ("crc-1.35", "1.31", modern(share_id=..., named=True), ["share ID share-1"]),
]


@pytest.mark.parametrize(
    ("source", "target", "after", "losses"), [pytest.param(*p, id=f"{p[0]} to {p[1]}") for p in PAIRS]
)
def test_conversion(source: str, target: str, after: bytes, losses: list[str]) -> None:
    before = SOURCES[source]
    assert before is not None
    plan = plan_convert(before, target)
    assert plan.after == after
    assert [step.loses for step in plan.lost] == losses
    assert plan.target == format_for(target).name
    assert diagnose(after, release=target).status == "sound"


@pytest.mark.parametrize(
    ("target", "handles", "losses"),
    [
        pytest.param("1.28", [handle(GPU, data="x"), handle(NET)], [f"structured data of driver {NET}"], id="1.28"),
        pytest.param("1.27", ..., [DATA, f"structured data of driver {NET}"], id="1.27"),
    ],
)
def test_structured_data_of_1_30_is_lost_before_it(target: str, handles: t.Any, losses: list[str]) -> None:
    text = classic("1.30", [handle(GPU, data="x"), handle(NET, structuredData=STRUCTURED)])
    before = with_right_checksum(text)
    plan = plan_convert(before, target)
    assert plan.after == classic(target, handles)
    assert [step.loses for step in plan.lost] == losses


def with_right_checksum(text: bytes) -> bytes:
    """A file of 1.30 whose checksum is made right by a repair: the builders do not hash structured data."""
    after = plan_repair(text, target="1.30").after
    assert after is not None
    assert diagnose(after, release="1.30").status == "sound"
    return after


@pytest.mark.parametrize("source", [name for name, data in SOURCES.items() if data is not None])
@pytest.mark.parametrize("target", [*RELEASES, "universal"])
def test_converting_twice_changes_nothing_more(source: str, target: str) -> None:
    once = plan_convert(SOURCES[source], target)
    again = plan_convert(once.after, target)
    assert (again.changed, again.steps) == (False, [])


@pytest.mark.parametrize("target", ["fnv-1.27", "fnv-1.28", "fnv-1.30", "crc-1.31", "crc-1.35"])
@pytest.mark.parametrize("source", ["fnv-1.27", "fnv-1.28", "fnv-1.30", "crc-1.31", "crc-1.35"])
def test_empty_files_convert_without_loss(source: str, target: str) -> None:
    empty = {"fnv": b.fnv_file(), "crc": b.crc_file()}
    plan = plan_convert(empty[source[:3]], target)
    assert plan.after == empty[target[:3]]
    assert plan.lost == []
    assert plan.changed == (source[:3] != target[:3])
    assert bool(plan.steps) == plan.changed


@pytest.mark.parametrize("folder", ["1.27", "1.28-1.29", "1.30", "1.31-1.34", "1.35-1.36"])
def test_a_real_file_converted_to_its_own_release_is_left_byte_for_byte(folder: str) -> None:
    for name in ("one_claim_one_device", "multi_driver", "multi_claim_order_b", "empty_synced"):
        data = vectors.read(f"{folder}/{name}.json")
        assert plan_convert(data, folder.split("-")[-1]).after == data, name


@pytest.mark.parametrize(("source", "target"), [("1.31-1.34", "1.35"), ("1.35-1.36", "1.34")])
def test_real_files_convert_to_what_the_other_release_wrote_for_the_same_claims(source: str, target: str) -> None:
    other = {"1.35": "1.35-1.36", "1.34": "1.31-1.34"}[target]
    names = (
        "one_claim_three_devices",
        "multi_driver",
        "multi_pod",
        "no_devices_null_list",
        "device_nil_and_empty_lists",
    )
    for name in (*names, "duplicate_devices_after_restarts", "invalid_utf8_in_memory"):
        plan = plan_convert(vectors.read(f"{source}/{name}.json"), target)
        assert plan.after == vectors.read(f"{other}/{name}.json"), name


@pytest.mark.parametrize("release", ["1.27", "1.28", "1.30"])
def test_every_claim_survives_a_round_trip_in_number_and_identity(release: str) -> None:
    handles = ... if release == "1.27" else [{"driverName": GPU}]
    claims = [b.fnv_claim(n, ClassName="", ResourceHandles=handles) for n in range(1, 30)]
    data = b.fnv_file(*claims, release=release)
    assert plan_convert(plan_convert(data, "1.36").after, release).after == data


@pytest.mark.report("F056")
def test_unknown_fields_survive_within_a_family() -> None:
    new = b.crc_file(b.crc_claim(Foo={"bar": 1}, DriverState={GPU: {"Devices": [b.device(Extra=1)], "Z": 0}}))
    plan = plan_convert(new.replace(b"{", b'{"Top":1,', 1), "1.31")
    expected = b.crc_file(
        b.crc_claim(Foo={"bar": 1}, DriverState={GPU: {"Devices": [b.device(ShareID=..., Extra=1)], "Z": 0}})
    )
    assert plan.after == expected.replace(b"{", b'{"Top":1,', 1)
    assert plan.lost == []


@pytest.mark.report("F056")
@pytest.mark.parametrize(("before", "after", "target"), [
    pytest.param(classic("1.27", ...), classic("1.28", [handle(GPU)]), "1.28", id="a handle is put in"),
    pytest.param(classic("1.28", HANDLES), classic("1.27", ...), "1.27", id="handles are taken out"),
])  # fmt: skip
def test_unknown_fields_and_key_order_survive_between_classic_formats(before: bytes, after: bytes, target: str) -> None:
    def odd(data: bytes) -> bytes:
        return data.replace(b'"ClassName"', b'"Foo":1.50,"ClassName"').replace(b'"CDIDevices"', b'"cdiDevices"')

    plan = plan_convert(odd(before), target)  # unknown fields are not part of the hashed text
    assert plan.after == odd(after)


def test_unknown_fields_that_the_other_family_cannot_hold_are_named() -> None:
    new = b.crc_file(b.crc_claim(Foo=1, DriverState={GPU: {"Devices": [b.device(Extra=1)]}}))
    plan = plan_convert(new.replace(b"{", b'{"Top":1,', 1), "1.30")
    losses = [step.loses for step in plan.lost]
    assert "field Foo" in losses
    assert f"field DriverState[{GPU}].Devices[0].Extra" in losses
    assert [step.place for step in plan.lost if step.loses == "the field"] == ["Top"]


def test_a_driver_whose_answer_was_outstanding_is_still_called_after_a_conversion() -> None:
    new = b.crc_file(b.crc_claim(DriverState={GPU: {"Devices": None}}))
    plan = plan_convert(new, "1.30")
    assert plan.after == b.fnv_file(b.fnv_claim(ClassName="", CDIDevices={}))
    assert plan.lost == []


def test_a_cdi_name_that_two_devices_share_is_listed_once_in_a_classic_file() -> None:
    devices = [b.device(1), b.device(2, CDIDeviceIDs=["vendor.example.com/gpu=dev-1", "vendor.example.com/gpu=x"])]
    plan = plan_convert(b.crc_file(b.crc_claim(DriverState={GPU: {"Devices": devices}})), "1.30")
    assert plan.entries[0].fields["CDIDevices"] == {GPU: ["vendor.example.com/gpu=dev-1", "vendor.example.com/gpu=x"]}


def test_null_pods_are_never_written_into_another_family() -> None:
    plan = plan_convert(b.fnv_file(b.fnv_claim(PodUIDs=None)), "1.36")
    assert [entry.fields["PodUIDs"] for entry in plan.entries] == [{}]


def test_handles_name_the_drivers_that_the_new_kubelet_calls() -> None:
    claim = b.fnv_claim(ResourceHandles=[{}, handle(NET)], CDIDevices={})
    plan = plan_convert(b.fnv_file(claim), "1.36")
    assert plan.entries[0].drivers() == [GPU, NET]


@pytest.mark.parametrize(
    ("data", "target", "words"),
    [
        pytest.param(b.crc_file(b.crc_claim(), checksum=1), "1.31", "no release reads it", id="damaged"),
        pytest.param(b"", "1.31", "The file is empty", id="empty"),
        pytest.param(b.crc_file(), "1.26", "keeps no state file", id="before the first"),
        pytest.param(b.crc_file(), "2.0", "not a Kubernetes version", id="no such version"),
        pytest.param(b.crc_file(), "crc", "not a Kubernetes version", id="no such format"),
        pytest.param(
            b.crc_file(b.crc_claim(DriverState={"d": {"Devices": [b.device(CDIDeviceIDs=["x"])]}})),
            "1.30",
            "would not serve kubelets of 1.30: CDI device 'x'",
            id="CDI name that the old kubelet refuses",
        ),
        pytest.param(
            b.fnv_file(b.fnv_claim(CDIDevices={"d": ["x"]})),
            "1.30",
            "would not serve kubelets of 1.30: CDI device 'x'",
            id="its own kubelet refuses it already",
        ),
    ],
)
def test_what_cannot_be_converted_says_why_and_what_to_do(data: bytes, target: str, words: str) -> None:
    with pytest.raises(DraError, match=words) as caught:
        plan_convert(data, target)
    assert caught.value.hint


def test_a_release_that_is_not_known_yet_gets_the_newest_format() -> None:
    assert plan_convert(b.fnv_file(), "1.40").target == "crc-1.35"
    assert plan_convert(b.fnv_file(), "v1.36.2+k3s1").target == "crc-1.35"


def test_no_file_stays_no_file() -> None:
    assert not plan_convert(None, "1.36").changed
