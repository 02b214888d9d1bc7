# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Releases, API versions and which one is chosen."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.resource import paths, release, versions
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release

CLAIMS = ["resourceclaims", "resourceclaimtemplates"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.36.2", (1, 36, 2)),
        ("1.31", (1, 31, 0)),
        ("v1.30.4-gke.1234", (1, 30, 4)),
        ("v1.29.1+k3s1", (1, 29, 1)),
        (" v1.37.0-beta.0\n", (1, 37, 0)),
    ],
)
def test_releases_are_read_in_every_spelling(text: str, expected: tuple[int, ...]) -> None:
    assert release.parse_release(text) == expected


@pytest.mark.parametrize("text", ["", "latest", "v1", "1.x", "v1.36.2.1", "1" * 5000 + ".2", "v1.36é"])
def test_other_text_is_no_release(text: str) -> None:
    with pytest.raises(DraError, match="not a Kubernetes release"):
        release.parse_release(text)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"gitVersion": "v1.36.2", "major": "1", "minor": "36"}, (1, 36, 2)),
        ({"gitVersion": "unknown", "major": "1", "minor": "29+"}, (1, 29, 0)),
        ({"major": "1", "minor": "31"}, (1, 31, 0)),
    ],
)
def test_release_of_a_server(info: dict[str, str], expected: tuple[int, ...]) -> None:
    assert release.release_from_version_info(info) == expected


@pytest.mark.parametrize(
    "info",
    [{}, {"major": "", "minor": "x", "gitVersion": 3}, {"major": "1", "minor": "x"}, {"major": "", "minor": "36"}],
)
def test_server_without_a_release_is_an_error(info: dict[str, t.Any]) -> None:
    with pytest.raises(DraError, match="names no release"):
        release.release_from_version_info(info)


@pytest.mark.parametrize(
    ("text", "limit", "finalizer", "label", "deterministic", "shareable"),
    [
        ("1.26.0", 32, "dra.k8s.io/delete-protection", "", True, True),
        ("1.27.9", 32, "dra.k8s.io/delete-protection", "", True, True),
        ("1.28.0", 32, "dra.k8s.io/delete-protection", "", False, True),
        ("1.30.5", 32, "dra.k8s.io/delete-protection", "", False, True),
        ("1.31.0", 32, "resource.kubernetes.io/delete-protection", "", False, False),
        ("1.32.0", 32, "resource.kubernetes.io/delete-protection", "", False, False),
        ("1.32.1", 256, "resource.kubernetes.io/delete-protection", "", False, False),
        ("1.33.0", 256, "resource.kubernetes.io/delete-protection", "resource.k8s.io/admin-access", False, False),
        (
            "1.34.0",
            256,
            "resource.kubernetes.io/delete-protection",
            "resource.kubernetes.io/admin-access",
            False,
            False,
        ),
    ],
)
def test_what_depends_on_the_release(
    text: str, limit: int, finalizer: str, label: str, deterministic: bool, shareable: bool
) -> None:
    found = release.parse_release(text)
    assert found.reserved_for_limit == limit
    assert found.protection_finalizer == finalizer
    assert found.admin_access_label == label
    assert found.has_deterministic_names is deterministic
    assert found.needs_shareable is shareable
    assert found.prepares_only_referenced_claims is shareable


def test_block_owner_deletion_is_set_up_to_1_35() -> None:
    assert Release(1, 35, 9).sets_block_owner_deletion
    assert not Release(1, 36).sets_block_owner_deletion
    assert str(Release(1, 36, 2)) == "1.36.2"


@pytest.mark.report("F067")
@pytest.mark.parametrize(
    ("served", "expected"),
    [
        pytest.param({"v1": CLAIMS, "v1beta2": CLAIMS, "v1beta1": CLAIMS}, "v1", id="all"),
        pytest.param({"v1beta1": CLAIMS}, "v1beta1", id="only v1beta1 (1.32)"),
        pytest.param({"v1beta1": CLAIMS, "v1beta2": CLAIMS}, "v1beta2", id="betas (1.33)"),
        pytest.param({"v1": CLAIMS, "v1alpha3": ["devicetaintrules"]}, "v1", id="1.34"),
        pytest.param({"v1alpha3": CLAIMS}, "v1alpha3", id="1.31"),
        pytest.param({"v1alpha2": CLAIMS}, "v1alpha2", id="1.30"),
        pytest.param({"v2": CLAIMS, "v1beta1": CLAIMS}, "v1beta1", id="unknown newer version"),
    ],
)
def test_best_served_version_is_chosen(served: dict[str, list[str]], expected: str) -> None:
    assert versions.choose_version(served).name == expected


@pytest.mark.report("F067")
@pytest.mark.parametrize(
    ("served", "allow_alpha", "text"),
    [
        pytest.param({}, True, "does not serve resource.k8s.io", id="nothing"),
        pytest.param({"v1alpha1": CLAIMS}, True, "only in v1alpha1", id="1.26"),
        pytest.param({"v1alpha2": CLAIMS}, False, "only in v1alpha2", id="alpha not allowed"),
        pytest.param(
            {"v1alpha3": ["devicetaintrules"]}, True, "none of them with resourceclaims", id="alpha rest of 1.34"
        ),
    ],
)
def test_no_usable_version_is_refused_with_what_is_served(
    served: dict[str, list[str]], allow_alpha: bool, text: str
) -> None:
    with pytest.raises(versions.NoUsableVersionError, match=text) as caught:
        versions.choose_version(served, allow_alpha=allow_alpha)
    assert caught.value.facts["served"] == sorted(served)
    assert "runtime-config" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "structured", "exact", "kind"),
    [
        ("v1alpha1", False, False, "PodScheduling"),
        ("v1alpha2", False, False, "PodSchedulingContext"),
        ("v1alpha3", True, False, "PodSchedulingContext"),
        ("v1beta1", True, False, ""),
        ("v1beta2", True, True, ""),
        ("v1", True, True, ""),
    ],
)
def test_what_tells_versions_apart(name: str, structured: bool, exact: bool, kind: str) -> None:
    version = versions.api_version(f"resource.k8s.io/{name}")
    assert version is versions.api_version(name)
    assert (version.structured, version.exact_requests, version.scheduling_kind) == (structured, exact, kind)
    assert version.group_version == f"resource.k8s.io/{name}"
    assert version.is_alpha is ("alpha" in name)
    assert version.introduced <= version.assumed_release
    assert version.removed is None or version.assumed_release < version.removed


def test_unknown_version_is_an_error() -> None:
    with pytest.raises(DraError, match="not a version"):
        versions.api_version("v3")


def test_known_release_wins_over_the_assumed_one() -> None:
    v1alpha2 = versions.api_version("v1alpha2")
    assert versions.release_or_assumed(v1alpha2, Release(1, 27)) == (1, 27, 0)
    assert versions.release_or_assumed(v1alpha2, None) == (1, 30, 0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ResourceClaim", "v1", "c1", "team-a"), "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/c1"),
        (
            ("ResourceClaim", "v1", "c1", "team-a", "status"),
            "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/c1/status",
        ),
        (("Pod", "v1", "p", "ns", "status"), "/api/v1/namespaces/ns/pods/p/status"),
        (("ResourceSlice", "v1", "s"), "/apis/resource.k8s.io/v1/resourceslices/s"),
        (("PodScheduling", "v1alpha1", "p", "ns"), "/apis/resource.k8s.io/v1alpha1/namespaces/ns/podschedulings/p"),
        (("PodGroup", "v1alpha2", "g", "ns"), "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/g"),
        (("Lease", "v1", "l", "ns"), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"),
    ],
)
def test_object_paths(arguments: tuple[str, ...], expected: str) -> None:
    assert paths.object_path(*arguments) == expected


def test_which_kinds_live_in_namespaces_and_have_a_status() -> None:
    cluster_wide = {name for name, kind in paths.KINDS.items() if not kind.namespaced}
    assert cluster_wide == {"Node", "Namespace", "ResourceSlice", "DeviceClass", "ResourceClass"}
    without_status = {name for name, kind in paths.KINDS.items() if not kind.has_status}
    assert without_status == {
        "Event",
        "Lease",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "DeviceClass",
        "ResourceClass",
    }
    with pytest.raises(DraError, match="has no status"):
        paths.object_path("ResourceClaimTemplate", "v1", "t", "ns", "status")


def test_collection_path_of_all_namespaces() -> None:
    assert paths.collection_path("ResourceClaim", "v1") == "/apis/resource.k8s.io/v1/resourceclaims"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("ResourceClaim", "v1", "../x", "ns"), id="traversal"),
        pytest.param(("ResourceClaim", "v1", "a/b", "ns"), id="slash"),
        pytest.param(("ResourceClaim", "v1", "a", "n?s"), id="query"),
        pytest.param(("ResourceClaim", "v1", "a"), id="no namespace"),
        pytest.param(("Widget", "v1", "a", "ns"), id="unknown kind"),
        pytest.param(("ResourceClaim", "v1", "", "ns"), id="no name"),
    ],
)
def test_names_that_would_leave_the_path_are_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(DraError):
        paths.object_path(*arguments)
