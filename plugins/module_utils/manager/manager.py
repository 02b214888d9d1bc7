# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The node-side DRA manager: one object for one node, or for one state file.

Kubernetes symbols: ``dra.Manager`` and its ``Manager`` interface in pkg/kubelet/cm/dra.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import time
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..resource.view import JsonObject
from . import container_devices
from .boot import current_boot_id
from .cdi_check import CdiCheck, CdiPolicy, CdiUnresolvedError
from .claim_locks import KeyedLocks
from .claim_reports import ClaimReport, claim_reports
from .claim_table import ClaimTable
from .context import Context, claim_key
from .device_health import HealthTable
from .driver_calls import DriverCalls, Drivers
from .durable_claims import Record
from .failures import PREPARE, Backoff, Failure, FailureLog
from .forgetting import Forgotten, describe
from .journal import Journal, settled
from .observer import Observer, Timed
from .opening import ManagerFiles, Settings, open_files
from .planning import Holder, PlannedClaim, holder_of, plan_pod
from .prepare import PreparedClaim, prepare_claims
from .reconcile import ActivePods, Reconciled, reconcile
from .unprepare import Released, unprepare_claims, unprepare_pod


class DegradedError(DraError):
    """The manager cannot work on its state. Facts: those of what it found when it started."""


class StoppedError(DraError):
    """Somebody stopped the retries of a claim. Facts: ``claim``, ``claim_uid``, ``reason``, ``since``."""


class DraManager:
    """Made by `open`; use it as an async context manager or call `close`. All of it runs in one event loop.

    Every operation raises DraError and nothing else. With a state file that cannot be used the manager is ``degraded``:
    it says so and refuses everything, so that nothing is prepared that it would not remember.
    """

    def __init__(
        self,
        settings: Settings,
        context: Context,
        files: ManagerFiles,
        *,
        boot_id: str,
        now: t.Callable[[], float],
    ) -> None:
        self._settings = settings
        self._context = context
        self._files = files
        self._now = now
        self.boot_id = boot_id
        self.health = HealthTable()
        self._cdi = CdiCheck(settings.cdi_policy, settings.cdi_directories)

    @classmethod
    async def open(
        cls,
        settings: Settings,
        drivers: Drivers,
        *,
        observer: Observer | None = None,
        boot_id: t.Callable[[], str] = current_boot_id,
        now: t.Callable[[], float] = time.time,
    ) -> DraManager:
        """Take the lock, read the files and start from what they say.

        Raises LockHeldError when another manager works on these files, and StoreError when there is no such
        directory. A damaged state file gives a degraded manager.
        """
        observer = observer or Observer()
        this_boot = await asyncio.to_thread(boot_id)
        files = await _opened(settings, this_boot, now)
        clock = asyncio.get_running_loop().time
        table, journal = _started(files, observer)
        context = Context(
            table=table,
            journal=journal,
            locks=KeyedLocks(),
            drivers=drivers,
            calls=DriverCalls(drivers, observer),
            failures=FailureLog(clock, now=now, backoff=settings.backoff),
            observer=observer,
        )
        return cls(settings, context, files, boot_id=this_boot, now=now)

    async def __aenter__(self) -> DraManager:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the write under way, leave the files tidy and give the lock back. Operations must have ended."""
        self.health.close()
        await self._context.journal.close()
        await asyncio.to_thread(self._files.close)

    def use(self, *, timeout: float, backoff: Backoff, cdi_policy: CdiPolicy) -> None:
        """Go on with these: what is under way keeps the former ones."""
        self._settings = dataclasses.replace(self._settings, timeout=timeout, backoff=backoff, cdi_policy=cdi_policy)
        self._context.failures.backoff = backoff
        self._cdi.policy = cdi_policy

    @property
    def degraded(self) -> DraError | None:
        """Why nothing can be prepared or unprepared, None when it can as far as anybody knows."""
        return self._files.damaged or self._files.unwritable or self._context.journal.failure

    async def recover(self) -> bool:
        """When ``degraded``: look whether the cause is gone, and go on from what the files say then.

        Returns whether the manager is of use. Raises DraError when that cannot be told now: somebody has the lock.
        """
        if self._files.damaged is not None or self._files.unwritable is not None:
            files = await _opened(dataclasses.replace(self._settings, lock_timeout=0.0), self.boot_id, self._now)
            # Whoever still works with the former table fails when it commits: its files are never written.
            former, self._files = self._files, files
            table, journal = _started(files, self._context.observer)
            self._context = dataclasses.replace(self._context, table=table, journal=journal)
            await asyncio.to_thread(former.close)
        else:
            with contextlib.suppress(DraError):  # which is `degraded` then
                await self._context.journal.prove()
        return self.degraded is None

    # Prepare and unprepare

    async def prepare(
        self,
        pod: JsonObject,
        claims: t.Iterable[JsonObject],
        *,
        timeout: float | None = None,
        renew: bool = False,
        obey_backoff: bool = False,
    ) -> list[PreparedClaim]:
        """Prepare everything that the pod needs; ``claims`` are its claim objects as fetched (PrepareResources).

        Nothing is recorded and no driver called unless all of it can be. ``renew`` asks the drivers again although the
        claims are prepared. With ``obey_backoff`` a claim that failed waits for its next try, and one whose retries
        were stopped is refused.
        """
        try:
            plans = plan_pod(pod, claims, deterministic_names=self._settings.deterministic_names)
        except DraError as error:
            self._note_refusal(error)
            raise
        return await self.prepare_claims(holder_of(pod), plans, timeout=timeout, renew=renew, obey_backoff=obey_backoff)

    async def prepare_claims(
        self,
        holder: Holder,
        plans: t.Sequence[PlannedClaim],
        *,
        timeout: float | None = None,
        renew: bool = False,
        obey_backoff: bool = False,
        only_held: bool = False,
    ) -> list[PreparedClaim]:
        """Prepare claims for anybody; whether the holder may have them is the caller's business.

        With ``only_held`` claims that the holder does not hold any more are left out.
        """
        self._check_usable()
        for plan in plans if obey_backoff else ():
            self._check_not_stopped(plan)
            self._context.failures.check_due(PREPARE, plan.uid)
        with Timed(self._context.observer, "PrepareResources"):
            # A claim whose CDI files are missing is asked for again: the driver has to write them.
            renew = renew or any(self._cdi.is_unresolved(plan.uid) for plan in plans)
            try:
                prepared = await prepare_claims(
                    self._context,
                    holder,
                    plans,
                    timeout=self._timeout(timeout),
                    renew=renew,
                    only_held=only_held,
                )
                await self._cdi.check(prepared)
                return prepared
            except CdiUnresolvedError as error:
                for plan in plans:
                    if plan.uid in error.facts["claims"]:
                        self._context.failures.failed(PREPARE, plan.uid, plan.full_name, error.message)
                raise
            except DraError as error:
                self._note_refusal(error)
                raise

    async def unprepare(self, pod_uid: str, *, timeout: float | None = None) -> Released:
        """Give back everything that the pod holds (UnprepareResources). Needs nothing but the pod's UID."""
        self._check_usable()
        with Timed(self._context.observer, "UnprepareResources"):
            released = await unprepare_pod(self._context, pod_uid, timeout=self._timeout(timeout))
        self._cdi.forget(released.gone)
        return released

    async def unprepare_claims(
        self, uids: t.Collection[str], *, pod_uid: str | None = None, timeout: float | None = None
    ) -> Released:
        """Give back single claims: for one pod, or for whoever holds them."""
        self._check_usable()
        leaving = None if pod_uid is None else (lambda pods: pods & {pod_uid})
        with Timed(self._context.observer, "UnprepareResources"):
            released = await unprepare_claims(self._context, uids, timeout=self._timeout(timeout), gone_pods=leaving)
        self._cdi.forget(released.gone)
        return released

    async def reconcile(
        self, active_pods: ActivePods, *, timeout: float | None = None, obey_backoff: bool = True
    ) -> Reconciled:
        """Let go of what no living pod holds; ``active_pods`` gives the UIDs of all pods that may still run."""
        self._check_usable()
        done = await reconcile(self._context, active_pods, timeout=self._timeout(timeout), obey_backoff=obey_backoff)
        self._cdi.forget(done.gone)
        return done

    # Questions

    def pod_might_need_unprepare(self, pod_uid: str) -> bool:
        """Whether the pod still holds something (PodMightNeedToUnprepareResources)."""
        return bool(self._context.table.claims_of_pod(pod_uid))

    def resources_for(self, pod: JsonObject, container: str) -> tuple[str, ...]:
        """CDI names for a container, each once (GetResources). Raises NotPreparedError."""
        self._check_usable()
        return container_devices.cdi_devices(
            self._context.table, pod, container, deterministic_names=self._settings.deterministic_names
        )

    def claim_infos(self, pod: JsonObject, container: str) -> list[container_devices.ClaimInfo]:
        """The claims of a container with their devices, for PodResources (GetContainerClaimInfos)."""
        return container_devices.claim_infos(
            self._context.table, pod, container, deterministic_names=self._settings.deterministic_names
        )

    def allocated_resources_status(self, pod: JsonObject, container: str) -> list[container_devices.ResourceStatus]:
        """Device health for the pod status (UpdateAllocatedResourcesStatus)."""
        return container_devices.resource_statuses(
            self._context.table, self.health, pod, container, deterministic_names=self._settings.deterministic_names
        )

    def claims(self) -> list[ClaimReport]:
        """Every claim that is recorded, sorted by namespace and name."""
        return claim_reports(self._context.table, self._context.failures.all())

    def failures(self) -> list[Failure]:
        """Everything that keeps failing, also for claims of which nothing is recorded; longest-lasting first."""
        return self._context.failures.all()

    def claims_in_use(self) -> dict[str, int]:
        """Driver to number of its claims; ``<any>`` is the number of all claims (dra_resource_claims_in_use)."""
        counts = {"<any>": len(self._context.table.records())}
        for record in self._context.table.records():
            for driver in record.state.drivers:
                counts[driver] = counts.get(driver, 0) + 1
        return counts

    def findings(self) -> list[Finding]:
        """What is not as it should be with the manager itself."""
        findings = [*self._files.findings, *self._cdi.findings()]
        failure = self._context.journal.failure
        if failure is not None and self._files.unwritable is None:
            place = str(failure.facts.get("path", self._settings.directory))
            findings.append(Finding("state_not_writable", "error", place, failure.message, failure.hint, failure.facts))
        return findings

    def disk_use(self) -> tuple[int, int]:
        """Bytes written and calls of fsync since the start."""
        durable = self._files.durable
        return (0, 0) if durable is None else (durable.bytes_written, durable.syncs)

    # Interventions

    def driver_returned(self, driver: str) -> None:
        """A driver registered: whatever waits for it is due at once."""
        waiting = {uid for uid, record in self._context.journal.records.items() if driver in record.state.drivers}
        waiting |= {one.claim_uid for one in self._context.failures.all() if driver in one.text}
        self._context.failures.retry_at_once(waiting)

    async def stop_retrying(self, claim_uid: str, reason: str) -> None:
        """Prepare this claim no more by itself, also after a restart, until `resume_retrying`."""
        await self._change_note(claim_uid, (reason, self._now()))

    async def resume_retrying(self, claim_uid: str) -> None:
        """Take `stop_retrying` back; the next try is due at once."""
        await self._change_note(claim_uid, None)
        self._context.failures.retry_at_once([claim_uid])

    async def forget(self, claim_uid: str, *, reason: str, by: str, timeout: float | None = None) -> Forgotten | None:
        """Drop a claim without telling its drivers, and return what may leak; None when there is no such claim.

        A line in the audit log is on disk before the claim is gone.
        """
        self._check_usable()
        deadline = asyncio.get_running_loop().time() + self._timeout(timeout)
        async with self._context.holding([claim_key(claim_uid)], deadline):
            entry, record = self._context.table.entry(claim_uid), self._context.table.record(claim_uid)
            if entry is None or record is None:
                return None
            forgotten = describe(entry, record, reason, by)
            await settled(asyncio.get_running_loop().run_in_executor(None, self._files.audit.write, forgotten))
            await self._context.journal.commit({claim_uid: None})
            self._context.failures.forget(claim_uid)
            self._cdi.forget([claim_uid])
            await self._context.observer.claims_changed()
            return forgotten

    async def _change_note(self, claim_uid: str, stopped: tuple[str, float] | None) -> None:
        self._check_usable()
        deadline = asyncio.get_running_loop().time() + self._settings.timeout
        async with self._context.holding([claim_key(claim_uid)], deadline):
            record = self._context.table.record(claim_uid)
            if record is None:
                raise DraError(
                    f"No claim with UID {claim_uid} is recorded on this node.",
                    "List the claims with claim_info.",
                    claim_uid=claim_uid,
                )
            note = dataclasses.replace(record.note, stopped=stopped)
            await self._context.journal.commit({claim_uid: Record(record.state, note)})

    def _timeout(self, timeout: float | None) -> float:
        return self._settings.timeout if timeout is None else timeout

    def _check_usable(self) -> None:
        damaged = self._files.damaged
        if damaged is not None:
            raise DegradedError(damaged.message, damaged.hint, **damaged.facts)

    def _check_not_stopped(self, plan: PlannedClaim) -> None:
        record = self._context.table.record(plan.uid)
        if record is not None and record.note.stopped is not None:
            reason, since = record.note.stopped
            raise StoppedError(
                f"Retries for ResourceClaim {plan.full_name} ({plan.uid}) were stopped: {reason}.",
                "Resume them when the reason is gone, or delete the pod.",
                claim=plan.full_name,
                claim_uid=plan.uid,
                reason=reason,
                since=since,
            )

    def _note_refusal(self, error: DraError) -> None:
        """Count failures that came before any driver was called, like those of drivers."""
        uid, claim = error.facts.get("claim_uid"), error.facts.get("claim")
        if uid and claim:
            self._context.failures.failed(PREPARE, str(uid), str(claim), error.message)


async def _opened(settings: Settings, boot_id: str, now: t.Callable[[], float]) -> ManagerFiles:
    opening = asyncio.get_running_loop().run_in_executor(
        None, functools.partial(open_files, settings, boot_id, now=now)
    )
    try:
        return await settled(opening)
    except asyncio.CancelledError:
        if opening.exception() is None:  # nobody else would give back the lock
            await asyncio.to_thread(opening.result().close)
        raise


def _started(files: ManagerFiles, observer: Observer) -> tuple[ClaimTable, Journal]:
    table = ClaimTable(files.records)
    return table, Journal(files.write, files.records, applied=table.apply, observer=observer)
