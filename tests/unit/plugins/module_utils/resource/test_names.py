# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Generated names, byte for byte those of the original."""

from __future__ import annotations

import random

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import names


@pytest.mark.parametrize(
    ("pod", "claim", "expected"),
    [
        pytest.param("p1", "gpu", "p1-gpu-", id="short"),
        pytest.param("p" * 27, "c" * 28, "p" * 27 + "-" + "c" * 28 + "-", id="exactly 57"),
        # Base of 58: 28*57//58 = 27 and 28*57//58 = 27; no hyphen at the end.
        pytest.param("p" * 28, "c" * 28, "p" * 27 + "-" + "c" * 27, id="58"),
        # Base of 253+1+63+1 = 318: 253*57//318 = 45, 63*57//318 = 11.
        pytest.param("p" * 253, "c" * 63, "p" * 45 + "-" + "c" * 11, id="longest"),
        pytest.param("p" * 253, "c", "p" * 56 + "-", id="claim name vanishes"),
    ],
)
def test_base_is_cut_on_both_sides_in_proportion(pod: str, claim: str, expected: str) -> None:
    base = names.generated_name_base(pod, claim)
    assert base == expected
    assert len(base) <= 57


def test_names_fit_and_use_the_alphabet() -> None:
    choose = random.Random(7).choice
    for base in ("p1-gpu-", "x" * 200):
        name = names.name_with_suffix(base, choose)
        assert name.startswith(base[:58])
        assert len(name) == min(len(base), 58) + 5 <= 63
        assert set(name[-5:]) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_other_forms() -> None:
    assert names.deterministic_name("p1", "gpu") == "p1-gpu"
    assert names.extended_resource_name_base("p1") == "p1-extended-resources-"
