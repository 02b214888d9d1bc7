# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Running kubelets: found without systemd, told apart by root directory, and how to stop each.

A kubelet in a container sees other directories under the same names, so a root directory is compared by device and
inode as that process sees it (``/proc/PID/root``), never by its text alone. Where we may not look at that (not root),
the kubelet is taken for one on this file system: rather stop for nothing than write under a running kubelet.
Not found: a kubelet that /proc hides (``hidepid``, another PID namespace than ours), and one that crashes and is
started again and again, in the moments in which it is down.
"""

from __future__ import annotations

import os
import re
import shlex
import time
import typing as t
from dataclasses import dataclass

from .kubelet_command import DEFAULT_ROOTS, KubeletCommand, recognise
from .kubelet_settings import arguments_root, configured_root
from .open_directory import PathText, check_directory_path
from .procfs import Process, command_text, has_other_root, inside, masked_argv, processes, resolve_below, start_time

_UNIT: t.Final = re.compile(r"/([^/\n]+\.service)(?:/[^\n]*)?$", re.MULTILINE)


@dataclass(frozen=True)
class KubeletProcess:
    """A running kubelet.

    ``argv`` is raw and may hold secrets: show ``command`` instead. ``root_dir`` is its root directory as it sees it
    itself, without symbolic links; ``root_source`` says where that was found. ``host_root`` is the same directory as
    seen from here, None when it cannot be reached (container). ``in_container``: it has another root file system
    than ours; None when we may not look. ``started_at`` is in seconds since the epoch, ``unit`` its systemd service.
    """

    pid: int
    argv: tuple[str, ...]
    distribution: str
    root_dir: str
    root_source: str
    host_root: str | None
    in_container: bool | None
    config_path: str | None
    started_at: float | None
    unit: str | None

    @property
    def command(self) -> str:
        """The command line for people: secrets masked, cut to 200 characters."""
        return command_text(self.argv)

    def as_facts(self) -> dict[str, t.Any]:
        """Return JSON types; ``argv`` with secrets masked, ``started_at`` as RFC 3339 text in UTC or None."""
        started = None if self.started_at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started_at))
        return {
            "pid": self.pid,
            "argv": masked_argv(self.argv),
            "distribution": self.distribution,
            "root_dir": self.root_dir,
            "host_root": self.host_root,
            "in_container": self.in_container,
            "config_path": self.config_path,
            "started_at": started,
            "unit": self.unit,
        }


def find_kubelets(*, proc_root: PathText = "/proc", fs_root: PathText = "/") -> list[KubeletProcess]:
    """Return every running kubelet by ascending process number; StoreError when /proc cannot be read.

    Known: the plain kubelet, hyperkube, k3s, rke2, k0s and microk8s (kubelite). A supervisor (rke2, k0s) is listed
    only while its kubelet child is not there, since it is about to start one.
    """
    known = {process.pid: process for process in processes(proc_root)}
    commands = {pid: command for pid, process in known.items() if (command := recognise(process)) is not None}
    supervisor_of = {
        pid: parent
        for pid, command in commands.items()
        if not command.is_supervisor
        for parent in _ancestors(pid, known)
        if parent in commands and commands[parent].is_supervisor
    }
    found = []
    for pid, command in commands.items():
        if command.is_supervisor and pid in supervisor_of.values():
            continue
        supervisor = supervisor_of.get(pid)
        distribution = commands[supervisor].distribution if supervisor is not None else command.distribution
        found.append(_describe(known[pid], command, distribution, proc_root, fs_root))
    return found


def kubelet_on_root(root: PathText, *, proc_root: PathText = "/proc", fs_root: PathText = "/") -> KubeletProcess | None:
    """Return a running kubelet whose root directory is ``root`` (as seen from here); None when there is none."""
    wanted = check_directory_path(root)
    for kubelet in find_kubelets(proc_root=proc_root, fs_root=fs_root):
        as_it_sees = inside(os.path.join(proc_root, str(kubelet.pid), "root"), kubelet.root_dir)
        places = [as_it_sees] if kubelet.host_root is None else [as_it_sees, kubelet.host_root]
        if any(_same_directory(place, wanted) for place in places):
            return kubelet
        if kubelet.host_root is not None and os.path.realpath(wanted) == kubelet.host_root:
            # The directory may not exist yet, or not be ours to look at.
            return kubelet
    return None


def how_to_stop(kubelet: KubeletProcess, *, fs_root: PathText = "/") -> str:
    """Return one or two sentences for people: how to stop this very kubelet."""
    by_systemd = os.path.isdir(inside(fs_root, "/run/systemd/system"))
    if by_systemd and kubelet.unit is not None:
        return f"Stop it with: systemctl stop {shlex.quote(kubelet.unit)} (pods keep running)."
    if kubelet.in_container:
        return f"It runs in a container (pid {kubelet.pid} here): stop that container, or kill {kubelet.pid}."
    return _STOP_TEXTS[kubelet.distribution].format(pid=kubelet.pid)


_STOP_TEXTS: t.Final[t.Mapping[str, str]] = {
    "kubelet": "Stop it with: kill {pid}; if it comes back, stop what starts it (supervisor, init script) instead.",
    "k3s": "Stop it with: systemctl stop k3s (or k3s-agent), on OpenRC rc-service k3s stop; else kill {pid}.",
    "rke2": "Stop it with: systemctl stop rke2-server (or rke2-agent); else kill {pid}.",
    "k0s": "Stop it with: k0s stop; if k0s runs without a service, kill the k0s process, then {pid}.",
    "microk8s": "Stop it with: snap stop microk8s.daemon-kubelite (microk8s stop would stop the pods too).",
}


def _ancestors(pid: int, known: t.Mapping[int, Process]) -> t.Iterator[int]:
    seen = {pid}
    while pid in known and known[pid].parent not in seen:
        pid = known[pid].parent
        seen.add(pid)
        yield pid


def _describe(
    process: Process, command: KubeletCommand, distribution: str, proc_root: PathText, fs_root: PathText
) -> KubeletProcess:
    base = os.path.join(proc_root, str(process.pid))
    in_container = has_other_root(process.pid, proc_root, fs_root)
    view = os.path.join(base, "root") if in_container else os.fspath(fs_root)
    root, source = _root_of(process, command, view)
    if not root.startswith("/"):
        root = os.path.join(_working_directory(base), root)
    root = resolve_below(view, root)
    here = inside(fs_root, root)
    if in_container and not _same_directory(here, inside(view, root)):
        here = ""
    return KubeletProcess(
        pid=process.pid,
        argv=process.argv,
        distribution=distribution,
        root_dir=root,
        root_source=source,
        host_root=here or None,
        in_container=in_container,
        config_path=command.config_path,
        started_at=start_time(process, proc_root),
        unit=_unit_of(base),
    )


def _root_of(process: Process, command: KubeletCommand, view: str) -> tuple[str, str]:
    """Return the root directory and where it was found: command line, then the distribution's files, then default."""
    if command.root_option is not None:
        return command.root_option, f"command line of pid {process.pid}"
    if command.arguments_file is not None:
        root = arguments_root(command.arguments_file, view)
        if root is not None:
            return root, command.arguments_file
    if command.distribution != "kubelet":
        setting = configured_root(command.distribution, view)
        if setting is not None:
            return setting.root, setting.file
    return DEFAULT_ROOTS[command.distribution], f"default of {command.distribution}, running as pid {process.pid}"


def _working_directory(base: str) -> str:
    try:
        return os.readlink(os.path.join(base, "cwd"))
    except OSError:
        return "/"


def _same_directory(one: PathText, other: PathText) -> bool:
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except OSError:
        return False


def _unit_of(base: str) -> str | None:
    """Return the innermost systemd service in the control group of the process, None outside of services."""
    try:
        with open(os.path.join(base, "cgroup"), encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    names = [name for name in _UNIT.findall(text) if not name.startswith("user@")]
    return names[0] if names else None
