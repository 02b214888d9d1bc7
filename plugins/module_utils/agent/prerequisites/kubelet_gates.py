# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Switch feature gates on in the kubelet's configuration file, as far as its release needs that."""

from __future__ import annotations

import typing as t

from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import shown
from ..preflight.gates import OLDEST, is_on, refusals
from ..preflight.node import UnreadableError, release
from .gate_edit import gates_in, with_gates
from .settings_file import Change, SettingsFile, apply_all
from .toml_edit import NotEditableError

#: Where a distribution that writes the file itself has it, and what to do there.
_GENERATED: t.Final[t.Mapping[str, tuple[str, str]]] = {
    "/rancher/k3s/": ("k3s", "Put feature-gates={0} below kubelet-arg in /etc/rancher/k3s/config.yaml"),
    "/rancher/rke2/": ("rke2", "Put feature-gates={0} below kubelet-arg in /etc/rancher/rke2/config.yaml"),
    "/k0s/": ("k0s", "Set featureGates in a worker profile (spec.workerProfiles) of the cluster's k0s configuration"),
    "/microk8s/": ("microk8s", "Put --feature-gates={0} into /var/snap/microk8s/current/args/kubelet"),
}


def set_gates(path: str, gates: t.Sequence[str], version: str | None, *, check: bool) -> dict[str, t.Any]:
    """Switch those of the gates on that are not on already in that release. Raises DraError with all as it was."""
    _refuse_generated(path, gates)
    minor = _minor(version)
    file = SettingsFile.read(path)
    if file.plain is None:
        raise DraError(
            f"{shown(path)} does not exist, so no gates can be set in it.",
            "Join the node to its cluster first, or name the file that the kubelet gets with --config.",
        )
    refused = refusals(minor, dict.fromkeys(gates, True))
    for name, why in refused.items():
        raise DraError(
            f"The gate {shown(name)} cannot be set in {shown(path)}: {why}.",
            "A kubelet does not start with it. Take it out of the list of gates.",
        )
    try:
        present = gates_in(file.plain, path)
        wanted = {name: True for name in gates if not is_on(name, minor, present)}
        after = with_gates(file.plain, path, wanted)
    except NotEditableError as error:
        raise DraError(f"{shown(path)} {error.message}", error.hint, path=path) from None
    except UnreadableError as error:
        raise DraError(f"{error.message} Nothing was changed.", "Correct the file.", path=path) from None
    return _finish(Change(file, after), check, {**present, **wanted})


def take_back_gates(path: str, *, check: bool) -> dict[str, t.Any]:
    """Take back every line of ours."""
    file = SettingsFile.read(path)
    present = {}
    if file.plain is not None:
        try:
            present = gates_in(file.plain, path)
        except (NotEditableError, UnreadableError):
            present = {}  # it is taken back whatever else is in there
    return _finish(Change(file, file.plain), check, present)


def _finish(change: Change, check: bool, gates: t.Mapping[str, bool]) -> dict[str, t.Any]:
    changed = change.is_needed
    if changed and not check:
        apply_all([change], None)
    return {
        "changed": changed,
        "files": [change.to_dict()] if changed else [],
        "gates": dict(sorted(gates.items())),
        "before": {change.file.path: change.file.text or ""} if changed else {},
        "after": {change.file.path: change.after or ""} if changed else {},
    }


def _minor(version: str | None) -> int:
    found = release(version)
    if found is None:
        raise DraError(
            f"The version of the kubelet is not known: {version or 'its program was not found'}.",
            "Give it in the option version, such as 1.33.",
        )
    if found[0] != 1 or found[1] < OLDEST:
        raise DraError(
            f"The kubelet {version} is older than DRA, which is there from 1.{OLDEST} on.", "Upgrade it first."
        )
    return found[1]


def _refuse_generated(path: str, gates: t.Sequence[str]) -> None:
    for mark, (distribution, remedy) in _GENERATED.items():
        if mark in path:
            options = ",".join(f"{name}=true" for name in gates)
            raise DraError(
                f"{shown(path)} is written by {distribution}, so a change in it would be lost.",
                f"Nothing was changed. {remedy.format(options)}, and restart it.",
                distribution=distribution,
            )
