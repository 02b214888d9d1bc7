# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""All running instances of all drivers. During a rolling update a driver has two, old and new.

An instance is keyed by its driver and the path of its socket. Calls go to the newest one that is connected; when none
is connected, to the newest one. (kubelet: DRAPluginManager)
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import logging
import time
import typing as t

from .connection import Connection
from .endpoint import is_socket
from .errors import RegistrationError
from .services import Choice
from .status import DriverStatus, InstanceStatus
from .timings import Clock, Timings
from .wakeup import Signal

log = logging.getLogger(__name__)


class EventKind(enum.Enum):
    REGISTERED = "registered"
    DEREGISTERED = "deregistered"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"


@dataclasses.dataclass(frozen=True)
class DriverEvent:
    """Something changed with one instance; ``at`` is wall time in seconds."""

    kind: EventKind
    driver: str
    endpoint: str
    at: float


@dataclasses.dataclass
class Instance:
    """One registered instance. The last two fields are learnt from its answers and hold for this registration only."""

    driver: str
    endpoint: str
    registration_socket: str
    advertised: tuple[str, ...]
    choice: Choice
    registered_at: float
    connection: Connection
    only_v1alpha2: bool = False
    health_refused: bool = False

    @property
    def has_health(self) -> bool:
        return self.choice.health is not None and not self.health_refused


class EventStream:
    """Events from the moment of `Instances.subscribe` on; iterate with ``async for``. Ends when the registry ends."""

    def __init__(self, on_close: t.Callable[[EventStream], None]) -> None:
        self._queue: asyncio.Queue[DriverEvent | None] = asyncio.Queue()
        self._on_close = on_close

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._on_close(self)

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> DriverEvent:
        event = await self._queue.get()
        if event is None:
            raise StopAsyncIteration
        return event

    def put(self, event: DriverEvent | None) -> None:
        self._queue.put_nowait(event)


class Instances:
    """The table. It owns the connections: `remove` closes one in the background, `close` all of them."""

    def __init__(self, timings: Timings, clock: Clock = time.time) -> None:
        self.timings = timings
        self.clock = clock
        self.signal = Signal()
        self.closed = False
        self._by_driver: dict[str, list[Instance]] = {}
        self._streams: list[EventStream] = []
        self._closing: set[asyncio.Task[None]] = set()

    def add(
        self, driver: str, endpoint: str, registration_socket: str, advertised: t.Sequence[str], choice: Choice
    ) -> Instance:
        """Add an instance and connect to it at once. RegistrationError when its socket is registered already."""
        for other in self.of(driver):
            if other.endpoint == endpoint:
                raise RegistrationError(
                    f"The driver {driver} is already registered with the socket {endpoint}, "
                    f"by {other.registration_socket}.",
                    "Give each instance of a driver a socket of its own.",
                    driver=driver,
                    endpoint=endpoint,
                    registration_socket=registration_socket,
                )
        connection = Connection(endpoint, self.timings, lambda: self._changed(instance), self.clock)
        instance = Instance(driver, endpoint, registration_socket, tuple(advertised), choice, self.clock(), connection)
        self._by_driver.setdefault(driver, []).append(instance)
        connection.start()
        log.info("driver registered driver=%s endpoint=%s service=%s", driver, endpoint, choice.service)
        self._tell(EventKind.REGISTERED, instance)
        return instance

    def remove(self, instance: Instance) -> None:
        """Remove an instance; its running calls may still end, within the time that a call has."""
        instances = self._by_driver.get(instance.driver, [])
        if instance not in instances:
            return
        instances.remove(instance)
        if not instances:
            del self._by_driver[instance.driver]
        log.info("driver deregistered driver=%s endpoint=%s", instance.driver, instance.endpoint)
        self._tell(EventKind.DEREGISTERED, instance)
        task = asyncio.get_running_loop().create_task(instance.connection.close(self.timings.call))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Remove all instances and end every connection and event stream now."""
        connections = [i.connection for instances in self._by_driver.values() for i in instances]
        self._by_driver.clear()
        self.closed = True
        self.signal.notify()
        for stream in self._streams:
            stream.put(None)
        for task in self._closing:
            task.cancel()
        closed = [connection.close() for connection in connections]
        await asyncio.gather(*closed, *self._closing, return_exceptions=True)

    def names(self) -> list[str]:
        return sorted(self._by_driver)

    def of(self, driver: str) -> list[Instance]:
        """The instances of a driver, oldest registration first; empty when it is not registered."""
        return list(self._by_driver.get(driver, ()))

    def pick(self, driver: str) -> Instance | None:
        """The instance to call now: the newest connected one, else the newest one."""
        instances = self._by_driver.get(driver, ())
        return next((i for i in reversed(instances) if i.connection.connected), instances[-1] if instances else None)

    def subscribe(self) -> EventStream:
        stream = EventStream(self._streams.remove)
        self._streams.append(stream)
        return stream

    def status(self) -> tuple[DriverStatus, ...]:
        """Everything known about each driver, sorted by name, newest instance first."""
        return tuple(
            DriverStatus.of(name, [self._status_of(i) for i in reversed(self.of(name))], self.timings.gone_after)
            for name in self.names()
        )

    @staticmethod
    def _status_of(instance: Instance) -> InstanceStatus:
        return InstanceStatus(
            endpoint=instance.endpoint,
            registration_socket=instance.registration_socket,
            socket_exists=is_socket(instance.endpoint),
            registration_socket_exists=is_socket(instance.registration_socket),
            connected=instance.connection.connected,
            changed_at=instance.connection.changed_at,
            unchanged_for=instance.connection.unchanged_for,
            connections_lost=instance.connection.lost,
            registered_at=instance.registered_at,
            advertised=instance.advertised,
            service=instance.choice.service,
            health_service=instance.choice.health if instance.has_health else None,
        )

    def _changed(self, instance: Instance) -> None:
        if instance in self.of(instance.driver):
            connected = instance.connection.connected
            self._tell(EventKind.CONNECTED if connected else EventKind.DISCONNECTED, instance)

    def _tell(self, kind: EventKind, instance: Instance) -> None:
        event = DriverEvent(kind, instance.driver, instance.endpoint, self.clock())
        for stream in self._streams:
            stream.put(event)
        self.signal.notify()
