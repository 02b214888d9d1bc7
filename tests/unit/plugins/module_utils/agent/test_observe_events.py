# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of two contents of a kubelet's file, and of the news on the Node object."""

from __future__ import annotations

import asyncio
import dataclasses
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.kubelet_state import KubeletState, judge
from ansible_collections.nodeops.dra.plugins.module_utils.agent.node_events import NodeEvents
from ansible_collections.nodeops.dra.plugins.module_utils.agent.observe_api import ApiClaims
from ansible_collections.nodeops.dra.plugins.module_utils.agent.state_events import StateEvents
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, assemble, encode
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import ADMIN
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import Cluster, cluster

PATH = "/kubelet/dra_manager_state"
MISSING = KubeletState(PATH)


def of(*claims: ClaimState) -> KubeletState:
    return judge(PATH, assemble([encode(one) for one in claims]))


ONE = of(recorded())
TWO = of(recorded(), recorded("u-2", "c2", "dev-1"))
PENDING = of(recorded(), dataclasses.replace(recorded("u-2", "c2"), drivers={GPU: None}))
EMPTY = of()
DAMAGED = judge(PATH, (ONE.data or b"")[:-9])


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        pytest.param([ONE], [], id="what was there before is no news"),
        pytest.param([MISSING, ONE], ["claim_prepared"], id="the first file"),
        pytest.param([ONE, PENDING], [], id="a driver has not answered"),
        pytest.param([ONE, PENDING, TWO], ["claim_prepared"], id="it has"),
        pytest.param([TWO, ONE], ["claim_unprepared"], id="unprepared"),
        pytest.param([DAMAGED], ["checkpoint_damaged"], id="damaged from the start"),
        pytest.param([ONE, DAMAGED, ONE], ["checkpoint_damaged", "checkpoint_sound"], id="mended"),
        pytest.param([ONE, MISSING, ONE], ["checkpoint_missing", "checkpoint_sound"], id="brought back"),
        pytest.param(
            [TWO, MISSING, EMPTY],
            ["checkpoint_missing", "checkpoint_sound", "claim_forgotten", "claim_forgotten"],
            id="a kubelet that began anew",
        ),
    ],
)
def test_events(states: list[KubeletState], kinds: list[str]) -> None:
    events = StateEvents(states[0])
    before, found = MISSING, []
    for state in states:
        found += events.of(before, state)
        before = state
    assert [kind for kind, _subject, _text in found] == kinds


async def events_of(api: Cluster, reason: str) -> list[dict[str, t.Any]]:
    """Events with this reason, once there are some."""
    while True:
        events = await api.client.list(resource_of("Event"))
        if found := [one for one in events if one["reason"] == reason]:
            return found
        await asyncio.sleep(0.05)


@pytest.mark.asyncio
async def test_the_node_object_gets_an_event() -> None:
    async with cluster() as api:
        events = NodeEvents("node-1", options_from(api.options))
        events.tell("checkpoint_damaged", "told before the API was reached")
        work = asyncio.create_task(events.run())
        found = await events_of(api, "DRACheckpointDamaged")
        work.cancel()
        await asyncio.wait({work})
    assert [(one["type"], one["message"]) for one in found] == [("Warning", "told before the API was reached")]
    assert found[0]["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-1"}


@pytest.mark.asyncio
async def test_missing_rights_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api:
        api.server.settings.tokens[api.server.token] = ADMIN.without("create", "events")
        events = NodeEvents("node-1", options_from(api.options))
        work = asyncio.create_task(events.run())
        while not caplog.records:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        events.tell("driver_gone", "text")
        work.cancel()
        await asyncio.wait({work})
    assert [one.message for one in caplog.records if one.levelname == "WARNING"] == [
        "no events are written on the node, rights are missing rights=create events in default"
    ]


@pytest.mark.asyncio
async def test_claims_are_asked_for_by_name_and_again_when_they_were_made_anew() -> None:
    asked: list[str] = []
    uids = {"c1": "old"}

    async def fetch(_kind: str, namespace: str, name: str) -> dict[str, t.Any]:
        asked.append(name)
        return {"metadata": {"namespace": namespace, "name": name, "uid": uids[name]}}

    claims = ApiClaims(fetch, fresh=3600.0)
    names = {("team-a", "c1"): "old"}
    assert [one["metadata"]["uid"] for one in await claims.named(names)] == ["old"]
    await claims.named(names)
    uids["c1"] = "new"
    found = await claims.named({("team-a", "c1"): "new"})
    assert ([one["metadata"]["uid"] for one in found], asked) == (["new"], ["c1", "c1"])
