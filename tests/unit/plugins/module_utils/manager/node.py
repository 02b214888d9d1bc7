# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One node: its directory, simulated drivers that answer on real sockets, and a manager that can be restarted."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import typing as t

import grpc
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, Device
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import NEWEST
from ansible_collections.nodeops.dra.plugins.module_utils.manager.driver_calls import ClaimRef
from ansible_collections.nodeops.dra.plugins.module_utils.manager.manager import DraManager
from ansible_collections.nodeops.dra.plugins.module_utils.manager.opening import Settings
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import AskedClaim
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import PreparedDevice
from ansible_collections.nodeops.dra.plugins.module_utils.wire.messages import api
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import GPU, Json, claim, pod


class Answer(t.NamedTuple):
    devices: t.Sequence[Device] = ()
    error: str = ""


class SocketDriver:
    """A driver of the current gRPC generation at a socket."""

    def __init__(self, name: str, socket: pathlib.Path) -> None:
        self.name = name
        self.socket = socket
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=[("grpc.use_local_subchannel_pool", 1)])

    async def close(self) -> None:
        await self._channel.close()

    async def prepare(self, claims: t.Sequence[ClaimRef], timeout: float) -> dict[str, Answer]:
        answer = await self._call("NodePrepareResources", claims, timeout)
        return {
            uid: Answer(
                [
                    Device(
                        one.pool_name,
                        one.device_name,
                        tuple(one.request_names),
                        tuple(one.cdi_device_ids),
                        one.share_id if one.HasField("share_id") else None,
                    )
                    for one in entry.devices
                ],
                entry.error,
            )
            for uid, entry in answer.claims.items()
        }

    async def unprepare(self, claims: t.Sequence[ClaimRef], timeout: float) -> dict[str, Answer]:
        answer = await self._call("NodeUnprepareResources", claims, timeout)
        return {uid: Answer((), entry.error) for uid, entry in answer.claims.items()}

    async def _call(self, method: str, claims: t.Sequence[ClaimRef], timeout: float) -> t.Any:
        rpc = api("dra/v1").service()[method]
        call = self._channel.unary_unary(rpc.path, request_serializer=lambda message: message.SerializeToString())
        fields = [{"uid": one.uid, "namespace": one.namespace, "name": one.name} for one in claims]
        try:
            return rpc.response.FromString(await call(rpc.request(claims=fields), timeout=timeout))
        except grpc.aio.AioRpcError as error:
            raise DraError(f"rpc error: code = {error.code().name} desc = {error.details()}") from error


class SocketDrivers:
    """The drivers whose sockets are there."""

    def __init__(self) -> None:
        self.clients: dict[str, SocketDriver] = {}

    def get(self, name: str) -> SocketDriver:
        if name not in self.clients:
            raise DraError(f"DRA driver {name} is not registered.", "Start the driver.", driver=name)
        return self.clients[name]


class Node:
    """Use it as an async context manager. ``now`` and ``boot`` are the wall clock and the boot ID of its managers."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.settings = Settings(str(root), timeout=10.0, lock_timeout=0.0)
        self.drivers = SocketDrivers()
        self.claims: dict[str, Json] = {}
        self.simulated: dict[str, SimulatedDriver] = {}
        self.now = itertools.count(1_000_000_000).__next__
        self.boot = "b-0"
        self.manager: DraManager = t.cast("DraManager", None)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Node:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()
        for name in list(self.drivers.clients):
            await self.remove_driver(name)
        await self._stack.aclose()

    # Drivers

    async def add_driver(self, name: str = GPU, *faults: str, **config: t.Any) -> SimulatedDriver:
        """Start a driver, or start it again after `remove_driver`."""
        made = DriverConfig(name, self.root, self.root / "cdi", devices=10_000, apis=("v1",), **config)
        driver = SimulatedDriver(made, allocate=lambda asked: self._allocate(name, asked))
        for fault in faults:
            driver.faults.add(fault)
        await driver.start_service()
        self.simulated[name] = driver
        self.drivers.clients[name] = SocketDriver(name, made.socket)
        return driver

    async def remove_driver(self, name: str = GPU) -> None:
        await self.drivers.clients.pop(name).close()
        await self.simulated[name].stop()

    async def _allocate(self, driver: str, asked: AskedClaim) -> list[PreparedDevice]:
        results = self.claims[asked.uid]["status"]["allocation"]["devices"]["results"]
        return [
            PreparedDevice(one["pool"], one["device"], (one["request"].split("/")[0],), (), one.get("shareID"))
            for one in results
            if one["driver"] == driver
        ]

    def asked(self, driver: str = GPU) -> list[str]:
        """The calls that a driver got, as ``prepare u-1,u-2``."""
        return [f"{call.method} {','.join(sorted(call.uids))}" for call in self.simulated[driver].calls]

    # The manager

    async def start(self, **options: t.Any) -> DraManager:
        """Start the manager, or end it and start it again as a new process would."""
        await self.stop()
        self.manager = await DraManager.open(
            self.settings, self.drivers, boot_id=lambda: self.boot, now=lambda: float(self.now()), **options
        )
        return self.manager

    async def stop(self) -> None:
        if self.manager is not None:
            await self.manager.close()

    async def prepare(self, *claims: Json, pod_uid: str = "p-1", **options: t.Any) -> list[str]:
        """Prepare claims for a pod that uses just these, and return the CDI names that its container gets."""
        self.claims.update({one["metadata"]["uid"]: one for one in claims})
        made = pod(pod_uid, *(one["metadata"]["name"] for one in claims))
        await self.manager.prepare(made, claims, **options)
        return list(self.manager.resources_for(made, "main"))

    # The files

    @property
    def state_path(self) -> pathlib.Path:
        return self.root / "dra_manager_state"

    def state(self) -> dict[str, ClaimState]:
        """The claims in the state file, as a kubelet reads it."""
        if not self.state_path.exists():
            return {}
        reading = Document(self.state_path.read_bytes()).read_as(NEWEST)
        assert reading.ok, reading.go_message
        return {one.uid: one for one in map(ClaimState.from_fields, reading.claims or [])}


def reserved(*pods: str, name: str = "c1", uid: str = "u-1") -> Json:
    """A claim that several pods may use."""
    return claim(name, uid, pods=pods)
