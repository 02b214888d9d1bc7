# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Kill a writer at every system call, each time in a fresh directory, and report what it left behind.

Run as a script: ``python kill_stepper.py SCENARIO HOW DIRECTORY``; prints one JSON document, see :func:`sweep`. It is a
program of its own because the tracer of a process must be the very thread that started it, and because forking is
safe only in a process without threads.

HOW is ``ptrace``: the kernel stops the writer before and after each system call that it makes, also those of the
interpreter, and at the k-th stop it is killed. Works on every Linux architecture, since no register is looked at. Or
``calls``, where ptrace is forbidden: the functions of ``os`` that change or look at files are wrapped, and the writer
kills itself before or after the k-th call.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import signal
import sys
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import backups, leftovers, store

OLD = b"old" * 1000
NEW = b"new!" * 100_000

_TRACEME, _KILL_AT_EXIT, _SYSCALL, _SETOPTIONS, _GOOD_STOPS = 0, 0x100000, 24, 0x4200, 1
_CALLS_ON_FILES = "open close read pread write fsync fchmod fchown fstat stat rename link unlink listdir"
_CALLS_ON_LABELS = "listxattr getxattr setxattr removexattr posix_fadvise"
_NO_PTRACE = 77


def replace(path: str) -> None:
    store.write_atomic(path, NEW)


def remove(path: str) -> None:
    store.remove_file(path)


def back_up(path: str) -> None:
    backups.make_backup(path, now=lambda: 0.0)


# Name to action and the content before it; None means that there is no file.
SCENARIOS: dict[str, tuple[t.Callable[[str], None], bytes | None]] = {
    "replace": (replace, OLD),
    "create": (replace, None),
    "remove": (remove, OLD),
    "backup": (back_up, OLD),
}


class Ptrace:
    """Steps a forked child from system call to system call."""

    def __init__(self) -> None:
        self._call = ctypes.CDLL(None, use_errno=True).ptrace
        self._call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._call.restype = ctypes.c_long

    def kill_at(self, stop: int, action: t.Callable[[], None]) -> bool:
        """Run the action in a child and kill it at this stop; return False when it ended before."""
        pid = os.fork()
        if pid == 0:
            self._child(action)
        _unused, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            raise SystemExit(_NO_PTRACE)
        self._request(_SETOPTIONS, pid, _GOOD_STOPS | _KILL_AT_EXIT)
        passed, deliver = 0, 0
        while True:
            self._request(_SYSCALL, pid, deliver)
            _unused, status = os.waitpid(pid, 0)
            if not os.WIFSTOPPED(status):
                if os.waitstatus_to_exitcode(status) != 0:
                    raise SystemExit(f"the writer failed by itself: {os.waitstatus_to_exitcode(status)}")
                return False
            at_call = os.WSTOPSIG(status) == signal.SIGTRAP | 0x80
            deliver = 0 if at_call else os.WSTOPSIG(status)
            passed += at_call
            if at_call and passed == stop:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return True

    def _child(self, action: t.Callable[[], None]) -> t.NoReturn:
        try:
            if self._call(_TRACEME, 0, None, None) != 0:
                os._exit(_NO_PTRACE)
            os.kill(os.getpid(), signal.SIGSTOP)
            action()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)

    def _request(self, request: int, pid: int, data: int) -> None:
        if self._call(request, pid, None, data) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")


class Calls:
    """Makes the child kill itself around the functions of os."""

    def kill_at(self, stop: int, action: t.Callable[[], None]) -> bool:
        pid = os.fork()
        if pid == 0:
            self._child(stop, action)
        _unused, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return True
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"the writer failed by itself: {os.waitstatus_to_exitcode(status)}")
        return False

    def _child(self, stop: int, action: t.Callable[[], None]) -> t.NoReturn:
        passed = 0

        def pass_point() -> None:
            nonlocal passed
            passed += 1
            if passed == stop:
                os.kill(os.getpid(), signal.SIGKILL)

        def wrap(function: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
            def wrapped(*args: t.Any, **kwargs: t.Any) -> t.Any:
                pass_point()
                result = function(*args, **kwargs)
                pass_point()
                return result

            return wrapped

        for name in f"{_CALLS_ON_FILES} {_CALLS_ON_LABELS}".split():
            setattr(os, name, wrap(getattr(os, name)))
        try:
            action()
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)


def sweep(scenario: str, how: str, directory: str) -> dict[str, t.Any]:
    """Kill at point 1, 2, 3 ... until the action ends by itself.

    Returns ``points`` (how many kills) and ``outcomes``: one per kill, then one of the run that was not killed. Each
    tells what the file held (``old``, ``new``, ``missing`` or ``broken``), the same of every other file by name, and
    whether a following write succeeded and left only complete files.
    """
    action, before = SCENARIOS[scenario]
    stepper = Ptrace() if how == "ptrace" else Calls()
    outcomes: list[dict[str, t.Any]] = []
    killed = True
    while killed:
        home = os.path.join(directory, str(len(outcomes)))
        path = os.path.join(home, "dra_manager_state")
        os.mkdir(home)
        if before is not None:
            store.write_atomic(path, before)
        killed = stepper.kill_at(len(outcomes) + 1, functools.partial(action, path))
        others = {
            name: _held(os.path.join(home, name)) for name in sorted(os.listdir(home)) if name != "dra_manager_state"
        }
        outcomes.append({"held": _held(path), "others": others, "recovered": _recovers(home, path)})
        shutil.rmtree(home)
    return {"points": len(outcomes) - 1, "outcomes": outcomes}


def _held(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return "missing"
    return {OLD: "old", NEW: "new"}.get(data, "broken")


def _recovers(home: str, path: str) -> bool:
    """Write again, tidy up, and look that nothing but whole files is there."""
    written = store.write_atomic(path, NEW)
    temporaries = leftovers.stale_temporaries(home)
    leftovers.remove_stale(home, temporaries, min_age=0)
    held = [_held(os.path.join(home, name)) for name in os.listdir(home)]
    return written.path == path and _held(path) == "new" and set(held) <= {"old", "new"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(sweep(sys.argv[1], sys.argv[2], sys.argv[3])))
