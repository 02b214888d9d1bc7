# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The choice of the service version from what a driver advertises."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.driver.errors import RegistrationError
from ansible_collections.nodeops.dra.plugins.module_utils.driver.services import KNOWN, Choice, choose

V1, BETA, ALPHA = "v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha3.NodeService"
HEALTH_A, HEALTH_1 = "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth"


@pytest.mark.report("F028")
@pytest.mark.parametrize(
    ("versions", "choice"),
    [
        pytest.param([BETA], Choice("v1beta1", BETA), id="only beta"),
        pytest.param([V1, BETA], Choice("v1", V1), id="helper 1.34"),
        pytest.param([BETA, V1], Choice("v1beta1", BETA), id="the order of the driver decides"),
        pytest.param([ALPHA, BETA], Choice("v1beta1", BETA), id="helper 1.32: beta although alpha comes first"),
        pytest.param([ALPHA], Choice("v1alpha4", ALPHA), id="only alpha of 1.32"),
        pytest.param(["1.0.0"], Choice("classic", "1.0.0"), id="1.27 to 1.31"),
        pytest.param(["v1.2"], Choice("classic", "v1.2"), id="loose version"),
        pytest.param(["2.0.0", "x", "1.1.0"], Choice("classic", "1.1.0"), id="major 1 among others"),
        pytest.param(["1.0.0", ALPHA], Choice("v1alpha4", ALPHA), id="service before version"),
        pytest.param(["1.0.0", BETA], Choice("v1beta1", BETA), id="both worlds"),
        pytest.param(["v9.DRAPlugin", V1], Choice("v1", V1), id="unknown ones are ignored"),
        pytest.param([V1, HEALTH_A], Choice("v1", V1, "v1alpha1"), id="health"),
        pytest.param([HEALTH_A, HEALTH_1, V1], Choice("v1", V1, "v1"), id="health v1 before v1alpha1"),
    ],
)
def test_choice(versions: list[str], choice: Choice) -> None:
    assert choose(versions) == choice


@pytest.mark.report("F028")
@pytest.mark.parametrize(
    "versions",
    [["v9.DRAPlugin"], ["2.0.0"], ["1"], ["v1"], [HEALTH_A], ["v1.DRAPlugin "], ["v1beta2.DRAPlugin", "0.9.0"]],
)
def test_no_common_service_lists_both_sides(versions: list[str]) -> None:
    with pytest.raises(RegistrationError) as caught:
        choose(versions, "gpu.example.com", "/reg.sock")
    for text in (*versions, *KNOWN, "gpu.example.com", "/reg.sock"):
        assert text in caught.value.message
    assert caught.value.facts["versions"] == versions
    assert caught.value.facts["known"] == list(KNOWN)


@pytest.mark.report("F028")
def test_an_empty_list_is_an_error_of_its_own() -> None:
    with pytest.raises(RegistrationError, match="advertises no API version") as caught:
        choose([], "gpu.example.com", "/reg.sock")
    assert V1 in caught.value.hint
