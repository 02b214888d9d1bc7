# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is known of the cluster, or of one namespace of it: the one thing that decisions look at."""

from __future__ import annotations

import asyncio
import collections
import typing as t

from ..kube import errors
from ..kube.client import KubeClient
from ..kube.mutation_cache import MutationCache
from ..kube.object_index import IndexFunction
from ..kube.reflector import Reflector, ReflectorSettings
from ..kube.store import Store
from .references import CLAIM_INDEXES, GROUP_INDEXES, pod_indexes
from .shapes import Json, codec_of
from .target import Target

#: So many UIDs of objects that were seen to go are remembered. The original keeps 500, and asks the server about every
#: pod beyond when many go at once.
GONE_UIDS = 20_000
_TURN = 200


class GoneUids:
    """UIDs of objects that surely exist no more, the last ``limit`` of them."""

    def __init__(self, limit: int = GONE_UIDS) -> None:
        self._limit = limit
        self._uids: collections.OrderedDict[str, None] = collections.OrderedDict()

    def add(self, uid: str) -> None:
        """Remember one."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > self._limit:
            self._uids.popitem(last=False)

    def __contains__(self, uid: object) -> bool:
        return uid in self._uids

    def __len__(self) -> int:
        return len(self._uids)


class Caches:
    """Stores of everything that decisions need, with our own writes laid over them.

    All objects that have to do with each other live in one namespace, so a cache of one namespace is complete in
    itself. ``namespace`` empty: the whole cluster.
    """

    def __init__(self, target: Target, namespace: str = "") -> None:
        self.target, self.namespace = target, namespace
        self.gone = GoneUids()
        self.stores: dict[str, Store[Json]] = {}
        self._latest: dict[str, MutationCache[Json]] = {}
        self._add("Pod", pod_indexes(target.deterministic_names))
        self._add("ResourceClaim", CLAIM_INDEXES)
        self._add("ResourceClaimTemplate", {})
        if target.contexts:
            self._add("PodSchedulingContext", {})
        if target.pod_groups:
            self._add("PodGroup", GROUP_INDEXES)

    def _add(self, kind: str, indexes: t.Mapping[str, IndexFunction[Json]]) -> None:
        self.stores[kind] = Store(codec_of(kind), indexes)
        self._latest[kind] = MutationCache(self.stores[kind])

    # Reading

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """An object by name; None also for kinds that this cluster does not serve."""
        latest = self._latest.get(kind)
        return latest.get(name, namespace) if latest is not None else None

    def pod(self, namespace: str, name: str) -> Json | None:
        """A pod that uses claims."""
        return self.get("Pod", namespace, name)

    def claim(self, namespace: str, name: str) -> Json | None:
        """A claim."""
        return self.get("ResourceClaim", namespace, name)

    def template(self, namespace: str, name: str) -> Json | None:
        """A template."""
        return self.get("ResourceClaimTemplate", namespace, name)

    def pod_group(self, namespace: str, name: str) -> Json | None:
        """A PodGroup."""
        return self.get("PodGroup", namespace, name)

    def context(self, namespace: str, name: str) -> Json | None:
        """A PodSchedulingContext."""
        return self.get("PodSchedulingContext", namespace, name)

    def claims_of(self, owner_uid: str) -> list[Json]:
        """The claims that a pod or a PodGroup controls."""
        return self._latest["ResourceClaim"].indexed("owner", owner_uid)

    def claims_reserved_for(self, uid: str) -> list[Json]:
        """The claims that a pod or a PodGroup is a consumer of."""
        return self._latest["ResourceClaim"].indexed("consumer", uid)

    def pods_by(self, index: str, namespace: str, name: str) -> list[Json]:
        """The pods that name a claim, a template or a PodGroup (``index`` is claim, template or group)."""
        return self.stores["Pod"].indexed(index, (namespace, name))

    # Own writes

    def wrote(self, kind: str, obj: Json) -> None:
        """Take note of the answer to a write of ours, or of a live read."""
        self._latest[kind].mutated(obj)

    def removed(self, kind: str, obj: Json) -> None:
        """Take note that an object is gone."""
        self._latest[kind].removed(obj)

    # Filling

    def reflectors(self, client: KubeClient, settings: ReflectorSettings | None = None) -> list[Reflector[Json]]:
        """What keeps the stores equal to the cluster, one for each kind."""
        return [
            Reflector(client, self.target.resource(kind), store, namespace=self.namespace, settings=settings)
            for kind, store in self.stores.items()
        ]

    async def fill(self, client: KubeClient, page_size: int = 500) -> None:
        """List everything once, for a single pass."""
        for kind, store in self.stores.items():
            resource, token = self.target.resource(kind), ""
            for last_try in (False, True):
                try:
                    while True:
                        page = await client.page(resource, self.namespace, limit=page_size, continue_token=token)
                        await _take(store, page.items)
                        token = page.continue_token
                        if not token:
                            break
                    break
                except errors.GoneError:
                    if last_try:
                        raise
                    token = ""


async def _take(store: Store[Json], items: t.Sequence[t.Any]) -> None:
    for number, raw in enumerate(items, 1):
        obj = store.codec.decode(raw)
        if obj is not None:
            store.put(obj)
        if number % _TURN == 0:
            await asyncio.sleep(0)
