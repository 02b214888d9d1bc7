# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The controller's objects in a cluster: their shape, and what the API server makes of them."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_settings import SCHEMA, work
from ansible_collections.nodeops.dra.plugins.module_utils.controller.manifests import (
    FIELD_MANAGER,
    NAME,
    Deployment,
    manifests,
)
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import load_settings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.declared import perform, plan_absent, plan_present
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of

from .world import world

Json = dict[str, t.Any]
CHOSEN = Deployment("registry.example/controller:0.1.0", settings={"controller": {"workers": 7}})


def named(objects: t.Sequence[Json], kind: str) -> Json:
    """The only one of its kind."""
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


async def made(chosen: Deployment = CHOSEN) -> list[Json]:
    """The objects for a current cluster."""
    async with world() as cluster:
        return manifests(chosen, [cluster.target])


@pytest.mark.asyncio
async def test_the_daemon_can_use_its_settings(tmp_path: t.Any) -> None:
    text = named(await made(), "ConfigMap")["data"]["controller.yml"]
    path = tmp_path / "controller.yml"
    path.write_text(text)
    settings = load_settings(SCHEMA, NAME, str(path), {})
    assert work(settings).workers == 7
    assert settings.value(["lease", "namespace"]) == "nodeops-dra"
    assert json.loads(text)["http"] == {"address": "0.0.0.0", "port": 9466}


@pytest.mark.asyncio
@pytest.mark.report("F105")
async def test_its_pod_is_restricted_and_has_time_to_start() -> None:
    spec = named(await made(), "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
    }
    start = container["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 300
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.asyncio
async def test_other_settings_are_other_pods() -> None:
    first, second = [named(await made(one), "Deployment")["spec"]["template"] for one in (CHOSEN, Deployment("x"))]
    assert first["metadata"]["annotations"] != second["metadata"]["annotations"]


@pytest.mark.asyncio
async def test_planned_applied_found_as_declared_and_removed() -> None:
    async with world() as cluster:
        await cluster.client.create(resource_of("Namespace"), {"metadata": {"name": "kube-system"}})
        objects = manifests(CHOSEN, [cluster.target])
        plan = await plan_present(cluster.client, objects, FIELD_MANAGER)
        assert [step.title for step in plan if not step.changes] == []
        assert cluster.server.recorder.count("patch", "deployments") == 0, "in a namespace that is still to be made"
        await perform(cluster.client, plan, FIELD_MANAGER)
        again = await plan_present(cluster.client, objects, FIELD_MANAGER)
        assert [step.title for step in again if step.changes] == []

        more = manifests(Deployment(CHOSEN.image, settings=CHOSEN.settings, replicas=3), [cluster.target])
        change = await plan_present(cluster.client, more, FIELD_MANAGER)
        assert [step.title for step in change if step.changes] == [f"Deployment nodeops-dra/{NAME}"]
        await perform(cluster.client, change, FIELD_MANAGER)

        gone = await plan_absent(cluster.client, objects)
        assert all(step.changes for step in gone)
        await perform(cluster.client, gone, FIELD_MANAGER)
        assert not any(step.changes for step in (await plan_absent(cluster.client, objects)))
