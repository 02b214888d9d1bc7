# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Telling the kinds of state files apart, by path and by content."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import kinds
from hypothesis import given
from hypothesis import strategies as st

from . import vectors

FOLDERS = {"health": kinds.HEALTH, "nvidia": kinds.NVIDIA, "dra-example-driver": kinds.EXAMPLE_DRIVER}
# Nothing in it belongs to the example driver alone.
LIKE_NVIDIA = "dra-example-driver/v0.1-v0.2/empty.json"
ALL = sorted(
    path.relative_to(vectors.FOLDER).as_posix()
    for path in vectors.FOLDER.rglob("*.json")
    if path.name not in ("expected.json", "reader_matrix.json")
)


def kind_of(name: str) -> str:
    return FOLDERS.get(name.split("/")[0], kinds.MANAGER)


@pytest.mark.parametrize("name", ALL)
def test_content_never_misleads(name: str) -> None:
    found = kinds.detect(vectors.read(name))
    assert found in (kind_of(name), kinds.UNKNOWN) or (name == LIKE_NVIDIA and found == kinds.NVIDIA)


def test_content_is_enough_for_nearly_every_file() -> None:
    unknown = [name for name in ALL if kinds.detect(vectors.read(name)) == kinds.UNKNOWN]
    telling = [name for name in unknown if "damaged" not in name and not name.endswith("health_empty.json")]
    assert telling == []
    assert len(unknown) < len(ALL) / 8


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/kubelet/dra_manager_state", kinds.MANAGER),
        ("dra_manager_state", kinds.MANAGER),
        ("/x/dra_manager_state.2026-08-07T10:11:12Z.bak", kinds.MANAGER),
        ("/x/dra_manager_state-copy", kinds.MANAGER),
        ("/x/dra_health_state", kinds.HEALTH),
        ("/x/dra_health_state.tmp123", kinds.HEALTH),
        ("/var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json", kinds.NVIDIA),
        ("/p/compute-domain.nvidia.com/checkpoint.json.bak", kinds.NVIDIA),
        ("/p/gpu.example.com/checkpoint.json", kinds.EXAMPLE_DRIVER),
        ("/x/my_dra_manager_state", kinds.UNKNOWN),
        ("/x/dra_manager_states", kinds.UNKNOWN),
        ("/p/gpu.nvidia.com/other.json", kinds.UNKNOWN),
        ("/p/other.example/checkpoint.json", kinds.UNKNOWN),
        ("", kinds.UNKNOWN),
    ],
)
@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"\0\0", b"\xff\xfe"])
def test_path_where_content_says_nothing(data: bytes, path: str, kind: str) -> None:
    assert kinds.detect(data, path) == kind


def test_the_kubelet_s_own_names_win_over_content() -> None:
    nvidia = vectors.read("nvidia/gpu.nvidia.com/v0.4.1/one_claim.json")
    assert kinds.detect(nvidia, "/var/lib/kubelet/dra_manager_state") == kinds.MANAGER


def test_an_empty_file_of_either_driver_goes_by_its_folder() -> None:
    data = vectors.read(LIKE_NVIDIA)
    assert kinds.detect(data, "/plugins/gpu.example.com/checkpoint.json") == kinds.EXAMPLE_DRIVER
    assert kinds.detect(data, "/plugins/gpu.nvidia.com/checkpoint.json") == kinds.NVIDIA


def test_a_mark_at_the_end_of_a_long_file_counts() -> None:
    assert kinds.detect(b" " * 200000 + b'{"Data":"{}","Checksum":1}') == kinds.MANAGER


@given(st.binary(), st.text())
def test_anything_is_answered(data: bytes, path: str) -> None:
    assert kinds.detect(data, path) in (
        kinds.MANAGER,
        kinds.HEALTH,
        kinds.NVIDIA,
        kinds.EXAMPLE_DRIVER,
        kinds.UNKNOWN,
    )
