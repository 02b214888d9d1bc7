# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Random histories of a cluster with controllers that fail and die, and what has to be true when all is quiet again.

One number is one history: the version of the API, what users, nodes and schedulers do, which requests and watches fail,
and after which request a controller dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.controller.controller import Controller
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence, lease_clock
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import Call, resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.watch import WatchLimits
from ansible_collections.nodeops.dra.tests.soak.invariants import find_wrongs
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.controller.world import (
    GENERATIONS,
    NS,
    TOKEN,
    World,
    quiet,
    settings,
    world,
)

Json = dict[str, t.Any]

PLAYED = [
    *((version, release) for version, release in GENERATIONS.items()),
    ("v1alpha2", (1, 27, 3)),
    ("v1", (1, 34, 0)),
]
WRITES = ("resourceclaims", "resourceclaims/status", "pods/status", "podgroups/status")
REFLECTOR = ReflectorSettings(
    limits=WatchLimits(server=2, idle=0.4, grace=1), first_delay=0.01, longest_delay=0.05, page_size=3
)


class Life:
    """A controller that can die after any of its requests. What it would still have written is not written."""

    def __init__(self, cluster: World) -> None:
        self._cluster = cluster
        self._fence = Fence(lease_clock() + 1e6)
        self._task: asyncio.Task[None] | None = None
        self._left: int | None = None
        self.controller: Controller | None = None

    @property
    def is_dead(self) -> bool:
        """Whether it has died."""
        return not self._fence.is_open

    async def start(self) -> None:
        """Begin to work."""
        born = asyncio.Event()
        self._task = asyncio.create_task(self._live(born))
        await born.wait()

    async def _live(self, born: asyncio.Event) -> None:
        async with self._cluster.connection(TOKEN, observer=self) as client:
            made = settings(
                reflector=REFLECTOR, drain=0.0, longest_delay=0.1, sweep=3600.0, check_rights=False, workers=4
            )
            self.controller = Controller(client.with_fence(self._fence), made)
            born.set()
            while not self.is_dead:
                with contextlib.suppress(errors.KubeError):
                    await self.controller.run()

    def requested(self, call: Call, _status: int, _seconds: float) -> None:
        """An exchange has ended: perhaps the last one."""
        if call.writes and self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self._die()

    def throttled(self, _call: Call, _seconds: float) -> None:
        """Nothing."""

    def die_after(self, writes: int) -> None:
        """Die when so many more writes have been answered; at once for 0."""
        self._left = writes
        if not writes:
            self._die()

    def survive(self) -> None:
        """Do not die any more."""
        self._left = None

    def _die(self) -> None:
        self._fence.revoke("it died")
        if self._task is not None:
            self._task.cancel()

    async def end(self) -> None:
        """Die now, if that has not happened."""
        self._die()
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError, errors.KubeError):
                await self._task


class History:
    """What happens in one cluster."""

    def __init__(self, cluster: World, chance: random.Random) -> None:
        self.cluster, self.chance = cluster, chance
        self.lives: list[Life] = []
        self.templates: dict[str, Json] = {}
        self.has_groups = cluster.release >= (1, 36)
        self.log: list[str] = []

    async def step(self) -> None:
        """One thing that somebody does; it may be refused."""
        actions: list[tuple[int, t.Callable[[], t.Awaitable[None]]]] = [
            (10, self.make_pod),
            (5, self.make_template),
            (2, self.drop_template),
            (6, self.finish_pod),
            (6, self.delete_pod),
            (3, self.replace_pod),
            (3, self.make_claim),
            (2, self.delete_claim),
            (4, self.bind_pod),
            (6, self.add_fault),
            (4, self.kill),
            (2, self.make_group if self.has_groups else self.make_pod),
            (1, self.delete_group if self.has_groups else self.finish_pod),
        ]
        weights = [weight for weight, _action in actions]
        (action,) = self.chance.choices([action for _weight, action in actions], weights)
        self.log.append(action.__name__)
        with contextlib.suppress(errors.KubeError):
            await action()

    def _pick(self, kind: str) -> str | None:
        names = sorted(str(obj["metadata"]["name"]) for obj in self.cluster.stored(kind))
        return self.chance.choice(names) if names else None

    async def make_template(self) -> None:
        """A template, with annotations of its own."""
        name = f"t{self.chance.randrange(3)}"
        await self.cluster.template(name, metadata={"annotations": {"of": name}})

    async def drop_template(self) -> None:
        """Delete a template."""
        name = self._pick("ResourceClaimTemplate")
        if name:
            await self.cluster.delete("ResourceClaimTemplate", name)

    async def make_claim(self) -> None:
        """A claim of a user."""
        await self.cluster.claim(f"c{self.chance.randrange(3)}")

    async def delete_claim(self) -> None:
        """Delete any claim, generated ones too."""
        name = self._pick("ResourceClaim")
        if name:
            await self.cluster.delete("ResourceClaim", name)

    async def make_pod(self) -> None:
        """A pod with one to three entries, sometimes bound already, sometimes in a group."""
        chance = self.chance
        templates = {f"e{number}": f"t{chance.randrange(3)}" for number in range(chance.randint(1, 2))}
        claims = {"named": f"c{chance.randrange(3)}"} if chance.random() < 0.4 else {}
        node = "node-1" if chance.random() < 0.2 else ""
        spec: Json = {}
        if self.has_groups and chance.random() < 0.3:
            spec["schedulingGroup"] = {"podGroupName": f"g{chance.randrange(2)}"}
        await self.cluster.pod(f"p{chance.randrange(5)}", templates=templates, claims=claims, node=node, **spec)

    async def finish_pod(self) -> None:
        """A pod's containers end."""
        name = self._pick("Pod")
        if name:
            await self.cluster.finish(name)

    async def delete_pod(self) -> None:
        """Delete a pod, at once or with its grace period."""
        name = self._pick("Pod")
        if name and self.chance.random() < 0.7:
            await self.cluster.delete("Pod", name)
        elif name:
            await self.cluster.client.delete(resource_of("Pod"), name, NS)

    async def replace_pod(self) -> None:
        """Another pod of the same name, at once."""
        name = self._pick("Pod")
        if name:
            await self.cluster.delete("Pod", name)
            await self.cluster.pod(name, templates={"e0": f"t{self.chance.randrange(3)}"})

    async def bind_pod(self) -> None:
        """A scheduler that knows nothing of claims binds a pod."""
        waiting = [pod for pod in self.cluster.stored("Pod") if not pod["spec"].get("nodeName")]
        if waiting:
            await self.cluster.bind(self.chance.choice(waiting)["metadata"]["name"])

    async def make_group(self) -> None:
        """A PodGroup with a claim for its pods."""
        entries = [{"name": "e0", "resourceClaimTemplateName": f"t{self.chance.randrange(3)}"}]
        body = {
            "metadata": {"name": f"g{self.chance.randrange(2)}"},
            "spec": {"resourceClaims": entries, "schedulingPolicy": {"basic": {}}},
        }
        await self.cluster.client.create(resource_of("PodGroup", "v1alpha2"), body, NS)

    async def delete_group(self) -> None:
        """Delete a PodGroup."""
        name = f"g{self.chance.randrange(2)}"
        await self.cluster.client.delete(resource_of("PodGroup", "v1alpha2"), name, NS)

    async def kill(self) -> None:
        """A controller dies, now or in the middle of what it does next; another one takes its place."""
        life = self.chance.choice(self.lives)
        life.die_after(self.chance.randint(0, 3))
        for one in [one for one in self.lives if one.is_dead]:
            await one.end()
            self.lives.remove(one)
            await self.start()

    async def start(self) -> None:
        """One more controller."""
        life = Life(self.cluster)
        self.lives.append(life)
        await life.start()

    async def add_fault(self) -> None:
        """Something fails, for the controllers alone."""
        chance = self.chance
        resource = chance.choice(WRITES)
        write = f"verb=create;patch;delete,resource={resource},times={chance.randint(1, 3)}"
        watch = f"verb=watch,resource={chance.choice(('pods', 'resourceclaims', 'resourceclaimtemplates'))},times=1"
        fault = chance.choice(
            (
                f"error:{write},code={chance.choice((500, 503))}",
                f"error_after:{write},code=500",
                f"conflict:{write}",
                f"throttle:{write},seconds=0",
                f"close:{write}",
                f"close_after:{write}",
                f"latency:{write},seconds=0.05",
                f"drop_watch:{watch},after={chance.randint(0, 2)},cut=true",
                f"silent_watch:{watch},after={chance.randint(0, 2)}",
                f"gone:{watch}",
                f"expired:{watch}",
                f"error:{watch},code=503",
                f"stale_list:verb=list,resource={chance.choice(('pods', 'resourceclaims'))},times=1",
                f"error:verb=get,resource={chance.choice(('pods', 'resourceclaims'))},code=500,times=1",
            )
        )
        self.log.append(fault)
        self.cluster.server.add_fault(fault)


async def play(number: int, steps: int = 30) -> list[str]:
    """One history from its number; gives what is wrong at its end."""
    chance = random.Random(number)
    version, release = chance.choice(PLAYED)
    server: Json = {
        "allocator": chance.random() < 0.7,
        "bookmark_seconds": 0.1,
        "history_limit": chance.choice((30, 10_000)),
    }
    async with world(version, release, **server) as cluster:
        await cluster.grant()
        await devices(cluster)
        history = History(cluster, chance)
        for _unused in range(chance.choice((1, 1, 2))):
            await history.start()
        try:
            for _unused in range(steps):
                await history.step()
                await asyncio.sleep(chance.choice((0, 0, 0.002, 0.01, 0.03)))
            cluster.server.faults.clear()
            for life in history.lives:
                life.survive()
            for life in [life for life in history.lives if life.is_dead]:
                await life.end()
                history.lives.remove(life)
                await history.start()
            wrongs = await settle(history)
        finally:
            for life in history.lives:
                await life.end()
        return [f"history {number} ({version}, {release}): {wrong}; {history.log}" for wrong in wrongs]


async def devices(cluster: World) -> None:
    """Two nodes with two devices each, or a class of the old sort."""
    if cluster.classic:
        body: Json = {"metadata": {"name": "gpu.test.example"}, "driverName": "gpu.test.example"}
        await cluster.client.create(cluster.target.resource("ResourceClass"), body)
        return
    await cluster.client.create(
        cluster.target.resource("DeviceClass"), {"metadata": {"name": "gpu.test.example"}, "spec": {}}
    )
    for node in ("node-1", "node-2"):
        found = [{"name": f"dev-{number}"} for number in range(2)]
        if not cluster.version.exact_requests:
            found = [{**device, "basic": {}} for device in found]  # type: ignore[dict-item]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.test.example", "pool": pool, "nodeName": node, "devices": found}
        await cluster.client.create(
            cluster.target.resource("ResourceSlice"), {"metadata": {"name": f"s-{node}"}, "spec": spec}
        )


async def settle(history: History) -> list[str]:
    """Wait for quiet, look twice, and say what is wrong."""
    cluster = history.cluster
    controllers = [life.controller for life in history.lives if life.controller is not None]
    try:
        async with asyncio.timeout(30):
            for controller in controllers:
                await controller.wait_ready()
            await quiet(cluster, *controllers)
    except TimeoutError:
        return ["it never came to rest", *find_wrongs(cluster)]
    wrongs = find_wrongs(cluster)
    before = cluster.writes()
    for controller in controllers:
        await controller.sweep()
    await quiet(cluster, *controllers)
    after = {what: number for what, number in cluster.writes().items() if "events" not in what}
    more = {what: number - before.get(what, 0) for what, number in after.items() if number != before.get(what, 0)}
    return [*wrongs, *([f"a second look led to more writes: {more}"] if more else [])]
