# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Malformed objects become one sentence with name, path, expectation and finding."""

from __future__ import annotations

import copy
import itertools
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.resource import (
    allocation,
    classification,
    consumers,
    containers,
    deallocation,
    devices,
    generated,
    handles,
    ownership,
    podgroup,
    release,
    requests,
    scheduling,
    versions,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource import (
    pod as pods,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource.view import (
    MalformedObjectError,
    ObjectView,
    describe,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

V1 = versions.api_version("v1")
V1ALPHA2 = versions.api_version("v1alpha2")
R136 = release.Release(1, 36)


def test_error_names_object_path_expectation_and_finding() -> None:
    bad = objects.pod(claims=[{"name": "gpu", "resourceClaimName": 5}])
    with pytest.raises(MalformedObjectError) as caught:
        pods.pod_claims(bad)
    error = caught.value
    assert error.message == (
        "Pod team-a/p-1 is malformed: spec.resourceClaims[0].resourceClaimName is the number 5, expected a string."
    )
    assert "kubectl get pods p-1 -n team-a -o yaml" in error.hint
    assert error.facts == {
        "kind": "Pod",
        "namespace": "team-a",
        "name": "p-1",
        "path": "spec.resourceClaims[0].resourceClaimName",
        "expected": "a string",
        "found": "the number 5",
    }


@pytest.mark.parametrize(
    ("data", "path", "found"),
    [
        pytest.param([], "", "a list of 0", id="list"),
        pytest.param("x", "", 'the text "x"', id="text"),
        pytest.param(None, "", "missing", id="null"),
        pytest.param({"kind": "Deployment"}, "kind", 'the text "Deployment"', id="other kind"),
        pytest.param({"spec": 3}, "spec", "the number 3", id="spec number"),
        pytest.param(
            {"spec": {"resourceClaims": {}}}, "spec.resourceClaims", "an object with 0 keys", id="claims object"
        ),
        pytest.param({"spec": {"resourceClaims": ["a"]}}, "spec.resourceClaims[0]", 'the text "a"', id="claim text"),
        pytest.param({"spec": {"resourceClaims": [{}]}}, "spec.resourceClaims[0].name", "missing", id="no name"),
        pytest.param({"spec": {"resourceClaims": [None]}}, "spec.resourceClaims[0]", "missing", id="null entry"),
    ],
)
def test_wrong_shapes_of_a_pod(data: t.Any, path: str, found: str) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        pods.pod_claims(data)
    assert (caught.value.facts["path"], caught.value.facts["found"]) == (path, found)


def test_null_counts_as_absent() -> None:
    assert pods.pod_claims({"metadata": None, "spec": {"resourceClaims": None}}) == []
    assert consumers.consumers({"status": None}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "missing"),
        (True, "true"),
        (1.5, "the number 1.5"),
        pytest.param(10**5000, "a huge number", id="5000 digits"),
        (float("nan"), "a huge number"),
        ("\ud800\n", 'the text "\\ud800\\n"'),
        ("x" * 100, 'the text "' + "x" * 57 + '..."'),
        (b"x", "a bytes"),
    ],
)
def test_describe_is_short_and_printable(value: object, text: str) -> None:
    assert describe(value) == text
    assert text.encode("ascii")


@pytest.mark.parametrize("field", ["namespace", "name", "uid"])
@pytest.mark.parametrize("value", ["", "../x", "a/b", "a b", ".hidden", "a\x00b", "a\n", 7])
def test_identity_refuses_what_could_leave_a_path(field: str, value: t.Any) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        ObjectView("ResourceClaim", objects.claim(metadata={field: value})).identity()
    assert caught.value.facts["path"] == f"metadata.{field}"


def _every_reader(pod: t.Any, claim: t.Any, group: t.Any, template: t.Any) -> list[t.Callable[[], object]]:
    entry = pods.PodClaim("gpu", None, "t1", 0)
    return [
        lambda: pods.claim_references(pod),
        lambda: pods.is_done(pod),
        lambda: pods.uses_claims(pod),
        lambda: containers.container_claims(pod),
        lambda: containers.referenced_pod_claims(pod),
        lambda: podgroup.binds_to_pod_group(pod, entry, group),
        lambda: podgroup.pod_group_claim_name_for(group, entry),
        lambda: ownership.check_owner(pod, claim),
        lambda: consumers.check_reserved_for(pod, claim),
        lambda: consumers.reservation_obstacle(claim, R136),
        lambda: [consumers.consumer_verdict(c, pod) for c in consumers.consumers(claim)],
        lambda: consumers.pod_consumer(pod),
        lambda: consumers.pod_group_consumer(group),
        lambda: allocation.allocated_drivers(claim),
        lambda: allocation.skipped_operations(claim, "gpu.test.example"),
        lambda: allocation.is_classic(claim),
        lambda: handles.resource_handles(claim),
        lambda: devices.allocated_devices(claim),
        lambda: requests.device_requests(claim),
        lambda: requests.uses_prioritized_list(claim),
        lambda: generated.generated_claim(pod, entry, template, V1),
        lambda: generated.check_template_allowed(template, admin_access=False, prioritized_list=False),
        lambda: generated.find_generated_claim(pod, entry, [claim], accept_unannotated=True),
        lambda: generated.find_pod_group_claim(group, entry, [claim]),
        lambda: deallocation.status_patch(claim, deallocation.plan_release(claim, ())),
        lambda: deallocation.finalizer_patch(claim, ()),
        lambda: deallocation.is_obsolete(claim, pod),
        lambda: scheduling.needs_scheduling_context(pod, claim),
        lambda: scheduling.scheduling_context(pod, V1ALPHA2),
        lambda: classification.metric_labels(claim),
        lambda: classification.next_step(claim, pod),
    ]


def _full_world() -> dict[str, t.Any]:
    return {
        "pod": objects.pod(
            claims=[{"name": "gpu", "resourceClaimTemplateName": "t1"}],
            spec={
                "nodeName": "n1",
                "schedulingGroup": {"podGroupName": "pg"},
                "initContainers": [{"name": "i", "restartPolicy": "Always"}],
                "containers": [{"name": "c", "resources": {"claims": [{"name": "gpu", "request": "gpu"}]}}],
            },
            status={
                "phase": "Running",
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c1"}],
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "x",
                    "requestMappings": [{"containerName": "c", "resourceName": "a/b", "requestName": "r"}],
                },
            },
        ),
        "claim": objects.claim(
            metadata={
                "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
                "finalizers": ["resource.kubernetes.io/delete-protection"],
                "ownerReferences": [objects.pod_owner()],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            status={
                "allocation": {
                    **objects.allocation(objects.result(skipNodeOperations=["*"], adminAccess=False, shareID="s")),
                    "shareable": True,
                },
                "reservedFor": [objects.pod_entry(), objects.group_entry()],
            },
        ),
        "group": objects.pod_group(
            claims=[{"name": "gpu", "resourceClaimTemplateName": "t1"}],
            status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c1"}]},
        ),
        "template": objects.template(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}),
    }


def _paths(node: t.Any, at: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    yield at
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _paths(value, (*at, key))


def _replaced(node: t.Any, at: tuple[t.Any, ...], value: t.Any) -> t.Any:
    if not at:
        return value
    out = copy.copy(node)
    out[at[0]] = _replaced(node[at[0]], at[1:], value)
    return out


def test_no_replaced_field_makes_anything_but_a_dra_error() -> None:
    """Every field of every object, replaced by every wrong type, given to every reader."""
    world = _full_world()
    tried, unprintable = 0, []
    for kind, wrong in itertools.product(world, (None, True, 0, 1.5, "", "x", [], ["x"], [None], {}, {"x": 1}, [[]])):
        for path in _paths(world[kind]):
            mutated = {**world, kind: _replaced(world[kind], path, wrong)}
            for reader in _every_reader(**mutated):
                tried += 1
                try:
                    reader()
                except DraError as error:
                    if not str(error).isprintable():
                        unprintable.append((kind, path, wrong, str(error)))
    assert tried > 20_000
    assert unprintable == []


def test_no_reader_changes_its_input() -> None:
    world = _full_world()
    before = copy.deepcopy(world)
    for reader in _every_reader(**world):
        try:
            reader()
        except DraError:
            continue
    assert world == before
