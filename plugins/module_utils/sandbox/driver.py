# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A simulated DRA driver: a real gRPC server on real sockets that writes real CDI files and can be told to misbehave.

Tests run it in their own process; ``python -m ...sandbox driver`` runs it as a process of its own, to be killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import pathlib
import typing as t

from ..checkpoint.errors import DraError
from ..driver.endpoint import check_length
from .driver_calls import AskedClaim, Call, CallLog
from .driver_faults import Active, Fault, FaultPlan
from .driver_services import CallFailedError, Results, advertised, plugin_handlers, registration_handlers
from .driver_sockets import Listener
from .driver_store import CdiFiles, ClaimStore, PreparedClaim, PreparedDevice, uid_problem

# Chooses the devices of a claim; a driver with API access would read them from the claim's allocation.
Allocate = t.Callable[[AskedClaim], t.Awaitable[t.Sequence[PreparedDevice]]]


@dataclasses.dataclass
class DriverConfig:
    """What the driver is. Paths follow the kubelet's layout below ``kubelet_root``."""

    name: str
    kubelet_root: pathlib.Path
    cdi_dir: pathlib.Path
    devices: int = 8
    apis: tuple[str, ...] = ("v1", "v1beta1")
    health: tuple[str, ...] = ()
    instance: str = ""  # set for each of two instances that run side by side
    devices_per_claim: int = 1
    share_devices: bool = False  # one device may serve several claims
    pool: str = "pool-0"
    advertise: tuple[str, ...] | None = None  # supported_versions, when not those of `apis` and `health`
    endpoint: str | None = None  # what GetInfo tells, when not the real path; empty with `one_socket`
    plugin_type: str = "DRAPlugin"
    one_socket: bool = False  # serve everything on the registration socket
    subdirectory: str = ""  # of plugins_registry
    connection_age: float | None = None  # seconds after which the registration socket hangs up on a client
    calls_file: pathlib.Path | None = None

    @property
    def plugin_dir(self) -> pathlib.Path:
        return self.kubelet_root / "plugins" / self.name

    @property
    def socket(self) -> pathlib.Path:
        """The socket with the DRA service."""
        if self.one_socket:
            return self.registration_socket
        return self.plugin_dir / (f"dra-{self.instance}.sock" if self.instance else "dra.sock")

    @property
    def registration_socket(self) -> pathlib.Path:
        name = f"{self.name}-{self.instance}-reg.sock" if self.instance else f"{self.name}-reg.sock"
        return self.kubelet_root / "plugins_registry" / self.subdirectory / name

    @property
    def state_file(self) -> pathlib.Path:
        return self.plugin_dir / "sandbox_state.json"


@dataclasses.dataclass(frozen=True)
class Notification:
    """What NotifyRegistrationStatus told the driver."""

    registered: bool
    error: str


class SimulatedDriver:
    """The driver in this process. Use it as an async context manager, or call `start` and `stop`.

    ``faults`` takes effect at once and can be changed at any time; ``calls`` holds every call so far.
    ``on_crash`` is what the crash faults do: by default `kill`, in a process of its own the end of the process.
    """

    def __init__(
        self,
        config: DriverConfig,
        faults: t.Iterable[Fault] = (),
        on_crash: t.Callable[[], None] | None = None,
        allocate: Allocate | None = None,
    ) -> None:
        self.config = config
        self.faults = FaultPlan(faults)
        self.store = ClaimStore(config.state_file)
        self.cdi = CdiFiles(config.cdi_dir, config.name)
        self.notifications: list[Notification] = []
        self.health: dict[str, dict[str, t.Any]] = {}
        self._log = CallLog(config.calls_file)
        self._on_crash = on_crash or self._crash_here
        self._allocate = allocate
        self._pulse = asyncio.Event()
        self._tasks: set[asyncio.Task[t.Any]] = set()
        self._plugin = Listener(str(config.socket))
        self._registration = Listener(str(config.registration_socket))
        self._extra = itertools.count()

    async def __aenter__(self) -> SimulatedDriver:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    # Life

    async def start(self) -> None:
        """Listen on both sockets, the service first, so that nobody registers a driver that does not answer yet."""
        await self.start_service()
        await self.start_registration()

    async def start_service(self) -> None:
        if self.config.one_socket:
            return
        check_length(str(self.config.socket))
        await self._plugin.start(plugin_handlers(self))

    async def start_registration(self) -> None:
        check_length(str(self.config.registration_socket))
        handlers = registration_handlers(self)
        if self.config.one_socket:
            handlers += plugin_handlers(self)
        await self._registration.start(handlers, connection_age=self.config.connection_age)

    async def stop(self) -> None:
        """A clean end, as on SIGTERM: sign off first, then stop serving; both sockets are removed."""
        await self.stop_registration()
        await self.stop_service()
        await self._cancel_tasks()

    async def stop_service(self) -> None:
        await self._plugin.stop()

    async def stop_registration(self) -> None:
        await self._registration.stop()

    async def kill(self) -> None:
        """The end of a process that was killed: connections break, both socket files stay."""
        await self._registration.stop(abrupt=True)
        await self._plugin.stop(abrupt=True)
        await self._cancel_tasks()

    async def _cancel_tasks(self) -> None:
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _crash_here(self) -> None:
        self._spawn(self.kill())

    def _spawn(self, work: t.Coroutine[t.Any, t.Any, t.Any]) -> asyncio.Task[t.Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[t.Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: the caller may be gone, and then nobody else does

    # What tests and the control socket look at

    @property
    def calls(self) -> list[Call]:
        return self._log.calls

    @property
    def claim_calls(self) -> list[Call]:
        """The calls of prepare and unprepare."""
        return [call for call in self.calls if call.method in ("prepare", "unprepare")]

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def prepared(self) -> dict[str, PreparedClaim]:
        """The claims this driver holds, as its own state file has them."""
        return self.store.claims()

    async def wait_for(self, condition: t.Callable[[], bool], timeout: float = 10.0) -> None:
        """Wait until the condition holds; it is checked at each call, answer, notification and health change."""
        async with asyncio.timeout(timeout):
            while not condition():
                await self._pulse.wait()

    def set_health(self, device: str, health: str, message: str = "", timeout: int = 0) -> None:
        """Report a device as HEALTHY, UNHEALTHY or UNKNOWN; running health streams send the new list at once."""
        if health not in ("HEALTHY", "UNHEALTHY", "UNKNOWN"):
            raise DraError(f"The health {health!r} is not known.", "Known are HEALTHY, UNHEALTHY and UNKNOWN.")
        self.health[device] = {
            "device": {"pool_name": self.config.pool, "device_name": device},
            "health": health,
            "health_check_timeout_seconds": int(timeout),
            "message": message,
        }
        self.pulse()

    def pulse(self) -> None:
        """Let everyone who waits look again."""
        self._pulse.set()
        self._pulse = asyncio.Event()

    # What the gRPC handlers call

    def plugin_info(self) -> dict[str, t.Any]:
        config = self.config
        endpoint = "" if config.one_socket else str(config.socket)
        versions = advertised(config.apis, config.health) if config.advertise is None else config.advertise
        return {
            "type": config.plugin_type,
            "name": config.name,
            "endpoint": endpoint if config.endpoint is None else config.endpoint,
            "supported_versions": versions,
        }

    async def serve_registration(self, method: str) -> bool:
        """Record a call of the registration service and suffer its faults; True asks for an answer of nonsense."""
        with self._recorded(method, "pluginregistration.Registration") as call:
            active = self.faults.take(method)
            call.outcome = str(active)
            await self._before(active)
            return active.first("nonsense") is not None

    async def serve_notification(self, registered: bool, error: str) -> None:
        await self.serve_registration("notify")
        self.notifications.append(Notification(registered, error))
        self.pulse()
        if not registered:  # the helper library of Kubernetes answers bad news with an error as well
            raise CallFailedError("UNKNOWN", f"registration failed: {error}")

    async def serve_health(self, service: str) -> t.AsyncIterator[list[dict[str, t.Any]]]:
        with self._recorded("health", service):
            while True:
                pulse = self._pulse  # taken first: what changes while the answer is on its way is not missed
                active = self.faults.take("health")
                await self._before(active)
                if active.first("end"):
                    return
                yield list(self.health.values())
                await pulse.wait()

    async def serve(self, method: str, service: str, claims: t.Sequence[AskedClaim]) -> Results | None:
        """Prepare or unprepare; None asks for an answer of nonsense.

        The work goes on when the caller gives up, as it does in drivers that do not watch the context of a call.
        """
        return t.cast("Results | None", await asyncio.shield(self._spawn(self._serve(method, service, claims))))

    async def _serve(self, method: str, service: str, claims: t.Sequence[AskedClaim]) -> Results | None:
        with self._recorded(method, service, claims) as call:
            active = self.faults.take(method, call.uids)
            call.outcome = str(active)
            await self._before(active)
            results = await (self._prepare if method == "prepare" else self._unprepare)(claims, active)
            await self._after(active)
            if active.first("nonsense"):
                return None
            if active.first("unknown_uid"):
                results["uid-nobody-asked-for"] = ()
            return {uid: result for uid, result in results.items() if not active.for_claim(uid, "skip")}

    @contextlib.contextmanager
    def _recorded(self, method: str, service: str, claims: t.Sequence[AskedClaim] = ()) -> t.Iterator[Call]:
        call = self._log.begin(method, service, claims)
        self.pulse()
        try:
            yield call
        except CallFailedError as error:
            self._log.end(call, f"{error.code}: {error.text}")
            raise
        except asyncio.CancelledError:
            self._log.end(call, "cancelled")
            raise
        else:
            self._log.end(call, call.outcome or "ok")
        finally:
            self.pulse()

    async def _before(self, active: Active) -> None:
        if fault := active.first("slow"):
            await asyncio.sleep(fault.seconds)
        if active.first("crash"):
            await self._crash()
        if active.first("hang"):
            await asyncio.Event().wait()
        if fault := active.first("error"):
            raise CallFailedError(fault.code, fault.text)

    async def _after(self, active: Active) -> None:
        if fault := active.first("slow_after"):
            await asyncio.sleep(fault.seconds)
        if active.first("crash_after"):
            await self._crash()
        if active.first("hang_after"):
            await asyncio.Event().wait()
        if fault := active.first("error_after"):
            raise CallFailedError(fault.code, fault.text)

    async def _crash(self) -> None:
        self._on_crash()
        await asyncio.Event().wait()  # nothing is answered any more

    # The work

    async def _prepare(self, claims: t.Sequence[AskedClaim], active: Active) -> Results:
        results: Results = {}
        chosen: dict[str, tuple[PreparedDevice, ...]] = {}
        for claim in claims:
            if fault := active.for_claim(claim.uid, "claim_error"):
                results[claim.uid] = fault.text
            elif problem := uid_problem(claim.uid):
                results[claim.uid] = problem
            elif active.for_claim(claim.uid, "blank"):
                results[claim.uid] = ()
            elif self._allocate is not None:
                chosen[claim.uid] = tuple(await self._allocate(claim))
        with self.store.transaction() as known:
            free = self._free_names(known)
            for claim in claims:
                if claim.uid not in results:
                    results[claim.uid] = self._take(known, free, claim, chosen.get(claim.uid), active)
        return results

    def _free_names(self, known: t.Mapping[str, PreparedClaim]) -> t.Iterator[str]:
        """Devices that nobody holds, in order; each is given out once. For shared devices an endless circle."""
        names = [f"dev-{number}" for number in range(self.config.devices)]
        if self.config.share_devices:
            return itertools.cycle(names)
        used = {device.device for claim in known.values() for device in claim.devices}
        return (name for name in names if name not in used)

    def _take(
        self,
        known: dict[str, PreparedClaim],
        free: t.Iterator[str],
        claim: AskedClaim,
        chosen: tuple[PreparedDevice, ...] | None,
        active: Active,
    ) -> tuple[PreparedDevice, ...] | str:
        devices = chosen
        if active.for_claim(claim.uid, "new_devices"):  # beyond the real ones, so that each call gives other names
            free = (f"dev-{self.config.devices + number}" for number in self._extra)
        elif devices is None and claim.uid in known:
            devices = known[claim.uid].devices
        if devices is None:
            names = list(itertools.islice(free, self.config.devices_per_claim))
            if len(names) < self.config.devices_per_claim:
                return f"no free device for claim {claim.namespace}/{claim.name}"
            devices = tuple(PreparedDevice(self.config.pool, name) for name in names)
        devices = tuple(
            d if d.cdi_ids else dataclasses.replace(d, cdi_ids=(self.cdi.qualified_name(claim.uid, d.device),))
            for d in devices
        )
        prepared = PreparedClaim(claim.uid, claim.namespace, claim.name, devices)
        if not active.for_claim(claim.uid, "no_cdi"):
            self.cdi.write(prepared)
        known[claim.uid] = prepared
        return devices

    async def _unprepare(self, claims: t.Sequence[AskedClaim], active: Active) -> Results:
        results: Results = {}
        with self.store.transaction() as known:
            for claim in claims:
                if fault := active.for_claim(claim.uid, "claim_error"):
                    results[claim.uid] = fault.text
                elif problem := uid_problem(claim.uid):
                    results[claim.uid] = problem
                else:
                    results[claim.uid] = ()
                    if not active.for_claim(claim.uid, "blank"):
                        known.pop(claim.uid, None)  # not known is success
                        self.cdi.remove(claim.uid)
        return results
