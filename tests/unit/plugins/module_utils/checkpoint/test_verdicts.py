# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What each release's kubelet makes of a file, against files that real kubelets wrote and read.

Follows: TestGetOrCreate, TestStore (pkg/kubelet/cm/dra/state).
"""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import canonical, checksums, formats, gojson
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.startup import start_with

from . import vectors

# These two hold no list of claims either way: the recorded count is 0 for the one and nothing for the other.
COUNT_IS_MOOT = ("document_null.json", "data_text_array_checksum_ok.json")


@pytest.mark.parametrize("name", vectors.MATRIX)
def test_verdicts_equal_those_of_ten_releases(name: str) -> None:
    assert Document(vectors.read(name)).verdicts() == vectors.MATRIX[name]


@pytest.mark.parametrize(("name", "expected"), list(vectors.expectations()))
def test_reading_equals_that_of_the_file_s_own_release(name: str, expected: dict[str, t.Any]) -> None:
    form = formats.format_for(expected["releases"].split("-")[-1])
    reading = Document(vectors.read(name)).read_as(form)
    start = start_with(reading)
    found = {
        "checksum_stored": reading.stored,
        "checksum_computed": reading.computed,
        "claims_in_file": None if reading.claims is None else len(reading.claims),
        "kubelet_start": start.outcome,
        "claims_cached": start.claims if start.outcome == "ok" else None,
    }
    wanted = {key: expected.get(key) for key in found}
    if pathlib.PurePath(name).name in COUNT_IS_MOOT:
        del found["claims_in_file"], wanted["claims_in_file"]
    assert found == wanted


@pytest.mark.parametrize("name", [name for name, _unused in vectors.expectations()])
def test_what_go_says_of_a_broken_document_is_what_we_say(name: str) -> None:
    document = Document(vectors.read(name))
    if document.error is None:
        return
    messages = dict(vectors.expectations())[name]["go_error"]
    assert document.error.go_message in messages


HASHED = sorted(path.relative_to(vectors.FOLDER).as_posix() for path in vectors.FOLDER.glob("1.*/*.hashtext"))


@pytest.mark.parametrize("name", HASHED)
def test_hashed_text_is_letter_for_letter_that_of_the_release(name: str) -> None:
    form = formats.format_for(name.split("/")[0].split("-")[-1])
    document, faults = Document(vectors.read(name.replace(".hashtext", ".json"))).outer.decode(form)
    assert not faults
    assert gojson.encode_text("".join(piece for (piece,) in checksums.dump_pieces([form], document))) == vectors.read(
        name
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param('{"version":"v1","checksum":991151041}', 991151041, id="empty list"),
        pytest.param('{"version":"v1","entries":null,"checksum":0}', 3675879976, id="nil list"),
    ],
)
def test_known_numbers_of_the_old_checksum(text: str, number: int) -> None:
    assert Document(text.encode()).read_as(formats.FNV_1_27).computed == number


def test_known_numbers_of_the_new_checksum() -> None:
    assert checksums.crc(formats.EMPTY_DATA) == 4010664294
    assert checksums.crc(formats.EMPTY_DATA.replace("null", "[]")) == 2361995144


ALL_KUBELET_FILES = sorted(vectors.MATRIX)


@pytest.mark.parametrize("name", ALL_KUBELET_FILES)
def test_the_quick_way_and_the_exact_way_read_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Document(vectors.read(name))
    verdicts = quick.verdicts()
    claims = {form.name: _complete(form, quick.read_as(form).claims) for form in formats.FORMATS}
    for quick_way in ("split", "claim_end", "envelope"):
        monkeypatch.setattr(
            f"ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.canonical.{quick_way}",
            lambda *_unused: None,
        )
    exact = Document(vectors.read(name))
    assert exact.verdicts() == verdicts
    for form in formats.FORMATS:
        assert _complete(form, exact.read_as(form).claims) == claims[form.name]


ENVELOPES = {
    b'{"Data":"","Checksum":0}': True,
    b'{"Data":"{\\"a\\":1}","Checksum":12} \n': True,
    b'{"Data":"\\"","Checksum":1}': True,
    b'{"Data":"a,\\"Checksum\\":1}","Checksum":2}': True,
    b'{"Data":"a\\\\","Checksum":1}': False,
    b'{"Data":"\\\\\\"","Checksum":1}': False,
    b'{"Data":"a\\u003c","Checksum":1}': False,
    b'{"Data":"a\\","Checksum":1}': False,
    b'{"Data":"a\\"b\\","Checksum":1}': False,
    b'{"Data":"a"b","Checksum":1}': False,
    b'{"Data":"a\nb","Checksum":1}': False,
    b'{"Data":"\xc3\xa4","Checksum":1}': False,
    b'{"Data":"a","Checksum":01}': False,
    b'{"Data":"a","Checksum":1,"x":2}': False,
    b'{"Data":"a","Checksum":1}}': False,
    b'{"Data":1,"Checksum":1}': False,
    b'{"Data": "a","Checksum":1}': False,
    b'{"Data":","Checksum":1}': False,
    b'{"data":"a","Checksum":1}': False,
    b',"Checksum":1}': False,
    b"": False,
}


@pytest.mark.parametrize("piece", [1, 2, 1 << 16])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("data", ENVELOPES)
def test_a_file_that_is_read_from_its_bytes_has_the_nodes_of_its_text(
    data: bytes, before: bytes, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canonical, "_PIECE", piece)
    found = canonical.envelope(before + data + b'\\"\0', len(before), len(before) + len(data))
    assert (found is not None) == ENVELOPES[data]
    if found is not None:
        assert _spans(found) == _spans(gojson.parse(data.decode()))


def _spans(node: gojson.Node) -> list[t.Any]:
    members = [[key, *_spans(member)] for key, member in node.members()]
    return [node.kind, node.start, node.end, members or node.value]


def _complete(form: formats.Format, claims: t.Sequence[t.Any] | None) -> list[str] | None:
    """Claims as the format writes them: fields left out and fields of another release make no difference."""
    return None if claims is None else [form.claim.encode(claim) for claim in claims]
