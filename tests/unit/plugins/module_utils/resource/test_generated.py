# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims made from templates, and finding them again."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import generated, scheduling
from ansible_collections.nodeops.dra.plugins.module_utils.resource.pod import PodClaim
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import api_version
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

V1 = api_version("v1")
ENTRY = PodClaim("gpu", None, "t1", 0)


def test_claim_of_today() -> None:
    template = objects.template(metadata={"labels": {"l": "1"}, "annotations": {"a": "b"}, "name": "ignored"})
    assert generated.generated_claim(objects.pod(), ENTRY, template, V1) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": "team-a",
            "generateName": "p-1-gpu-",
            "labels": {"l": "1"},
            "annotations": {"a": "b", "resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [objects.pod_owner()],
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "x"}}]}},
    }


@pytest.mark.parametrize(
    ("version", "release", "name", "annotated", "blocks"),
    [
        ("v1alpha1", None, {"name": "p-1-gpu"}, False, True),
        ("v1alpha2", Release(1, 27), {"name": "p-1-gpu"}, False, True),
        ("v1alpha2", Release(1, 28), {"generateName": "p-1-gpu-"}, True, True),
        ("v1alpha2", None, {"generateName": "p-1-gpu-"}, True, True),
        ("v1beta2", None, {"generateName": "p-1-gpu-"}, True, True),
        ("v1", Release(1, 34), {"generateName": "p-1-gpu-"}, True, True),
        ("v1", None, {"generateName": "p-1-gpu-"}, True, False),
    ],
)
def test_claim_of_each_release(
    version: str, release: Release | None, name: dict[str, str], annotated: bool, blocks: bool
) -> None:
    claim = generated.generated_claim(objects.pod(), ENTRY, objects.template(), api_version(version), release)
    metadata = claim["metadata"]
    assert {k: v for k, v in metadata.items() if k in ("name", "generateName")} == name
    assert ("annotations" in metadata) is annotated
    assert metadata["ownerReferences"][0].get("blockOwnerDeletion", False) is blocks
    assert claim["apiVersion"] == f"resource.k8s.io/{version}"
    assert "labels" not in metadata


@pytest.mark.report("F073")
def test_template_is_never_shared_with_the_claims() -> None:
    template = objects.template(metadata={"annotations": {"a": "b"}, "labels": {"l": "1"}})
    before = copy.deepcopy(template)
    x = generated.generated_claim(objects.pod(), PodClaim("x", None, "t1", 0), template, V1)
    y = generated.generated_claim(objects.pod(), PodClaim("y", None, "t1", 1), template, V1)
    names = [c["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] for c in (x, y)]
    x["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "changed"
    x["metadata"]["labels"]["l"] = "changed"
    assert names == ["x", "y"]
    assert template == before
    assert y["spec"] == before["spec"]["spec"]


def test_claim_of_a_pod_group() -> None:
    claim = generated.generated_pod_group_claim(objects.pod_group(), ENTRY, objects.template(), V1, "v1alpha2")
    assert claim["metadata"]["generateName"] == "pg-gpu-"
    assert claim["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "name": "pg",
            "uid": "u-pg",
            "controller": True,
        }
    ]
    found = {**claim, "metadata": {**claim["metadata"], "name": "pg-gpu-x"}}
    assert generated.find_pod_group_claim(objects.pod_group(), ENTRY, [found]) is found
    assert generated.find_pod_group_claim(objects.pod_group(uid="u-2"), ENTRY, [found]) is None
    assert generated.find_pod_group_claim(objects.pod_group(), PodClaim("x", None, "t1", 0), [found]) is None


@pytest.mark.report("F119")
@pytest.mark.parametrize(
    ("request_form", "switch", "text"),
    [
        ({"exactly": {"adminAccess": True}}, "admin_access", "admin access is requested, but the feature is disabled"),
        ({"adminAccess": True}, "admin_access", "admin access is requested, but the feature is disabled"),
        (
            {"firstAvailable": [{"name": "a"}]},
            "prioritized_list",
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
    ],
)
def test_templates_that_need_a_switched_off_feature_are_refused(
    request_form: dict[str, t.Any], switch: str, text: str
) -> None:
    template = objects.template(spec={"devices": {"requests": [{"name": "r", **request_form}]}})
    generated.check_template_allowed(template)
    with pytest.raises(generated.CreationRefusedError) as caught:
        generated.check_template_allowed(template, **{switch: False})
    assert text in caught.value.message
    assert caught.value.facts == {"namespace": "team-a", "template": "t1", "feature": switch}


def existing(name: str = "p-1-gpu-abcde", *, annotation: str | None = "gpu", **metadata: t.Any) -> dict[str, t.Any]:
    annotations = {"annotations": {"resource.kubernetes.io/pod-claim-name": annotation}} if annotation else {}
    return objects.claim(name, metadata={"ownerReferences": [objects.pod_owner()], **annotations, **metadata})


@pytest.mark.parametrize(
    ("claim", "unannotated", "expected"),
    [
        pytest.param(existing(), False, True, id="annotated"),
        pytest.param(existing(annotation="nic"), False, False, id="other entry"),
        pytest.param(existing(ownerReferences=[objects.pod_owner(uid="u-old")]), False, False, id="earlier pod"),
        pytest.param(existing(ownerReferences=[]), False, False, id="no owner"),
        pytest.param(existing("p-1-gpu", annotation=None), False, False, id="old name, new cluster"),
        pytest.param(existing("p-1-gpu", annotation=None), True, True, id="old name, old cluster"),
        pytest.param(existing("p-1-gpu-x", annotation=None), True, False, id="no annotation, other name"),
        pytest.param(existing(deletionTimestamp="t"), False, False, id="being deleted"),
    ],
)
def test_a_claim_made_before_is_found(claim: dict[str, t.Any], unannotated: bool, expected: bool) -> None:
    found = generated.find_generated_claim(objects.pod(), ENTRY, [claim], accept_unannotated=unannotated)
    assert (found is claim) is expected


def test_of_several_claims_every_controller_picks_the_same() -> None:
    old = existing("b", creationTimestamp="2026-01-01T00:00:00Z")
    twin = existing("a", creationTimestamp="2026-01-01T00:00:05Z")
    same_age = existing("a2", creationTimestamp="2026-01-01T00:00:00Z")
    assert generated.find_generated_claim(objects.pod(), ENTRY, [twin, old]) is old
    assert generated.find_generated_claim(objects.pod(), ENTRY, [old, twin, same_age]) is same_age


@pytest.mark.report("F061")
def test_status_entries_hold_every_claim_also_the_unneeded() -> None:
    assert generated.claim_status_entries({"gpu": "c1", "nic": None}) == [
        {"name": "gpu", "resourceClaimName": "c1"},
        {"name": "nic"},
    ]


@pytest.mark.report("F077")
@pytest.mark.parametrize(
    ("claim", "node", "expected"),
    [
        pytest.param(objects.classic_claim(), "n1", True, id="classic, bound"),
        pytest.param(objects.classic_claim(), None, False, id="not bound"),
        pytest.param(objects.classic_claim(spec={"allocationMode": "Immediate"}), "n1", False, id="immediate"),
        pytest.param(objects.classic_claim(status={"allocation": {}}), "n1", False, id="allocated"),
        pytest.param(objects.claim(), "n1", False, id="structured"),
        pytest.param(objects.claim(spec={"controller": "d.example"}), "n1", True, id="1.31 with controller"),
    ],
)
def test_when_a_bound_pod_needs_a_scheduling_context(claim: t.Any, node: str | None, expected: bool) -> None:
    pod = objects.pod(spec={"nodeName": node} if node else {})
    assert scheduling.needs_scheduling_context(pod, claim) is expected


@pytest.mark.parametrize(
    ("version", "kind"),
    [("v1alpha1", "PodScheduling"), ("v1alpha2", "PodSchedulingContext"), ("v1alpha3", "PodSchedulingContext")],
)
def test_scheduling_context(version: str, kind: str) -> None:
    api, pod = api_version(version), objects.pod(spec={"nodeName": "n1"})
    context = scheduling.scheduling_context(pod, api)
    assert context == {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "p-1", "namespace": "team-a", "ownerReferences": [objects.pod_owner()]},
        "spec": {"selectedNode": "n1"},
    }
    assert scheduling.selected_node(context, api) == "n1"
    assert scheduling.belongs_to(context, pod, api)
    assert not scheduling.belongs_to(context, objects.pod(uid="u-2"), api)
