# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The whole look at a node before anything is installed on it. Reads only, and needs nothing but Python 3.9.

Each look stands for itself: one that fails becomes a finding, and the others go on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import typing as t

from ...cdi.directories import DEFAULT_DIRECTORIES, normalised
from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import shown
from ...checkpoint.findings import Finding
from ...checkpoint.formats import release_of
from ...checkpoint.kubelet import kubelet_on_root
from ...checkpoint.kubelet_root import STATE_FILE_NAME
from ..claim_request import DEFAULT_STATE_DIRECTORY
from ..sources import Sources, read_sources
from . import agent_python, device_plugins, driver_look, machine, rights, sockets
from .codes import BLOCKING_ELSEWHERE, CODES, Mode, finding, is_blocker, matters
from .gates import DRA
from .kubelet_look import Kubelet, kubelet_findings, look_at_kubelet, other_roots
from .node import Node, release
from .runtime_look import Runtime, chosen_runtime, look_at_runtimes, runtime_findings

Json = dict[str, t.Any]

_ORDER: t.Final = {"error": 0, "warning": 1, "info": 2}


@dataclasses.dataclass(frozen=True)
class Question:
    """What the node shall do. ``accept``: codes of findings that are known, and no reason to stop.

    ``runtime`` is the name of the container runtime that counts, None to find it out.
    ``target_version`` is the Kubernetes release that the node shall run next, None for the present one.
    """

    mode: Mode = "manage"
    kubelet_root: str | None = None
    state_directory: str = DEFAULT_STATE_DIRECTORY
    cdi_directories: t.Sequence[str] | None = None
    target_version: str | None = None
    runtime: str | None = None
    accept: t.Sequence[str] = ()


def preflight(question: Question, node: Node | None = None) -> Json:
    """What node_info returns. Raises `DraError` only for an option that cannot be used."""
    target = None if question.target_version is None else release(release_of(question.target_version))
    for name in ("kubelet_root", "state_directory"):
        path = getattr(question, name)
        if path is not None and not path.startswith("/"):
            raise DraError(f"{name} is {shown(path)}, which is not an absolute path.", "Give it as /var/lib/kubelet.")
    unknown = sorted(set(question.accept) - set(CODES) - set(BLOCKING_ELSEWHERE))
    if unknown:
        raise DraError(
            f"accept has {', '.join(map(shown, unknown))}, which no finding of a preflight has as its code.",
            "Give codes as blockers have them, such as device_plugin_overlap.",
            unknown=[shown(one) for one in unknown],
        )
    directories = question.cdi_directories
    tidy = None if directories is None else [normalised(path) for path in directories]
    return _Look(dataclasses.replace(question, cdi_directories=tidy), node or Node(), target).report()


class _Look:
    """One look: what was found so far. Later looks use what earlier ones found, and do without where those failed."""

    def __init__(self, question: Question, node: Node, target: tuple[int, int] | None) -> None:
        self.question = question
        self.node = node
        self.target = target
        self.findings: list[Finding] = []
        self.kubelet = Kubelet()
        self.runtimes: list[Runtime] = []
        self.runtime: Runtime | None = None
        self.sources: Sources | None = None
        self.drivers = driver_look.Drivers()
        self.cdi: list[Json] = []
        self.plugins: list[Json] = []
        self.directories: list[Json] = []
        self.selinux = "unknown"
        self.machine: Json = {}
        self.pythons: list[Json] = []

    @contextlib.contextmanager
    def _part(self, name: str) -> t.Iterator[None]:
        try:
            yield
        except DraError as error:
            hint = error.hint or "Correct this, and look again."
            self.findings.append(finding("look_failed", name, f"The look at {name} failed: {error.message}", hint))
        except Exception as error:  # whatever it is, the other looks are worth having
            text = f"The look at {name} failed: {type(error).__name__}: {shown(error)}."
            self.findings.append(finding("look_failed", name, text, "Report this with the configuration of the node."))

    def report(self) -> Json:
        """Look at everything, and say whether the node is ready."""
        for name, look in (
            ("the kubelet", self._kubelet),
            ("container runtimes", self._runtimes),
            ("claims and CDI specs", self._claims),
            ("drivers", self._drivers),
            ("CDI directories", self._cdi),
            ("device plugins", self._plugins),
            ("directories and rights", self._rights),
            ("the machine", self._machine),
            ("Python", self._python),
        ):
            with self._part(name):
                look()
        return self._result()

    def _kubelet(self) -> None:
        self.kubelet, found = look_at_kubelet(self.node, self.question.kubelet_root)
        self.findings += found
        if self.kubelet.root is not None:
            self.findings += kubelet_findings(self.kubelet, self.target)
        if self.kubelet.process is not None and self.kubelet.dra:
            self.findings.append(
                finding(
                    "kubelet_prepares_too",
                    shown(self.kubelet.root),
                    f"A kubelet runs here (pid {self.kubelet.process.pid}) with {DRA} on: it prepares the claims of "
                    "its pods, and an agent in the mode manage would prepare them too.",
                    "Use the agent in the mode observe, or switch the gate off in the kubelet of this node.",
                    pid=self.kubelet.process.pid,
                )
            )

    def _runtimes(self) -> None:
        self.runtimes = look_at_runtimes(self.node, self.kubelet)
        self.runtime = chosen_runtime(self.runtimes, self.question.mode, self.question.runtime)
        self.findings += runtime_findings(self.runtimes, self.runtime, self.question.mode, self.question.runtime)

    @property
    def _spec_directories(self) -> list[str]:
        """The directories that count: the runtime's, else those of the task, else the usual ones."""
        known = self.runtime.settings.directories if self.runtime is not None else None
        if known is not None:
            return [self.node.named(path) for path in known]
        return list(self.question.cdi_directories or (self.node.named(path) for path in DEFAULT_DIRECTORIES))

    def _claims(self) -> None:
        if self.kubelet.root is None:
            return
        self.sources = read_sources(
            state_directory=self.question.state_directory,
            kubelet_root=self.kubelet.root,
            cdi_directories=self._spec_directories,
        )
        self.findings += self.sources.findings

    def _drivers(self) -> None:
        root = self.kubelet.root
        if root is None:
            return
        registry = os.path.join(root, "plugins_registry")
        self.drivers = driver_look.look_at_drivers(root, registry, self.sources)
        self.findings += sockets.socket_findings(self.node.own(root), self.drivers.names())
        options = {"proc_root": self.node.proc_root, "fs_root": self.node.fs_root}
        strays = [other for other in other_roots(self.node, root) if kubelet_on_root(other, **options) is None]
        self.findings += driver_look.elsewhere(root, strays)
        if self.kubelet.process is not None and not os.path.isdir(registry):
            text = f"{shown(registry)} does not exist although the kubelet runs: no driver can register."
            self.findings.append(
                finding(
                    "registry_missing",
                    shown(registry),
                    text,
                    "Check that kubelet_root is the kubelet's root directory.",
                )
            )

    def _cdi(self) -> None:
        directories = self._spec_directories
        ours = self.question.cdi_directories
        driver_look.find_specs(self.node, self.drivers, [*directories, *(ours or ())])
        if self.runtime is not None and self.runtime.settings.directories is not None:
            self.findings += driver_look.unread_specs(self.drivers, directories, ours)
        if directories:
            self.findings += driver_look.writable_findings(directories[-1])
        files = self.sources.cdi.files if self.sources is not None and self.sources.cdi is not None else ()
        for directory in directories:
            facts = rights.look_at_directory(directory)
            # Who may write a spec may have root run a program when a container starts.
            self.findings += rights.directory_findings(facts, must_write=False, has_state=False)
            specs = sum(os.path.dirname(file.path) == directory for file in files)
            self.cdi.append({**facts, "specs": specs})

    def _plugins(self) -> None:
        if self.kubelet.root is None:
            return
        path = device_plugins.record_path(self.kubelet.root)
        try:
            self.plugins = device_plugins.device_plugins(path)
        except DraError as error:
            remedy = "Look at allocatable in kubectl get node -o yaml for resources of a driver's vendor."
            self.findings.append(finding("device_plugin_state_unreadable", shown(path), error.message, remedy))
        self.findings += device_plugins.overlaps(path, self.plugins, self.drivers.names())

    def _rights(self) -> None:
        self.selinux = rights.look_at_selinux(self.node)
        self.findings += rights.user_findings(self.selinux)
        root = self.kubelet.root
        below = [] if root is None else [root, os.path.join(root, "plugins_registry"), os.path.join(root, "plugins")]
        ours = [] if self.question.mode == "none" else [self.question.state_directory]
        for path in [*below, *ours]:
            facts = rights.look_at_directory(path)
            self.directories.append(facts)
            has_state = path in (root, *ours)
            self.findings += rights.directory_findings(facts, must_write=True, has_state=has_state)

    def _machine(self) -> None:
        self.machine = machine.look_at_machine(self.node)
        state = os.path.join(self.kubelet.root or "", STATE_FILE_NAME)
        claims = len(self.sources.kubelet or ()) if self.sources is not None else 0
        written = [state, os.path.join(self.question.state_directory, STATE_FILE_NAME)]
        self.findings += machine.machine_findings(self.machine, written, kubelet_state=state, claims=claims)

    def _python(self) -> None:
        self.pythons = agent_python.look_at_pythons(self.node)
        self.findings += agent_python.python_findings(self.pythons)

    def _result(self) -> Json:
        mode, accepted = self.question.mode, self.question.accept
        different = {(one.code, one.place, one.text): one for one in self.findings if matters(one, mode)}
        listed = sorted(different.values(), key=lambda one: (_ORDER[one.severity], one.code, one.place))
        blockers = [one for one in listed if is_blocker(one, mode) and one.code not in accepted]
        root = self.kubelet.root
        room = sockets.SocketRoom.below(self.node.own(root)) if root is not None else None
        return {
            "changed": False,
            "ready": not blockers,
            "blockers": [one.to_dict() for one in blockers],
            "findings": [one.to_dict() for one in listed],
            "mode": self.question.mode,
            "target_version": None if self.target is None else f"{self.target[0]}.{self.target[1]}",
            "kubelet": self.kubelet.to_dict(self.target),
            "runtimes": [one.to_dict() for one in self.runtimes],
            "cdi": {
                "enabled": self.runtime.settings.cdi if self.runtime is not None else None,
                "runtime": self.runtime.name if self.runtime is not None else None,
                "directories": self.cdi,
            },
            "drivers": [one.to_dict() for one in self.drivers.values()],
            "device_plugins": self.plugins,
            "longest_driver_name": None if room is None else dataclasses.asdict(room),
            "directories": self.directories,
            "selinux": self.selinux,
            "machine": self.machine,
            "pythons": self.pythons,
            "agent_python": agent_python.python_for_agent(self.pythons),
        }
