# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The store with its indexes and handlers, and own writes laid over it."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.kube.mutation_cache import MutationCache
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.store import Handler, Store

from .stub_api import Json, claim


def owners(obj: Json) -> list[str]:
    """UIDs of the owners of a claim."""
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())]


def owned(name: str, version: int, *uids: str, uid: str = "") -> Json:
    """A claim with owners."""
    return claim(name, version, uid=uid, metadata={"ownerReferences": [{"uid": owner} for owner in uids]})


def new_store() -> Store[Json]:
    """A store of plain dicts with an index by owner."""
    return Store(codec_for(t.cast("type[Json]", dict)), {"owner": owners})


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at 1000."""
    return Clock()


@pytest.fixture
def store() -> Store[Json]:
    """An empty store."""
    return new_store()


@pytest.fixture
def cache(store: Store[Json], clock: Clock) -> MutationCache[Json]:
    """Own writes over that store."""
    return MutationCache(store, ttl=3600, clock=clock)


def names(found: t.Iterable[Json]) -> list[str]:
    """``name@version`` of objects."""
    return [f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}" for obj in found]


def test_indexes_follow_the_objects(store: Store[Json]) -> None:
    store.put(owned("a", 1, "p1"))
    store.put(owned("b", 2, "p1", "p2"))
    assert names(store.indexed("owner", "p1")) == ["a@1", "b@2"]
    store.put(owned("a", 3, "p2"))
    assert names(store.indexed("owner", "p1")) == ["b@2"]
    assert names(store.indexed("owner", "p2")) == ["a@3", "b@2"]
    store.remove(("team-a", "b"))
    assert names(store.indexed("owner", "p1")) == []
    assert names(store.indexed("owner", "p2")) == ["a@3"]
    assert store.by_uid("u-b") is None
    assert store.by_uid("u-a") is store.get("a", "team-a")


def test_an_unknown_index_is_an_error(store: Store[Json]) -> None:
    with pytest.raises(KeyError):
        store.indexed("colour", "red")


def test_an_older_or_equal_state_is_ignored(store: Store[Json]) -> None:
    heard: list[str] = []
    store.subscribe(Handler(updated=lambda old, new: heard.extend(names([old, new]))))
    assert store.put(claim("a", 5))
    assert not store.put(claim("a", 5))
    assert not store.put(claim("a", 4))
    assert store.put(claim("a", 10))
    assert heard == ["a@5", "a@10"]
    assert store.put(claim("a", 4), force=True)


def test_versions_that_are_no_numbers_are_taken_as_they_come(store: Store[Json]) -> None:
    store.put(claim("a", "zz"))
    assert store.put(claim("a", "aa"))
    assert names(store) == ["a@aa"]


def test_a_new_handler_hears_of_what_is_there_and_can_be_taken_off(store: Store[Json]) -> None:
    heard: list[str] = []
    store.put(claim("a", 1))
    stop = store.subscribe(Handler(added=lambda new: heard.extend(names([new]))))
    store.put(claim("b", 2))
    stop()
    store.put(claim("c", 3))
    assert heard == ["a@1", "b@2"]


def test_a_handler_that_cannot_read_an_object_does_not_keep_others_from_hearing(
    store: Store[Json], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def fail(new: Json) -> None:
        raise DraError("claim is malformed.", "Correct it.")

    store.subscribe(Handler(added=fail))
    store.subscribe(Handler(added=lambda new: heard.extend(names([new]))))
    store.put(claim("a", 1))
    assert heard == ["a@1"]
    assert store.handler_failures == 1
    assert "name=a error=claim is malformed" in caplog.text


def test_an_own_write_is_seen_at_once_and_until_the_store_has_it(
    store: Store[Json], cache: MutationCache[Json]
) -> None:
    cache.mutated(owned("a", 7, "p1"))
    assert names(cache.indexed("owner", "p1")) == ["a@7"]
    assert names([cache.get("a", "team-a") or {}]) == ["a@7"]
    assert cache.by_uid("u-a") is not None
    store.put(owned("a", 9, "p2"))
    store.resource_version = "9"
    assert names(cache.indexed("owner", "p1")) == []
    assert names(cache.indexed("owner", "p2")) == ["a@9"]
    assert len(cache) == 0


def test_an_own_change_hides_the_older_state_in_every_index(store: Store[Json], cache: MutationCache[Json]) -> None:
    store.put(owned("a", 5, "p1"))
    store.resource_version = "5"
    cache.mutated(owned("a", 7, "p2"))
    assert names(cache.indexed("owner", "p1")) == []
    assert names(cache.indexed("owner", "p2")) == ["a@7"]
    assert names([cache.by_uid("u-a") or {}]) == ["a@7"]


def test_an_object_that_was_made_and_deleted_between_two_looks_does_not_stay(
    store: Store[Json], cache: MutationCache[Json]
) -> None:
    cache.mutated(claim("a", 7))
    store.resource_version = "30"  # a list that did not hold it
    assert cache.get("a", "team-a") is None


def test_answers_in_the_wrong_order_do_not_bring_back_the_older_state(cache: MutationCache[Json]) -> None:
    cache.mutated(claim("a", 8))
    cache.mutated(claim("a", 7))
    assert names([cache.get("a", "team-a") or {}]) == ["a@8"]


def test_an_own_delete_hides_the_object_until_the_store_knows(store: Store[Json], cache: MutationCache[Json]) -> None:
    store.put(owned("a", 5, "p1"))
    cache.removed(owned("a", 5, "p1"))
    assert cache.get("a", "team-a") is None
    assert cache.by_uid("u-a") is None
    assert cache.indexed("owner", "p1") == []
    store.remove(("team-a", "a"))
    store.put(owned("a", 9, "p1", uid="u-new"))
    assert names(cache.indexed("owner", "p1")) == ["a@9"]


def test_a_new_object_of_the_same_name_is_seen_over_the_old_one(store: Store[Json], cache: MutationCache[Json]) -> None:
    store.put(claim("a", 5))
    store.resource_version = "5"
    cache.mutated(claim("a", 9, uid="u-new"))
    assert cache.by_uid("u-new") is not None
    assert cache.by_uid("u-a") is None


def test_without_numbers_an_own_write_ends_with_its_time(
    store: Store[Json], cache: MutationCache[Json], clock: Clock
) -> None:
    store.resource_version = "zz"
    cache.mutated(claim("a", "xx"))
    clock.now += 3599
    assert cache.get("a", "team-a") is not None
    clock.now += 2
    assert cache.get("a", "team-a") is None


def test_notes_that_nobody_asks_for_do_not_pile_up(store: Store[Json], cache: MutationCache[Json]) -> None:
    for number in range(1, 1000):
        cache.mutated(claim(f"c{number}", number))
        store.resource_version = str(number)
    assert len(cache) <= 3
