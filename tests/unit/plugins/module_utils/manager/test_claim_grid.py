# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A state file in which single claims change: at every step what any reader sees equals the claims that were put in."""

from __future__ import annotations

import json
import typing as t
import zlib

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, Device, encode
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.formats import CRC_1_31, CRC_1_35
from ansible_collections.nodeops.dra.plugins.module_utils.manager.claim_grid import ClaimGrid
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

names = st.text(min_size=1, max_size=12)
devices = st.builds(
    Device,
    pool_name=names,
    device_name=names,
    request_names=st.tuples() | st.tuples(names),
    cdi_device_ids=st.lists(names, max_size=3).map(tuple),
    share_id=st.none() | names,
)


def claim(uid: str, pods: t.Iterable[str] = ("p-1",), *drivers: Device) -> ClaimState:
    return ClaimState(uid, f"c-{uid}", "team-a", frozenset(pods), {"gpu.test.example": drivers or None})


def read_plainly(data: bytes) -> dict[str, ClaimState]:
    """As `loaded`, with the decoder of the standard library, which is faster and knows less of Go."""
    document = json.loads(data)
    assert zlib.crc32(document["Data"].encode()) == document["Checksum"]
    states = [ClaimState.from_fields(fields) for fields in json.loads(document["Data"])["ClaimInfoStateList"]]
    assert len({state.uid for state in states}) == len(states)
    return {state.uid: state for state in states}


def loaded(data: bytes) -> dict[str, ClaimState]:
    """What a kubelet of 1.35 makes of the bytes; one of 1.31 must accept them too."""
    document = Document(data)
    assert document.read_as(CRC_1_31).ok
    reading = document.read_as(CRC_1_35)
    assert reading.ok, reading.go_message
    states = [ClaimState.from_fields(fields) for fields in reading.claims or []]
    return {state.uid: state for state in states}


class GridMachine(RuleBasedStateMachine):
    """Random changes, each applied to a grid and to a plain dict."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[str, ClaimState] = {}
        self.grid = ClaimGrid({})
        self.file = bytearray(self.grid.data)

    def apply(self, changes: dict[str, ClaimState | None]) -> None:
        for uid, state in changes.items():
            if state is None:
                self.claims.pop(uid, None)
            else:
                self.claims[uid] = state
        encoded = {uid: None if state is None else encode(state) for uid, state in changes.items()}
        patches = self.grid.replace(encoded)
        if patches is None:
            self.grid = ClaimGrid({uid: encode(state) for uid, state in self.claims.items()})
            self.file = bytearray(self.grid.data)
            return
        for offset, content in patches:
            self.file[offset : offset + len(content)] = content

    uids = st.integers(0, 12).map(lambda number: f"u-{number}")

    @rule(uid=uids, pods=st.sets(names, max_size=30), drivers=st.lists(devices, max_size=4))
    def put(self, uid: str, pods: set[str], drivers: list[Device]) -> None:
        self.apply({uid: claim(uid, pods, *drivers)})

    @rule(chosen=st.sets(uids, min_size=1, max_size=6))
    def take_out(self, chosen: set[str]) -> None:
        self.apply(dict.fromkeys(sorted(chosen)))

    @rule(out=uids, new=uids)
    def exchange(self, out: str, new: str) -> None:
        self.apply({out: None, new: claim(new)})

    @precondition(lambda self: self.claims)
    @rule()
    def repeat(self) -> None:
        uid = min(self.claims)
        assert self.grid.replace({uid: encode(self.claims[uid])}) == []

    @invariant()
    def readers_see_the_claims(self) -> None:
        assert bytes(self.file) == bytes(self.grid.data)
        normal = {uid: ClaimState.from_fields(state.to_fields()) for uid, state in self.claims.items()}
        assert read_plainly(bytes(self.file)) == normal

    def teardown(self) -> None:
        loaded(bytes(self.file))


TestGridMachine = GridMachine.TestCase
TestGridMachine.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)


@given(
    states=st.lists(st.builds(claim, names, st.sets(names, max_size=3)), max_size=8, unique_by=lambda state: state.uid)
)
@settings(max_examples=40, deadline=None)
def test_a_fresh_grid_holds_its_claims(states: list[ClaimState]) -> None:
    grid = ClaimGrid({state.uid: encode(state) for state in states})
    assert loaded(bytes(grid.data)) == {state.uid: state for state in states}


def test_a_change_writes_the_claim_and_the_checksum_only() -> None:
    grid = ClaimGrid({f"u-{n}": encode(claim(f"u-{n}")) for n in range(1000)})
    patches = grid.replace({"u-500": encode(claim("u-500", ["p-1"], Device("pool", "dev")))})
    assert patches is not None
    assert len(patches) == 2
    assert sum(len(content) for _offset, content in patches) < 700
    assert len(grid.data) > 500_000


def test_a_claim_of_many_pods_takes_several_places_and_gives_them_back() -> None:
    grid = ClaimGrid({"u-0": encode(claim("u-0"))})
    size = len(grid.data)
    many = claim("u-1", [f"pod-{n}" for n in range(200)])
    assert grid.replace({"u-1": encode(many)}) is not None
    assert loaded(bytes(grid.data)) == {"u-0": claim("u-0"), "u-1": many}
    assert grid.replace({"u-1": None, "u-2": encode(claim("u-2"))}) is not None
    assert loaded(bytes(grid.data)) == {"u-0": claim("u-0"), "u-2": claim("u-2")}
    assert len(grid.data) == size


def test_a_full_grid_says_so() -> None:
    grid = ClaimGrid({})
    fitting = 0
    while grid.replace({f"u-{fitting}": encode(claim(f"u-{fitting}"))}) is not None:
        fitting += 1
    assert fitting == 64
