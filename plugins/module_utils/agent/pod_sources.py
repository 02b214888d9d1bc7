# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where an agent knows pods from: the API, and whoever had their claims prepared through the local API."""

from __future__ import annotations

import typing as t

from ..resource.view import JsonObject
from .claim_request import identity


class PodSource(t.Protocol):
    """Pods of this node that have claims."""

    def find(self, uid: str, namespace: str, name: str) -> JsonObject | None:
        """A pod by its UID, or by namespace and name if that is empty."""

    def alive(self) -> t.Iterable[JsonObject]:
        """All pods that may still run."""

    def missing(self) -> str:
        """Why pods may be missing, empty when none is."""


class GivenPods:
    """Pods that were given whole when their claims were prepared; kept for as long as they hold claims.

    They are in memory only: after a restart the agent knows what such a pod holds, but not its containers.
    """

    def __init__(self, holds_claims: t.Callable[[str], bool]) -> None:
        self._holds_claims = holds_claims
        self._pods: dict[str, JsonObject] = {}

    def add(self, pod: JsonObject) -> None:
        """Remember a pod, in the place of what was known of it."""
        self._pods = {uid: known for uid, known in self._pods.items() if self._holds_claims(uid)}
        self._pods[identity(pod)[0]] = pod

    def find(self, uid: str, namespace: str, name: str) -> JsonObject | None:
        """A pod by its UID, or by namespace and name if that is empty."""
        for pod in self.alive():
            found = identity(pod)
            if uid in ("", found[0]) and (found[1:] == (namespace, name) or (uid and not name)):
                return pod
        return None

    def alive(self) -> list[JsonObject]:
        """All of them that still hold claims."""
        return [pod for uid, pod in self._pods.items() if self._holds_claims(uid)]

    def missing(self) -> str:
        """Nobody can tell, so nothing is missing."""
        return ""
