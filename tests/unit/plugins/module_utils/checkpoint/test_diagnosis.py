# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault, provoked by a file of its own: where it is found, how bad it is, and what mends it."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import diagnosis, faults, formats

from . import builders as b
from . import vectors

GOOD = b.crc_file(b.crc_claim(1), b.crc_claim(2))
DATA = b.crc_data(b.crc_claim())
LIST = "Data.ClaimInfoStateList"
DEEP = "[" * 10_000 + "]" * 10_000


def renamed(data: bytes, old: str, new: str) -> bytes:
    """A file of 1.31 or later with its data text changed and its checksum made right again."""
    return b.crc_around(json.loads(data)["Data"].replace(old, new, 1))


def bare(**changes: t.Any) -> bytes:
    """A file of 1.27 with one claim."""
    return b.fnv_file(b.fnv_claim(ResourceHandles=..., **changes), release="1.27")


def devices(*items: t.Any) -> dict[str, t.Any]:
    return {"gpu.example.com": {"Devices": list(items)}}


class Case(t.NamedTuple):
    """A file, and the one fault that it has (``alone``), or the one that is looked at among others."""

    code: str
    data: bytes | None
    place: str
    severity: str
    repair: str = ""
    loses: str = ""
    release: str | None = None
    status: str = "faulty"
    alone: bool = True
    known_pods: tuple[str, ...] | None = None


REBUILD = ("error", "rebuild", "every claim that is not complete in the file", None, "refused")
CANNOT_HOLD = "what the format of that release cannot hold, see the steps"
CASES = [
    Case("missing_file", None, "", "info", status="sound"),
    Case("empty_file", b"", "", "error", "rebuild", "all claims: the file holds none", None, "refused"),
    Case(
        "empty_file", b.crc_around(""), "Data", "error", "rebuild", "all claims: the file holds none", None, "refused"
    ),
    Case("blank_file", b" \n\t", "", "error", "rebuild", "all claims: the file holds none", None, "refused"),
    Case(
        "zero_filled", bytes(9), "", "error", "rebuild", "all claims: the file holds only zero bytes", None, "refused"
    ),
    Case("zero_bytes", GOOD[:100] + bytes(50) + GOOD[150:], "byte 100", *REBUILD, alone=False),
    Case("truncated", GOOD[:-1], f"byte {len(GOOD) - 1}", *REBUILD),
    Case("truncated", GOOD[:90], "byte 90", *REBUILD),
    Case("truncated", b.crc_around(DATA[:-9]), f"Data, character {len(DATA) - 9}", *REBUILD),
    Case("trailing_data", GOOD + b"x", f"byte {len(GOOD)}", "error", "cut_trailing_data", "", None, "refused"),
    Case("not_json", b"<html>", "byte 0", *REBUILD),
    Case("not_json", GOOD.replace(b"{", b"{,", 1), "byte 1", *REBUILD),
    Case("not_json", b.crc_around("no"), "Data, character 1", *REBUILD),
    Case("byte_order_mark", b"\xef\xbb\xbf" + GOOD, "byte 0", "error", "rebuild", "", None, "refused"),
    Case("utf16", GOOD.decode().encode("utf-16"), "byte 0", "error", "rebuild", "", None, "refused"),
    Case("utf16", GOOD.decode().encode("utf-16-be"), "byte 0", "error", "rebuild", "", None, "refused"),
    Case("utf16", GOOD.decode().encode("utf-16-le"), "byte 0", "error", "rebuild", "", None, "refused"),
    Case("too_deep", f'{{"x":{DEEP}}}'.encode(), "byte 10004", *REBUILD),
    Case("too_deep", b.crc_around(f'{{"x":{DEEP}}}'), "Data, character 10004", *REBUILD),
    Case("invalid_utf8", GOOD.replace(b"claim-1", b"clai\xff-1"), "", "warning", status="refused", alone=False),
    Case(
        "wrong_type",
        b.crc_file(b.crc_claim(DriverState=devices(b.device(RequestNames=[1])))),
        f"{LIST}[0].DriverState[gpu.example.com].Devices[0].RequestNames[0]",
        "error",
        "reset_field",
        "the value of that field",
        status="refused",
    ),
    Case("wrong_type", b.crc_around('{"ClaimInfoStateList":{}}'), LIST, *REBUILD, alone=False),
    Case("wrong_type", b'{"Data":7,"Checksum":0}', "Data", *REBUILD),
    Case(
        "impossible_claim",
        b.crc_file("claim", b.crc_claim(2)),
        f"{LIST}[0]",
        "error",
        "drop_claim",
        "the claim: its driver is never told to unprepare it",
        status="refused",
    ),
    Case(
        "impossible_claim",
        b.crc_file(b.crc_claim(Namespace=7)),
        f"{LIST}[0].Namespace",
        "error",
        "drop_claim",
        "the claim: its driver is never told to unprepare it",
        status="refused",
    ),
    Case(
        "checksum_mismatch",
        b.crc_file(b.crc_claim(), checksum=7),
        "Checksum",
        "error",
        "recompute_checksum",
        status="refused",
    ),
    Case(
        "checksum_mismatch",
        b.fnv_file(b.fnv_claim(), checksum=7),
        "checksum",
        "error",
        "recompute_checksum",
        status="refused",
    ),
    Case("other_release", b.fnv_file(b.fnv_claim()), "", "error", "convert", CANNOT_HOLD, "1.31", "refused"),
    Case("other_release", b.fnv_file(b.fnv_claim()), "", "error", "convert", CANNOT_HOLD, "1.29", "refused"),
    Case("other_release", b.crc_file(), "", "error", "convert", CANNOT_HOLD, "1.30", "refused"),
    Case("unknown_format", b"[]", "", *REBUILD),
    Case("unknown_format", b"7", "", *REBUILD),
    Case("unknown_format", b'{"a":1}', "", "error", "rebuild", "all that is in the file", alone=False),
    Case("unknown_version", b.fnv_file(b.fnv_claim(), version="v2"), "version", "warning"),
    Case("unknown_version", renamed(GOOD, "DRACheckpoint", "Other"), "Data.kind", "warning"),
    Case("unknown_version", renamed(GOOD, "k8s.io/v1", "k8s.io/v2"), "Data.apiVersion", "warning"),
    Case(
        "prerelease_list_key",
        b.crc_around(b.crc_data(b.crc_claim(), list_key="Entries")),
        "Data.Entries",
        "error",
        "rename_list_key",
    ),
    Case(
        "misplaced_claims",
        b.compact({"claims": [b.crc_claim()]}).encode(),
        "",
        "error",
        "rebuild",
        "what stands around the claims",
        alone=False,
    ),
    Case("duplicate_key", GOOD.replace(b"{", b'{"Checksum":1,', 1), "Checksum", "warning"),
    Case(
        "duplicate_key",
        renamed(GOOD, '"PodUIDs"', '"PodUIDs":{},"podUIDs"'),
        f"{LIST}[0].podUIDs",
        "warning",
        alone=False,
    ),
    Case("key_spelling", renamed(GOOD, '"PodUIDs"', '"podUIDs"'), f"{LIST}[0].podUIDs", "info", status="sound"),
    Case("unknown_field", b.crc_file(b.crc_claim(Foo={})), f"{LIST}[0].Foo", "info", status="sound"),
    Case("unknown_field", GOOD.replace(b"{", b'{"Foo":1,', 1), "Foo", "info", status="sound"),
    Case("foreign_field", b.crc_file(b.crc_claim(ClassName="c")), f"{LIST}[0].ClassName", "info", status="sound"),
    Case("duplicate_claim", b.crc_file(b.crc_claim(), b.crc_claim()), f"{LIST}[0]", "warning", "drop_claim"),
    Case(
        "conflicting_claim",
        b.crc_file(b.crc_claim(), b.crc_claim(ClaimUID="other")),
        f"{LIST}[0]",
        "error",
        "drop_claim",
        "the earlier entries: what they alone hold is never unprepared",
    ),
    Case("duplicate_claim_uid", b.crc_file(b.crc_claim(), b.crc_claim(ClaimName="n")), f"{LIST}[0]", "warning"),
    Case(
        "colliding_claim_key",
        b.fnv_file(b.fnv_claim(1, ClaimName="ab", Namespace="c"), b.fnv_claim(2, ClaimName="a", Namespace="bc")),
        "entries[0]",
        "warning",
    ),
    Case(
        "doubled_devices",
        b.crc_file(b.crc_claim(DriverState=devices(b.device(1), b.device(2), b.device(1)))),
        f"{LIST}[0].DriverState[gpu.example.com].Devices",
        "warning",
        "drop_repeats",
    ),
    Case(
        "doubled_devices",
        b.fnv_file(b.fnv_claim(CDIDevices={"d": ["a.b/cd=x", "a.b/cd=x"]})),
        "entries[0].CDIDevices[d]",
        "warning",
        "drop_repeats",
    ),
    Case("pods_null", b.crc_file(b.crc_claim(PodUIDs=None)), f"{LIST}[0].PodUIDs", "error", "set_empty"),
    Case("pods_null", b.fnv_file(b.fnv_claim(PodUIDs=...)), "entries[0].PodUIDs", "error", "set_empty"),
    Case("no_pods", b.crc_file(b.crc_claim(PodUIDs={})), f"{LIST}[0].PodUIDs", "warning"),
    Case(
        "empty_pod_uid",
        b.crc_file(b.crc_claim(PodUIDs={"": {}})),
        f"{LIST}[0].PodUIDs",
        "warning",
        "drop_pod_reference",
    ),
    Case("unknown_pod", b.crc_file(b.crc_claim()), f"{LIST}[0].PodUIDs", "warning", known_pods=("another",)),
    Case(
        "no_claim_uid",
        b.crc_file(b.crc_claim(ClaimUID="")),
        f"{LIST}[0].ClaimUID",
        "error",
        "drop_claim",
        "the claim: without a UID no driver can be told",
    ),
    Case("no_claim_name", b.crc_file(b.crc_claim(ClaimName=...)), f"{LIST}[0].ClaimName", "warning"),
    Case("no_claim_name", b.crc_file(b.crc_claim(Namespace="")), f"{LIST}[0].Namespace", "warning"),
    Case(
        "no_driver_name",
        b.crc_file(b.crc_claim(DriverState={"": {"Devices": [b.device()]}})),
        f"{LIST}[0].DriverState[]",
        "warning",
        "drop_driver",
        "the devices listed there",
    ),
    Case(
        "devices_pending",
        b.crc_file(b.crc_claim(DriverState={"d": {"Devices": None}})),
        f"{LIST}[0].DriverState[d]",
        "info",
        status="sound",
    ),
    Case(
        "cdi_name_refused",
        b.fnv_file(b.fnv_claim(CDIDevices={"d": ["nonsense"]})),
        "entries[0].CDIDevices[d]",
        "error",
        "drop_cdi_device",
        "that CDI device: a container that restarts does not get it",
        status="refused",
    ),
    Case(
        "cdi_class_too_short",
        b.fnv_file(b.fnv_claim(CDIDevices={"d": ["vendor.example.com/g=1"]})),
        "entries[0].CDIDevices[d]",
        "error",
        "drop_cdi_device",
        "that CDI device: a container that restarts does not get it",
        status="refused",
    ),
    Case(
        "cdi_annotation_too_long",
        b.fnv_file(b.fnv_claim(DriverName="d" * 27)),
        "entries[0].CDIDevices[gpu.example.com]",
        "error",
        "drop_cdi_device",
        "the CDI devices of that driver: a container that restarts does not get them",
        status="refused",
    ),
    Case("no_resource_handles", bare(), "entries", "info", status="sound"),
]
# These are about the file's place in a directory, not about its bytes: test_statefile has them.
ELSEWHERE = {"leftover_temporary", "missing_directory", "symlink"}


def test_no_code_is_left_without_a_file_that_provokes_it() -> None:
    assert {case.code for case in CASES} | ELSEWHERE == set(faults.KINDS)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.code} {case.place}"[:60]) for case in CASES])
def test_fault(case: Case) -> None:
    found = diagnosis.diagnose(case.data, release=case.release, known_pods=case.known_pods)
    codes = [item.code for item in found.faults]
    assert case.code in codes
    if case.alone:
        assert codes == [case.code]
    item = found.faults[codes.index(case.code)]
    assert (item.place, item.severity, item.repair, item.loses) == (
        case.place,
        case.severity,
        case.repair,
        case.loses,
    )
    assert found.status == case.status


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.code} {case.place}"[:60]) for case in CASES])
def test_every_fault_is_told_in_whole_sentences_and_json(case: Case) -> None:
    for item in diagnosis.diagnose(case.data, release=case.release, known_pods=case.known_pods).faults:
        told = item.to_dict()
        assert json.loads(json.dumps(told)) == told
        assert told["text"][0].isupper() or told["text"][0].isdigit() or told["text"].startswith("entries")
        assert told["text"].endswith(".")
        assert told["kubelets"], "nobody is told what kubelets do about it"
        assert all(line["effect"] and line["releases"] for line in told["kubelets"])
        assert told["remedy"] or told["severity"] == "info" or not told["repair"]


def test_all_faults_of_a_file_are_found_in_one_pass() -> None:
    claims = [
        b.crc_claim(1, PodUIDs=None),
        b.crc_claim(2, PodUIDs={"": {}}, Foo=1),
        b.crc_claim(3, DriverState=devices(b.device(), b.device(), b.device(ShareID=7))),
        b.crc_claim(4, ClaimUID=[]),
        b.crc_claim(5),
        b.crc_claim(5),
    ]
    found = diagnosis.diagnose(b.crc_file(*claims, checksum=1).replace(b"{", b'{"Bar":0,', 1))
    assert [(item.code, item.place) for item in found.faults] == [
        ("unknown_field", "Bar"),
        ("impossible_claim", f"{LIST}[3].ClaimUID"),
        ("wrong_type", f"{LIST}[2].DriverState[gpu.example.com].Devices[2].ShareID"),
        ("checksum_mismatch", "Checksum"),
        ("pods_null", f"{LIST}[0].PodUIDs"),
        ("empty_pod_uid", f"{LIST}[1].PodUIDs"),
        ("unknown_field", f"{LIST}[1].Foo"),
        ("duplicate_claim", f"{LIST}[4]"),
    ]


def test_what_is_empty_only_by_its_type_is_told_once() -> None:
    found = diagnosis.diagnose(b.crc_file(b.crc_claim(ClaimUID=1, ClaimName=True, PodUIDs=[], DriverState="x")))
    assert {item.code for item in found.faults} == {"impossible_claim", "wrong_type"}
    assert len(found.faults) == 4


def test_only_the_last_of_claims_with_one_name_is_kept() -> None:
    found = diagnosis.diagnose(b.crc_file(b.crc_claim(1), b.crc_claim(1, ClaimUID="x"), b.crc_claim(1, ClaimUID="y")))
    assert [(item.code, item.place, item.facts["kept_uid"]) for item in found.faults] == [
        ("conflicting_claim", f"{LIST}[0]", "y"),
        ("conflicting_claim", f"{LIST}[1]", "y"),
    ]


@pytest.mark.parametrize(
    ("release", "codes"),
    [
        pytest.param(None, ["wrong_type"], id="nobody said which: the file's own"),
        pytest.param("1.36", ["wrong_type"], id="one that knows the field"),
        pytest.param("1.31", [], id="one that does not"),
    ],
)
def test_faults_that_only_other_releases_mind_are_left_out(release: str | None, codes: list[str]) -> None:
    data = b.crc_file(b.crc_claim(DriverState=devices(b.device(ShareID=7))))
    found = diagnosis.diagnose(data, release=release)
    assert [item.code for item in found.faults] == codes
    assert found.status == ("refused" if codes else "sound")


@pytest.mark.parametrize(
    ("release", "text"),
    [
        ("1.28", "The file is for Kubernetes 1.30; the kubelet of 1.28 does not read it."),
        ("1.31", "The file is for Kubernetes 1.30; the kubelet of 1.31 does not read it."),
    ],
)
@pytest.mark.report("F042")
def test_an_intact_file_of_another_release_is_never_called_corrupted(release: str, text: str) -> None:
    found = diagnosis.diagnose(b.fnv_file(b.fnv_claim()), release=release)
    assert [item.text for item in found.faults] == [text]
    assert found.faults[0].facts == {"written_for": ["1.30"], "release": release}
    assert found.faults[0].effects == {release: "does not start (checksum_mismatch)"}


@pytest.mark.report("F042")
def test_the_three_files_of_the_field_report() -> None:
    good = b.crc_around(b.crc_data(), 2361995144)
    assert diagnosis.diagnose(good, release="1.31").status == "sound"
    bad = diagnosis.diagnose(good.replace(b"5144", b"5145"), release="1.31")
    assert [item.text for item in bad.faults] == ["The checksum is 2361995145, the data gives 2361995144."]
    old = diagnosis.diagnose(b'{"version":"v1","entries":[],"checksum":123}', release="1.31")
    assert [item.code for item in old.faults] == ["other_release", "checksum_mismatch"]
    assert old.faults[0].text == "The file is for Kubernetes 1.27; the kubelet of 1.31 does not read it."


def test_a_classic_file_without_a_checksum_is_no_empty_one_for_later_kubelets() -> None:
    """They take it for one, as they take ``{}``: its claims would never be unprepared."""
    data = b.fnv_file(b.fnv_claim(1), b.fnv_claim(2)).partition(b',"checksum"')[0] + b"}"
    found = diagnosis.diagnose(data, release="1.36")
    assert (found.verdicts["1.36"], found.status) == ("ok:0", "faulty")
    assert found.faults[0].code == "other_release"
    assert found.faults[0].text == "The file is for Kubernetes 1.28-1.29; the kubelet of 1.36 loads 0 of its 2 claims."


def test_universal_files_have_no_fault_for_any_release() -> None:
    for name in ("empty_all_releases", "one_claim_1.27_form_all_releases"):
        for release in (None, *formats.RELEASES):
            found = diagnosis.diagnose(vectors.read(f"bridge/{name}.json"), release=release)
            assert [item.code for item in found.faults if item.severity != "info"] == []
            assert found.status == "sound"


def test_expand_is_the_inverse_of_the_texts_that_name_releases() -> None:
    assert diagnosis.expand("1.27-1.30") == {"1.27", "1.28", "1.29", "1.30"}
    assert diagnosis.expand("1.31 and later") == {"1.31", "1.32", "1.33", "1.34", "1.35", "1.36"}
    assert diagnosis.expand("1.28, 1.30-1.31") == {"1.28", "1.30", "1.31"}
    for some in (["1.27"], ["1.27", "1.28"], ["1.27", "1.29", "1.36"], list(formats.RELEASES)):
        assert diagnosis.expand(faults.releases_text(some)) == set(some)


def test_every_kind_speaks_of_releases_that_exist() -> None:
    for code, kind in faults.KINDS.items():
        for releases in kind.effects:
            if releases != faults.ALL:
                assert diagnosis.expand(releases) <= set(formats.RELEASES), code
