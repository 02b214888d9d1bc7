# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A reflector at work on a stub, and what its handlers hear."""

from __future__ import annotations

import asyncio
import contextlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import Codec, codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.reflector import Reflector, ReflectorSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Handler, Store

from .stub_api import Json, StubApi, connected, stream

CLAIMS = resource_of("ResourceClaim")
LIST, WATCH = "resourceclaims?limit", "watch=1"
QUICK = ReflectorSettings(first_delay=0.01, longest_delay=0.05)


class World:
    """A stub, a reflector that works on it, and what its handlers heard."""

    def __init__(self, api: StubApi, reflector: Reflector[Json]) -> None:
        self.api, self.reflector, self.store = api, reflector, reflector.store
        self.heard: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self.store.subscribe(
            Handler(
                added=lambda new: self._hear("added", new),
                updated=lambda old, new: self._hear("updated", new),
                deleted=lambda old: self._hear("deleted", old),
            )
        )

    def _hear(self, what: str, obj: Json) -> None:
        self.heard.append((what, f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}"))
        self._changed.set()

    async def heard_of(self, *wanted: tuple[str, str]) -> None:
        """Wait until the handlers have heard exactly this."""
        while self.heard != list(wanted):
            self._changed.clear()
            try:
                async with asyncio.timeout(5):
                    await self._changed.wait()
            except TimeoutError:
                assert self.heard == list(wanted)

    @property
    def names(self) -> list[str]:
        """Names in the store."""
        keys = self.store.keys()
        return sorted(name for _namespace, name in keys)


@contextlib.asynccontextmanager
async def reflecting(
    *script: t.Any,
    settings: ReflectorSettings = QUICK,
    codec: Codec[Json] | None = None,
    prepare: t.Callable[[StubApi], None] | None = None,
    **more: t.Any,
) -> t.AsyncIterator[World]:
    """A reflector at work against a stub with this script; an open, silent watch follows when it has run out."""
    async with connected(rand=lambda: 0.0, tries=1) as (api, client):
        api.script = [step(api) if getattr(step, "needs_api", False) else step for step in script]
        api.otherwise = stream(api=api)
        if prepare is not None:
            prepare(api)
        store: Store[Json] = Store(codec or codec_for(t.cast("type[Json]", dict)))
        reflector = Reflector(client, CLAIMS, store, settings=settings, rand=lambda: 0.0, **more)
        world = World(api, reflector)
        task = asyncio.ensure_future(reflector.run())
        try:
            yield world
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def watching(*chunks: bytes, stay: bool = True) -> t.Any:
    """A step that is a watch."""

    def make(api: StubApi) -> t.Any:
        return stream(*chunks, stay=stay, api=api)

    make.needs_api = True  # type: ignore[attr-defined]
    return make
