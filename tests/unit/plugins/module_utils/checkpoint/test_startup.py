# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What kubelets do with claims that they have loaded: the CDI rules of 1.27 to 1.30, and claims that share a key.

Follows: TestNewClaimInfoCache, TestGenerateCDIAnnotations, TestParseQualifiedName (container-device-interface).
"""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import CRC, FNV, format_for
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.startup import (
    annotation_problem,
    cache_key,
    cdi_problem,
    start_with,
)

from . import builders as b


@pytest.mark.parametrize(
    ("device", "outcome"),
    [
        pytest.param("vendor.example.com/gpu=0", "ok", id="usual"),
        pytest.param("ab/cd=a:b.c_d-e", "ok", id="all that a name may hold"),
        pytest.param("a-b_c.d1/e-f=x", "ok", id="all that a vendor and a class may hold"),
        pytest.param("vendor.example.com/g=x", "panic", id="class of one letter"),
        pytest.param("v/gpu=x", "panic", id="vendor of one letter"),
        pytest.param("", "fails", id="nothing"),
        pytest.param("gpu=x", "fails", id="no vendor"),
        pytest.param("vendor/gpu", "fails", id="no name"),
        pytest.param("vendor/gpu=", "fails", id="empty name"),
        pytest.param("/gpu=x", "fails", id="empty vendor"),
        pytest.param("vendor/=x", "fails", id="empty class"),
        pytest.param("1vendor/gpu=x", "fails", id="vendor begins with a digit"),
        pytest.param("vendor/1=x", "fails", id="class of one digit fails before it can panic"),
        pytest.param("vendor/gp u=x", "fails", id="blank in the class"),
        pytest.param("vendor-/gpu=x", "fails", id="vendor ends with a dash"),
        pytest.param("vendor/gpu=:x", "fails", id="name begins with a colon"),
        pytest.param("vendor/gpu=x\n", "fails", id="line end after the name"),
        pytest.param("vendor/a/b=x", "fails", id="two slashes"),
        pytest.param("vendor/gpu=a=b", "fails", id="two equals signs"),
    ],
)
def test_cdi_names(device: str, outcome: str) -> None:
    found, why = cdi_problem(device)
    assert found == outcome
    assert bool(why) == (outcome != "ok")
    start = start_with(Document(b.fnv_file(b.fnv_claim(CDIDevices={"d": [device]}))).read_as(format_for("1.30")))
    assert start.outcome == outcome


@pytest.mark.parametrize(
    ("driver", "uid", "fits"),
    [
        pytest.param("d" * 26, b.uid(1), True, id="63 characters with the UID"),
        pytest.param("d" * 27, b.uid(1), False, id="64 characters"),
        pytest.param("d\u00e9", "u", False, id="other letters"),
        pytest.param("", b.uid(1), False, id="no driver"),
        pytest.param("d", "", False, id="no UID"),
        pytest.param("d", "a/b", True, id="a slash is written as an underscore"),
        pytest.param("d", "u-", False, id="ends with a dash"),
        pytest.param("-d", "u", False, id="begins with a dash"),
    ],
)
def test_names_of_annotations(driver: str, uid: str, fits: bool) -> None:
    claim = b.fnv_claim(DriverName=driver, ClaimUID=uid)
    assert (annotation_problem(claim) == "") == fits


@pytest.mark.parametrize("cdi", [None, {}])
def test_claims_without_cdi_devices_need_no_annotation(cdi: dict[str, list[str]] | None) -> None:
    data = b.fnv_file(b.fnv_claim(DriverName="d" * 99, CDIDevices=cdi))
    assert start_with(Document(data).read_as(format_for("1.30"))).outcome == "ok"


def test_which_claims_old_and_new_kubelets_take_for_one() -> None:
    one = b.fnv_claim(1, ClaimName="ab", Namespace="c")
    two = b.fnv_claim(2, ClaimName="a", Namespace="bc")
    assert cache_key(FNV, "c", "ab") == cache_key(FNV, "bc", "a")
    assert cache_key(CRC, "c", "ab") != cache_key(CRC, "bc", "a")
    assert start_with(Document(b.fnv_file(one, two)).read_as(format_for("1.30"))).claims == 1
    new = b.crc_file(b.crc_claim(1, ClaimName="ab", Namespace="c"), b.crc_claim(2, ClaimName="a", Namespace="bc"))
    assert start_with(Document(new).read_as(format_for("1.36"))).claims == 2


def test_a_file_that_is_refused_starts_nobody() -> None:
    start = start_with(Document(b.fnv_file(b.fnv_claim(), checksum=1)).read_as(format_for("1.30")))
    assert (start.outcome, start.claims) == ("fails", 0)
