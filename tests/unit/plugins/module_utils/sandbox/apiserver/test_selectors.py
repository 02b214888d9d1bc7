# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Label and field selectors."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.failures import ApiError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.selectors import (
    field_selector,
    label_selector,
)

LABELS = {"app": "web", "tier": "front", "example.com/n": "7", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("!app", False),
        ("!none", True),
        ("none", False),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app = web , tier != back", True),
        ("app!=web", False),
        ("none!=web", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("none notin (db)", True),
        ("none in (db)", False),
        ("example.com/n>6", True),
        ("example.com/n<7", False),
        ("app>6", False),
        ("empty=", True),
        ("empty in ()", True),
        ("app in (web),tier in (front,back),!none", True),
    ],
)
def test_label_selectors(text: str, matches: bool) -> None:
    assert all(requirement.matches(LABELS) for requirement in label_selector(text)) is matches


@pytest.mark.parametrize(
    "text", ["=a", "a=b,", "a b", "a in b", "a in (b", "a in (b c)", "a>x", "a=(b)", "a=b=c", "/a", "a//b", "a=é", ",a"]
)
def test_label_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement") as failure:
        label_selector(text)
    assert failure.value.code == 400


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1,status.phase!=Failed", True),
        ("spec.nodeName!=n1", False),
        ("metadata.name=", True),
        (r"note=a\,b\=c", True),
    ],
)
def test_field_selectors(text: str, matches: bool) -> None:
    fields = {"spec.nodeName": "n1", "status.phase": "Running", "note": "a,b=c"}
    assert all(term.matches(fields) for term in field_selector(text)) is matches


def test_a_field_selector_without_operator() -> None:
    with pytest.raises(ApiError, match=r"invalid selector: 'spec\.nodeName'"):
        field_selector("spec.nodeName")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "names"),
    [
        pytest.param("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", ["a"], id="node"),
        pytest.param("/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1", ["b"], id="not-node"),
        pytest.param("/api/v1/pods?fieldSelector=metadata.namespace%3Dkube-system", ["b"], id="namespace"),
        pytest.param("/api/v1/pods?fieldSelector=status.phase%3DPending,metadata.name%3Da", ["a"], id="phase"),
        pytest.param(
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver%3Dd.example", ["s"], id="driver"
        ),
        pytest.param("/api/v1/events?fieldSelector=involvedObject.name%3Da,type%3DWarning", ["e"], id="event"),
        pytest.param(
            "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Da,reportingController%3D",
            ["e"],
            id="new-event",
        ),
    ],
)
async def test_fields_that_can_be_selected(client: t.Any, path: str, names: list[str]) -> None:
    seed = client.server.seed
    containers = [{"name": "c", "image": "x"}]
    seed("v1", "pods", {"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "containers": containers}}, "default")
    seed("v1", "pods", {"metadata": {"name": "b"}, "spec": {"containers": containers}}, "kube-system")
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example", "pool": pool, "nodeName": "n1"}
    seed("resource.k8s.io/v1", "resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "type": "Warning", "reason": "R"}
    seed("v1", "events", event, "default")
    listed = await client.must("GET", path)
    assert [item["metadata"]["name"] for item in listed["items"]] == names
    status, _answer = await client.ask("GET", path.replace("%3D", ".none%3D", 1))
    assert status == 400
