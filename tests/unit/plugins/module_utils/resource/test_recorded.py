# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Objects of a real 1.36 API server (recorded_1_36.json: a claim from template to removal), read and written by us."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import (
    allocation,
    consumers,
    deallocation,
    devices,
    generated,
    ownership,
    release,
    requests,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource import (
    pod as pods,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import api_version

RECORDED: dict[str, t.Any] = json.loads(pathlib.Path(__file__).with_name("recorded_1_36.json").read_text())
POD, CLAIM = RECORDED["pod"], RECORDED["claim_allocated"]


def test_our_claim_is_the_one_that_was_accepted() -> None:
    (entry,) = pods.pod_claims(RECORDED["pod_before_status"])
    ours = generated.generated_claim(RECORDED["pod_before_status"], entry, RECORDED["template"], api_version("v1"))
    theirs = RECORDED["claim_created"]
    assert ours["apiVersion"] == theirs["apiVersion"]
    assert ours["metadata"]["generateName"] == theirs["metadata"]["generateName"]
    assert ours["metadata"]["ownerReferences"] == theirs["metadata"]["ownerReferences"]
    wanted = RECORDED["claim_request"]["metadata"]["annotations"]
    assert {**wanted, "a": "b"} == ours["metadata"]["annotations"]
    # The server fills in defaults; nothing of ours was dropped.
    assert ours["spec"]["devices"]["requests"][0]["exactly"].items() <= (
        theirs["spec"]["devices"]["requests"][0]["exactly"].items()
    )
    assert generated.find_generated_claim(POD, entry, [theirs]) is theirs


def test_name_comes_from_the_applied_status() -> None:
    (entry,) = pods.pod_claims(POD)
    with pytest.raises(pods.ClaimNotCreatedError):
        pods.claim_name_for(RECORDED["pod_before_status"], entry)
    name = pods.claim_name_for(POD, entry)
    assert name == pods.ClaimName(RECORDED["claim_created"]["metadata"]["name"], True)
    applied = RECORDED["apply_request"]["status"]["resourceClaimStatuses"]
    assert generated.claim_status_entries({entry.name: name.name}) == applied


def test_allocated_claim_is_ours_reserved_and_usable() -> None:
    ownership.check_owner(POD, CLAIM)
    consumers.check_reserved_for(POD, CLAIM)
    assert allocation.allocated_drivers(CLAIM) == ("gpu.test.example",)
    assert [device.key for device in devices.allocated_devices(CLAIM)] == [
        ("gpu.test.example", "pool-0", "dev-0", None)
    ]
    assert CLAIM["status"]["reservedFor"] == [consumers.pod_consumer(POD)]


def test_release_is_written_as_the_server_took_it() -> None:
    deleted = RECORDED["claim_deleted"]
    plan = deallocation.plan_release(deleted, ())
    patch = deallocation.status_patch(deleted, plan)
    assert patch["status"] == RECORDED["release_request"]["status"]
    assert patch["metadata"] == {"resourceVersion": deleted["metadata"]["resourceVersion"]}
    released = RECORDED["claim_released"]
    finalizers = deallocation.finalizer_patch(released, plan.remove_finalizers)
    assert finalizers["metadata"]["finalizers"] == RECORDED["finalizer_request"]["metadata"]["finalizers"]


@pytest.mark.report("F067")
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_same_claim_in_other_versions(version: str) -> None:
    claim = RECORDED[f"claim_{version}"]
    assert claim["apiVersion"].endswith(version)
    flat = "exactly" not in claim["spec"]["devices"]["requests"][0]
    assert flat is not api_version(version).exact_requests
    assert requests.device_requests(claim) == ("gpu",)
    assert not requests.uses_admin_access(claim)
    assert not allocation.is_classic(claim)


def test_pod_and_release_of_that_server() -> None:
    assert release.release_from_version_info(RECORDED["version"]) == (1, 36, 2)
    assert not pods.is_done(RECORDED["pod_terminating"])
    assert pods.node_name(RECORDED["pod_terminating"]) == "node-1"
