# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The machine itself: its boot, its clock, /run, swap, systemd, control groups."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import time
import typing as t

from ...checkpoint.findings import Finding
from ...manager.boot import current_boot_id
from .codes import finding
from .node import Node

Json = dict[str, t.Any]

_TIME_ERROR: t.Final = 5  # what adjtimex says of a clock that nothing keeps right
_TIMEX_SIZE: t.Final = 512  # larger than struct timex of any architecture
_SLACK: t.Final = 120.0
"""Seconds that a file may be from the future: other machines write files too."""


def look_at_machine(node: Node, *, now: float | None = None) -> Json:
    """Facts of the machine; null is unknown. Times are UTC, durations in seconds."""
    moment = time.time() if now is None else now
    uptime = _uptime(node)
    return {
        "boot_id": current_boot_id(pathlib.Path(node.proc_root, "sys/kernel/random/boot_id")) or None,
        "booted_at": None if uptime is None else _utc(moment - uptime),
        "seconds_since_boot": uptime,
        "time": _utc(moment),
        "clock_synchronised": clock_synchronised(),
        "run_filesystem": filesystem_of(node, "/run"),
        "var_run_is_run": _same(node.named("/var/run"), node.named("/run")),
        "swap_bytes": _swap(node),
        "systemd": _systemd(node),
        "cgroup_version": _cgroup_version(node),
    }


def clock_synchronised() -> bool | None:
    """What the kernel says of its clock, None where it cannot be asked. (adjtimex without changing anything)"""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_SIZE))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else bool(state != _TIME_ERROR)


def filesystem_of(node: Node, path: str) -> str | None:
    """The type of the file system that holds a directory of the node (``tmpfs``)."""
    found: tuple[int, str] | None = None
    for line in (_proc_text(node, "self/mountinfo") or "").splitlines():
        before, _dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) < 5:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        if (path == mount or mount == "/" or path.startswith(f"{mount}/")) and (
            found is None or len(mount) >= found[0]
        ):
            found = (len(mount), kind)
    return found[1] if found is not None else None


def machine_findings(
    machine: Json, files: t.Iterable[str], *, kubelet_state: str = "", claims: int = 0
) -> t.Iterator[Finding]:
    """What about the machine stands in the way. ``files`` were written by this node at some time."""
    yield from _run_findings(machine)
    if machine["systemd"]["running"] is False:
        text = "No systemd runs here (there is no /run/systemd/system)."
        yield finding("systemd_missing", "systemd", text, "Run the agent under a supervisor of your own.")
    if machine["cgroup_version"] == 1:
        text = "The node uses cgroup v1, which kubelets from 1.35 on refuse unless failCgroupV1 is false."
        remedy = "Boot with systemd.unified_cgroup_hierarchy=1 before that upgrade."
        yield finding("cgroup_v1", "/sys/fs/cgroup", text, remedy)
    yield from _clock_findings(machine, files)
    written = _written(kubelet_state)
    if machine["seconds_since_boot"] is not None and written is not None and claims:
        age = time.time() - written
        if age > machine["seconds_since_boot"] + _SLACK:
            yield finding(
                "state_before_boot",
                kubelet_state,
                f"The kubelet recorded {claims} claims before this boot and none since: none of their devices is set "
                "up.",
                "Let the kubelet run its pods, which prepares them again, then look with nodeops.dra.claim_info.",
                claims=claims,
                written_at=_utc(written),
            )


def _run_findings(machine: Json) -> t.Iterator[Finding]:
    if machine["run_filesystem"] not in (None, "tmpfs", "ramfs"):
        text = f"/run is on {machine['run_filesystem']}, so sockets and CDI specs of an earlier boot are still there."
        yield finding("run_survives", "/run", text, "Clean /run/cdi at boot, or mount a tmpfs there.")
    if machine["var_run_is_run"] is False:
        yield finding(
            "var_run_differs",
            "/var/run",
            "/var/run is not /run: a driver that writes to /var/run/cdi and a runtime that reads /run/cdi do not meet.",
            "Make /var/run a link to /run, or name the same directory everywhere.",
        )


def _clock_findings(machine: Json, files: t.Iterable[str]) -> t.Iterator[Finding]:
    if machine["clock_synchronised"] is False:
        text = "The kernel's clock is not synchronised: leases, certificates and time-outs may go wrong."
        yield finding("clock_unsynchronised", "clock", text, "Start chronyd, systemd-timesyncd or the like.")
    now = time.time()
    for path in files:
        written = _written(path)
        if written is not None and written > now + _SLACK:
            yield finding(
                "clock_wrong",
                path,
                f"It is {_utc(now)} by the clock of this node, and {path} was written at {_utc(written)}.",
                "Set the clock, then touch the file.",
                now=_utc(now),
                written_at=_utc(written),
            )
            return


def _uptime(node: Node) -> float | None:
    found = re.match(r"([0-9.]+) ", _proc_text(node, "uptime") or "")
    return float(found[1]) if found else None


def _swap(node: Node) -> int | None:
    text = _proc_text(node, "swaps")
    if text is None:
        return None
    sizes = (line.split()[2:3] for line in text.splitlines()[1:])
    return sum(int(size[0]) * 1024 for size in sizes if size and size[0].isdigit())


def _systemd(node: Node) -> Json:
    running = os.path.isdir(node.place("/run/systemd/system"))
    program = next((path for path in ("/usr/bin/systemctl", "/bin/systemctl") if node.exists(path)), None)
    found = re.match(r"systemd (\d+)", node.ask(program, "--version") or "") if program is not None else None
    return {"running": running, "version": int(found[1]) if found else None}


def _cgroup_version(node: Node) -> int | None:
    if node.exists("/sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if os.path.isdir(node.place("/sys/fs/cgroup/memory")) else None


def _proc_text(node: Node, name: str) -> str | None:
    try:
        with open(os.path.join(node.proc_root, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _same(one: str, other: str) -> bool | None:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return None


def _written(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _utc(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
