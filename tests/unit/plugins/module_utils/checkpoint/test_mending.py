# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Each repair by itself: what it changes, and that it changes nothing else, not a blank and not an unknown field."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import Plan, plan_repair

from . import builders as b

GOOD = b.crc_file(b.crc_claim(1), b.crc_claim(2))


def repaired(data: bytes, actions: t.Sequence[str], target: str | None = None) -> Plan:
    """The plan, when it takes just these steps and leaves nothing to mend."""
    plan = plan_repair(data, target=target)
    assert [step.action for step in plan.steps] == list(actions)
    assert plan.after is not None
    assert not [item for item in diagnose(plan.after, release=target).faults if item.repair]
    return plan


def drivers(*devices: t.Any, **others: t.Any) -> dict[str, t.Any]:
    return {"gpu.example.com": {"Devices": list(devices)}, **others}


def crc(**changes: t.Any) -> bytes:
    """A file of one claim that is to be mended, between two that are not."""
    return b.crc_file(b.crc_claim(1), b.crc_claim(2, **changes), b.crc_claim(3))


def fnv(**changes: t.Any) -> bytes:
    """The same for 1.30."""
    return b.fnv_file(b.fnv_claim(1), b.fnv_claim(2, **changes), b.fnv_claim(3))


WITHOUT_SECOND = b.crc_file(b.crc_claim(1), b.crc_claim(3))
ONE = "vendor.example.com/gpu=dev-1"
CASES = [
    pytest.param(crc(PodUIDs=None), crc(PodUIDs={}), ["set_empty"], id="pods null"),
    pytest.param(
        crc(PodUIDs=...),
        b.crc_file(b.crc_claim(1), {**b.crc_claim(2, PodUIDs=...), "PodUIDs": {}}, b.crc_claim(3)),
        ["set_empty"],
        id="pods missing: added at the end",
    ),
    pytest.param(crc(PodUIDs={"": {}, "p": {}}), crc(PodUIDs={"p": {}}), ["drop_pod_reference"], id="empty pod"),
    pytest.param(crc(PodUIDs=["p", 7, "q"]), crc(PodUIDs={"p": {}, "q": {}}), ["reset_field"], id="pods as a list"),
    pytest.param(crc(PodUIDs="p"), crc(PodUIDs={}), ["reset_field"], id="pods as a string"),
    pytest.param(crc(PodUIDs={"p": 1}), crc(PodUIDs={"p": {}}), ["reset_field"], id="a pod with a value"),
    pytest.param(
        crc(DriverState=drivers(b.device(1), b.device(2), b.device(1), b.device(1))),
        crc(DriverState=drivers(b.device(1), b.device(2))),
        ["drop_repeats"],
        id="devices doubled",
    ),
    pytest.param(
        crc(DriverState={"": {"Devices": []}, **drivers(b.device())}),
        crc(DriverState=drivers(b.device())),
        ["drop_driver"],
        id="driver without a name",
    ),
    pytest.param(crc(ClaimUID=""), WITHOUT_SECOND, ["drop_claim"], id="no UID"),
    pytest.param(crc(ClaimUID=7), WITHOUT_SECOND, ["drop_claim"], id="UID is a number"),
    pytest.param(crc(ClaimUID="x", ClaimName="claim-3"), WITHOUT_SECOND, ["drop_claim"], id="name taken by the last"),
    pytest.param(
        b.crc_file(b.crc_claim(1), "claim", b.crc_claim(3)), WITHOUT_SECOND, ["drop_claim"], id="claim is a string"
    ),
    pytest.param(b.crc_file(None, b.crc_claim(1)), b.crc_file(b.crc_claim(1)), ["drop_claim"], id="claim is null"),
    pytest.param(crc(DriverState=[]), crc(DriverState=None), ["reset_field"], id="drivers as a list"),
    pytest.param(
        crc(DriverState=drivers("x", b.device(1), 7)),
        crc(DriverState=drivers(b.device(1))),
        ["reset_field"] * 2,
        id="devices that are none",
    ),
    pytest.param(
        crc(DriverState=drivers(*[b.device(n) if n not in (9, 10) else n for n in range(12)])),
        crc(DriverState=drivers(*[b.device(n) for n in range(12) if n not in (9, 10)])),
        ["reset_field"] * 2,
        id="items 9 and 10 of a list",
    ),
    pytest.param(
        crc(DriverState={"0": {"Devices": [7]}, "a]b.c": {"Devices": [b.device(RequestNames=[1, "r"])]}}),
        crc(DriverState={"0": {"Devices": []}, "a]b.c": {"Devices": [b.device(RequestNames=["r"])]}}),
        ["reset_field"] * 2,
        id="drivers with odd names",
    ),
    pytest.param(
        crc(DriverState=drivers(b.device(ShareID=7))),
        crc(DriverState=drivers(b.device(ShareID=None))),
        ["reset_field"],
        id="share ID of the wrong type",
    ),
    pytest.param(
        crc(DriverState={"ShareID": 7}),
        crc(DriverState={"ShareID": {"Devices": None}}),
        ["reset_field"],
        id="driver named like a field",
    ),
    pytest.param(
        fnv(CDIDevices={"d": [ONE, 5]}), fnv(CDIDevices={"d": [ONE]}), ["reset_field"], id="CDI name a number"
    ),
    pytest.param(fnv(CDIDevices={"d": [ONE, ONE]}), fnv(CDIDevices={"d": [ONE]}), ["drop_repeats"], id="CDI doubled"),
    pytest.param(fnv(CDIDevices={"d": ["no", ONE]}), fnv(CDIDevices={"d": [ONE]}), ["drop_cdi_device"], id="CDI bad"),
    pytest.param(
        fnv(CDIDevices={"d": [None, ONE]}), fnv(CDIDevices={"d": [ONE]}), ["drop_cdi_device"], id="CDI name null"
    ),
    pytest.param(
        fnv(CDIDevices={"d": ["vendor.example.com/g=1", ONE]}),
        fnv(CDIDevices={"d": [ONE]}),
        ["drop_cdi_device"],
        id="CDI class of one letter",
    ),
    pytest.param(fnv(DriverName="d" * 27), fnv(DriverName="d" * 27, CDIDevices={}), ["drop_cdi_device"], id="too long"),
    pytest.param(
        b.crc_file(b.crc_claim(), checksum=7), b.crc_file(b.crc_claim()), ["recompute_checksum"], id="crc sum"
    ),
    pytest.param(b"\xef\xbb\xbf" + GOOD, GOOD, ["rebuild"], id="byte order mark"),
    pytest.param(GOOD.decode().encode("utf-16"), GOOD, ["rebuild"], id="UTF-16"),
    pytest.param(GOOD + bytes(70), GOOD, ["cut_trailing_data"], id="zeros after the end"),
    pytest.param(GOOD + b"}", GOOD, ["cut_trailing_data"], id="a bracket after the end"),
    pytest.param(GOOD[:-1], GOOD, ["rebuild"], id="last byte cut off"),
    pytest.param(b.compact(json.loads(GOOD)["Data"]).encode(), GOOD, ["rebuild"], id="the data text alone, quoted"),
    pytest.param(
        b.crc_around(b.crc_data(b.crc_claim(), list_key="Entries")),
        b.crc_file(b.crc_claim()),
        ["rename_list_key"],
        id="list under its name of a pre-release",
    ),
    pytest.param(
        b.compact({"claims": [b.crc_claim()]}).encode(), b.crc_file(b.crc_claim()), ["rebuild"], id="claims elsewhere"
    ),
    pytest.param(b'{"a":1}', b.crc_file(), ["rebuild"], id="JSON of another kind"),
]


@pytest.mark.parametrize(("before", "after", "actions"), CASES)
def test_repair(before: bytes, after: bytes, actions: list[str]) -> None:
    target = "1.30" if before.startswith(b'{"version"') else None
    assert repaired(before, actions, target).after == after


def test_checksums_of_old_files_are_made_for_the_release_that_is_asked_for() -> None:
    for release in ("1.27", "1.28", "1.30"):
        claim = b.fnv_claim(ResourceHandles=...) if release == "1.27" else b.fnv_claim()
        before = b.fnv_file(claim, release=release, checksum=7)
        plan = plan_repair(before, target=release)
        assert plan.after == b.fnv_file(claim, release=release), release


def test_without_a_release_the_new_checksum_serves_all_old_kubelets() -> None:
    plan = plan_repair(b.fnv_file(b.fnv_claim(), checksum=7))
    assert plan.after == b.fnv_file(b.fnv_claim(), release="1.27")  # the text that 1.28 to 1.30 try as well
    starts = diagnose(plan.after).starts()
    assert [starts[release].claims for release in ("1.27", "1.28", "1.29", "1.30")] == [1, 1, 1, 1]


@pytest.mark.report("F056")
def test_repairing_one_entry_keeps_unknown_members_at_every_level() -> None:
    odd = b.crc_claim(1, Foo={"bar": 1}, DriverState=drivers(b.device(Extra=[1.50, "x"]), Kept=None))
    before = b.crc_file(odd, b.crc_claim(2, PodUIDs=None, Foo={"bar": 2}))
    before = before.replace(b"{", b'{"Top":[1],', 1)
    plan = repaired(before, ["set_empty"])
    expected = b.crc_file(odd, b.crc_claim(2, PodUIDs={}, Foo={"bar": 2})).replace(b"{", b'{"Top":[1],', 1)
    assert plan.after == expected


@pytest.mark.report("F056")
def test_key_order_blanks_and_number_spelling_survive_around_a_repair() -> None:
    claim = (
        '{ "Foo" : 1.50E+2 ,"PodUIDs":null, "claimname":"c", "Namespace":"n\\u0073","ClaimUID":"u","DriverState":{} }'
    )
    data = f'{{"ClaimInfoStateList":[{claim}] , "apiVersion":"{b.API_VERSION}","kind":"{b.KIND}"}}\n'
    before = f' {{ "Checksum" : {7}, "Data" : {json.dumps(data)} , "n": 1e2 }}\n'.encode()
    plan = repaired(before, ["recompute_checksum", "set_empty"])
    fixed = data.replace("null", "{}")
    checksum = json.loads(b.crc_around(fixed))["Checksum"]
    assert plan.after == f' {{ "Checksum" : {checksum}, "Data" : {b.compact(fixed)} , "n": 1e2 }}\n'.encode()


def test_devices_that_differ_in_an_unknown_field_are_not_taken_for_repeats() -> None:
    data = b.crc_file(b.crc_claim(DriverState=drivers(b.device(), b.device(Slice=1), b.device(Slice=2))))
    assert diagnose(data).faults[0].code == "unknown_field"
    assert repaired(data, []).after == data


def test_devices_that_differ_in_spelling_only_are_repeats() -> None:
    text = b.crc_data(b.crc_claim(DriverState=drivers(b.device(), b.device()))).replace("gpu-1", "gpu\\u002d1", 1)
    plan = repaired(b.crc_around(text), ["drop_repeats"])
    assert plan.after == b.crc_around(b.crc_data(b.crc_claim()).replace("gpu-1", "gpu\\u002d1", 1))


def test_a_list_that_is_given_twice_is_mended_in_one_go() -> None:
    claims = b.compact([b.crc_claim(PodUIDs=5, Foo=1)])
    data = f'{{"ClaimInfoStateList":[],"ClaimInfoStateList":{claims}}}'
    plan = plan_repair(b.crc_around(data))
    assert plan.after == b.crc_file(b.crc_claim(PodUIDs={}))
    assert not plan_repair(plan.after).changed


def test_faults_in_the_part_of_a_repeated_list_that_does_not_count_are_steps_too() -> None:
    lists = [b.compact([b.crc_claim(1), b.crc_claim(2, PodUIDs=5)]), b.compact([b.crc_claim(3)])]
    plan = plan_repair(b.crc_around(f'{{"ClaimInfoStateList":{lists[0]},"ClaimInfoStateList":{lists[1]}}}'))
    # Go decodes the second list over the first one, so the claim that counts has the pods of both
    assert plan.after == b.crc_file(b.crc_claim(3, PodUIDs={b.pod(1): {}, b.pod(3): {}}))
    assert [(step.action, step.place) for step in plan.steps] == [("reset_field", "Data.ClaimInfoStateList[1].PodUIDs")]


def test_several_faults_of_one_claim_are_mended_together() -> None:
    before = crc(PodUIDs={"": {}}, DriverState={"": {"Devices": None}, **drivers(b.device(), b.device(), 7)})
    plan = repaired(before, ["reset_field", "drop_pod_reference", "drop_driver", "drop_repeats"])
    assert plan.after == crc(PodUIDs={}, DriverState=drivers(b.device()))


def test_every_step_that_loses_something_says_what() -> None:
    plan = plan_repair(crc(ClaimUID="", PodUIDs={"": {}}))
    assert [(step.action, step.loses) for step in plan.steps] == [
        ("drop_claim", "the claim: without a UID no driver can be told")
    ]
    assert plan.lost == plan.steps


def test_dropping_an_entry_that_is_listed_again_loses_nothing() -> None:
    plan = repaired(b.crc_file(b.crc_claim(1), b.crc_claim(1)), ["drop_claim"])
    assert plan.lost == []


@pytest.mark.parametrize(
    ("tail", "loses"),
    [
        pytest.param(GOOD, "", id="the same again"),
        pytest.param(
            b.crc_file(b.crc_claim(2), b.crc_claim(3), b.crc_claim(4))[50:],
            "2 claims after the document that are not in it",
            id="the rest of an older, longer file",
        ),
    ],
)
def test_what_is_cut_off_is_named_only_if_it_is_not_in_the_document(tail: bytes, loses: str) -> None:
    plan = plan_repair(GOOD + tail)
    assert plan.after == GOOD
    assert [step.loses for step in plan.steps] == [loses]


def test_wrong_kind_and_version_types_are_set_to_what_kubelets_write() -> None:
    new = b.crc_around(b.crc_data(b.crc_claim()).replace(f'"{b.KIND}"', "7"))
    assert repaired(new, ["reset_field"]).after == b.crc_file(b.crc_claim())
    old = b.fnv_file(b.fnv_claim()).replace(b'"v1"', b"{}")
    assert repaired(old, ["reset_field"], target="1.30").after == b.fnv_file(b.fnv_claim())


def test_a_handle_of_the_wrong_type_becomes_null_again() -> None:
    before = fnv(ResourceHandles=[{"driverName": "d", "structuredData": 5}])
    plan = plan_repair(before, target="1.30")
    assert plan.after is not None
    assert json.loads(plan.after)["entries"][1]["ResourceHandles"] == [{"driverName": "d"}]
