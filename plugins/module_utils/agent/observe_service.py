# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The calls of the local API where the agent only observes: it tells what is recorded, and changes nothing."""

from __future__ import annotations

import collections
import typing as t

from ..checkpoint.errors import DraError
from ..resource.view import JsonObject
from .local_answers import drivers_response, event_messages, json_object, version_response, whole_pod
from .local_messages import claim_message, finding_message, message
from .local_socket import Peer
from .observed_node import ObservedNode
from .recorded_devices import recorded_devices

if t.TYPE_CHECKING:
    from ..wire import nodeops_dra_agent_v1_pb2 as pb

Json = dict[str, t.Any]

SURVEY = 3.0
"""Seconds that a question for findings waits for a look that is later than the last change."""


class ObservingError(DraError):
    """The agent was asked for a change, and only observes. Facts: ``method``, ``mode``."""


class ObserveService:
    """One method a call, named as in agent.proto, as `local_service.LocalService` has them."""

    def __init__(self, node: ObservedNode) -> None:
        self._node = node

    async def Version(self, _request: pb.VersionRequest, _peer: Peer) -> t.Any:  # noqa: N802 - the name of the call
        """Who this is."""
        node = self._node
        return version_response("observe", node.directories, node.name, node.kubelet.state.problem)

    async def ListClaims(self, request: pb.ListClaimsRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """Claims that the kubelet has recorded."""
        claims = [one for one in self._claims() if request.namespace in ("", one["namespace"])]
        claims.sort(key=lambda claim: (claim["namespace"], claim["name"], claim["uid"]))
        made = [claim_message(claim, status="prepared" if claim["prepared"] else "planned") for claim in claims]
        return message("ListClaimsResponse", claims=made)

    def _claims(self) -> t.Collection[Json]:
        return self._node.kubelet.state.claims.values()

    async def GetResources(self, request: pb.GetResourcesRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """CDI names by container, as the kubelet has recorded them."""
        pod = whole_pod(json_object(request.pod, "pod"), self._find_pod)
        found = recorded_devices(pod, self._claims(), request.container)
        containers = [message("ContainerResources", name=name, cdi_devices=names) for name, names in found.items()]
        return message("GetResourcesResponse", containers=containers)

    def _find_pod(self, uid: str, namespace: str, name: str) -> JsonObject | None:
        pods = self._node.pods
        return None if pods is None else pods.find(uid, namespace, name)

    # What it does not do

    async def Prepare(self, _request: pb.ChangeRequest, _peer: Peer) -> t.NoReturn:  # noqa: N802
        """Refused."""
        raise self._refusal("Prepare", "Create a pod that uses the claim: the kubelet prepares it.")

    async def Unprepare(self, _request: pb.ChangeRequest, _peer: Peer) -> t.NoReturn:  # noqa: N802
        """Refused."""
        raise self._refusal("Unprepare", "Delete the pods that use the claim: the kubelet unprepares it.")

    async def Forget(self, _request: pb.ChangeRequest, _peer: Peer) -> t.NoReturn:  # noqa: N802
        """Refused."""
        remedy = "Stop the kubelet, take the claim out of its file with nodeops.dra.checkpoint (drop_claims), start it."
        raise self._refusal("Forget", remedy)

    def _refusal(self, method: str, remedy: str) -> ObservingError:
        return ObservingError(
            f"{method} is not done: this agent only observes, and claims are the kubelet's.",
            f"{remedy} For claims that no kubelet has, use nodeops.dra.claim, which then works without the agent, or "
            "run the agent with node.mode manage where no kubelet prepares claims.",
            method=method,
            mode="observe",
        )

    # The rest

    async def ListDrivers(self, _request: pb.ListDriversRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """Drivers, and registration sockets as they are seen here; the kubelet's own view is not known."""
        counts = collections.Counter(driver["name"] for claim in self._claims() for driver in claim["drivers"])
        return drivers_response(self._node.registry, counts)

    async def ListFindings(self, _request: pb.ListFindingsRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """Findings, if it can be of a look that is later than the last change."""
        await self._node.survey.current(SURVEY)
        return message("ListFindingsResponse", findings=[finding_message(one) for one in self._node.findings()])

    async def WatchEvents(  # noqa: N802
        self, request: pb.WatchEventsRequest, _peer: Peer
    ) -> t.AsyncIterator[t.Any]:
        """Events as they come."""
        async for event in event_messages(self._node.events, request):
            yield event
