# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which files belong to which claim, and which to nobody."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.registry import Registry
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import (
    UID_1,
    UID_2,
    Json,
    device,
    spec,
    write,
)

GPU_UUID = "8dcd427f-483b-b48f-d7e5-75fb19a52b76"


def load(directory: pathlib.Path) -> Registry:
    return Registry.load([str(directory)])


@pytest.mark.parametrize(
    ("name", "content", "devices"),
    [
        pytest.param(
            f"gpu.test.example-gpu_{UID_1}.json",
            spec(device(f"{UID_1}-a")),
            [f"gpu.test.example/gpu={UID_1}-a"],
            id="Go helper",
        ),
        pytest.param(
            f"k8s.gpu.nvidia.com-claim_{UID_1}.json",
            spec(device(f"{UID_1}-gpu-0"), kind="k8s.gpu.nvidia.com/claim"),
            [f"k8s.gpu.nvidia.com/claim={UID_1}-gpu-0"],
            id="NVIDIA",
        ),
        pytest.param(
            f"gpu.test.example_metadata_{UID_1}_gpu.json",
            spec(device(f"{UID_1}_gpu"), kind="gpu.test.example/metadata"),
            [f"gpu.test.example/metadata={UID_1}_gpu"],
            id="device metadata",
        ),
        pytest.param(
            "odd-name.json", spec(device(f"{UID_1}-a")), [f"gpu.test.example/gpu={UID_1}-a"], id="only the devices"
        ),
        pytest.param("odd-name.json", spec(device(UID_1)), [f"gpu.test.example/gpu={UID_1}"], id="bare UID as device"),
        pytest.param(f"gpu.test.example-gpu_{UID_1}.json", spec(device("x")), [], id="only the file name"),
        pytest.param(f"gpu.test.example-gpu_{UID_1}.json", b"{", [], id="refused file"),
    ],
)
def test_files_of_a_claim(tmp_path: pathlib.Path, name: str, content: t.Any, devices: list[str]) -> None:
    path = write(tmp_path, name, content)
    write(tmp_path, f"gpu.test.example-gpu_{UID_2}.json", spec(device(f"{UID_2}-a")))
    (found,) = load(tmp_path).files_of_claim(UID_1)
    assert (found.path, found.claim_uid, list(found.devices)) == (str(path), UID_1, devices)


@pytest.mark.report("F117")
@pytest.mark.parametrize(
    ("name", "content", "uid"),
    [
        pytest.param(f"gpu.test.example-gpu_{UID_1}.json", spec(device(f"{UID_1}-a")), UID_1, id="Go helper"),
        pytest.param(f"gpu.test.example-gpu_{UID_1}.yaml", b"\x00", UID_1, id="zero-filled"),
        pytest.param(
            f"gpu.test.example_metadata_{UID_1}_gpu.json",
            spec(device(f"{UID_1}_gpu"), kind="gpu.test.example/metadata"),
            UID_1,
            id="device metadata",
        ),
        pytest.param(
            "gpu.test.example-claim_u-77.json",
            spec(device("u-77-gpu-0"), kind="gpu.test.example/claim"),
            "u-77",
            id="no UUID",
        ),
        pytest.param("gpu.test.example-claim_u-77.json", b"{", "u-77", id="no UUID, refused"),
        pytest.param("gpu.test.example-gpu_u-77.json", spec(device("u-77_x")), "u-77", id="no UUID, other class"),
        pytest.param(
            "gpu.test.example-gpu_u_77.json", spec(device("u_77-x")), "u_77", id="underscore in the identifier"
        ),
        pytest.param(
            "gpu.test.example_metadata_u-77_gpu.json",
            spec(device("u-77_gpu"), kind="gpu.test.example/metadata"),
            "u-77",
            id="no UUID, metadata",
        ),
        pytest.param("odd-name.json", spec(device(f"{UID_1}-a")), UID_1, id="only the devices"),
        pytest.param("gpu.test.example-gpu_common.json", spec(device("common")), "", id="common edits"),
        pytest.param("nvidia.json", spec(device(f"GPU-{GPU_UUID}")), "", id="GPU by UUID"),
        pytest.param("nvidia.json", spec(device(GPU_UUID)), "", id="device that is a UUID"),
        pytest.param(f"gpu-{GPU_UUID}.json", spec(device("x")), "", id="UUID of something else in the file name"),
        pytest.param(f"gpu_{GPU_UUID}-extra.json", spec(device("x")), "", id="UUID that goes on"),
        pytest.param("gpu.test.example-gpu.json", spec(), "", id="static spec"),
        pytest.param("broken.json", b"{", "", id="refused static file"),
    ],
)
def test_orphans(tmp_path: pathlib.Path, name: str, content: t.Any, uid: str) -> None:
    path = write(tmp_path, name, content)
    registry = load(tmp_path)
    found = registry.orphans(set())
    assert [finding.facts["claim_uid"] for finding in found] == ([uid] if uid else [])
    for finding in found:
        assert (finding.code, finding.severity, finding.place) == ("orphan_cdi", "warning", str(path))
        assert f"belongs to claim {uid}" in finding.text
        assert not finding.facts["partial"]
    assert registry.orphans({uid}) == []


@pytest.mark.report("F117")
def test_file_shared_by_several_claims_is_an_orphan_only_in_part(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "all.json", spec(device(f"{UID_1}-a"), device(f"{UID_2}-a"), device(f"{UID_2}-b")))
    registry = load(tmp_path)
    (finding,) = registry.orphans({UID_1})
    assert finding.facts["devices"] == [f"gpu.test.example/gpu={UID_2}-{x}" for x in "ab"]
    assert finding.facts["partial"] is True
    assert finding.text.startswith("2 of the 3 devices in")
    assert [f.facts["claim_uid"] for f in registry.orphans(())] == [UID_1, UID_2]


def test_empty_world_has_no_orphans(tmp_path: pathlib.Path) -> None:
    content: Json = {}
    write(tmp_path, "a.json", content)
    assert load(tmp_path).orphans(()) == []
    assert load(tmp_path).files_of_claim(UID_1) == []
