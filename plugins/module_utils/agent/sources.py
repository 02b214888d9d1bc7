# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who on a node says what about its claims: our manager, the kubelet, drivers' own files, CDI specs, the API.

Only files are read here, and nothing is written; what the API and drivers' sockets say is given.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import typing as t

from ..cdi.registry import Registry
from ..checkpoint import store
from ..checkpoint.diagnosis import REFUSED, Diagnosis, diagnose
from ..checkpoint.entries import Entry
from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import MissingFileError, StoreError
from ..checkpoint.findings import Finding
from ..checkpoint.kubelet_root import STATE_FILE_NAME
from ..checkpoint.other_files import read_other
from ..checkpoint.store import StateDirectory
from ..manager.boot import current_boot_id
from ..manager.durable_claims import Record
from ..manager.loading import load
from ..manager.opening import Settings
from ..resource.view import JsonObject


@dataclasses.dataclass
class Sources:
    """Everything that was found.

    ``manager`` and ``kubelet`` map claim UIDs to what our manager and the kubelet recorded, None where their file
    cannot be read. ``drivers`` maps the name of a driver that keeps a file of its own to the claims in it; ``damaged``
    names those drivers whose file may have lost claims. ``complete`` says that no state file may have.
    ``registered`` maps the drivers with a registration socket to whether they answer, None where nobody looked.
    ``claims`` and ``pods`` are objects of the API, None where it was not asked; ``node_name`` is set if the pods are
    those of this node alone. ``findings`` are about the sources themselves.
    """

    kubelet_root: str = "/var/lib/kubelet"
    manager: dict[str, Record] | None = dataclasses.field(default_factory=dict)
    kubelet: dict[str, Entry] | None = dataclasses.field(default_factory=dict)
    drivers: dict[str, dict[str, t.Any]] = dataclasses.field(default_factory=dict)
    damaged: set[str] = dataclasses.field(default_factory=set)
    complete: bool = True
    cdi: Registry | None = None
    registered: dict[str, bool] | None = None
    claims: list[JsonObject] | None = None
    pods: list[JsonObject] | None = None
    node_name: str = ""
    findings: list[Finding] = dataclasses.field(default_factory=list)

    def unreadable(self, code: str, place: str, error: DraError) -> None:
        """Note that a state file cannot be read, so that nobody takes its claims for unknown."""
        self.complete = False
        self.findings.append(Finding(code, "error", place, error.message, error.hint, error.facts))


def read_sources(
    *,
    state_directory: str,
    kubelet_root: str,
    cdi_directories: t.Sequence[str] | None = None,
) -> Sources:
    """Read what is on this node. A source that cannot be read is a finding, never an error."""
    sources = Sources(kubelet_root)
    read_manager(sources, state_directory)
    read_kubelet(sources)
    read_drivers(sources)
    read_cdi(sources, cdi_directories, lambda: Registry.load(cdi_directories or None))
    return sources


def read_manager(sources: Sources, state_directory: str) -> None:
    """What our own manager recorded."""
    settings = Settings(state_directory)
    try:
        with StateDirectory(state_directory) as directory:
            loaded = load(directory, settings.state_name, settings.notes_name, current_boot_id())
    except MissingFileError:
        return  # our manager never worked on this node
    except DraError as error:
        sources.manager = None
        sources.unreadable("manager_state_unusable", settings.state_path, error)
        return
    sources.manager = dict(loaded.records)
    sources.findings += loaded.findings


def read_kubelet(sources: Sources) -> None:
    """What the kubelet recorded."""
    path = os.path.join(sources.kubelet_root, STATE_FILE_NAME)
    try:
        data = store.read_file(path, follow=True).data
    except MissingFileError:
        return
    except StoreError as error:
        take_unreadable_kubelet(sources, path, error)
        return
    take_kubelet(sources, path, diagnose(data))


def take_unreadable_kubelet(sources: Sources, path: str, error: DraError) -> None:
    """Note that what the kubelet recorded is not known."""
    sources.kubelet = None
    sources.unreadable("kubelet_state_unreadable", path, error)


def take_kubelet(sources: Sources, path: str, diagnosis: Diagnosis) -> None:
    """Take what the kubelet recorded from its file as it was diagnosed."""
    sources.kubelet = {entry.uid: entry for entry in diagnosis.entries}
    if diagnosis.found is None:
        sources.complete = False  # these were saved from a damaged file, others may have been lost
    if diagnosis.status == REFUSED:
        first = next((item for item in diagnosis.faults if item.severity == "error"), None)
        text = f"The kubelet does not start with {path}: {first.text if first else 'no release reads it.'}"
        remedy = "Look at it with nodeops.dra.checkpoint_info, then mend it with nodeops.dra.checkpoint."
        sources.findings.append(Finding("kubelet_state_refused", "error", path, text, remedy))


def read_cdi(sources: Sources, directories: t.Sequence[str] | None, load: t.Callable[[], Registry]) -> None:
    """The CDI specs, as ``load`` brings them from ``directories``."""
    try:
        sources.cdi = load()
        sources.findings += sources.cdi.findings
    except DraError as error:
        place = ", ".join(directories or ())
        sources.findings.append(Finding("cdi_unreadable", "error", place, error.message, error.hint, error.facts))


def read_drivers(sources: Sources) -> None:
    """What drivers keep in files of their own below the kubelet's root."""
    pattern = os.path.join(glob.escape(sources.kubelet_root), "plugins", "*", "checkpoint.json")
    for path in sorted(glob.glob(pattern)):
        driver = os.path.basename(os.path.dirname(path))
        try:
            report = read_other(store.read_file(path).data, path)
        except StoreError as error:
            sources.unreadable("driver_state_unreadable", path, error)
            continue
        if report is None:
            continue
        sources.drivers[driver] = {claim["uid"]: claim for claim in report["claims"]}
        if report["status"] == REFUSED:
            sources.damaged.add(driver)
            sources.complete = False
        for fault in report["faults"]:
            if fault["severity"] != "info":
                place = f"{path} {fault['place']}".strip()
                sources.findings.append(
                    Finding(fault["code"], fault["severity"], place, fault["text"], fault["remedy"], fault["facts"])
                )
