# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the API says of the claims of one node. Each is asked for by its name: no node reads all claims of a cluster."""

from __future__ import annotations

import asyncio
import typing as t

from ..kube.errors import NotFoundError
from ..resource.view import JsonObject
from .claim_request import Fetch, identity

Name = tuple[str, str]
AT_A_TIME = 4
"""How many claims are asked for side by side."""


class ApiClaims:
    """The claims that were asked for, kept for ``fresh`` seconds each by the loop's clock."""

    def __init__(self, fetch: Fetch, fresh: float) -> None:
        self._fetch = fetch
        self._fresh = fresh
        self._known: dict[Name, tuple[float, JsonObject | None]] = {}

    async def named(self, names: t.Mapping[Name, str]) -> list[JsonObject]:
        """Those of the claims that exist. Raises `DraError` when the API does not answer.

        ``names`` maps each to the UID under which it is recorded, empty for none; one that the API had under another
        UID is asked for again.
        """
        now = asyncio.get_running_loop().time()
        self._known = {name: known for name, known in self._known.items() if name in names}
        due = [name for name, uid in names.items() if self._is_due(name, uid, now)]
        turns = asyncio.Semaphore(AT_A_TIME)

        async def ask(name: Name) -> None:
            async with turns:
                self._known[name] = now, await self._one(*name)

        results = await asyncio.gather(*(ask(name) for name in due), return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException):
                raise failure
        return [claim for _asked, claim in self._known.values() if claim is not None]

    def _is_due(self, name: Name, uid: str, now: float) -> bool:
        asked, claim = self._known.get(name, (now - self._fresh, None))
        return now - asked >= self._fresh or bool(uid and (claim is None or identity(claim)[0] != uid))

    async def _one(self, namespace: str, name: str) -> JsonObject | None:
        try:
            return await self._fetch("ResourceClaim", namespace, name)
        except NotFoundError:
            return None


def names_of(claims: t.Iterable[t.Mapping[str, t.Any]]) -> dict[Name, str]:
    """Namespace and name of recorded claims, where they have both, to their UIDs."""
    return {(one["namespace"], one["name"]): one["uid"] for one in claims if one["namespace"] and one["name"]}
