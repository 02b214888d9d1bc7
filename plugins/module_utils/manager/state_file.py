# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The manager's state file: the layout of today's kubelets, written for a few changed claims at a time.

A small file is written as a whole, byte for byte as a kubelet would. A large one becomes a `ClaimGrid`, of which only
the changed places are written (`TwinFile`). Either way the file under its name is complete at every moment.
"""

from __future__ import annotations

import typing as t

from ..checkpoint.claims import ClaimState, EncodedClaim, assemble, encode
from ..checkpoint.store import StateDirectory
from .claim_grid import ClaimGrid
from .twin_file import TwinFile

GRID_FROM = 64 * 1024
"""Size in bytes from which on single places are written. Below, writing all of it takes no longer."""

Changes = t.Mapping[str, t.Optional[ClaimState]]
"""Claim UID to the claim as it shall be, None for one that goes."""


class StateFile:
    """The state file ``name`` in ``directory``, which holds ``claims`` already (none when there is no file).

    Methods block and must not run at the same time. ``bytes_written`` and ``syncs`` count since the start.
    """

    def __init__(
        self, directory: StateDirectory, name: str, claims: t.Iterable[ClaimState], *, grid_from: int = GRID_FROM
    ) -> None:
        self._file = TwinFile(directory, name)
        self._grid: ClaimGrid | None = None
        self._grid_from = grid_from
        self._claims: dict[str, EncodedClaim] = {claim.uid: encode(claim) for claim in claims}
        self._size = sum(len(claim.outer) for claim in self._claims.values())

    @property
    def bytes_written(self) -> int:
        """Bytes handed to the file system."""
        return self._file.bytes_written

    @property
    def syncs(self) -> int:
        """Calls of fsync and fdatasync, those of the directory included."""
        return self._file.syncs

    def write(self, changes: Changes) -> None:
        """Make ``changes`` durable, all in one step. On an error (StoreError) the file is as it was.

        NotDurableError is the one exception: the changes may be visible then; the next write puts that right.
        """
        encoded = {uid: None if state is None else encode(state) for uid, state in changes.items()}
        before = {uid: self._claims.get(uid) for uid in changes}
        self._apply(encoded)
        try:
            self._store(encoded)
        except BaseException:
            self._apply(before)
            self._grid = None
            raise

    def close(self) -> None:
        """Leave the file as a kubelet would have written it, with nothing beside it. On an error it stays as it is."""
        if self._grid is not None:
            self._grid = None
            self._file.write(assemble(self._claims.values()))
        self._file.forget()

    def _apply(self, changes: t.Mapping[str, EncodedClaim | None]) -> None:
        for uid, claim in changes.items():
            before = self._claims.pop(uid, None)
            self._size -= len(before.outer) if before else 0
            if claim is not None:
                self._claims[uid] = claim
                self._size += len(claim.outer)

    def _store(self, changes: t.Mapping[str, EncodedClaim | None]) -> None:
        # Half the size, so that a node at the border does not change sides with every pod.
        if self._size < (self._grid_from if self._grid is None else self._grid_from // 2):
            self._grid = None
            self._file.write(assemble(self._claims.values()))
            return
        patches = None if self._grid is None else self._grid.replace(changes)
        if self._grid is None or patches is None:
            self._grid = ClaimGrid(self._claims)
        elif not patches or self._file.patch(patches, self._grid.data):
            return
        self._file.write(bytes(self._grid.data))
