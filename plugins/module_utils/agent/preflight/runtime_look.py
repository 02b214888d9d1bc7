# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The container runtimes of the node, which of them is the kubelet's, and whether CDI devices reach its containers."""

from __future__ import annotations

import dataclasses
import os
import time
import typing as t

from ...cdi.directories import normalised
from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import shown
from ...checkpoint.findings import Finding
from ...checkpoint.kubelet_command import option
from ...checkpoint.procfs import Process, processes, start_time
from .codes import Mode, finding
from .containerd import DEFAULT_FILE, CdiSettings, containerd_settings
from .kubelet_look import Kubelet
from .node import Node, release
from .other_runtimes import CRIO_SINCE, PODMAN_SINCE, crio_settings, podman_settings

CONTAINERD_SINCE: t.Final = (1, 7)
_SINCE: t.Final[t.Mapping[str, tuple[int, int]]] = {
    "containerd": CONTAINERD_SINCE,
    "cri-o": CRIO_SINCE,
    "podman": PODMAN_SINCE,
}
_CRIO_FILE: t.Final = "/etc/crio/crio.conf"
_SOCKETS: t.Final[t.Mapping[str, str]] = {
    "containerd": "/run/containerd/containerd.sock",
    "cri-o": "/run/crio/crio.sock",
}
# Where a containerd that does not run has its file, and where its program may be.
_FILES: t.Final[t.Mapping[str, str]] = {
    "": DEFAULT_FILE,
    "k3s": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "rke2": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "k0s": "/etc/k0s/containerd.toml",
    "microk8s": "/var/snap/microk8s/current/args/containerd.toml",
}
_MARKS: t.Final[t.Mapping[str, str]] = {
    "k3s": "/rancher/k3s/",
    "rke2": "/rancher/rke2/",
    "k0s": "/k0s/",
    "microk8s": "/microk8s/",
}
_PROGRAMS: t.Final[t.Mapping[str, t.Sequence[str]]] = {
    "containerd": ("/usr/bin/containerd", "/usr/local/bin/containerd"),
    "cri-o": ("/usr/bin/crio", "/usr/local/bin/crio"),
    "podman": ("/usr/bin/podman", "/usr/local/bin/podman"),
}
#: How CDI is switched on in each distribution's containerd; its file is filled in.
EDIT: t.Final[t.Mapping[str, str]] = {
    "": "Set enable_cdi = true in the table of the CRI plugin in {0}",
    "k3s": "Set enable_cdi = true in config.toml.tmpl (config-v3.toml.tmpl with containerd 2) beside {0}",
    "rke2": "Set enable_cdi = true in config.toml.tmpl (config-v3.toml.tmpl with containerd 2) beside {0}",
    "k0s": "Put a file with enable_cdi = true for the CRI plugin into /etc/k0s/containerd.d",
    "microk8s": "Set enable_cdi = true in /var/snap/microk8s/current/args/containerd-template.toml",
}


@dataclasses.dataclass
class Runtime:
    """One runtime. ``distribution`` is empty for one that the node itself has installed."""

    name: str
    version: str | None
    process: Process | None
    settings: CdiSettings
    distribution: str = ""
    configuration: str = ""
    used_by_kubelet: bool | None = None
    started_at: float | None = None
    socket: str = ""

    def to_dict(self) -> dict[str, t.Any]:
        """As the module returns it."""
        at = self.started_at
        return {
            "name": self.name,
            "version": self.version,
            "running": self.process is not None,
            "pid": self.process.pid if self.process is not None else None,
            "started_at": None if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
            "distribution": self.distribution,
            "used_by_kubelet": self.used_by_kubelet,
            "configuration_files": self.settings.files,
            "cdi": self.settings.cdi,
            "cdi_directories": self.settings.directories,
        }


def look_at_runtimes(node: Node, kubelet: Kubelet) -> list[Runtime]:
    """Every runtime that runs or has a configuration here, the kubelet's marked."""
    running = [found for process in processes(node.proc_root) if (found := _running(node, process)) is not None]
    runtimes = running + [found for name in _PROGRAMS for found in _installed(node, name, running)]
    for one in runtimes:
        directories = one.settings.directories
        try:
            one.settings.directories = None if directories is None else [normalised(path) for path in directories]
        except DraError as error:
            one.settings.problems.append((one.configuration, error.message))
            one.settings.directories = None
    _mark_the_kubelets(runtimes, kubelet)
    return sorted(runtimes, key=lambda one: (not one.used_by_kubelet, one.process is None, one.name, one.distribution))


def _running(node: Node, process: Process) -> Runtime | None:
    first = os.path.basename(process.argv[0]) if process.argv else ""
    names = {process.name, first, os.path.basename(process.executable or "")}
    name = "containerd" if "containerd" in names else "cri-o" if "crio" in names else None
    # One in a container serves that container: a node within the node.
    if name is None or node.seen_by(process) is not node:
        return None
    version = node.running_version(process)
    words = _long_options(process.argv[1:])
    if name == "cri-o":
        settings = crio_settings(node, words, release(version))
        file, distribution, socket = option(words, "config") or _CRIO_FILE, "", option(words, "listen")
    else:
        file = option(words, "config") or DEFAULT_FILE
        if "/docker/" in file:
            return None  # docker's own, of no use to a kubelet
        distribution = distribution_of(file, process.executable or "")
        settings = containerd_settings(node, file, release(version))
        socket = option(words, "address")
    socket = (socket or _SOCKETS[name]).rpartition("://")[2]
    started = start_time(process, node.proc_root)
    return Runtime(name, version, process, settings, distribution, file, started_at=started, socket=socket)


def _installed(node: Node, name: str, running: t.Sequence[Runtime]) -> t.Iterator[Runtime]:
    """What is there without running. One that runs beside it would have told."""
    if any(one.name == name for one in running):
        return
    program = next((path for path in _PROGRAMS[name] if node.exists(path)), None)
    version = node.version(program) if program is not None else None
    if name == "containerd":
        for distribution, file in _FILES.items():
            if node.exists(file) or (program is not None and not distribution):
                own = version if not distribution else None
                settings = containerd_settings(node, file, release(own))
                socket = "" if distribution else _SOCKETS[name]
                yield Runtime(name, own, None, settings, distribution, file, socket=socket)
    elif name == "cri-o":
        if program is not None or node.exists("/etc/crio"):
            settings = crio_settings(node, (), release(version))
            yield Runtime(name, version, None, settings, "", _CRIO_FILE, socket=_SOCKETS[name])
    elif program is not None:
        settings = podman_settings(node, release(version))
        yield Runtime(name, version, None, settings, "", "/etc/containers/containers.conf")


def _long_options(words: t.Sequence[str]) -> list[str]:
    short = {"-c": "--config", "-a": "--address", "-d": "--config-dir"}
    return [short.get(word, word) for word in words]


def distribution_of(*paths: str) -> str:
    """The distribution that one of these files belongs to, empty for none."""
    return next((name for name, mark in _MARKS.items() if any(mark in path for path in paths)), "")


def _without_var(path: str | None) -> str:
    return (path or "").replace("/var/run/", "/run/", 1)


def _mark_the_kubelets(runtimes: t.Sequence[Runtime], kubelet: Kubelet) -> None:
    """Mark the one that the kubelet uses: of its distribution, at its endpoint, or the only one there can be."""
    if not kubelet.exists:
        for one in runtimes:
            one.used_by_kubelet = False
        return
    candidates = [one for one in runtimes if one.name != "podman"]
    endpoint = (kubelet.settings.endpoint or "").rpartition("://")[2]
    distribution = kubelet.process.distribution if kubelet.process is not None else ""
    steps: t.Sequence[t.Callable[[Runtime], bool]] = (
        lambda one: bool(endpoint) and _without_var(one.socket) == _without_var(endpoint),
        lambda one: bool(one.distribution) and one.distribution == distribution,
        lambda one: not endpoint and one.process is not None,
        lambda one: True,
    )
    for step in steps:
        chosen = [one for one in candidates if step(one)]
        if len(chosen) == 1:
            for one in runtimes:
                one.used_by_kubelet = one is chosen[0]
            return


def chosen_runtime(runtimes: t.Sequence[Runtime], mode: Mode, wanted: str | None) -> Runtime | None:
    """The runtime on which it depends whether devices reach containers; None where that is not known.

    That is the one that is ``wanted``. Without a word it is the kubelet's, or in the mode manage, in which claims are
    not the kubelet's, the only one.
    """
    candidates = [one for one in runtimes if wanted in (None, one.name)]
    if mode != "manage" and wanted is None:
        candidates = [one for one in candidates if one.name != "podman"]
    if mode != "manage" or wanted is not None:
        candidates = [one for one in candidates if one.used_by_kubelet] or candidates
    return candidates[0] if len(candidates) == 1 else None


def runtime_findings(
    runtimes: t.Sequence[Runtime], chosen: Runtime | None, mode: Mode, wanted: str | None
) -> t.Iterator[Finding]:
    """What stands between CDI devices and containers, as far as the runtime's version and configuration go."""
    if not [one for one in runtimes if wanted in (None, one.name)]:
        # In the mode manage claims may be for services, which need no container runtime.
        if wanted is not None or mode != "manage":
            text = f"No {wanted or 'containerd, CRI-O or podman'} was found, running or installed."
            yield finding("runtime_not_found", "runtime", text, "Install it, or name the runtime that is used instead.")
        return
    if chosen is None:
        names = ", ".join(_label(one) for one in runtimes)
        text = f"Which container runtime gets the devices cannot be told: {names}."
        remedy = "Name it in the option runtime, or set containerRuntimeEndpoint in the kubelet's configuration."
        yield finding("runtime_ambiguous", "runtime", text, remedy, runtimes=[one.name for one in runtimes])
        return
    for path, text in chosen.settings.problems:
        remedy = "Correct the file, or look at its CDI settings by hand."
        yield finding("runtime_configuration_unreadable", shown(path), text, remedy, file=shown(path))
    yield from _cdi_findings(chosen)


def _cdi_findings(runtime: Runtime) -> t.Iterator[Finding]:
    place, label, version = shown(runtime.configuration), _label(runtime), release(runtime.version)
    since = ".".join(map(str, _SINCE[runtime.name]))
    if version is None:
        text = f"The version of {label} could not be asked: its program was not found, is not root's, or failed."
        remedy = f"Run the program with --version by hand; CDI needs {since} or later."
        yield finding("runtime_version_unknown", place, text, remedy, runtime=runtime.name)
    elif version < _SINCE[runtime.name]:
        text = f"{label} does not know CDI, which is there from {since} on."
        yield finding("runtime_too_old", place, text, "Upgrade it.", runtime=runtime.name, version=runtime.version)
        return
    if not runtime.settings.serves_kubelets:
        text = f"{place} switches off the CRI plugin of {label}, so no kubelet can use it."
        remedy = "Take cri out of disabled_plugins and restart containerd."
        yield finding("cri_disabled", place, text, remedy, runtime=runtime.name)
    if runtime.settings.cdi is False:
        if runtime.name == "containerd":
            what = "CDI is off in {0}: claims are prepared, and their devices do not reach the containers."
            edit = EDIT[runtime.distribution].format(place)
            remedy = f"{edit} and restart it, after a drain where pods must not notice."
        else:
            what = "{0} reads CDI specs from no directory, so devices do not reach the containers."
            remedy = f"Take the empty cdi_spec_dirs out of {place} and restart it."
        yield finding("cdi_off", place, what.format(label), remedy, runtime=runtime.name)
    elif runtime.settings.cdi is None:
        text = f"Whether {label} injects CDI devices cannot be told from its version and its configuration."
        remedy = "Look for enable_cdi and cdi_spec_dirs in what containerd config dump (crio config) prints."
        yield finding("cdi_unknown", place, text, remedy, runtime=runtime.name)


def _label(runtime: Runtime) -> str:
    of = f" of {runtime.distribution}" if runtime.distribution else ""
    return f"{runtime.name} {runtime.version}{of}" if runtime.version else f"{runtime.name}{of}"
