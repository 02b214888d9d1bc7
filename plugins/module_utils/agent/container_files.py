# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keeps files for podman and systemd in step with what is prepared (the setting ``node.container_files``).

The manager waits for `ContainerFiles.changed` after it has prepared, and before it tells drivers to take something
back. So whoever was told that a claim is prepared finds its files, and no file names a device that its driver was told
to take back. What fails on the way, such as a full disk, holds up nobody: it is told, and tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.findings import Finding
from ..daemon.health import Degraded
from ..manager.failures import Backoff
from ..manager.manager import DegradedError
from ..resource.containers import container_claims
from ..resource.view import JsonObject
from .claim_place import check_known
from .claim_request import identity
from .container_file_directory import ContainerFileDirectory
from .container_file_texts import Subject, claim_subjects, files_of, stem_of
from .record_report import record_report
from .workplace import Workplace

log = logging.getLogger(__name__)

PERIOD = 60.0
"""Seconds between two looks at the directory although nothing has changed: somebody may have removed files."""
PATIENCE = 5.0
"""Seconds that anybody waits for the files. A file system that hangs must not hold up claims."""


class ContainerFiles:
    """The files of one agent in ``directory``. Made before the manager; `serve` gives it what it tells of."""

    def __init__(self, directory: str, *, backoff: Backoff | None = None, patience: float = PATIENCE) -> None:
        self.problem: DraError | None = None
        self._directory = ContainerFileDirectory(directory)
        self._backoff = backoff or Backoff(cap=PERIOD)
        self._patience = patience
        self._place: Workplace | None = None
        self._refused: tuple[Subject, ...] = ()
        self._failures = 0
        self._failed = asyncio.Event()
        self._coming: asyncio.Future[None] | None = None
        self._worker: asyncio.Task[None] | None = None
        self._hangs = False

    @property
    def count(self) -> int:
        """How many files there are."""
        return self._directory.count

    async def serve(self, place: Workplace) -> None:
        """Bring the directory to what is recorded now. What former runs left and nobody holds any more goes."""
        self._place = place
        await self.changed()

    async def changed(self) -> None:
        """Something may be prepared, or may not be any more: return when a look that began after this call has ended.

        Never raises, and waits for `PATIENCE` seconds at most; not at all while an earlier look hangs.
        """
        done = self.look()
        if not self._hangs:
            finished, _waiting = await asyncio.wait({done}, timeout=self._patience)
            if not finished and not self._hangs:
                self._hangs = True
                log.error("files for containers hang, claims go on without directory=%s", self._directory.path)

    def look(self) -> asyncio.Future[None]:
        """Have the directory looked at; all who ask before the look begins share it."""
        if self._coming is None:
            self._coming = asyncio.get_running_loop().create_future()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="container-files")
        return self._coming

    async def run(self) -> t.NoReturn:
        """Look again now and then, and after a failure with growing pauses. Until cancelled."""
        while True:
            self._failed.clear()
            pause = PERIOD if self.problem is None else self._backoff.delay(self._failures)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._failed.wait()
                continue  # the first failure: pause as after a failure
            await self.changed()

    async def close(self) -> None:
        """Finish the look under way. The files stay: what is prepared stays prepared."""
        if self._worker is not None:
            await asyncio.wait({self._worker}, timeout=self._patience)
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    # One look

    async def _work(self) -> None:
        try:
            while self._coming is not None:
                await asyncio.sleep(0)  # whoever became ready in this turn of the loop shares this look
                done, self._coming = self._coming, None
                try:
                    await self._bring()
                finally:
                    if not done.done():
                        done.set_result(None)
        finally:
            self._worker = None

    async def _bring(self) -> None:
        try:
            subjects = self._subjects()
            if subjects is not None:
                self._refused = tuple(one for one in subjects if one.refused)
                before = self._directory.foreign
                await asyncio.to_thread(self._directory.bring, files_of(subjects))
                for name in set(self._directory.foreign) - set(before):
                    log.warning("a file in the way was not made by the agent, left alone file=%s", name)
        except DraError as error:
            self._tell(error)
        except Exception as error:
            # The edge of this work: a bug in it must not fail a prepare.
            log.exception("files for containers ended by a bug directory=%s", self._directory.path)
            self._tell(DraError(f"A bug of the agent: {error!r}.", "Report it; the log has the stack trace."))
        else:
            if self.problem is not None:
                log.info("files for containers are kept again directory=%s", self._directory.path)
            self.problem, self._failures = None, 0
        self._hangs = False

    def _tell(self, error: DraError) -> None:
        self._failures += 1
        if self.problem is None or self.problem.message != error.message:
            log.error("files for containers cannot be kept, claims go on without error=%s", error)
        if self.problem is None:
            self._failed.set()
        self.problem = error

    def _subjects(self) -> list[Subject] | None:
        """Who needs what now; None while that is not known, and the files stay as they are."""
        place = self._place
        if place is None:
            return None
        try:
            check_known(place.manager)
        except DegradedError:
            return None
        reports = [{**record_report(one.record), "status": one.status} for one in place.manager.claims()]
        pods = {identity(pod)[0]: pod for source in reversed(place.pod_sources) for pod in source.alive()}
        return [*claim_subjects(reports), *(one for pod in pods.values() for one in self._of_pod(place, pod))]

    def _of_pod(self, place: Workplace, pod: JsonObject) -> t.Iterator[Subject]:
        uid, namespace, name = identity(pod)
        if place.manager.pod_might_need_unprepare(uid):
            # Pods are other people's objects: an odd one has no files, and takes none from others.
            with contextlib.suppress(DraError):
                for container in container_claims(pod):
                    if container.claims:
                        devices = place.manager.resources_for(pod, container.name)
                        yield Subject(stem_of("pod", namespace, name, container.name), devices)

    # What is to be told

    def findings(self) -> list[Finding]:
        """Why files are missing."""
        found = []
        path = self._directory.path
        if self.problem is not None:
            text = f"Files for containers are not up to date: {self.problem.message}"
            remedy = f"{self.problem.hint} The agent tries again by itself.".strip()
            found.append(Finding("container_files_not_written", "error", path, text, remedy, self.problem.facts))
        for one in self._refused:
            names = [name[:80] for name in one.refused]
            text = f"{one.stem} has no files in {path}: a driver answered with what is no CDI name: {names[0]!r}."
            remedy = "Mend the driver; a container could not get this device either."
            found.append(Finding("container_files_not_written", "error", one.stem, text, remedy, {"names": names}))
        for name in self._directory.foreign:
            text = f"{path}/{name} was not made by the agent, which would put a file for containers there."
            remedy = "Move it away; the agent writes its own within a minute. Keep own files in another directory."
            facts = {"file": f"{path}/{name}"}
            found.append(Finding("container_file_foreign", "warning", f"{path}/{name}", text, remedy, facts))
        return found

    async def probe(self) -> str | Degraded:
        """The health of the files."""
        found = self.findings()
        return Degraded(found[0].text) if found else f"{self.count} files"
