# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One file for every release: both checksums in one number, every claim in both lists, and the way back."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import universal
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import RELEASES
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import plan_convert, plan_repair
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.selection import Selection, Selector

from . import builders as b
from . import vectors


def served(data: bytes) -> dict[str, int]:
    """Release to the number of claims that its kubelet knows after its start; -1 where it does not start."""
    starts = diagnose(data).starts()
    return {release: start.claims if start.outcome == "ok" else -1 for release, start in starts.items()}


def both_checksums_hold(data: bytes) -> bool:
    """By definition, without the code under test: the one number fits both families."""
    document = json.loads(data)
    number = document["checksum"]
    fnv = b.fnv(b.hashed_text(document["entries"], "1.27"))
    return number == fnv == zlib.crc32(document["Data"].encode())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b.fnv_file(), id="no claims"),
        pytest.param(b.fnv_file(b.fnv_claim(ResourceHandles=...), release="1.27"), id="from 1.27"),
        pytest.param(b.fnv_file(b.fnv_claim(1), b.fnv_claim(2)), id="from 1.30"),
        pytest.param(b.crc_file(b.crc_claim(1), b.crc_claim(2), b.crc_claim(3)), id="from 1.36"),
        pytest.param(b.crc_file(b.crc_claim(DriverState={"d": {"Devices": None}})), id="driver still called"),
        pytest.param(b.crc_file(b.crc_claim(ClaimName='"\\<\u00e9\u2028')), id="name with escapes"),
    ],
)
def test_every_release_starts_with_it_and_knows_every_claim(data: bytes) -> None:
    plan = plan_convert(data, "universal")
    assert plan.target == "universal"
    count = len(diagnose(data).entries)
    assert served(plan.after) == dict.fromkeys(RELEASES, count)
    assert both_checksums_hold(plan.after)
    assert diagnose(plan.after).universal


def test_five_hundred_claims() -> None:
    data = b.crc_file(*[b.crc_claim(n) for n in range(500)])
    plan = plan_convert(data, "universal")
    assert served(plan.after) == dict.fromkeys(RELEASES, 500)
    assert both_checksums_hold(plan.after)
    names = json.loads(plan.after)
    assert len(names["entries"]) == len(json.loads(names["Data"])["ClaimInfoStateList"]) == 500


def test_it_is_left_alone_the_second_time() -> None:
    once = plan_convert(b.crc_file(b.crc_claim()), "universal")
    for again in (plan_convert(once.after, "universal"), plan_repair(once.after, target="universal")):
        assert (again.changed, again.steps, again.target) == (False, [], "universal")
    assert not plan_repair(once.after).changed


def test_real_universal_files_are_left_alone() -> None:
    for name in ("empty_all_releases", "one_claim_1.27_form_all_releases"):
        data = vectors.read(f"bridge/{name}.json")
        assert plan_convert(data, "universal").after == data


def test_an_upgrade_can_be_rolled_back() -> None:
    new = b.crc_file(b.crc_claim(1), b.crc_claim(2))
    both = plan_convert(new, "universal").after
    assert plan_convert(both, "1.36").after is not None
    old = plan_convert(both, "1.30")
    assert [entry.uid for entry in old.entries] == [b.uid(1), b.uid(2)]
    assert served(old.after)["1.30"] == 2


def test_new_kubelets_lose_nothing_in_a_universal_file() -> None:
    claim = b.crc_claim(DriverState={"gpu.example.com": {"Devices": [b.device(ShareID="s")]}})
    inside = json.loads(json.loads(plan_convert(b.crc_file(claim), "universal").after)["Data"])
    assert inside["ClaimInfoStateList"] == [claim]


def test_old_kubelets_call_every_driver_of_a_claim() -> None:
    claim = b.crc_claim(DriverState={"a.b": {"Devices": [b.device()]}, "c.d": {"Devices": None}})
    entries = json.loads(plan_convert(b.crc_file(claim), "universal").after)["entries"]
    assert [handle["driverName"] for handle in entries[0]["ResourceHandles"]] == ["a.b", "c.d"]


def test_a_repair_of_a_universal_file_keeps_it_universal() -> None:
    twice = b.crc_claim(DriverState={"gpu.example.com": {"Devices": [b.device(), b.device()]}})
    both = universal.render(diagnose(b.crc_file(twice)).entries)
    assert [item.code for item in diagnose(both).faults if item.repair] == ["doubled_devices"]
    plan = plan_repair(both)
    assert plan.target == "universal"
    assert served(plan.after) == dict.fromkeys(RELEASES, 1)
    assert plan.after.count(b"gpu-1") == 1


def test_dropping_a_claim_of_a_universal_file_drops_it_for_all_releases() -> None:
    both = plan_convert(b.crc_file(b.crc_claim(1), b.crc_claim(2)), "universal").after
    plan = plan_repair(both, selection=Selection(drop=[Selector(uid=b.uid(1))]))
    assert plan.target == "universal"
    assert served(plan.after) == dict.fromkeys(RELEASES, 1)
    assert b.uid(1).encode() not in plan.after


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        pytest.param(
            [b.crc_claim(1, ClaimName="ab", Namespace="c"), b.crc_claim(2, ClaimName="a", Namespace="bc")],
            "kubelets up to 1.30 cannot tell claim bc/a .* from c/ab",
            id="names that old kubelets glue together",
        ),
        pytest.param(
            [b.crc_claim(DriverState={"d": {"Devices": [b.device(CDIDeviceIDs=["vendor.example.com/g=1"])]}})],
            "kubelets of 1.27-1.30 do not start",
            id="CDI class of one letter",
        ),
        pytest.param(
            [b.crc_claim(DriverState={"d" * 27: {"Devices": [b.device()]}})],
            "kubelets of 1.27-1.30 do not start",
            id="long driver name",
        ),
    ],
)
def test_content_that_no_file_can_serve_is_refused_in_words(claims: list[b.Claim], words: str) -> None:
    with pytest.raises(DraError, match=words) as caught:
        plan_convert(b.crc_file(*claims), "universal")
    assert "Convert to one release instead" in caught.value.hint


def test_any_text_can_be_given_any_checksum() -> None:
    rng = random.Random(5)
    for _unused in range(200):
        text = "".join(chr(rng.randrange(32, 0x2FF)) for _unused in range(rng.randrange(200)))
        target = rng.randrange(1 << 32)
        blanks = universal.blanks_for(zlib.crc32((text + " " * 64).encode()), target)
        assert set(blanks) <= {" ", "\t"}
        assert zlib.crc32((text + blanks).encode()) == target


def test_the_equations_are_solved_for_every_single_bit() -> None:
    vectors_ = [random.Random(n).randrange(1 << 32) for n in range(64)]
    for bit in range(32):
        chosen = universal.solve(vectors_, 1 << bit)
        total = 0
        for place, vector in enumerate(vectors_):
            total ^= vector if chosen >> place & 1 else 0
        assert total == 1 << bit
