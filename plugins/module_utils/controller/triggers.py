# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which keys a change in the caches puts into the queue. Handlers decide nothing, they only say where to look."""

from __future__ import annotations

import typing as t

from ..kube.store import Handler
from ..kube.workqueue import WorkQueue
from ..resource.pod import is_done
from .caches import Caches
from .keys import KINDS, POD, Key, claim_key, group_key, owner_keys, pod_key
from .metrics import ClaimNumbers
from .references import consumer_uids, name_of, namespace_of, uid_of
from .shapes import Json


class Triggers:
    """Listens to the stores of ``caches`` from now on. ``forget`` is told the keys of pods and groups that are gone."""

    def __init__(
        self, caches: Caches, queue: WorkQueue[Key], numbers: ClaimNumbers, forget: t.Callable[[Key], None]
    ) -> None:
        self._caches, self._queue, self._numbers, self._forget = caches, queue, numbers, forget
        handlers: dict[str, Handler[Json]] = {
            "Pod": Handler(self._pod_added, self._pod_updated, self._pod_deleted, self._pod_left),
            "ResourceClaim": Handler(self._claim_added, self._claim_updated, self._claim_deleted),
            "ResourceClaimTemplate": Handler(self._template_there, lambda _old, new: self._template_there(new)),
            "PodGroup": Handler(self._group_there, lambda _old, new: self._group_there(new), self._group_deleted),
            "PodSchedulingContext": Handler(
                updated=lambda _old, new: self._context_changed(new), deleted=self._context_changed
            ),
        }
        for kind, store in caches.stores.items():
            store.subscribe(handlers[kind])

    # Pods

    def _pod_added(self, pod: Json) -> None:
        self._queue.add(pod_key(pod))

    def _pod_updated(self, old: Json, new: Json) -> None:
        if is_same(old, new):
            return  # most changes of a pod are about its containers
        self._queue.add(pod_key(new))
        if is_done(new) and not is_done(old):
            self._look_at_claims_of(uid_of(new))

    def _pod_deleted(self, pod: Json) -> None:
        self._caches.gone.add(uid_of(pod))
        self._pod_left(pod)

    def _pod_left(self, pod: Json) -> None:
        """Gone, or without claims from now on."""
        self._forget(pod_key(pod))
        self._look_at_claims_of(uid_of(pod))

    def _look_at_claims_of(self, uid: str) -> None:
        for claim in (*self._caches.claims_reserved_for(uid), *self._caches.claims_of(uid)):
            self._queue.add(claim_key(claim))

    # Claims

    def _claim_added(self, claim: Json) -> None:
        self._numbers.seen(claim)
        self._queue.add(claim_key(claim))
        self._look_at_waiting_pods(claim)
        # Found again, or made twice: its owner has to say.
        for owner in owner_keys(claim):
            obj = self._caches.get(KINDS[owner.what], owner.namespace, owner.name)
            if obj is not None and name_of(claim) not in _published(obj):
                self._queue.add(owner)

    def _claim_updated(self, old: Json, new: Json) -> None:
        if is_same(old, new):
            return
        self._numbers.seen(new)
        self._queue.add(claim_key(new))
        if old.get("status") != new.get("status"):
            self._look_at_waiting_pods(new)

    def _claim_deleted(self, claim: Json) -> None:
        self._numbers.left(claim)
        for pod in self._caches.pods_by("claim", namespace_of(claim), name_of(claim)):
            self._queue.add(pod_key(pod))
        for owner in owner_keys(claim):
            self._queue.add(owner)

    def _look_at_waiting_pods(self, claim: Json) -> None:
        """Pods that were bound without a reservation. Not all pods: a shared claim changes with each consumer."""
        reserved = set(consumer_uids(claim))
        for pod in self._caches.pods_by("claim", namespace_of(claim), name_of(claim)):
            if (pod.get("spec") or {}).get("nodeName") and uid_of(pod) not in reserved:
                self._queue.add(pod_key(pod))

    # Others

    def _template_there(self, template: Json) -> None:
        """Whoever waits for it is looked at now, whatever its back-off is."""
        namespace, name = namespace_of(template), name_of(template)
        for pod in self._caches.pods_by("template", namespace, name):
            self._queue.add_now(pod_key(pod))
        if "PodGroup" in self._caches.stores:
            for group in self._caches.stores["PodGroup"].indexed("template", (namespace, name)):
                self._queue.add_now(group_key(group))

    def _group_there(self, group: Json) -> None:
        self._queue.add(group_key(group))
        for pod in self._caches.pods_by("group", namespace_of(group), name_of(group)):
            self._queue.add_now(pod_key(pod))

    def _group_deleted(self, group: Json) -> None:
        self._caches.gone.add(uid_of(group))
        self._forget(group_key(group))
        self._look_at_claims_of(uid_of(group))

    def _context_changed(self, context: Json) -> None:
        self._queue.add(Key(POD, namespace_of(context), name_of(context)))


def is_same(old: Json, new: Json) -> bool:
    """Whether nothing changed of what is kept, but for the resourceVersion."""
    if old.get("status") != new.get("status") or old.get("spec") != new.get("spec"):
        return False
    before, after = dict(old["metadata"]), dict(new["metadata"])
    before.pop("resourceVersion", None)
    after.pop("resourceVersion", None)
    return before == after


def _published(pod: Json) -> set[str]:
    entries = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {entry.get("resourceClaimName") or "" for entry in entries}
