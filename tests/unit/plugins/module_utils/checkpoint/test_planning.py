# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a plan promises: nothing to do twice, a file that its kubelets accept, and the claims that were asked for."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import REFUSED, diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import RELEASES, format_for
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import (
    known_release,
    plan_convert,
    plan_repair,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.report import claim_report
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.selection import Selection, Selector

from . import builders as b

TWO = b.crc_file(b.crc_claim(1), b.crc_claim(2))
NEW_CLAIM = {
    "uid": "u-9",
    "name": "c9",
    "namespace": "team-a",
    "pods": ["p-9"],
    "drivers": [
        {
            "name": "gpu.example.com",
            "devices": [
                {
                    "pool": "node-1",
                    "device": "gpu-9",
                    "share_id": None,
                    "requests": ["req-0"],
                    "cdi_devices": ["vendor.example.com/gpu=9"],
                }
            ],
        }
    ],
}
STORED = b.crc_claim(
    1,
    ClaimUID="u-9",
    ClaimName="c9",
    Namespace="team-a",
    PodUIDs={"p-9": {}},
    DriverState={
        "gpu.example.com": {"Devices": [b.device(DeviceName="gpu-9", CDIDeviceIDs=["vendor.example.com/gpu=9"])]}
    },
)

DAMAGED = {
    "empty": b"",
    "blank": b"\n",
    "zeros": bytes(20),
    "garbage": b"garbage",
    "cut": TWO[:-200],
    "checksum": b.crc_file(b.crc_claim(1), checksum=1),
    "old checksum": b.fnv_file(b.fnv_claim(1), checksum=1),
    "null pods": b.crc_file(b.crc_claim(1, PodUIDs=None)),
    "null claim": b.crc_file(None, b.crc_claim(1)),
    "types": b.crc_file(b.crc_claim(1, PodUIDs=[], DriverState={"a.b": {"Devices": [7, b.device(ShareID=7)]}})),
    "another tail": TWO + TWO[300:],
    "list twice": b.crc_around(
        '{"ClaimInfoStateList":[],"ClaimInfoStateList":[' + b.compact(b.crc_claim(PodUIDs=1)) + "]}"
    ),
    "cdi": b.fnv_file(b.fnv_claim(CDIDevices={"a.b": ["x", "v.e/cd=1", "v.e/cd=1", "vendor/gpu=1", "vendor/gpu=1"]})),
    "array": b"[]",
    "another kind": b'{"a":1}',
}


@pytest.mark.parametrize("target", [None, *RELEASES, "fnv-1.28", "crc-1.31", "universal"])
@pytest.mark.parametrize("name", DAMAGED)
def test_a_repair_serves_the_release_it_is_for_and_is_done_after_one_time(name: str, target: str | None) -> None:
    plan = plan_repair(DAMAGED[name], target=target)
    assert plan.changed
    assert plan.steps
    assert plan.after is not None
    releases: t.Sequence[str] = RELEASES
    if target is None:
        releases = RELEASES if plan.target == "universal" else format_for(plan.target).releases
    elif target != "universal":
        releases = (target,) if target in RELEASES else format_for(target).releases
    outcome = diagnose(plan.after)
    assert {release: outcome.starts()[release].outcome for release in releases} == dict.fromkeys(releases, "ok")
    assert len(outcome.entries) == len(plan.entries)
    again = plan_repair(plan.after, target=target)
    assert (again.changed, again.steps, again.target) == (False, [], plan.target)


@pytest.mark.parametrize("target", [None, *RELEASES])
def test_a_sound_file_is_left_byte_for_byte(target: str | None) -> None:
    for data in (TWO, b.fnv_file(b.fnv_claim()), b"{}", b"null\n", b' {"Checksum":4010664294}'):
        if target is not None and not diagnose(data).verdicts[target].startswith("ok"):
            continue
        plan = plan_repair(data, target=target)
        assert (plan.after, plan.steps) == (data, [])


def test_a_sound_file_of_another_release_is_converted_by_a_repair() -> None:
    plan = plan_repair(b.fnv_file(b.fnv_claim()), target="1.31")
    assert plan.after == plan_convert(b.fnv_file(b.fnv_claim()), "1.31").after
    assert [(step.action, step.loses) for step in plan.steps] == [("convert", ""), ("convert", "class class-1")]


def test_a_repair_for_1_31_does_not_touch_what_1_31_ignores() -> None:
    claim = b.crc_claim(PodUIDs=None, DriverState={"a.b": {"Devices": [b.device(ShareID="s")]}})
    plan = plan_repair(b.crc_file(claim), target="1.31")
    assert plan.after == b.crc_file({**claim, "PodUIDs": {}})
    assert plan.target == "crc-1.35"


def test_a_missing_file_needs_no_repair() -> None:
    for target in (None, *RELEASES, "universal"):
        plan = plan_repair(None, target=target)
        assert (plan.changed, plan.after, plan.steps) == (False, None, [])


def test_pods_that_do_not_exist_are_told_and_left() -> None:
    plan = plan_repair(TWO, known_pods=[b.pod(1)])
    assert not plan.changed


@pytest.mark.parametrize(
    ("selection", "left", "dropped"),
    [
        pytest.param(Selection(drop=[Selector(uid=b.uid(1))]), [2], 1, id="by UID"),
        pytest.param(Selection(drop=[Selector(name="claim-2")]), [1], 1, id="by name"),
        pytest.param(Selection(drop=[Selector(namespace="default")]), [], 2, id="by namespace"),
        pytest.param(Selection(drop=[Selector(name="claim-1", namespace="else")]), [1, 2], 0, id="all must fit"),
        pytest.param(Selection(drop=[Selector(uid=b.uid(1)), Selector(uid=b.uid(2))]), [], 2, id="any of two"),
        pytest.param(Selection(drop=[Selector(uid="another")]), [1, 2], 0, id="none that is there"),
        pytest.param(Selection(keep=[Selector(uid=b.uid(2))]), [2], 1, id="keep one"),
        pytest.param(Selection(keep=[Selector(namespace="default")]), [1, 2], 0, id="keep all"),
        pytest.param(
            Selection(drop=[Selector(uid=b.uid(1))], keep=[Selector(namespace="default")]), [2], 1, id="drop wins"
        ),
    ],
)
def test_claims_are_chosen_by_hand(selection: Selection, left: list[int], dropped: int) -> None:
    plan = plan_repair(TWO, selection=selection)
    assert plan.after == b.crc_file(*[b.crc_claim(number) for number in left])
    assert [step.action for step in plan.lost] == ["drop_claim"] * dropped
    assert all("gpu.example.com, who are never told" in step.loses for step in plan.lost)
    assert not plan_repair(plan.after, selection=Selection(drop=selection.drop)).changed


def test_keeping_nothing_of_what_is_there_is_taken_for_a_mistake() -> None:
    with pytest.raises(DraError, match="None of the 2 claims is to be kept \\(name c7\\)"):
        plan_repair(TWO, selection=Selection(keep=[Selector(name="c7")]))
    assert not plan_repair(None, selection=Selection(keep=[Selector(name="c7")])).changed
    assert not plan_repair(b.crc_file(), selection=Selection(keep=[Selector(name="c7")])).changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(TWO, b.crc_file(b.crc_claim(1), b.crc_claim(2), STORED), id="to others"),
        pytest.param(None, b.crc_file(STORED), id="to a file that is not there"),
        pytest.param(b"", b.crc_file(STORED), id="to an empty one"),
        pytest.param(b.crc_file(STORED), b.crc_file(STORED), id="that is there already"),
    ],
)
def test_a_claim_is_added_as_checkpoint_info_shows_it(before: bytes | None, after: bytes) -> None:
    plan = plan_repair(before, selection=Selection(add=[NEW_CLAIM]))
    assert plan.after == after
    assert claim_report(plan.entries[-1]) == {**NEW_CLAIM, "class_name": None}
    again = plan_repair(plan.after, selection=Selection(add=[NEW_CLAIM]))
    assert (again.changed, again.steps) == (False, [])


def test_a_claim_is_added_in_the_format_of_the_file() -> None:
    for release in ("1.27", "1.28", "1.30"):
        handles: t.Any = ... if release == "1.27" else [{"driverName": "gpu.example.com"}]
        old = b.fnv_claim(1, ResourceHandles=handles)
        plan = plan_repair(b.fnv_file(old, release=release), selection=Selection(add=[NEW_CLAIM]), target=release)
        added = b.fnv_claim(
            ClassName="",
            ClaimUID="u-9",
            ClaimName="c9",
            Namespace="team-a",
            PodUIDs={"p-9": {}},
            ResourceHandles=handles,
            CDIDevices={"gpu.example.com": ["vendor.example.com/gpu=9"]},
        )
        assert plan.after == b.fnv_file(old, added, release=release)


def test_a_claim_is_added_to_a_missing_file_by_a_conversion_too() -> None:
    plan = plan_convert(None, "1.36", selection=Selection(add=[NEW_CLAIM]))
    assert plan.after == b.crc_file(STORED)


def test_a_claim_whose_name_is_taken_is_not_added() -> None:
    taken = {**NEW_CLAIM, "name": "claim-1", "namespace": "default"}
    with pytest.raises(DraError, match=f"default/claim-1 is in the file with UID {b.uid(1)}") as caught:
        plan_repair(TWO, selection=Selection(add=[taken]))
    assert caught.value.facts == {"claim_uid": "u-9", "found_uid": b.uid(1)}
    plan = plan_repair(TWO, selection=Selection(add=[taken], drop=[Selector(uid=b.uid(1))]))
    assert [entry.uid for entry in plan.entries] == [b.uid(2), "u-9"]


@pytest.mark.parametrize("key", ["uid", "name", "namespace"])
def test_a_claim_to_add_needs_an_identity(key: str) -> None:
    for bad in ("", None, 7):
        with pytest.raises(DraError, match=f"A claim to add has no {key}"):
            plan_repair(TWO, selection=Selection(add=[{**NEW_CLAIM, key: bad}]))


def test_selectors_are_read_from_the_command_line() -> None:
    assert Selector.parse("u-1") == Selector(uid="u-1")
    assert Selector.parse("team-a/c1") == Selector(name="c1", namespace="team-a")
    assert Selector.parse("team-a/") == Selector(name="", namespace="team-a")
    assert str(Selector.parse("team-a/c1")) == "name c1, namespace team-a"
    for text in ("", "/"):
        with pytest.raises(DraError, match="neither uid, name nor namespace"):
            Selector.parse(text)


def test_dropping_a_claim_does_not_touch_the_others_letter_for_letter() -> None:
    odd = (
        b.crc_data(b.crc_claim(1), b.crc_claim(2, Foo=1)).replace("gpu-2", "gpu\\u002d2").replace('"Foo":', '"Foo" : ')
    )
    plan = plan_repair(b.crc_around(odd), selection=Selection(drop=[Selector(uid=b.uid(1))]))
    expected = b.crc_data(b.crc_claim(2, Foo=1)).replace("gpu-2", "gpu\\u002d2").replace('"Foo":', '"Foo" : ')
    assert plan.after == b.crc_around(expected)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        (None, None),
        ("1.27", "1.27"),
        ("v1.31.4", "1.31"),
        ("v1.34.2+k3s1", "1.34"),
        (" 1.36.0-rc.1 ", "1.36"),
        ("1.37", "1.36"),
        ("1.99", "1.36"),
    ],
)
def test_versions_as_nodes_give_them(version: str | None, release: str | None) -> None:
    assert known_release(version) == release


@pytest.mark.parametrize("version", ["", "latest", "2.0", "1", "1.x", "v1.31 4", "1.31.", "crc"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(DraError, match="is not a Kubernetes version"):
        known_release(version)


def test_releases_without_a_state_file_are_refused_with_what_to_do() -> None:
    with pytest.raises(DraError, match="keeps no state file") as caught:
        plan_repair(TWO, target="1.26.3")
    assert "state=absent" in caught.value.hint


@pytest.mark.parametrize("target", [*RELEASES, "universal"])
def test_no_plan_ever_promises_a_file_that_is_refused(target: str) -> None:
    claims = [b.crc_claim(1, DriverState={"d" * 40: {"Devices": [b.device(CDIDeviceIDs=["x", "v/c=1"])]}})]
    for plan_for in (plan_repair, plan_convert):
        try:
            plan = plan_for(b.crc_file(*claims), target=target)  # type: ignore[operator]
        except DraError:
            continue
        release = target if target in RELEASES else None
        assert diagnose(plan.after, release=release).status != REFUSED
