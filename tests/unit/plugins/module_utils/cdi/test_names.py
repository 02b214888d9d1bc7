# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Qualified names, and the stricter rules of kubelets 1.27 to 1.30."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import names

UID = "11111111-2222-4333-8444-000000000001"


@pytest.mark.parametrize(
    ("text", "vendor", "class_name", "device"),
    [
        ("gpu.test.example/gpu=gpu-0", "gpu.test.example", "gpu", "gpu-0"),
        (f"k8s.gpu.nvidia.com/claim={UID}-gpu-0", "k8s.gpu.nvidia.com", "claim", f"{UID}-gpu-0"),
        ("v/c=0", "v", "c", "0"),
        ("Vendor_1/Class-x.y=0:1.2", "Vendor_1", "Class-x.y", "0:1.2"),
        (f"{'v' * 300}/{'c' * 300}={'n' * 300}", "v" * 300, "c" * 300, "n" * 300),
    ],
)
def test_parts(text: str, vendor: str, class_name: str, device: str) -> None:
    parsed = names.parse_name(text)
    assert (parsed.vendor, parsed.class_name, parsed.device) == (vendor, class_name, device)
    assert str(parsed) == text
    assert parsed.kind == f"{vendor}/{class_name}"
    assert names.is_qualified(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no '='"),
        ("gpu-0", "no '='"),
        ("/dev/gpu0", "no '='"),
        ("gpu=0", "no '/' before"),
        ("v/c=", "device name is empty"),
        ("/c=n", "vendor is empty"),
        ("v/=n", "class is empty"),
        ("1v/c=n", "vendor"),
        ("v-/c=n", "vendor"),
        ("v/1=n", "class"),
        ("v/c_=n", "class"),
        ("v/c/d=n", "class"),
        ("v/c=n=m", "device name"),
        ("v/c=-n", "device name"),
        ("v/c=n-", "device name"),
        ("v/c=n m", "device name"),
        ("v/c=n\n", "device name"),
        ("v/c=../../etc/passwd", "device name"),
        ("vé/c=n", "vendor"),
        ("v/c=n\x00", "device name"),
        ("v:w/c=n", "vendor"),
        ("v/c=é", "device name"),
    ],
)
def test_what_is_no_qualified_name(text: str, reason: str) -> None:
    assert not names.is_qualified(text)
    with pytest.raises(names.InvalidNameError) as caught:
        names.parse_name(text)
    assert reason in caught.value.facts["reason"]
    assert str(caught.value).isprintable()


def test_kind_without_slash_has_no_vendor() -> None:
    assert names.kind_parts("a/b/c") == ("a", "b/c")
    assert names.kind_parts("abc") == ("", "abc")


def test_spec_file_names() -> None:
    assert names.spec_stem("v.example", "gpu") == "v.example-gpu"
    assert names.spec_stem("v.example", "gpu", "a/b") == "v.example-gpu_a_b"


def test_annotation() -> None:
    key, value = names.annotation("gpu.example", "u/1", ["a/b=c", "a/b=d"])
    assert (key, value) == ("cdi.k8s.io/gpu.example_u_1", "a/b=c,a/b=d")


@pytest.mark.parametrize(
    ("driver", "uid", "devices", "problem"),
    [
        pytest.param("gpu.example", UID, ["a.b/cc=d"], "", id="fine"),
        pytest.param("d" * 26, UID, ["vv/cc=d"], "", id="63 characters"),
        pytest.param("d" * 27, UID, ["vv/cc=d"], "of 64 characters, the limit is 63", id="64 characters"),
        pytest.param("d" * 27, UID, [], "", id="no devices, no annotation"),
        pytest.param("", UID, ["vv/cc=d"], "driver name is empty", id="no driver"),
        pytest.param("d", "", ["vv/cc=d"], "claim UID is empty", id="no UID"),
        pytest.param("d@x", UID, ["vv/cc=d"], "may hold only", id="character in the driver"),
        pytest.param("-d", UID, ["vv/cc=d"], "may hold only", id="first character"),
        pytest.param("d", "u-", ["vv/cc=d"], "may hold only", id="last character"),
        pytest.param("d", UID, ["gpu-0"], "is not a qualified name", id="unqualified device"),
        pytest.param("d", UID, ["vv/c.d=e"], "no dot in the class", id="dot in the class"),
        pytest.param("d", UID, ["vv/c=e"], "crash", id="class of one character"),
        pytest.param("d", UID, ["v/cc=e"], "crash", id="vendor of one character"),
        pytest.param("d", UID, ["vv/cc=0"], "", id="device of one character"),
    ],
)
def test_annotation_rules_of_old_kubelets(driver: str, uid: str, devices: list[str], problem: str) -> None:
    found = names.annotation_problems(driver, uid, devices)
    assert len(found) == (1 if problem else 0)
    assert problem in "".join(found)


def test_every_annotation_problem_is_told() -> None:
    assert len(names.annotation_problems("@" * 30, UID, ["x", "vv/c=e"])) == 4
