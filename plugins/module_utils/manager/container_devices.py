# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a container gets of the claims of its pod.

Kubernetes symbols: ``manager.GetResources``, ``manager.GetContainerClaimInfos``, ``claimInfo.cdiDevicesAsList``, and
``manager.UpdateAllocatedResourcesStatus``.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..checkpoint.claims import Device
from ..checkpoint.errors import DraError
from ..resource.containers import ContainerClaim, ContainerClaims, container_claims, request_matches
from ..resource.pod import claim_name_for, extended_resource_claim, pod_claims, pod_view
from ..resource.view import JsonObject
from .claim_table import ClaimTable, Entry, Phase
from .device_health import HealthTable
from .durable_claims import Record
from .planning import holders_label


class NotPreparedError(DraError):
    """A container needs a claim that is not prepared.

    Facts: ``claim``, ``claim_uid``, ``pod``, ``container``, ``status``.
    """


@dataclass(frozen=True)
class ClaimDevice:
    """One device of a claim (PodResources: ``ClaimResource``)."""

    driver: str
    device: Device


@dataclass(frozen=True)
class ClaimInfo:
    """A claim of a container and those of its devices that the container uses (PodResources: ``DynamicResource``)."""

    claim_uid: str
    claim_name: str
    namespace: str
    devices: tuple[ClaimDevice, ...]


@dataclass(frozen=True)
class ResourceStatus:
    """One entry of ``status.containerStatuses[].allocatedResourcesStatus``."""

    name: str
    resources: tuple[t.Mapping[str, str], ...]


def cdi_devices(
    table: ClaimTable, pod: JsonObject, container: str, *, deterministic_names: bool = False
) -> tuple[str, ...]:
    """CDI names of everything that the container uses, each once, in the order of its claims.

    Raises NotPreparedError unless this process has prepared every one of the claims for this pod.
    """
    names: dict[str, None] = {}
    pod_uid = pod_view(pod).required_text("metadata", "uid")
    for use in _container(pod, container).claims:
        claim_name = _claim_name(pod, use, deterministic_names)
        if claim_name is None:
            continue
        entry, record = _find(table, pod, claim_name)
        if entry is None or record is None or entry.phase is not Phase.PREPARED or pod_uid not in record.state.pod_uids:
            raise _not_prepared(pod, container, claim_name, entry, record)
        for one in _devices(entry.answers, use.request):
            names.update(dict.fromkeys(one.device.cdi_device_ids))
    return tuple(names)


def claim_infos(
    table: ClaimTable, pod: JsonObject, container: str, *, deterministic_names: bool = False
) -> list[ClaimInfo]:
    """The claims of a container with the devices that are recorded for it. What the pod does not hold is left out."""
    infos = []
    pod_uid = pod_view(pod).required_text("metadata", "uid")
    for use in _container(pod, container).claims:
        claim_name = _claim_name(pod, use, deterministic_names)
        entry, record = (None, None) if claim_name is None else _find(table, pod, claim_name)
        if entry is not None and record is not None and pod_uid in record.state.pod_uids:
            devices = tuple(_devices(record.state.drivers, use.request))
            infos.append(ClaimInfo(entry.uid, entry.name, entry.namespace, devices))
    return infos


def resource_statuses(
    table: ClaimTable, health: HealthTable, pod: JsonObject, container: str, *, deterministic_names: bool = False
) -> list[ResourceStatus]:
    """Health of the container's devices as the pod status shows it. Empty for init containers, as in the kubelet."""
    found = _container(pod, container)
    if found.is_init:
        return []
    statuses = []
    for use in found.claims:
        claim_name = _claim_name(pod, use, deterministic_names) if use.pod_claim is not None else None
        record = None if claim_name is None else _find(table, pod, claim_name)[1]
        if record is None:
            continue
        rows: dict[str, dict[str, str]] = {}
        for one in _devices(record.state.drivers, use.request):
            device = one.device
            plain = f"{one.driver}/{device.pool_name}/{device.device_name}"
            resource_id = device.cdi_device_ids[0] if device.cdi_device_ids else plain
            state = health.state_of(one.driver, device.pool_name, device.device_name)
            row = {"resourceID": resource_id, "health": state.health.value}
            if state.message:
                row["message"] = state.message
            rows.setdefault(resource_id, row)
        name = f"claim:{use.pod_claim}/{use.request}" if use.request else f"claim:{use.pod_claim}"
        statuses.append(ResourceStatus(name, tuple(rows.values())))
    return statuses


def _container(pod: JsonObject, name: str) -> ContainerClaims:
    for container in container_claims(pod):
        if container.name == name:
            return container
    known = ", ".join(container.name for container in container_claims(pod)) or "none"
    raise DraError(
        f"Pod {pod_view(pod).full_name} has no container {name!r:.80}; its containers are: {known}.",
        "Give the name of one of them.",
        container=name[:80],
    )


def _claim_name(pod: JsonObject, use: ContainerClaim, deterministic_names: bool) -> str | None:
    """The claim behind a use, None when the pod turned out not to need one."""
    if use.pod_claim is None:
        extended = extended_resource_claim(pod)
        return extended.claim_name if extended is not None else None
    for pod_claim in pod_claims(pod):
        if pod_claim.name == use.pod_claim:
            return claim_name_for(pod, pod_claim, deterministic_names=deterministic_names).name
    raise DraError(
        f"Pod {pod_view(pod).full_name}: a container uses claim {use.pod_claim!r:.80}, which is not in "
        "spec.resourceClaims.",
        "The API server refuses such a pod; pass it on as it was read.",
        claim=use.pod_claim[:80],
    )


def _find(table: ClaimTable, pod: JsonObject, claim_name: str) -> tuple[Entry | None, Record | None]:
    uid = table.uid_of(pod_view(pod).namespace, claim_name)
    return (None, None) if uid is None else (table.entry(uid), table.record(uid))


def _devices(drivers: t.Mapping[str, tuple[Device, ...] | None], request: str) -> t.Iterator[ClaimDevice]:
    for driver in sorted(drivers):
        for device in drivers[driver] or ():
            if request_matches(device.request_names, request):
                yield ClaimDevice(driver, device)


def _not_prepared(
    pod: JsonObject, container: str, claim_name: str, entry: Entry | None, record: Record | None
) -> NotPreparedError:
    view = pod_view(pod)
    status = entry.status if entry is not None else "unknown"
    found = f"it is {status}"
    if entry is not None and entry.phase is Phase.PREPARED and record is not None:
        found = f"it is prepared for {holders_label(record.state.pod_uids)}"
    return NotPreparedError(
        f"Container {container} of pod {view.full_name} ({view.uid}) needs ResourceClaim {view.namespace}/"
        f"{claim_name}, expected it to be prepared for this pod, but {found}.",
        "Prepare the pod's claims first; after a restart or a reboot they have to be prepared again.",
        claim=f"{view.namespace}/{claim_name}",
        claim_uid=entry.uid if entry is not None else "",
        pod=view.full_name,
        container=container,
        status=status,
    )
