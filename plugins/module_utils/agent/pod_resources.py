# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What monitoring agents ask a kubelet: which containers of this node hold which devices of which claims.

Kubernetes symbols: ``v1PodResourcesServer`` and ``getDynamicResources`` in pkg/kubelet/apis/podresources. Messages are
those of proto/podresources/v1. Only pods with claims are known here, and of their resources only claims.
"""

from __future__ import annotations

import logging
import typing as t

from ..checkpoint.errors import DraError
from ..manager.container_devices import ClaimDevice, ClaimInfo
from ..manager.manager import DraManager
from ..resource.containers import container_claims
from ..resource.view import JsonObject
from ..wire.messages import Api, api
from .claim_place import check_known
from .claim_request import identity
from .workplace import Workplace

if t.TYPE_CHECKING:
    from ..wire import podresources_v1_pb2 as pb

log = logging.getLogger(__name__)


class PodUnknownError(DraError):
    """No such pod is known on this node. Facts: ``pod``."""


class PodsMissingError(DraError):
    """Not all pods of this node are known yet, so no list would be true."""


def podresources_api() -> Api:
    """The messages and methods. Raises LibraryMissing."""
    return api("podresources/v1")


class PodResources:
    """Answers from the manager's table and the pods that the agent knows."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    def every(self) -> list[pb.PodResources]:
        """All pods that may still run, by namespace and name. Raises PodsMissingError, and DegradedError."""
        check_known(self._place.manager)
        for source in self._place.pod_sources:
            if why := source.missing():
                raise PodsMissingError(f"The pods of this node are not known yet: {why}", "Ask again.")
        pods = {identity(pod)[0]: pod for source in reversed(self._place.pod_sources) for pod in source.alive()}
        ordered = sorted(pods.values(), key=lambda pod: identity(pod)[1:])
        found = [_pod_resources(self._place.manager, pod) for pod in ordered]
        return [one for one in found if one is not None]

    def one(self, namespace: str, name: str) -> pb.PodResources:
        """A pod by its name. Raises PodUnknownError, and DegradedError."""
        check_known(self._place.manager)
        for pod in (pod for source in self._place.pod_sources for pod in source.alive()):
            if identity(pod)[1:] == (namespace, name):
                found = _pod_resources(self._place.manager, pod)
                if found is not None:
                    return found
        raise PodUnknownError(
            f"pod {name} in namespace {namespace} not found",
            "Look whether it is bound to this node, has claims, and has not ended.",
            pod=f"{namespace}/{name}",
        )


def _pod_resources(manager: DraManager, pod: JsonObject) -> pb.PodResources | None:
    """The pod with its containers, None for one that cannot be understood: it must not hide all others."""
    _uid, namespace, name = identity(pod)
    messages = podresources_api()
    try:
        containers = [
            messages.message("ContainerResources")(
                name=container.name,
                dynamic_resources=[
                    _resource(messages, *one) for one in _claims(manager.claim_infos(pod, container.name))
                ],
            )
            for container in container_claims(pod)
            if container.restartable or not container.is_init
        ]
    except DraError as error:
        log.warning("pod is left out of the pod resources pod=%s/%s error=%s", namespace, name, error)
        return None
    made = messages.message("PodResources")(name=name, namespace=namespace, containers=containers)
    return t.cast("pb.PodResources", made)


def _claims(infos: t.Iterable[ClaimInfo]) -> list[tuple[ClaimInfo, list[ClaimDevice]]]:
    """Each claim of a container once, with each of its devices once, however many of its requests are used."""
    claims: dict[str, tuple[ClaimInfo, dict[ClaimDevice, None]]] = {}
    for info in infos:
        claims.setdefault(info.claim_uid, (info, {}))[1].update(dict.fromkeys(info.devices))
    return [(info, list(devices)) for info, devices in claims.values()]


def _resource(messages: Api, info: ClaimInfo, devices: t.Iterable[ClaimDevice]) -> t.Any:
    return messages.message("DynamicResource")(
        claim_name=info.claim_name,
        claim_namespace=info.namespace,
        claim_resources=[_claim_resource(messages, one) for one in devices],
    )


def _claim_resource(messages: Api, one: ClaimDevice) -> t.Any:
    """One device with its own CDI names. The kubelet of 1.36 repeats those of the devices before it."""
    device = one.device
    shared = {} if device.share_id is None else {"share_id": device.share_id}
    return messages.message("ClaimResource")(
        cdi_devices=[messages.message("CDIDevice")(name=name) for name in device.cdi_device_ids],
        driver_name=one.driver,
        pool_name=device.pool_name,
        device_name=device.device_name,
        **shared,
    )
