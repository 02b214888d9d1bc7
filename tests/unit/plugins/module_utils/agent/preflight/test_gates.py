# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the gates of DRA are in each release, and which values a kubelet refuses."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.gates import (
    DRA,
    NAMES,
    NEWEST,
    OLDEST,
    Stage,
    is_on,
    refusals,
    stage,
)


@pytest.mark.parametrize(
    ("minor", "given", "on"),
    [
        pytest.param(25, {DRA: True}, False, id="before DRA"),
        pytest.param(30, {}, False, id="alpha"),
        pytest.param(30, {DRA: True}, True, id="alpha, switched on"),
        pytest.param(30, {"AllAlpha": True}, True, id="alpha, all of them switched on"),
        pytest.param(30, {"AllAlpha": True, DRA: False}, False, id="alpha, but this one"),
        pytest.param(32, {}, False, id="beta that is off"),
        pytest.param(32, {"AllAlpha": True}, False, id="beta is no alpha"),
        pytest.param(33, {"AllBeta": True}, True, id="beta, all of them switched on"),
        pytest.param(34, {}, True, id="stable"),
        pytest.param(34, {DRA: False}, False, id="stable, switched off"),
        pytest.param(34, {"AllBeta": False}, True, id="stable is no beta"),
        pytest.param(35, {DRA: False}, True, id="locked"),
        pytest.param(40, {}, True, id="later than the table"),
    ],
)
def test_whether_the_gate_of_dra_is_on(minor: int, given: dict[str, bool], on: bool) -> None:
    assert is_on(DRA, minor, given) is on


def test_a_beta_gate_can_be_off_with_all_others() -> None:
    assert is_on("DRAAdminAccess", 34, {})
    assert not is_on("DRAAdminAccess", 34, {"AllBeta": False})
    assert not is_on("DRADeviceTaintRules", 36, {})


@pytest.mark.parametrize(
    ("minor", "given", "refused"),
    [
        pytest.param(35, {DRA: False}, [DRA], id="locked"),
        pytest.param(35, {DRA: True}, [], id="locked, and on"),
        pytest.param(32, {"DRAControlPlaneController": True}, ["DRAControlPlaneController"], id="removed"),
        pytest.param(31, {"DRAControlPlaneController": True}, [], id="still there"),
        pytest.param(33, {"DRAExtendedResource": True}, ["DRAExtendedResource"], id="not there yet"),
        pytest.param(33, {"SomethingElse": True, "AllAlpha": True}, [], id="not for us to judge"),
        pytest.param(NEWEST + 1, {DRA: False}, [], id="later than the table"),
    ],
)
def test_gates_with_which_a_kubelet_does_not_start(minor: int, given: dict[str, bool], refused: list[str]) -> None:
    assert list(refusals(minor, given)) == refused


def test_no_gate_goes_back() -> None:
    order = list(Stage)
    for name in NAMES:
        stages = [what for minor in range(OLDEST, NEWEST + 1) if (what := stage(name, minor)) is not None]
        assert stages, name
        assert [order.index(what) for what in stages] == sorted(order.index(what) for what in stages), name
