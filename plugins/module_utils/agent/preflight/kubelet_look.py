# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The kubelet of the node: where its root is, its version, its gates, whether it runs."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ...checkpoint.file_errors import shown
from ...checkpoint.findings import Finding
from ...checkpoint.kubelet import KubeletProcess, find_kubelets, kubelet_on_root
from ...checkpoint.kubelet_command import DEFAULT_ROOTS, option
from ...checkpoint.kubelet_root import AmbiguousRootError, default_state_path
from ...checkpoint.procfs import inside, read_process
from .codes import finding
from .gates import DRA, NAMES, OLDEST, is_on, refusals, stage
from .kubelet_files import KubeletSettings, document, words_in
from .node import Node, UnreadableError, release

# Where a kubelet is installed that does not run. The version is asked of the first that is there.
_PROGRAMS: t.Final = (
    "/usr/bin/kubelet",
    "/usr/local/bin/kubelet",
    "/opt/bin/kubelet",
    "/var/lib/k0s/bin/kubelet",
    "/usr/local/bin/k3s",
    "/opt/bin/k3s",
)
_CONFIGURATION: t.Final = "config.yaml"
_K3S_CONFIGURATION: t.Final = "/etc/rancher/{0}/config.yaml"


@dataclasses.dataclass
class Kubelet:
    """What is known of it; None is unknown. ``dra`` tells whether it prepares claims itself."""

    root: str | None = None
    root_source: str = ""
    root_reason: str = ""
    process: KubeletProcess | None = None
    program: str | None = None
    version: str | None = None
    settings: KubeletSettings = dataclasses.field(default_factory=lambda: KubeletSettings(complete=False))

    @property
    def exists(self) -> bool:
        """Whether there is a kubelet, running or not."""
        return self.process is not None or self.program is not None or self.root_source in ("configuration", "found")

    @property
    def dra(self) -> bool | None:
        """Whether the gate of DRA is on."""
        return self.gate_on(DRA, release(self.version))

    def gate_on(self, gate: str, kubelet: tuple[int, int] | None) -> bool | None:
        """Whether a gate is on in a release with what is set now."""
        gates = self.settings.gates
        if kubelet is None:
            # Of DRA's gate an explicit value tells enough: a kubelet that does not know it would not have started.
            return gates.get(gate)
        on = is_on(gate, kubelet[1], gates)
        whatever = {is_on(gate, kubelet[1], {**gates, gate: value}) for value in (True, False)} == {on}
        return on if self.settings.complete or gate in gates or whatever else None

    def to_dict(self, target: tuple[int, int] | None) -> dict[str, t.Any]:
        """As the module returns it."""
        facts = self.process.as_facts() if self.process is not None else {}
        return {
            "root": self.root,
            "root_source": self.root_source,
            "root_reason": self.root_reason,
            "running": self.process is not None,
            "version": self.version,
            "distribution": facts.get("distribution"),
            "pid": facts.get("pid"),
            "unit": self.process.unit if self.process is not None else None,
            "started_at": facts.get("started_at"),
            "in_container": facts.get("in_container"),
            "configuration_files": self.settings.files,
            "runtime_endpoint": self.settings.endpoint,
            "prepares_claims": self.process is not None and self.dra if self.dra is not None else None,
            "gates": self._gates(target),
        }

    def _gates(self, target: tuple[int, int] | None) -> list[dict[str, t.Any]]:
        now = release(self.version)
        listed = []
        for gate in sorted(NAMES):
            known = [stage(gate, version[1]) for version in (now, target) if version is not None]
            if gate in self.settings.gates or any(what is not None for what in known):
                what = stage(gate, now[1]) if now is not None else None
                listed.append(
                    {
                        "name": gate,
                        "set": self.settings.gates.get(gate),
                        "stage": what.value if what is not None else None,
                        "on": self.gate_on(gate, now),
                        "on_in_target": self.gate_on(gate, target) if target is not None else None,
                    }
                )
        return listed


def look_at_kubelet(node: Node, given_root: str | None) -> tuple[Kubelet, list[Finding]]:
    """What can be known of the kubelet, and what is wrong with it whatever it is needed for."""
    kubelet = Kubelet()
    findings = _find(node, given_root, kubelet)
    if kubelet.process is not None:
        kubelet.settings = _running_settings(node, kubelet.process)
        running = read_process(kubelet.process.pid, node.proc_root)
        kubelet.version = node.running_version(running) if running is not None else None
    else:
        kubelet.program = next((path for path in _PROGRAMS if node.exists(path)), None)
        kubelet.version = node.version(kubelet.program) if kubelet.program is not None else None
        if kubelet.root is not None:
            kubelet.settings.read(node, node.own(os.path.join(kubelet.root, _CONFIGURATION)))
    findings += [
        finding(
            "kubelet_configuration_unreadable",
            shown(path),
            text,
            "Correct the file, or look at its featureGates by hand.",
            file=shown(path),
        )
        for path, text in kubelet.settings.problems
    ]
    return kubelet, findings


def _find(node: Node, given_root: str | None, kubelet: Kubelet) -> list[Finding]:
    options = {"proc_root": node.proc_root, "fs_root": node.fs_root}
    try:
        found = default_state_path(given_root, **options)
    except AmbiguousRootError as error:
        candidates = error.facts.get("candidates", [])
        return [finding("kubelet_root_ambiguous", "kubelet_root", error.message, error.hint, candidates=candidates)]
    kubelet.root, kubelet.root_source, kubelet.root_reason = found.kubelet_root, found.source, found.reason
    kubelet.process = kubelet_on_root(found.kubelet_root, **options)
    if kubelet.process is not None:
        return []
    # One in a container with directories of its own is the kubelet of another node, within this one.
    others = [one for one in find_kubelets(**options) if one.host_root is not None]
    if not others:
        return []
    kubelet.process = others[0]
    own = others[0].host_root
    return [
        finding(
            "kubelet_root_differs",
            shown(kubelet.root),
            f"The root directory {shown(kubelet.root)} was looked at ({kubelet.root_reason}), and the running kubelet "
            f"(pid {others[0].pid}) has {shown(own)}: a driver that registers in the one is not seen by the other.",
            "Leave kubelet_root out, or set it to the directory of the kubelet.",
            given=shown(kubelet.root),
            running=shown(own),
        )
    ]


def _running_settings(node: Node, process: KubeletProcess) -> KubeletSettings:
    settings = KubeletSettings()
    found = read_process(process.pid, node.proc_root)
    view = node.seen_by(found) if found is not None else None
    if view is None:
        settings.complete = False
        return settings
    words = _words(view, process, settings)
    config, directory = option(words, "config"), option(words, "config-dir")
    if config is not None:
        settings.read(view, os.path.join("/", config), must_exist=True)
    if directory is not None:
        settings.read_directory(view, os.path.join("/", directory))
    settings.add_words(words)
    return settings


def _words(node: Node, process: KubeletProcess, settings: KubeletSettings) -> list[str]:
    """The options that the kubelet itself got, wherever its distribution keeps them."""
    words = list(process.argv[1:])
    if process.distribution == "microk8s":
        path = option(words, "kubelet-args-file")
        try:
            text = node.text(path) if path is not None else None
        except UnreadableError:
            text = None
        settings.complete = text is not None
        return words_in(text or "")
    if process.distribution in ("k3s", "rke2") and os.path.basename(process.argv[0]) != "kubelet":
        # k3s runs the kubelet within itself, and shows no more of its command line than "k3s server".
        settings.complete = False
        path = _K3S_CONFIGURATION.format(process.distribution)
        return [*_k3s_arguments(node, path, settings), *_passed_on(words)]
    return words


def _k3s_arguments(node: Node, path: str, settings: KubeletSettings) -> list[str]:
    try:
        text = node.text(path)
        given = document(text, path).get("kubelet-arg", []) if text is not None else []
    except UnreadableError as error:
        settings.problems.append((path, error.message))
        return []
    if text is not None:
        settings.files.append(path)
    return [f"--{str(one).lstrip('-')}" for one in (given if isinstance(given, list) else [given])]


def _passed_on(words: t.Sequence[str]) -> list[str]:
    pairs = zip(words, [*words[1:], ""])
    given = [word.partition("=")[2] or after for word, after in pairs if word.partition("=")[0] == "--kubelet-arg"]
    return [f"--{one.lstrip('-')}" for one in given]


def kubelet_findings(kubelet: Kubelet, target: tuple[int, int] | None) -> t.Iterator[Finding]:
    """What is missing for DRA, now and in the target release."""
    place = shown(kubelet.root or "kubelet")
    if not kubelet.exists:
        yield finding(
            "kubelet_not_found",
            place,
            "No kubelet runs here, and neither its program nor its settings were found.",
            "Install the kubelet, or use the agent in the mode manage, which needs none.",
        )
        return
    now = release(kubelet.version)
    if kubelet.process is None:
        text = "The kubelet does not run, so its command line is not known and its gates were read from its file alone."
        yield finding(
            "kubelet_not_running", place, text, "Start the kubelet and look again, unless it is down on purpose."
        )
    if now is None:
        yield finding(
            "kubelet_version_unknown",
            place,
            "The version of the kubelet could not be asked: its program is in a container, is not root's, or failed.",
            "Run kubelet --version by hand, and compare with what this collection supports.",
        )
    elif now < (1, OLDEST):
        text = f"The kubelet is {kubelet.version}, and DRA is there from 1.{OLDEST} on."
        yield finding("kubelet_too_old", place, text, "Upgrade the node.", version=kubelet.version)
        return
    yield from _gate_findings(kubelet, now, target, place)


def _gate_findings(
    kubelet: Kubelet, now: tuple[int, int] | None, target: tuple[int, int] | None, place: str
) -> t.Iterator[Finding]:
    switch = f"Set featureGates: {{{DRA}: true}} in the kubelet's configuration and restart it; the API server, the "
    switch += "scheduler and the controller manager need the same gate."
    version = kubelet.version or "of unknown version"
    if kubelet.dra is False:
        yield finding("gate_off", place, f"{DRA} is off in this kubelet ({version}).", switch, gate=DRA)
    elif kubelet.dra is None:
        text = f"Whether {DRA} is on in this kubelet ({version}) cannot be told from what could be read."
        remedy = (
            "Look for kubernetes_feature_enabled in the kubelet's /metrics, or look again as root and while it runs."
        )
        yield finding("gate_unknown", place, text, remedy, gate=DRA)
    if target is not None and kubelet.gate_on(DRA, target) is False:
        text = f"{DRA} would be off in Kubernetes {target[0]}.{target[1]}, which has it off unless it is set."
        yield finding("gate_off_in_target", place, text, switch, gate=DRA, target_version=f"{target[0]}.{target[1]}")
    for version_asked in [one for one in (target, None if kubelet.process else now) if one is not None][:1]:
        for gate, why in refusals(version_asked[1], kubelet.settings.gates).items():
            name = f"{version_asked[0]}.{version_asked[1]}"
            yield finding(
                "gate_refused",
                place,
                f"A kubelet of Kubernetes {name} does not start with the gate {gate} that is set here: {why}.",
                f"Take {gate} out of featureGates before that kubelet is started.",
                gate=gate,
                release=name,
            )


def other_roots(node: Node, root: str) -> t.Iterator[str]:
    """Roots of other distributions on this node that are not the kubelet's."""
    for other in dict.fromkeys(DEFAULT_ROOTS.values()):
        place = inside(node.fs_root, other)
        if os.path.isdir(place) and os.path.realpath(place) != os.path.realpath(root):
            yield place
