# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Names and texts of the files for containers; above all what hostile names come to."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.container_file_texts import (
    ENV,
    MARKER,
    QUADLET,
    Subject,
    claim_subjects,
    files_of,
    stem_of,
    text_of,
)

Json = dict[str, t.Any]
A, B = "example.com/gpu=a", "example.com/gpu=b"
HOSTILE = [
    "../../etc/passwd",
    "..",
    "a\nExecStart=/bin/sh",
    'a"b',
    "a'b",
    "a\\",
    "%n",
    "$HOME",
    "a b",
    "\0",
    "x" * 5000,
    "ü\ud800",
    "*",
    "#;",
]


def claim(name: str = "c1", *devices: Json, **fields: t.Any) -> Json:
    """A claim as `record_report` gives it."""
    given = [dict(device) for device in devices]
    names = list(dict.fromkeys(name for device in given for name in device["cdi_devices"]))
    made: Json = {"namespace": "team-a", "name": name, "pods": ["p-1"], "prepared": True, "status": "prepared"}
    return {**made, "drivers": [{"name": "d", "devices": given}], "cdi_devices": names, **fields}


def device(*names: str, requests: t.Sequence[str] = ()) -> Json:
    return {"cdi_devices": list(names), "requests": list(requests)}


def stems(*claims: Json) -> dict[str, tuple[str, ...]]:
    return {one.stem: one.devices for one in claim_subjects(claims)}


def test_a_claim_and_its_requests() -> None:
    found = stems(claim("c1", device(A, requests=["gpu/big"]), device(B, requests=["nic"]), device("c.d/e=f")))
    assert found == {
        "claim_team-a_c1": (A, B, "c.d/e=f"),
        "claim_team-a_c1_gpu": (A, "c.d/e=f"),
        "claim_team-a_c1_nic": (B, "c.d/e=f"),
    }


def test_a_holder_has_the_devices_of_all_its_claims() -> None:
    both = [
        claim("c1", device(A), pods=["holder:my_app@1.service"]),
        claim("c2", device(A, B), pods=["holder:my_app@1.service"]),
    ]
    assert stems(*both)["holder_my_app@1.service"] == (A, B)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"prepared": False, "status": "planned"}, id="not prepared"),
        pytest.param({"status": "unpreparing"}, id="being taken back"),
    ],
)
def test_what_cannot_be_used_has_no_files_and_its_holder_neither(fields: Json) -> None:
    other = claim("c2", device(B), pods=["holder:unit"])
    assert set(stems(claim("c1", device(A), pods=["holder:unit"], **fields), other)) == {"claim_team-a_c2"}


def test_what_was_prepared_before_a_restart_can_be_used() -> None:
    assert set(stems(claim("c1", device(A), status="needs_prepare"))) == {"claim_team-a_c1"}


def test_texts() -> None:
    subject = Subject("claim_team-a_c1", (A, B))
    assert text_of(subject, ENV).splitlines() == [
        MARKER,
        "# ResourceClaim: team-a/c1",
        f'NODEOPS_DRA_DEVICES="{A} {B}"',
        f'NODEOPS_DRA_ARGUMENTS="--device={A} --device={B}"',
    ]
    assert text_of(subject, QUADLET).splitlines()[2:] == ["[Container]", f"AddDevice={A}", f"AddDevice={B}"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_leaves_the_directory_or_adds_to_a_file(name: str) -> None:
    hostile = claim(name, device(A, requests=[name]), namespace=name, pods=[f"holder:{name}"])
    files = files_of(claim_subjects([hostile]))
    assert len(files) >= 4
    for file, data in files.items():
        assert re.fullmatch(r"(claim|holder)_[A-Za-z0-9.@:_+-]{1,200}\.(env|conf)", file), file
        first, second, *rest = data.decode("ascii").splitlines()
        assert first == MARKER
        assert re.fullmatch(r"# [A-Za-z]+: [A-Za-z0-9.@:_/+-]*", second), second
        assert len(rest) == 2


@pytest.mark.parametrize("name", ["no-cdi-name", f"{A}\nExecStart=x", f'{A}"', f"{A} --privileged", f"{A}%n", f"{A}$X"])
def test_a_device_that_is_no_cdi_name_is_never_written(name: str) -> None:
    subjects = claim_subjects([claim("c1", device(A), device(name))])
    assert (files_of(subjects), subjects[0].refused) == ({}, (name,))


def test_different_names_have_different_files() -> None:
    names = [
        ("a", "b_c"),
        ("a_b", "c"),
        ("a", "b", "c"),
        ("a+5fb", "c"),
        ("x" * 300, "a"),
        ("x" * 300, "b"),
        ("a", "B_c"),
    ]
    assert len({stem_of("claim", *parts) for parts in names}) == len(names)
