# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which claims a pod uses and how they are called (follows TestName of resourceclaim)."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import containers
from ansible_collections.nodeops.dra.plugins.module_utils.resource import pod as pods
from ansible_collections.nodeops.dra.plugins.module_utils.resource.view import MalformedObjectError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "t1"}


@pytest.mark.parametrize(
    ("entry", "claim_name", "template"),
    [
        pytest.param({"name": "gpu", "resourceClaimName": "c1"}, "c1", None, id="1.31+ claim"),
        pytest.param(TEMPLATE, None, "t1", id="1.31+ template"),
        pytest.param({"name": "gpu", "source": {"resourceClaimName": "c1"}}, "c1", None, id="1.26-1.30 claim"),
        pytest.param(
            {"name": "gpu", "source": {"resourceClaimTemplateName": "t1"}}, None, "t1", id="1.26-1.30 template"
        ),
        pytest.param({**TEMPLATE, "source": {"resourceClaimTemplateName": "old"}}, None, "t1", id="newer form wins"),
        pytest.param({"name": "gpu"}, None, None, id="neither"),
        pytest.param({"name": "gpu", "resourceClaimName": None, "source": None}, None, None, id="nulls"),
    ],
)
def test_pod_claims_of_every_generation(entry: dict[str, t.Any], claim_name: str | None, template: str | None) -> None:
    assert pods.pod_claims(objects.pod(claims=[entry])) == [pods.PodClaim("gpu", claim_name, template, 0)]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([{"name": "gpu", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}], id="both"),
        pytest.param([TEMPLATE, TEMPLATE], id="same name twice"),
    ],
)
def test_contradictory_entries_are_malformed(entries: list[dict[str, t.Any]]) -> None:
    with pytest.raises(MalformedObjectError):
        pods.pod_claims(objects.pod(claims=entries))


def name_of(pod: dict[str, t.Any], **options: bool) -> pods.ClaimName:
    return pods.claim_name_for(pod, pods.pod_claims(pod)[0], **options)


@pytest.mark.parametrize(
    ("entry", "statuses", "expected"),
    [
        pytest.param({"name": "gpu", "resourceClaimName": "c1"}, [], pods.ClaimName("c1", False), id="explicit"),
        pytest.param(
            TEMPLATE,
            [{"name": "x", "resourceClaimName": "y"}, {"name": "gpu", "resourceClaimName": "p-1-gpu-abcde"}],
            pods.ClaimName("p-1-gpu-abcde", True),
            id="generated",
        ),
        pytest.param(TEMPLATE, [{"name": "gpu"}], pods.ClaimName(None, False), id="not needed"),
    ],
)
def test_claim_name(entry: t.Any, statuses: t.Any, expected: pods.ClaimName) -> None:
    assert name_of(objects.pod(claims=[entry], status={"resourceClaimStatuses": statuses})) == expected


def test_claim_name_of_old_clusters_is_fixed() -> None:
    pod = objects.pod(claims=[{"name": "gpu", "source": {"resourceClaimTemplateName": "t1"}}])
    assert name_of(pod, deterministic_names=True) == pods.ClaimName("p-1-gpu", True)


def test_claim_that_is_not_created_yet_names_template_and_controller() -> None:
    pod = objects.pod(
        claims=[TEMPLATE], status={"resourceClaimStatuses": [{"name": "other", "resourceClaimName": "x"}]}
    )
    with pytest.raises(pods.ClaimNotCreatedError) as caught:
        name_of(pod)
    assert 'pod "team-a/p-1": ResourceClaim not created yet' in caught.value.message
    assert "ResourceClaimTemplate t1" in caught.value.hint
    assert caught.value.facts["pod_claim"] == "gpu"


def test_entry_without_a_known_source_is_unsupported() -> None:
    with pytest.raises(pods.UnsupportedPodClaimError, match="none of the supported fields are set"):
        name_of(objects.pod(claims=[{"name": "gpu", "futureSource": "x"}]))


def test_claim_references_leave_out_the_unneeded_and_add_extended_resources() -> None:
    pod = objects.pod(
        claims=[{"name": "a", "resourceClaimName": "c1"}, {"name": "b", "resourceClaimTemplateName": "t"}, TEMPLATE],
        status={
            "resourceClaimStatuses": [{"name": "b"}, {"name": "gpu", "resourceClaimName": "gen"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "p-1-extended-resources-x"},
        },
    )
    found = [(r.claim_name, r.must_check_owner, r.pod_claim and r.pod_claim.name) for r in pods.claim_references(pod)]
    assert found == [("c1", False, "a"), ("gen", True, "gpu"), ("p-1-extended-resources-x", False, None)]
    assert pods.uses_claims(pod)


def test_pods_without_claims_are_told_at_once() -> None:
    assert not pods.uses_claims(objects.pod())
    assert not pods.uses_claims({"metadata": {"name": "x"}})
    assert pods.uses_claims({"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}})


def test_extended_resource_claim_has_its_mappings() -> None:
    status = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": "e",
            "requestMappings": [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r0"}],
        }
    }
    found = pods.extended_resource_claim(objects.pod(status=status))
    assert found == pods.ExtendedResourceClaim("e", (pods.ExtendedResourceRequest("c", "example.com/gpu", "r0"),))
    assert pods.extended_resource_claim(objects.pod()) is None


@pytest.mark.report("F064")
@pytest.mark.parametrize(
    ("parts", "finished", "done"),
    [
        pytest.param({"status": {"phase": "Succeeded"}}, True, True, id="succeeded"),
        pytest.param({"status": {"phase": "Failed"}}, True, True, id="failed"),
        pytest.param({"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}, False, False, id="running"),
        pytest.param({"status": {"phase": "Pending"}}, False, False, id="pending"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False, True, id="deleted unscheduled"
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n"}},
            False,
            False,
            id="terminating on a node",
        ),
    ],
)
def test_when_a_pod_needs_no_claims_any_more(parts: dict[str, t.Any], finished: bool, done: bool) -> None:
    pod = objects.pod(**parts)
    assert (pods.is_finished(pod), pods.is_done(pod)) == (finished, done)


def test_containers_and_what_they_use() -> None:
    pod = objects.pod(
        spec={
            "initContainers": [
                {"name": "setup", "resources": {"claims": [{"name": "a"}]}},
                {"name": "sidecar", "restartPolicy": "Always"},
            ],
            "containers": [
                {"name": "main", "resources": {"claims": [{"name": "a", "request": "r1"}, {"name": "b"}]}},
                {"name": "plain"},
            ],
        },
        status={
            "extendedResourceClaimStatus": {
                "resourceClaimName": "e",
                "requestMappings": [{"containerName": "plain", "resourceName": "x/y", "requestName": "q"}],
            }
        },
    )
    uses = containers.ContainerClaim
    assert containers.container_claims(pod) == [
        containers.ContainerClaims("setup", True, False, (uses("a"),)),
        containers.ContainerClaims("sidecar", True, True, ()),
        containers.ContainerClaims("main", False, False, (uses("a", "r1"), uses("b"))),
        containers.ContainerClaims("plain", False, False, (uses(None, "q"),)),
    ]
    assert containers.referenced_pod_claims(pod) == {"a", "b"}


@pytest.mark.parametrize(
    ("device_requests", "container_request", "expected"),
    [
        ([], "gpu", True),
        (None, "gpu", True),
        (["gpu"], "", True),
        (["gpu"], "gpu", True),
        (["nic"], "gpu", False),
        (["nic", "gpu"], "gpu", True),
        (["gpu/large"], "gpu", True),
        (["gpu2/large"], "gpu", False),
        (["gp"], "gpu", False),
    ],
)
def test_request_matches(device_requests: list[str] | None, container_request: str, expected: bool) -> None:
    assert containers.request_matches(device_requests, container_request) is expected
