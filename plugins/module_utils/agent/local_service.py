# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What each call of the local API does. Takes and gives messages, raises DraError, knows nothing of sockets."""

from __future__ import annotations

import asyncio
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..manager.claim_reports import ClaimReport
from ..resource.containers import container_claims
from .agent_findings import agent_findings
from .claim_place import AgentManager
from .claim_request import FORGOTTEN, PREPARED, UNPREPARED, ClaimRequest
from .claim_work import work
from .local_answers import drivers_response, event_messages, json_object, version_response, whole_pod
from .local_messages import change_response, claim_message, finding_message, message
from .local_socket import Peer
from .record_report import record_report
from .workplace import Workplace

if t.TYPE_CHECKING:
    from ..wire import nodeops_dra_agent_v1_pb2 as pb

Json = dict[str, t.Any]
log = logging.getLogger(__name__)

_EVENTS = {PREPARED: "claim_prepared", UNPREPARED: "claim_unprepared", FORGOTTEN: "claim_forgotten"}


class LocalService:
    """One method a call, named as in agent.proto. ``peer`` is who asks."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    async def Version(self, _request: pb.VersionRequest, _peer: Peer) -> t.Any:  # noqa: N802 - the name of the call
        """Who this is."""
        place = self._place
        degraded = "" if place.manager.degraded is None else str(place.manager.degraded)
        return version_response(place.mode, place.directories, place.node_name, degraded)

    # Claims

    async def ListClaims(self, request: pb.ListClaimsRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """Recorded claims."""
        reports = [one for one in self._place.manager.claims() if request.namespace in ("", one.record.state.namespace)]
        return message("ListClaimsResponse", claims=[self._claim(report) for report in reports])

    def _claim(self, report: ClaimReport) -> t.Any:
        now = asyncio.get_running_loop().time()
        failures = [
            message(
                "Failure",
                operation=one.operation,
                text=one.text,
                count=one.count,
                first=one.first,
                last=one.last,
                retry_in=max(0.0, one.next_try - now),
            )
            for one in report.failures
        ]
        note = report.record.note
        return claim_message(
            record_report(report.record),
            status=report.status,
            failures=failures,
            earlier_boot=note.earlier_boot,
            stopped=note.stopped[0] if note.stopped else "",
        )

    async def Prepare(self, request: pb.ChangeRequest, peer: Peer) -> t.Any:  # noqa: N802
        """Prepare claims."""
        return await self._change(PREPARED, request, peer)

    async def Unprepare(self, request: pb.ChangeRequest, peer: Peer) -> t.Any:  # noqa: N802
        """Unprepare claims."""
        return await self._change(UNPREPARED, request, peer)

    async def Forget(self, request: pb.ChangeRequest, peer: Peer) -> t.Any:  # noqa: N802
        """Forget claims."""
        return await self._change(FORGOTTEN, request, peer)

    async def _change(self, state: str, message_: pb.ChangeRequest, peer: Peer) -> t.Any:
        request = self._request(state, message_, peer)
        keeper = self._place.keeper
        place = AgentManager(self._place.manager, self._place.registry, keeper)
        log.info("change asked for state=%s uid=%d pid=%d check=%s", state, peer.uid, peer.pid, message_.check)
        try:
            result = await work(request, self._place.fetch, check=message_.check, place=place)
        finally:
            if keeper is not None and state != PREPARED and not message_.check:
                keeper.look_again()
        pod = request.pod or {}
        if state == PREPARED and not message_.check and pod.get("spec") is not None:
            self._place.given_pods.add(pod)
            await self._place.pods_changed()
        if result["changed"] and not message_.check:
            for subject in sorted({*result["before"], *result["after"]}):
                self._place.events.add(_EVENTS[state], subject, f"asked by {request.by}")
        return change_response(result)

    def _request(self, state: str, asked: pb.ChangeRequest, peer: Peer) -> ClaimRequest:
        where = self._place.directories
        pod = json_object(asked.pod, "pod") if asked.pod else None
        claims = [json_object(one, "claims") for one in asked.claims]
        if pod is None and not claims:
            raise DraError("There is nothing to do: neither claims nor a pod was given.", "Give claims or a pod.")
        # Not "<= 0": a number that is none compares as false.
        if not asked.timeout >= 0:
            raise DraError(f"The timeout is {asked.timeout:g} s, expected 0 or more.", "Leave it out for the default.")
        return ClaimRequest(
            state,
            pod,
            claims,
            holder=asked.holder if asked.HasField("holder") else None,
            state_directory=where.state,
            kubelet_root=where.kubelet_root,
            registry_directory=where.registry,
            cdi_directories=where.cdi,
            timeout=asked.timeout or ClaimRequest.timeout,
            reason=asked.reason,
            by=f"{asked.by} ({peer})" if asked.by else str(peer),
            force=asked.force,
        )

    async def GetResources(self, request: pb.GetResourcesRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """CDI names by container."""
        pod = whole_pod(json_object(request.pod, "pod"), self._place.find_pod)
        names = [request.container] if request.container else [one.name for one in container_claims(pod)]
        containers = [
            message("ContainerResources", name=name, cdi_devices=self._place.manager.resources_for(pod, name))
            for name in names
        ]
        return message("GetResourcesResponse", containers=containers)

    # The rest

    async def ListDrivers(self, _request: pb.ListDriversRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """Drivers and registrations."""
        return drivers_response(self._place.registry, self._place.manager.claims_in_use())

    async def ListFindings(self, _request: pb.ListFindingsRequest, _peer: Peer) -> t.Any:  # noqa: N802
        """Findings."""
        found = [finding_message(finding.to_dict()) for finding in agent_findings(self._place)]
        return message("ListFindingsResponse", findings=found)

    async def WatchEvents(  # noqa: N802
        self, request: pb.WatchEventsRequest, _peer: Peer
    ) -> t.AsyncIterator[t.Any]:
        """Events as they come."""
        async for event in event_messages(self._place.events, request):
            yield event
