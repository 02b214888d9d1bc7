# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Health of a daemon: named checks that go through what the daemon really does, each with a deadline.

A check is ``live`` when its failure means that only a restart helps, such as a loop that hangs. It decides over
/healthz and the watchdog. A check that reaches out of the process, to a driver or the API server, must not be live: a
restart would not mend the other side, and take away what still works.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import logging
import threading
import typing as t

from ..checkpoint.errors import DraError

log = logging.getLogger(__name__)

#: A result so young is given to whoever asks next: many clients cost no more than one.
MAX_AGE = 1.0


class State(enum.Enum):
    """What a check found."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True)
class Degraded:
    """What a probe returns when the daemon does its work but a person should look: one dead driver of several."""

    text: str


@dataclasses.dataclass(frozen=True)
class Standby:
    """What a probe returns when all is well, yet the daemon is not at work and should say so: another one leads."""

    text: str


Probe = t.Callable[[], t.Awaitable[t.Union[str, Degraded, Standby, None]]]


@dataclasses.dataclass(frozen=True)
class Check:
    """``probe`` returns a short text or nothing when all is well, ``Degraded``, or raises: failed.

    ``deadline`` in seconds; None: the setting ``life.check_timeout``. ``help`` is for documentation.
    """

    name: str
    probe: Probe
    help: str
    live: bool = False
    deadline: float | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one check; ``seconds`` it took. ``standby``: it is ok, and yet worth telling."""

    check: Check
    state: State
    text: str
    seconds: float
    standby: bool = False


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of all checks that were asked for, by name. ``reason``: why no check was asked at all."""

    outcomes: tuple[Outcome, ...]
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Whether the answer is no."""
        return bool(self.reason) or any(outcome.state is State.FAILED for outcome in self.outcomes)

    def lines(self) -> list[str]:
        """One line a check, as Kubernetes' own components write them."""
        marks = {State.OK: "[+]", State.DEGRADED: "[!]", State.FAILED: "[-]"}
        found = [f"[-]{self.reason}"] if self.reason else []
        for outcome in self.outcomes:
            text = f": {' '.join(outcome.text.split())}" if outcome.text else ""
            found.append(f"{marks[outcome.state]}{outcome.check.name} {outcome.state.value}{text}")
        return found

    def summary(self) -> str:
        """One line: "ready", "standby" and why, or what is not as it should be."""
        if self.reason:
            return self.reason
        bad = [one for one in self.outcomes if one.state is not State.OK]
        if not bad:
            resting = [one.text for one in self.outcomes if one.standby]
            return f"standby: {'; '.join(resting)}" if resting else "ready"
        worst = State.FAILED if self.failed else State.DEGRADED
        return f"{worst.value}: " + "; ".join(f"{one.check.name}: {one.text}" for one in bad)


class HealthObserver(t.Protocol):
    """Hears the results, for metrics."""

    def checked(self, outcome: Outcome) -> None:
        """A check has ended."""


@dataclasses.dataclass
class _Run:
    task: asyncio.Task[Outcome]
    started: float
    outcome: Outcome | None = None
    ended: float = 0.0


class Health:
    """All checks of a daemon. A probe runs once at a time, however many ask, and also when it hangs for ever."""

    def __init__(self, timeout: float, observer: HealthObserver | None = None) -> None:
        self.timeout = timeout
        self._observer = observer
        self._checks: tuple[Check, ...] = ()
        self._runs: dict[str, _Run] = {}

    def use(self, checks: t.Sequence[Check]) -> None:
        """Ask these from now on."""
        names = [check.name for check in checks]
        if len(set(names)) != len(names):
            raise ValueError(f"two checks of one name: {sorted(names)}")
        self._checks = tuple(checks)

    async def look(self, *, live_only: bool = False, longest: float = float("inf")) -> Report:
        """Run the checks side by side, each within its deadline and ``longest`` seconds."""
        checks = [check for check in self._checks if check.live or not live_only]
        return Report(tuple(await asyncio.gather(*(self._one(check, longest) for check in checks))))

    async def close(self) -> None:
        """End probes that still run."""
        tasks = [run.task for run in self._runs.values() if not run.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    async def _one(self, check: Check, longest: float) -> Outcome:
        loop = asyncio.get_running_loop()
        run = self._runs.get(check.name)
        if run is not None and run.outcome is not None and loop.time() - run.ended < MAX_AGE:
            return run.outcome
        if run is None or run.task.done():
            task = loop.create_task(_probe(check), name=f"check {check.name}")
            run = self._runs[check.name] = _Run(task, loop.time())
        limit = min(self.timeout if check.deadline is None else check.deadline, longest)
        left = max(0.0, run.started + limit - loop.time())
        # Not `await task`: a probe that does not even end when it is cancelled must not hold us.
        await asyncio.wait([run.task], timeout=left)
        if run.task.done() and not run.task.cancelled():
            outcome = run.task.result()
        else:
            waited = loop.time() - run.started
            outcome = Outcome(check, State.FAILED, f"no answer within {waited:.1f} s", waited)
            run.task.cancel()
        if run.outcome is None:
            run.outcome, run.ended = outcome, loop.time()
        if self._observer is not None:
            self._observer.checked(outcome)
        return outcome


async def _probe(check: Check) -> Outcome:
    loop = asyncio.get_running_loop()
    started = loop.time()
    state, text, standby = State.FAILED, "", False
    try:
        found = await check.probe()
        state = State.DEGRADED if isinstance(found, Degraded) else State.OK
        text = found.text if isinstance(found, (Degraded, Standby)) else found or ""
        standby = isinstance(found, Standby)
    except DraError as error:
        text = str(error)
    except (OSError, TimeoutError) as error:
        text = str(error) or type(error).__name__
    except Exception as error:
        log.exception("health check ended by a bug check=%s", check.name)
        text = f"ended by a bug ({type(error).__name__}), see the log"
    return Outcome(check, state, text, loop.time() - started, standby)


class BlockingProbe:
    """A probe around a function that blocks, such as one that writes a file.

    It has a thread of its own. While one call hangs, on a dead disk for example, the next one waits for the same call:
    neither threads nor the loop's pool of them are used up, and the end of the process does not wait for it.
    """

    def __init__(self, function: t.Callable[[], str | Degraded | None], name: str = "health check") -> None:
        self._function, self._name = function, name
        self._answer: asyncio.Future[str | Degraded | None] | None = None

    async def __call__(self) -> str | Degraded | None:
        """Call the function, or join the call that is under way."""
        if self._answer is None or self._answer.done():
            self._answer = asyncio.get_running_loop().create_future()
            arguments = (asyncio.get_running_loop(), self._answer)
            threading.Thread(target=self._run, args=arguments, name=self._name, daemon=True).start()
        return await asyncio.shield(self._answer)

    def _run(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[str | Degraded | None]) -> None:
        result: str | Degraded | None = None
        failure: Exception | None = None
        try:
            result = self._function()
        except Exception as error:
            failure = error

        def give() -> None:
            if answer.done():
                return
            if failure is None:
                answer.set_result(result)
            else:
                answer.set_exception(failure)
                answer.exception()  # asked for: whoever waited may have gone meanwhile

        try:
            loop.call_soon_threadsafe(give)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more
