# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keeps a store equal to a collection of the cluster: list once, then watch, and list again only when it must."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
import typing as t

from . import errors
from .backoff import Backoff
from .client import KubeClient, selector_query
from .object_index import Key, key_of
from .resource_versions import is_older
from .resources import Resource
from .shapes import Buffer, Head, HeadMeta, decoder
from .store import Store
from .watch import Bookmark, SilentWatchError, Watch, WatchEvent, WatchLimits, open_watch

T = t.TypeVar("T")
log = logging.getLogger(__name__)

#: After this many objects other tasks get their turn.
TURN = 200
#: So often in a row a watch may fail at the same version before everything is listed again.
WATCH_FAILURES = 5
#: So often in a row a list may be older than what was already seen before it is believed.
STALE_LISTS = 3


class StaleListError(errors.KubeError):
    """A list is older than what was seen before: it came from an API server that lags behind."""


@dataclasses.dataclass(frozen=True)
class ReflectorSettings:
    """``page_size`` objects a request; ``limits`` of a watch, its server time is spread up to half as much again.

    ``list_timeout`` is for one page. ``watch_list`` asks for the first state through the watch (Kubernetes 1.32+ with
    the feature on) and falls back to a list.
    """

    page_size: int = 500
    limits: WatchLimits = dataclasses.field(default_factory=WatchLimits)
    list_timeout: float = 60.0
    first_delay: float = 0.2
    longest_delay: float = 30.0
    watch_list: bool = False


@dataclasses.dataclass
class ReflectorStats:
    """What happened so far, for metrics and for the state of health."""

    lists: int = 0
    listed_objects: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    dropped: int = 0
    malformed: int = 0
    failures: int = 0
    vanished: int = 0
    last_error: str = ""
    relist_reasons: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class _Reading(t.Generic[T]):
    """An object as it was read: None when the codec drops it, or when it is malformed."""

    obj: T | None
    malformed: bool


class Reflector(t.Generic[T]):
    """Fills ``store`` from ``resource``, in one namespace or in all. ``run`` is the work, ``synced`` is set after the
    first whole list.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        store: Store[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        settings: ReflectorSettings | None = None,
        rand: t.Callable[[], float] = random.random,
    ) -> None:
        self.resource, self.store, self.namespace = resource, store, namespace
        self.settings = settings or ReflectorSettings()
        self.stats = ReflectorStats()
        self.synced = asyncio.Event()
        self._client, self._rand = client, rand
        self._selectors = list(selector_query(label_selector, field_selector))
        self._backoff = Backoff(self.settings.first_delay, self.settings.longest_delay, rand=rand)
        self._version = ""
        self._relist: str | None = "start"
        self._watch_failures = self._stale_lists = 0
        self._watch_list = self.settings.watch_list
        self._last_news: float | None = None
        self._broken_since: float | None = None

    def lag(self) -> float:
        """Seconds since the last list, event or bookmark; 0 before ``run``. The measure of health of a watch."""
        if self._last_news is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._last_news

    def broken(self) -> float:
        """Seconds since lists and watches began to fail, 0 while the last one that was opened has not failed."""
        return 0.0 if self._broken_since is None else asyncio.get_running_loop().time() - self._broken_since

    async def run(self) -> t.NoReturn:
        """List and watch until cancelled.

        Raises ``NotServedError`` when the version of the API is not served (any more): only a new discovery helps.
        Every other failure is waited out.
        """
        self._news()
        delay = 0.0
        while True:
            try:
                if self._relist is not None and not self._watch_list:
                    await self._list()
                await self._watch()
                continue
            except errors.NotServedError:
                raise
            except SilentWatchError as error:
                log.warning("watch was silent, opening it again resource=%s", self.resource.full_name)
                delay = self._failed(error, self._backoff.next() if self._backoff.failures else 0.0)
            except errors.KubeError as error:
                delay = self._failed(error, self._backoff.next(getattr(error, "retry_after", None)))
            await asyncio.sleep(delay)

    def _failed(self, error: errors.KubeError, delay: float) -> float:
        """Note a failure and decide whether the next step is a list or the watch again."""
        self.stats.failures += 1
        if self._broken_since is None:
            self._broken_since = asyncio.get_running_loop().time()
        if self.stats.last_error != error.message:
            log.warning(
                "watch or list failed resource=%s retry_in=%.3g error=%s", self.resource.full_name, delay, error
            )
        self.stats.last_error = error.message
        if isinstance(error, (errors.GoneError, errors.StaleVersionError)):
            self._start_over("expired" if isinstance(error, errors.GoneError) else "ahead")
        elif self._relist is None and isinstance(error, errors.ServerFailureError):
            self._watch_failures += 1
            if self._watch_failures >= WATCH_FAILURES:
                self._start_over("failing")
        return delay

    def _start_over(self, reason: str) -> None:
        if self._relist is None:
            self._relist = reason
            self.stats.relist_reasons[reason] = self.stats.relist_reasons.get(reason, 0) + 1

    def _news(self) -> None:
        self._last_news = asyncio.get_running_loop().time()

    # List

    async def _list(self) -> None:
        """All pages into the store as they come; what was in no page has vanished."""
        seen: set[Key] = set()
        token, version, force = "", "", False
        for attempt in range(3):
            # Two times the token grew too old on the way: a list in one piece needs none.
            limit = self.settings.page_size if attempt < 2 else 0
            try:
                while True:
                    page = await self._client.page(
                        self.resource,
                        self.namespace,
                        selectors=self._selectors,
                        limit=limit,
                        continue_token=token,
                        timeout=self.settings.list_timeout,
                    )
                    if not token:
                        version, force = page.resource_version, self._accept_list(page.resource_version)
                    await self._take_page(page.items, seen, force)
                    token = page.continue_token
                    if not token:
                        break
                break
            except errors.GoneError:
                if attempt == 2:
                    raise
                token = ""
                seen.clear()
        await self._finish(seen, version)

    def _accept_list(self, version: str) -> bool:
        """Whether an older list than expected has to be believed; raises ``StaleListError`` the first times."""
        if not is_older(version, self._version):
            self._stale_lists = 0
            return False
        self._stale_lists += 1
        if self._stale_lists <= STALE_LISTS:
            raise StaleListError(
                f"The list of {self.resource.full_name} has version {version}, but {self._version} was seen before.",
                "It is asked for again; an API server that was down catches up within seconds.",
                resource=self.resource.full_name,
            )
        log.warning(
            "list stays older than what was seen, believing it resource=%s version=%s seen=%s",
            self.resource.full_name,
            version,
            self._version,
        )
        return True

    async def _take_page(self, items: t.Sequence[Buffer], seen: set[Key], force: bool) -> None:
        self._news()
        for number, raw in enumerate(items, 1):
            reading = self._read(raw)
            # The head of what is not kept matters only where something may have been kept before: not in a first list.
            meta = self._head(raw) if reading.malformed or (reading.obj is None and len(self.store)) else None
            if reading.obj is None and not reading.malformed and meta is not None:
                self.store.drop(key_of(meta))
            if reading.obj is not None:
                meta = self.store.codec.meta(reading.obj)
                self.store.put(reading.obj, force=force)
            if meta is not None:
                seen.add(key_of(meta))  # a malformed object is there all the same
            if number % TURN == 0:
                await asyncio.sleep(0)
        self.stats.listed_objects += len(items)

    async def _finish(self, seen: set[Key], version: str) -> None:
        """The list is complete: take out what it did not hold."""
        for number, key in enumerate(self.store.keys(), 1):
            if key not in seen and self.store.remove(key) is not None:
                self.stats.vanished += 1
            if number % TURN == 0:
                await asyncio.sleep(0)
        self.stats.lists += 1
        self._advance(version)
        self._relist = None
        self._watch_failures = self._stale_lists = 0
        self.synced.set()

    # Watch

    async def _watch(self) -> None:
        """One watch, until the server ends it."""
        initial = self._relist is not None
        limits = self.settings.limits
        # A server that does not know sendInitialEvents goes on like a plain watch: it is not waited for so long.
        server = self.settings.list_timeout if initial else limits.server * (1 + self._rand() / 2)
        query = [*self._selectors]
        if initial:
            query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        loop = asyncio.get_running_loop()
        started, before = loop.time(), self._version
        try:
            async with open_watch(
                self._client,
                self.resource,
                "" if initial else self._version,
                namespace=self.namespace,
                query=query,
                limits=dataclasses.replace(limits, server=server),
            ) as watch:
                self.stats.watches += 1
                self._broken_since = None
                await self._follow(watch)
        except (errors.BadRequestError, errors.InvalidObjectError, SilentWatchError):
            if self._relist is None or not initial:
                raise
        if self._relist is not None:
            self._watch_list = False  # this server does not give the first state that way
            return
        if loop.time() - started >= 1.0 or self._version != before:
            self._worked()
        if loop.time() - started < 1.0:
            # Whatever ends watches that fast, a server or a proxy, is not asked in a tight loop.
            await asyncio.sleep(self._backoff.next())

    async def _follow(self, watch: Watch) -> None:
        seen: set[Key] = set()
        while events := await watch.batch():
            before = self._version
            self._news()
            for number, event in enumerate(events, 1):
                if event.bookmark is not None:
                    await self._bookmark(event.bookmark, seen)
                else:
                    self._take(event, seen)
                if number % TURN == 0:
                    await asyncio.sleep(0)
            if self._version != before:
                self._worked()

    def _worked(self) -> None:
        self._backoff.reset()
        self._watch_failures = 0
        self.stats.last_error = ""

    async def _bookmark(self, bookmark: Bookmark, seen: set[Key]) -> None:
        self.stats.bookmarks += 1
        if self._relist is None:
            self._advance(bookmark.metadata.resource_version)
        elif bookmark.ends_initial_events:
            await self._finish(seen, bookmark.metadata.resource_version)
            seen.clear()

    def _take(self, event: WatchEvent, seen: set[Key]) -> None:
        self.stats.events += 1
        reading = self._read(event.raw)
        meta = self._head(event.raw) if reading.obj is None else self.store.codec.meta(reading.obj)
        if meta is None:
            return
        key = key_of(meta)
        stored = self.store.get(meta.name, meta.namespace)
        if event.kind == "DELETED":
            # The name may belong to another object by now.
            if stored is not None and self.store.codec.meta(stored).uid == meta.uid:
                self.store.remove(key, reading.obj)
        elif reading.obj is not None:
            self.store.put(reading.obj)
        elif not reading.malformed:
            self.store.drop(key)  # it was of interest before, and is not any more
        if self._relist is None:
            self._advance(meta.resource_version)
        elif reading.obj is not None or reading.malformed:
            seen.add(key)

    def _advance(self, version: str) -> None:
        if version:
            self._version = self.store.resource_version = version

    # Objects

    def _read(self, raw: Buffer) -> _Reading[T]:
        try:
            obj = self.store.codec.decode(raw)
        except ValueError as error:
            self.stats.malformed += 1
            meta = self._head(raw)
            log.error(
                "object cannot be read, keeping what was known resource=%s namespace=%s name=%s error=%s",
                self.resource.full_name,
                meta.namespace if meta else "?",
                meta.name if meta else "?",
                str(error)[:200],
            )
            return _Reading(None, True)
        if obj is None:
            self.stats.dropped += 1
        return _Reading(obj, False)

    def _head(self, raw: Buffer) -> HeadMeta | None:
        try:
            return decoder(Head)(raw).metadata
        except ValueError:
            return None
