# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""An agent that observes a node of a test, and a kubelet's way to write."""

from __future__ import annotations

import contextlib
import os
import pathlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.local_client import LocalClient
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import (
    AgentProcess,
    agent_process,
)
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Json, Node

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "checkpoint"


def golden(name: str) -> bytes:
    """A file that a real kubelet wrote, such as ``1.35-1.36/multi_driver``."""
    return (GOLDEN / f"{name}.json").read_bytes()


def kubelet_writes(node: Node, data: bytes) -> None:
    """As kubelets do it: a temporary, then a rename."""
    temporary = node.root / ".1234567"
    temporary.write_bytes(data)
    os.replace(temporary, node.root / "dra_manager_state")


def of_kubelet(node: Node) -> dict[str, str]:
    """Every file of the kubelet and of its drivers; what the agent has for itself is not among them."""
    own = ("manager", "run", "agent.yml")
    return {path: digest for path, digest in node.tree().items() if path.split("/")[0] not in own}


@contextlib.asynccontextmanager
async def observing(where: Node, /, **sections: Json) -> t.AsyncIterator[AgentProcess]:
    """A ready agent. It copies quickly unless told otherwise."""
    ring = {"settle": 0.05, "interval": 0.1, **sections.pop("ring", {})}
    mode = {"mode": "observe", **sections.pop("node", {})}
    async with agent_process(where, node=mode, ring=ring, **sections) as agent:
        await agent.until("ready daemon=")
        yield agent


class Watcher:
    """Reads events one after the other."""

    def __init__(self, client: LocalClient) -> None:
        self._client = client
        self.seen: list[Json] = []

    async def until(self, kind: str, text: str = "") -> Json:
        """The next event of a kind, with this in its subject or text."""
        after = self.seen[-1]["number"] if self.seen else 0
        async with contextlib.aclosing(t.cast("t.AsyncGenerator[Json]", self._client.watch(after))) as events:
            async for event in events:
                self.seen.append(event)
                if event["kind"] == kind and text in f"{event['subject']} {event['text']}":
                    return event
        raise AssertionError(f"the agent ended without {kind}: {self.seen}")

    def kinds(self) -> list[str]:
        """What was read so far."""
        return [one["kind"] for one in self.seen]
