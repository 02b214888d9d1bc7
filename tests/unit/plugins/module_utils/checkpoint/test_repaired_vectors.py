# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every golden file after its repair: which claims are in it, counted by hand from the text of each file.

What is written is judged twice: by the verdict of each release that it is for, and by plain JSON and both checksums as
they are defined, without the code under test. Each file stands in exactly one of the tables.
"""

from __future__ import annotations

import json
import re
import typing as t
import zlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.planning import plan_repair

from . import builders as b
from . import vectors

RANGES = {
    "1.27": ("1.27",),
    "1.28-1.29": ("1.28", "1.29"),
    "1.30": ("1.30",),
    "1.31-1.34": ("1.31", "1.32", "1.33", "1.34"),
    "1.35-1.36": ("1.35", "1.36"),
}
OTHER_FAMILY = {"1.27": "1.36", "1.28-1.29": "1.31", "1.30": "1.36", "1.31-1.34": "1.30", "1.35-1.36": "1.27"}


def uid(number: int) -> str:
    """The UID of a claim in the golden files, which number them in hexadecimal."""
    return f"c0de{number:04x}-1111-4222-8333-{number:012x}"


ONE, TWO, THREE, FOUR, TEN = (uid(number) for number in (1, 2, 3, 4, 10))
OTHER = "deadbeef-1111-4222-8333-000000000001"
NONE: list[str] = []

# Files of damaged/ that are refused, or that load and break later. The same name stands for the same damage in each
# range of releases, so the claims are the same too, unless a range is given its own line.
SAVED: dict[str, list[str]] = {
    # the number is wrong or no number, the text of the one claim is untouched
    "bad_checksum_inverted": [ONE],
    "bad_checksum_plus_one": [ONE],
    "bad_checksum_zero": [ONE],
    "checksum_bool": [ONE],
    "checksum_exponent": [ONE],
    "checksum_float": [ONE],
    "checksum_leading_zero": [ONE],
    "checksum_missing": [ONE],
    "checksum_negative": [ONE],
    "checksum_null": [ONE],
    "checksum_plus_2_pow_32": [ONE],
    "checksum_plus_2_pow_64": [ONE],
    "checksum_string": [ONE],
    "duplicate_checksum_key_last_bad": [ONE],
    "nan_checksum": [ONE],
    # edited, and the number was left: nobody can tell which of the two is right, so what is written counts
    "claims_reordered_stale_checksum": [THREE, TWO, ONE],
    "data_pretty_printed_stale_checksum": [ONE],
    "future_apiVersion_stale_checksum": [ONE],
    "future_version_stale_checksum": [ONE],
    "invalid_utf8_in_file_checksum_of_raw_bytes": [ONE],
    "invalid_utf8_in_file_stale_checksum": [ONE],
    "missing_Namespace_stale_checksum": [ONE],
    "pods_unsorted_stale_checksum": [FOUR],
    "single_bit_flip_in_value": [ONE],  # the namespace says defaul4 now
    # all claims are whole, something around them is not
    "bom_prefix": [ONE],
    "comment_in_json": [ONE],
    "single_quote_json": [ONE],
    "trailing_comma": [ONE],
    "utf16le": [ONE],
    "raw_control_char_in_string": [ONE],
    "raw_control_char_in_inner_string_checksum_ok": [ONE],
    "single_bit_flip_in_structure": [ONE, TWO, THREE],  # the bracket that closes the list became a brace
    "document_array": [ONE],  # the file stands in a list
    "document_string": [ONE],  # the file was quoted once more
    "data_double_encoded_checksum_ok": [ONE],  # its data were
    "data_object_instead_of_string": [ONE],  # its data were not quoted at all
    "list_under_prerelease_key_Entries_checksum_ok": [ONE],
    "version_number": [ONE],
    "wrong_type_kind_number": [ONE],
    # a sound document, and behind it text, zeros, or the rest of a longer file, which is older and not revived
    "leftover_tail_of_longer_file": [ONE],
    "trailing_text": [ONE],
    "two_documents": [ONE],  # the second one has claims 1, 2 and 3
    "two_documents_newline": [ONE],
    "zero_padding_after_document": [ONE],
    "data_two_documents_checksum_ok": [ONE],
    # cut or overwritten with zeros: claims count that end before the cut
    "truncated_last_byte": [ONE],  # the brace of the file is missing, not that of the claim
    "truncated_half": [ONE],  # of three claims, cut in the second
    "zero_filled_tail_half": [ONE],
    "truncated_quarter": NONE,  # of one claim, cut in its UID
    "truncated_1_byte": NONE,
    "truncated_inside_escape": NONE,  # of one claim, cut in its first field
    "truncated_inside_utf8_rune": NONE,
    "data_truncated_checksum_ok": NONE,  # cut in the pods of its one claim
    "data_truncated_stale_checksum": NONE,
    # of 500 claims, cut in the 14th ("Namespace":"team-13"), the 11th (its second pod), the 10th (its CDI name)
    "1.27/truncated_large_at_4096": [uid(number) for number in range(1, 14)],
    "1.28-1.29/truncated_large_at_4096": [uid(number) for number in range(1, 11)],
    "1.30/truncated_large_at_4096": [uid(number) for number in range(1, 11)],
    "1.31-1.34/truncated_large_at_4096": [uid(number) for number in range(1, 10)],
    "1.35-1.36/truncated_large_at_4096": [uid(number) for number in range(1, 10)],
    "1.27/zero_filled_tail_from_4096": [uid(number) for number in range(1, 14)],
    "1.28-1.29/zero_filled_tail_from_4096": [uid(number) for number in range(1, 11)],
    "1.30/zero_filled_tail_from_4096": [uid(number) for number in range(1, 11)],
    "1.31-1.34/zero_filled_tail_from_4096": [uid(number) for number in range(1, 10)],
    # nothing is in them
    "empty_file": NONE,
    "whitespace_only": NONE,
    "zero_filled_whole": NONE,
    "html_error_page": NONE,
    "not_json_text": NONE,
    "document_number": NONE,
    "data_empty_string_checksum_0": NONE,
    "data_not_json_checksum_ok": NONE,
    "data_null": NONE,
    "data_text_array_checksum_ok": NONE,
    "missing_entries_stale_checksum": NONE,
    "wrong_type_entries_object": NONE,
    "wrong_type_list_object": NONE,
    "wrong_type_list_string": NONE,
    "wrong_type_claim_string": NONE,
    # {} and null: old kubelets refuse them, for later ones see below
    "1.27/document_empty_object": NONE,
    "1.28-1.29/document_empty_object": NONE,
    "1.30/document_empty_object": NONE,
    "1.27/document_null": NONE,
    "1.28-1.29/document_null": NONE,
    "1.30/document_null": NONE,
    # a field of another type is emptied and the claim stays, unless that field says which claim it is
    "wrong_type_cdi_list": [ONE],
    "wrong_type_cdi_string": [ONE],
    "wrong_type_cdi_value_string": [ONE],
    "wrong_type_device_string": [ONE],
    "wrong_type_devices_object": [ONE],
    "wrong_type_driver_value_list": [ONE],
    "wrong_type_driverstate_list": [ONE],
    "wrong_type_pods_list": [ONE],
    "wrong_type_pods_value_string": [ONE],
    "wrong_type_pods_value_true": [ONE],
    "wrong_type_request_names_number_list": [ONE],
    "1.35-1.36/wrong_type_share_id_number": [ONE],
    "wrong_type_claim_uid_number": NONE,
    "wrong_type_name_bool": NONE,
    "invalid_escape": NONE,  # \\x2d stands in its name: no text that JSON can say
    # loads, and breaks later or makes no sense
    "claim_null_checksum_ok": [ONE],  # a null stands behind it in the list
    "duplicated_claim_identical": [ONE],
    "duplicated_claim_same_name_other_uid": [OTHER],  # kubelets keep the last one
    "edited_but_same_hash_text": [TEN],  # CDI names "a" and "b": its kubelet does not start
    "missing_ClaimUID_checksum_ok": NONE,  # no driver can be told
    "missing_DriverName_checksum_ok": [ONE],  # no CDI annotation without it: its kubelet does not start
    "missing_PodUIDs_checksum_ok": [ONE],  # panics when a pod comes
}

ODD = 'q"b\\s/<a>&amp;'
"""How the UID of the claim with every odd character begins."""

# Files that a kubelet wrote, whose repair changes them all the same.
MENDED: dict[str, list[str]] = {
    "pods_nil": [uid(6)],  # panics when a pod comes
    "duplicate_devices_after_restarts": [uid(8)],  # lists each device once for every restart
    "zero_value_claim": NONE,  # a claim without a UID
    # a pod and, from 1.31 on, a driver have an empty name; up to 1.30 its driver cannot be in an annotation either
    "unicode_and_escapes": [ODD],
    "unicode_and_escapes_go1.22": [ODD],
    # CDI names and names of drivers with which old kubelets do not start
    "hash_collision_a": [TEN],
    "hash_collision_b": [TEN],
    "hash_syntax_in_strings": [uid(9)],
    "quirks/long_driver_name": [uid(13)],
    "quirks/one_char_cdi_class": [uid(12)],
    # the kubelet that wrote them does not read them: the number was made before JSON changed the text
    "quirks/nil_entries": NONE,
    "quirks/invalid_utf8": [uid(11)],
    "quirks/structured_raw_html_chars": [uid(20)],
    "quirks/structured_raw_null": [uid(20)],
    "quirks/structured_raw_whitespace": [uid(20)],
}


class Golden(t.NamedTuple):
    """A golden file: its path below the fixtures, the range it belongs to, and its name in the tables."""

    path: str
    range: str
    name: str


def golden(folder: str) -> list[Golden]:
    """The files of kubelets in a folder, empty for those that kubelets wrote."""
    found = []
    for path in vectors.MATRIX:
        parts = re.fullmatch(rf"{folder}(1\.[^/]+)/(.+)\.json", path)
        if parts is not None:
            found.append(Golden(path, parts[1], parts[2]))
    return found


def expected_in(table: t.Mapping[str, list[str]], file: Golden) -> list[str] | None:
    """The claims that a table names for a file, None if it does not name it."""
    return table.get(f"{file.range}/{file.name}", table.get(file.name))


READ_BY_LATER_ONES = ("document_empty_object", "document_null")
"""Nothing is to be done to these for kubelets from 1.31 on."""
ASIDE_FROM_ITS_RANGE = (*READ_BY_LATER_ONES, "wrong_type_share_id_number")
DAMAGED = [(file, expected_in(SAVED, file)) for file in golden("damaged/")]
WRITTEN = [(file, expected_in(MENDED, file)) for file in golden("")]
CHANGED = [(file, claims) for file, claims in DAMAGED + WRITTEN if claims is not None]
SOUND = [file for file, claims in DAMAGED + WRITTEN if claims is None]


def decoded(data: bytes) -> t.Any:
    """JSON as Go reads it: each byte that is not UTF-8 is one replacement character."""
    return json.loads(re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape")))


def claims_in(data: bytes) -> list[dict[str, t.Any]]:
    """The claims of a file that kubelets read, by Python's JSON; its checksum must be what it says."""
    document = decoded(data)
    keys = {key.lower(): key for key in document}
    claims: list[dict[str, t.Any]]
    if "data" in keys:
        text = document[keys["data"]]
        assert document[keys["checksum"]] == zlib.crc32(text.encode())
        inner = json.loads(text)
        claims = inner["ClaimInfoStateList"] or []
        return claims
    claims = document.get(keys.get("entries"), [])
    if "structuredData" not in str(claims):
        texts = {b.fnv(b.hashed_text(claims, release)) for release in ("1.27", "1.28", "1.30")}
        assert document[keys["checksum"]] in texts
    return claims


def uids_in(data: bytes) -> list[str]:
    return [next(value for key, value in claim.items() if key.lower() == "claimuid") for claim in claims_in(data)]


def accepted(data: bytes, releases: t.Iterable[str], count: int) -> None:
    """These releases load the file, start with it and know all its claims."""
    diagnosis = diagnose(data)
    starts = diagnosis.starts()
    for release in releases:
        assert (diagnosis.verdicts[release], starts[release].outcome) == (f"ok:{count}", "ok"), release


def targets(file: Golden) -> tuple[str | None, ...]:
    """What to repair a file for: its releases, and none in particular unless it is sound or faulty for others only."""
    own = RANGES[file.range]
    return own if file.name in ASIDE_FROM_ITS_RANGE else (*own, None)


def same(found: list[str], wanted: list[str]) -> bool:
    return [ODD if one.startswith(ODD) else one for one in found] == wanted


@pytest.mark.parametrize(
    ("file", "claims"), [pytest.param(file, claims, id=f"{file.range} {file.name}") for file, claims in CHANGED]
)
def test_a_repaired_file_holds_what_could_be_saved_and_serves_its_releases(file: Golden, claims: list[str]) -> None:
    data = vectors.read(file.path)
    for target in targets(file):
        plan = plan_repair(data, target=target)
        assert plan.changed
        assert plan.after is not None
        assert same(uids_in(plan.after), claims), target
        accepted(plan.after, RANGES[file.range], len(claims))
        assert not plan_repair(plan.after, target=target).changed


@pytest.mark.parametrize(
    ("file", "claims"),
    [
        pytest.param(file, claims, id=f"{file.range} {file.name}")
        for file, claims in DAMAGED
        if claims is not None and file.name not in READ_BY_LATER_ONES
    ],
)
def test_it_can_be_repaired_for_the_other_family_and_for_all_releases(file: Golden, claims: list[str]) -> None:
    data = vectors.read(file.path)
    target = OTHER_FAMILY[file.range]
    repaired = plan_repair(data, target=target).after
    assert repaired is not None
    assert uids_in(repaired) == claims
    accepted(repaired, [target], len(claims))
    for_all = plan_repair(data, target="universal").after
    assert for_all is not None
    assert uids_in_both(for_all) == [claims, claims]
    accepted(for_all, [release for releases in RANGES.values() for release in releases], len(claims))


def uids_in_both(data: bytes) -> list[list[str]]:
    """The claims of each half of a universal file."""
    document = decoded(data)
    inner = json.loads(document["Data"])["ClaimInfoStateList"] or []
    return [[claim["ClaimUID"] for claim in half] for half in (document.get("entries", []), inner)]


@pytest.mark.parametrize("file", [pytest.param(file, id=f"{file.range} {file.name}") for file in SOUND])
def test_a_sound_file_stays_as_it_is_byte_for_byte(file: Golden) -> None:
    data = vectors.read(file.path)
    for target in targets(file):
        plan = plan_repair(data, target=target)
        assert (plan.changed, plan.after, plan.steps) == (False, data, [])
    assert diagnose(data).verdicts[RANGES[file.range][-1]].startswith("ok:"), "a refused file is in the table"


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        pytest.param("empty_all_releases", tuple(RANGES), id="empty"),
        pytest.param("one_claim_1.27_form_all_releases", tuple(RANGES), id="one claim"),
        pytest.param("one_claim_1.28_1.29_and_1.31_up", ("1.28-1.29", "1.31-1.34", "1.35-1.36"), id="1.28"),
        pytest.param("one_claim_1.30_and_1.31_up", ("1.30", "1.31-1.34", "1.35-1.36"), id="1.30"),
    ],
)
def test_a_file_for_both_families_stays_as_it_is(name: str, releases: t.Sequence[str]) -> None:
    data = vectors.read(f"bridge/{name}.json")
    for target in (None, *(release for names in releases for release in RANGES[names])):
        plan = plan_repair(data, target=target)
        assert (plan.changed, plan.after) == (False, data), target


@pytest.mark.parametrize(("table", "files"), [(SAVED, DAMAGED), (MENDED, WRITTEN)], ids=["damaged", "written"])
def test_every_line_of_a_table_is_about_a_file(
    table: t.Mapping[str, list[str]], files: list[tuple[Golden, list[str] | None]]
) -> None:
    names = {file.name for file, _unused in files} | {f"{file.range}/{file.name}" for file, _unused in files}
    assert table.keys() - names == set()
