# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whole claims are found in what is left of a file, wherever the cut, the zeros or the foreign bytes are."""

from __future__ import annotations

import json

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import gojson, salvage
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import plan_convert, plan_repair

from . import builders as b

FILES = {
    "crc": b.crc_file(*[b.crc_claim(number) for number in (1, 2, 3)]),
    "fnv": b.fnv_file(*[b.fnv_claim(number) for number in (1, 2, 3)]),
    "indented": json.dumps(json.loads(b.fnv_file(*[b.fnv_claim(number) for number in (1, 2, 3)])), indent=2).encode(),
}


def uids(data: bytes) -> list[str]:
    return [entry.uid for entry in diagnose(data).entries]


def spans(name: str) -> list[tuple[int, int]]:
    """Where each of the three claims begins and ends in the file, found without the code under test."""
    data = FILES[name]
    if name == "crc":
        texts = [b.compact(b.compact(b.crc_claim(number)))[1:-1].encode() for number in (1, 2, 3)]
        return [(data.index(text), data.index(text) + len(text)) for text in texts]
    if name == "fnv":
        texts = [b.compact(b.fnv_claim(number)).encode() for number in (1, 2, 3)]
        return [(data.index(text), data.index(text) + len(text)) for text in texts]
    starts = [data.rindex(b"{", 0, data.index(f'"claim-{number}"'.encode())) for number in (1, 2, 3)]
    return [(start, data.index(b"\n    }", start) + 6) for start in starts]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FILES)
def test_cut_at_every_byte_all_complete_claims_are_saved(name: str) -> None:
    data = FILES[name]
    ends = [end for _start, end in spans(name)]
    assert len(ends) == 3
    wrong = []
    for cut in range(len(data)):
        expected = [b.uid(number) for number, end in enumerate(ends, 1) if end <= cut]
        found = uids(data[:cut])
        if found != expected:
            wrong.append(f"cut at {cut}: {found} instead of {expected}")
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("name", FILES)
def test_every_cut_can_be_repaired(name: str) -> None:
    data = FILES[name]
    for cut in range(0, len(data), 41):
        plan = plan_repair(data[:cut])
        assert diagnose(plan.after).status == "sound", cut
        assert [entry.uid for entry in plan.entries] == uids(data[:cut])


@pytest.mark.parametrize(
    "filler", [pytest.param(b"\0", id="zeros"), pytest.param(b"\xff", id="ones"), pytest.param(b"~", id="tildes")]
)
@pytest.mark.parametrize("name", FILES)
def test_a_lost_block_costs_only_the_claims_it_touches(name: str, filler: bytes) -> None:
    data = FILES[name]
    places = spans(name)
    wrong = []
    for start in range(places[0][0], places[2][1], 29):
        for length in (64, 300):
            end = min(start + length, len(data))
            broken = data[:start] + filler * (end - start) + data[end:]
            touched = [first < end and start < last for first, last in places]
            expected = [b.uid(number) for number, hit in enumerate(touched, 1) if not hit]
            found = uids(broken)
            if not set(expected) <= set(found):
                wrong.append(f"{start} to {end}: {found}, expected {expected}")
            if filler == b"\0" and found != expected:
                wrong.append(f"{start} to {end}: {found} holds a claim that was touched")
    assert not wrong, "\n".join(wrong[:20])


def test_the_saved_claims_keep_their_own_text() -> None:
    odd = b.crc_data(b.crc_claim(1, Foo=[1.50]), b.crc_claim(2)).replace('"Namespace":', ' "Namespace" : ')
    cut = b.compact({"Data": odd, "Checksum": 1}).encode()[:-1]
    plan = plan_repair(cut)
    assert json.loads(json.loads(plan.after)["Data"]) == json.loads(odd)
    assert ' "Namespace" : ' in json.loads(plan.after)["Data"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b.compact(FILES["crc"].decode()).encode(), 3, id="the whole file as a string"),
        pytest.param(b.compact(b.compact(FILES["crc"].decode())).encode()[:-4], 0, id="twice as a string: too deep"),
        pytest.param(FILES["fnv"].replace(b'"', b"'"), 3, id="single quotes"),
        pytest.param(FILES["fnv"].decode().encode("utf-16"), 3, id="UTF-16"),
        pytest.param(FILES["fnv"].decode().encode("utf-16-be"), 3, id="UTF-16, high byte first, no mark"),
        pytest.param(b"kubelet said: " + FILES["crc"] + b" <EOF>", 3, id="inside other text"),
        pytest.param(b"[" + FILES["crc"] + b"]", 3, id="inside a list"),
        pytest.param(FILES["fnv"].replace(b"claim-2", b"cl\nm-2"), 3, id="raw line end in a name"),
        pytest.param(FILES["fnv"].replace(b'"claim-2"', b"claim-2"), 2, id="quotes lost"),
        pytest.param(FILES["fnv"].replace(b"ClaimUID", b"claimuid").replace(b"}", b"}}", 1), 2, id="lower-case keys"),
        pytest.param(b"\n".join(b.compact(b.crc_claim(n)).encode() for n in (1, 2)), 2, id="one claim a line"),
    ],
)
def test_claims_are_found_in_foreign_wrapping(data: bytes, found: int) -> None:
    assert len(uids(data)) == found


def test_what_began_but_did_not_end_is_counted() -> None:
    result = salvage.search(gojson.decode_bytes(FILES["fnv"][:-60]))
    assert (len(result.saved), result.broken, result.family) == (2, 1, "fnv")
    assert diagnose(FILES["crc"][: spans("crc")[1][0] + 80]).saved.broken == 1  # type: ignore[union-attr]


def test_a_claim_without_a_readable_identity_is_not_saved() -> None:
    data = b.crc_file(b.crc_claim(1), b.crc_claim(2, ClaimUID=7), b.crc_claim(3, Namespace=[]))[:-30]
    assert uids(data) == [b.uid(1)]


def test_ill_typed_fields_of_a_saved_claim_are_left_behind_and_named() -> None:
    data = b.crc_file(b.crc_claim(1, PodUIDs=["p"], DriverState={"a.b": {"Devices": [5, b.device()]}}))[:-20]
    plan = plan_repair(data)
    assert plan.after == b.crc_file(b.crc_claim(1, PodUIDs={"p": {}}, DriverState={"a.b": {"Devices": [b.device()]}}))
    assert [(step.action, step.loses) for step in plan.steps[1:]] == [
        ("reset_field", "DriverState[a.b].Devices[0], PodUIDs")
    ]


def test_of_a_claim_that_is_found_twice_the_last_one_counts() -> None:
    old, new = b.crc_claim(1), b.crc_claim(1, PodUIDs={})
    plan = plan_repair(b.crc_file(old, b.crc_claim(2), new)[:-20])
    assert [(entry.uid, entry.pods) for entry in plan.entries] == [(b.uid(2), [b.pod(2)]), (b.uid(1), [])]
    assert plan.lost[-1].loses == f"what only the entry with UID {b.uid(1)} holds"


def test_brackets_that_happen_to_close_do_not_hide_the_claims_behind_them() -> None:
    data = FILES["indented"]
    broken = data[:562] + b"~" * 300 + data[862:]  # claim 2 begins, and ends as one of its handles does
    (found,) = [item for item in diagnose(broken).faults if item.code == "trailing_data"]
    assert (found.repair, found.loses) == ("rebuild", "every claim that is not complete in the file")
    assert uids(broken) == [b.uid(1), b.uid(3)]


@pytest.mark.parametrize("before", [b"{}", b"null ", b"5 ", b'{"version":"v1"}', b'{"entries":[]}', b'{"Data":null}'])
def test_a_document_without_a_checksum_does_not_hide_the_claims_behind_it(before: bytes) -> None:
    for name in FILES:
        assert uids(before + FILES[name]) == [b.uid(number) for number in (1, 2, 3)]


def test_the_rest_of_an_older_file_is_not_revived() -> None:
    plan = plan_repair(FILES["crc"] + b.crc_file(*[b.crc_claim(number) for number in range(1, 7)])[600:])
    assert plan.after == FILES["crc"]
    empty = b.crc_file()
    plan = plan_repair(empty + FILES["crc"][len(empty) :])
    assert plan.after == empty
    assert [step.loses for step in plan.lost] == ["2 claims after the document that are not in it"]


def test_the_rest_is_older_if_it_repeats_a_claim_of_the_document() -> None:
    old = b.fnv_file(*[b.fnv_claim(number) for number in (1, 2, 3)])
    without_checksum = b.compact({"version": "v1", "entries": [b.fnv_claim(2), b.fnv_claim(4)]}).encode()
    assert uids(without_checksum + old) == [b.uid(2), b.uid(4)]


def test_a_universal_file_that_is_cut_is_saved_for_new_kubelets() -> None:
    both = plan_convert(FILES["crc"], "universal").after
    plan = plan_repair(both[:-1])
    assert plan.after == FILES["crc"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"ClaimUID":' * 800, id="claims in claims, never closed"),
        pytest.param('{"ClaimUID":"' * 800, id="strings that never end"),
        pytest.param('{"ClaimUID":[' * 800 + "]}" * 800, id="claims in claims, all closed"),
        pytest.param('{"CDIDevices":{"a":' * 800 + "}" * 1600, id="one that is no claim in another"),
        pytest.param('[{"ClaimUID":"u",' * 800, id="lists in claims"),
        pytest.param('\\"{\\"ClaimUID\\":' * 800, id="inside a string"),
        pytest.param('{"DriverState":{},' * 800, id="members without an end"),
    ],
)
def test_hostile_nesting_is_read_a_bounded_number_of_times(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    parse_at = gojson.parse_at

    def counting(text: str, start: int) -> gojson.Node:
        nonlocal read
        try:
            node = parse_at(text, start)
        except gojson.GoSyntaxError as error:
            read += error.offset - start
            raise
        read += node.end - start
        return node

    monkeypatch.setattr(gojson, "parse_at", counting)
    salvage.search(text)
    # two families on three levels of quoting, each as often as its patience lasts and once more
    assert read <= 6 * (salvage._PATIENCE + 1) * len(text) + 6 * 4096 + 6 * 8000


def test_work_grows_with_the_file_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_at = gojson.parse_at
    read = 0

    def counting(text: str, start: int) -> gojson.Node:
        nonlocal read
        node = parse_at(text, start)
        read += node.end - start
        return node

    monkeypatch.setattr(gojson, "parse_at", counting)
    work = {}
    for count in (40, 80):
        read = 0
        found = salvage.search(b.fnv_file(*[b.fnv_claim(n, Extra=1) for n in range(count)], checksum=1).decode()[:-1])
        assert len(found.saved) == count
        work[count] = read
    assert 0 < work[80] < 2.1 * work[40]


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('{"Data":"{', "crc"),
        ('{"kind":"DRACheckpoint"', "crc"),
        ('{"version":"v1"', "fnv"),
        ('{"entries":[', "fnv"),
        ('"{\\"version\\":\\"v1\\"', "fnv"),
        ('{"version":"v1","entries":[{"ResourceHandles":[{"data":"{', "fnv"),
        (',"ResourceHandles":[{"data":"{', "fnv"),
        ('[{"version":"v1"}]', "fnv"),
        ('"{\\"kind\\":\\"DRACheckpoint\\"}"', "crc"),
        ("{", None),
        ("", None),
        ("hello", None),
    ],
)
def test_what_little_is_left_tells_the_family(text: str, family: str | None) -> None:
    assert salvage.family_hint(text) == family
    assert diagnose(text.encode()).family == family


def test_escapes_are_taken_away_as_far_as_they_are_escapes() -> None:
    assert salvage.unescape('\\"a\\\\b\\u00e9\\n\\q\\u12') == '"a\\b\u00e9\n\\q\\u12'
    assert salvage.unescape("\\ud83d") == "\ufffd"
    assert salvage.unescape("plain") == "plain"
