# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the manager tells about its work, for metrics and benchmarks. It knows nothing of who listens."""

from __future__ import annotations

import time


class Observer:
    """Takes what the manager tells and does nothing with it: derive from it and override what is of interest.

    Called from the event loop; must not block and must not raise. Only `claims_changed` may take its time.
    """

    def operation(self, name: str, seconds: float, failed: bool) -> None:
        """A ``PrepareResources`` or ``UnprepareResources`` of a pod has ended (dra_operations_duration_seconds)."""

    def driver_call(self, driver: str, method: str, seconds: float, code: str) -> None:
        """A call to a driver has ended; ``method`` is ``NodePrepareResources`` or ``NodeUnprepareResources``.

        ``code`` is the name of its gRPC status, such as ``DEADLINE_EXCEEDED``. It is ``OK`` also when the driver
        refused a claim in its answer: a driver that answers is well (dra_grpc_operations_duration_seconds).
        """

    def write(self, seconds: float, claims: int, commits: int, failed: bool) -> None:
        """One write of the state has ended: ``claims`` were changed by it, for ``commits`` callers at once."""

    async def claims_changed(self) -> None:
        """Claims were prepared or forgotten, changed hands, or are about to be taken back. The manager waits for this.

        When a claim is taken back it is asked before the drivers are told, so that nobody begins to use it meanwhile.
        """

    def health_changed(self, driver: str, pool: str, device: str, health: str) -> None:
        """A device's health is another one than before."""


class Timed:
    """The length of one operation, told to the observer when the context ends, with its failure if it raised."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name
        self._start = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, kind: object, *_rest: object) -> None:
        self._observer.operation(self._name, time.perf_counter() - self._start, kind is not None)
