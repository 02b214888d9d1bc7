# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The state file of one node: found, looked at, and changed safely. What the modules and the command line call.

A change is planned in full first; then, under the lock and only while no kubelet runs on this root: backup, write,
read again, judge again. Whatever fails on the way leaves the file as it was.
"""

from __future__ import annotations

import dataclasses
import os
import typing as t

from . import backups, holders, kinds, kubelet, leftovers, lock, store
from .diagnosis import Diagnosis, diagnose
from .entries import NOTHING, Contents
from .errors import DraError
from .faults import Fault, fault
from .file_content import FileContent
from .file_errors import MissingFileError, StoreError
from .kubelet_root import default_state_path
from .other_files import read_other
from .planning import Plan, known_release, plan_convert, plan_repair
from .report import content, diagnosis_report
from .restoring import Restoration, plan_restore
from .selection import Selection

Json = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Location:
    """Where the state file is: its path, the kubelet root it belongs to, and how that was found out."""

    path: str
    root: str
    reason: str


def locate(path: str | None = None, kubelet_root: str | None = None) -> Location:
    """The file that is meant: the path that is given, or that of the kubelet root that is given or found."""
    if path is not None:
        return Location(path, os.path.dirname(os.path.abspath(path)), "the path that was given")
    found = default_state_path(kubelet_root)
    return Location(found.path, found.kubelet_root, found.reason)


def read(location: Location) -> FileContent | None:
    """The file as it is, None if there is none; `StoreError` when it cannot be read."""
    try:
        return store.read_file(location.path, follow=True)
    except MissingFileError:
        return None


def inspect(
    location: Location,
    *,
    target: str | None = None,
    known_pods: t.Collection[str] | None = None,
    with_processes: bool = True,
) -> Json:
    """One look at the file, as modules return it. Raises `StoreError` when it cannot be read."""
    found = read(location)
    data = found.data if found is not None else None
    report: Json = {
        "file": location.path,
        "kind": kinds.MANAGER,
        "kubelet_root": location.root,
        "found_by": location.reason,
        "exists": found is not None,
        "size": len(data) if data is not None else 0,
        "mode": f"{found.mode:04o}" if found is not None and found.mode is not None else None,
        "target_version": target,
        "kubelet": _kubelet_facts(location) if with_processes else None,
    }
    other = read_other(data, location.path) if data is not None else None
    if other is not None:
        return {**report, **other}
    diagnosis = diagnose(data, release=known_release(target), known_pods=known_pods)
    repair = _repair_preview(data, target, diagnosis)
    diagnosis.faults = _file_faults(location) + diagnosis.faults
    return {**report, **diagnosis_report(diagnosis), "repair": repair}


def _file_faults(location: Location) -> list[Fault]:
    faults = []
    directory = os.path.dirname(os.path.abspath(location.path))
    if not os.path.lexists(directory):
        text = f"There is no directory {directory}."
        faults.append(fault("missing_directory", directory, text, {"directory": directory}))
    if os.path.islink(location.path):
        target = os.path.realpath(location.path)
        faults.append(fault("symlink", location.path, f"The file is a symbolic link to {target}.", {"target": target}))
    try:
        left = leftovers.stale_temporaries(directory)
    except StoreError:
        return faults  # the directory is gone or not ours to list; reading the file says so
    for item in left:
        if item.kind == "checkpoint" and item.age > 60:
            text = f"An unfinished write of {item.size} bytes was left {item.age / 3600:.1f} hours ago."
            faults.append(fault("leftover_temporary", item.path, text, {"size": item.size, "age": round(item.age)}))
    return faults


def _repair_preview(data: bytes | None, target: str | None, diagnosis: Diagnosis) -> Json:
    """What ``state=repaired`` would do, without doing it."""
    try:
        plan = plan_repair(data, target=target, diagnosis=diagnosis)
    except DraError as error:
        return {"possible": False, "reason": str(error), "changed": False, "steps": [], "claims": 0}
    steps = [step.to_dict() for step in plan.steps]
    return {"possible": True, "reason": "", "changed": plan.changed, "steps": steps, "claims": len(plan.entries)}


def _kubelet_facts(location: Location) -> Json | None:
    found = kubelet.kubelet_on_root(location.root)
    return {**found.as_facts(), "how_to_stop": kubelet.how_to_stop(found)} if found is not None else None


@dataclasses.dataclass(frozen=True)
class Request:
    """What is wanted of a state file.

    ``state`` is ``repaired``, ``converted``, ``restored`` or ``absent``. ``target`` is a release, a format or
    ``universal``. ``backup`` names one copy and ``ring`` a directory of copies, for ``restored``; without it the
    agent's own is looked at, if it is of this file.
    """

    state: str
    target: str | None = None
    selection: Selection = dataclasses.field(default_factory=Selection)
    known_pods: t.Sequence[str] | None = None
    backup: str | None = None
    ring: str | None = None
    force: bool = False
    lock_timeout: float = 10.0


def change(location: Location, request: Request, *, check: bool = False) -> Json:
    """Bring the file to the wanted state, or with ``check`` only say how.

    Raises `DraError`; the file is then as before.

    Returns ``changed``, ``steps``, ``lost``, ``before`` and ``after`` (logical content), ``backup_file``, and for
    ``restored`` the copies that were considered.
    """
    backup = None
    found, plan, restoration = _plan_for(location, request)
    if plan.changed and not check:
        with lock.take_lock(location.path, timeout=request.lock_timeout):
            if not _is_still(location, found):  # whoever held the lock may have changed the file
                del found, plan, restoration
                found, plan, restoration = _plan_for(location, request)
            if plan.changed:
                _refuse_while_in_use(location, request.force)
                backup = _write(location, found, plan)
    del found
    return _result(location, plan, restoration, backup)


def _plan_for(location: Location, request: Request) -> tuple[FileContent | None, Plan, Restoration | None]:
    """The file as it is now, and what to make of it."""
    found = read(location)
    _refuse_other_kinds(location, found)
    return (found, *_plan(location, found, request))


def _is_still(location: Location, found: FileContent | None) -> bool:
    """Whether the file is the one that the plan was made for."""
    return store.is_still(location.path, found) if found is not None else read(location) is None


def _refuse_other_kinds(location: Location, found: FileContent | None) -> None:
    other = read_other(found.data, location.path) if found is not None else None
    if other is not None:
        raise DraError(
            f"{location.path} is not changed: it is a file of kind {other['kind']}, not a dra_manager_state.",
            "Look at it with checkpoint_info: each fault there says what to do about it.",
            path=location.path,
            kind=other["kind"],
        )


def _plan(location: Location, found: FileContent | None, request: Request) -> tuple[Plan, Restoration | None]:
    data = found.data if found is not None else None
    if request.state == "restored":
        ring = request.ring if request.ring is not None else backups.ring_of(location.path)
        restoration = plan_restore(location.path, data, backup=request.backup, ring=ring, target=request.target)
        return restoration.plan, restoration
    if request.state == "absent":
        return _plan_absent(data), None
    if request.state == "converted":
        if not request.target:
            raise DraError(
                "state=converted needs a target_version.", "Give the release the node will run, such as 1.31."
            )
        return plan_convert(data, request.target, selection=request.selection), None
    plan = plan_repair(data, target=request.target, known_pods=request.known_pods, selection=request.selection)
    return plan, None


def _plan_absent(data: bytes | None) -> Plan:
    from .draft import Step

    if data is None:
        return Plan(None, None, "")
    contents = diagnose(data).contents
    steps = [
        Step(
            "drop_claim", entry.label, f"Claim {entry.label} is forgotten.", "its drivers are not told to unprepare it"
        )
        for entry in contents.entries
    ]
    return Plan(data, None, "", [*steps, Step("remove_file", "", "The file is removed.")], former=contents)


def _refuse_while_in_use(location: Location, force: bool) -> None:
    if force:
        return
    running = kubelet.kubelet_on_root(location.root)
    if running is not None:
        raise DraError(
            f"{location.path} is not changed: kubelet pid {running.pid} runs on {location.root} and overwrites it.",
            f"{kubelet.how_to_stop(running)} Or use force to change the file all the same.",
            path=location.path,
            kubelet=running.as_facts(),
        )
    held = holders.holders(location.path) if os.path.lexists(location.path) else None
    if held:
        raise DraError(
            f"{location.path} is not changed: it is {held.describe()}.",
            "Stop that process first, or use force to change the file all the same.",
            path=location.path,
            holders=[item.as_facts() for item in held.processes],
        )


def _write(location: Location, found: FileContent | None, plan: Plan) -> str | None:
    """Backup, write, read again. Returns the backup's path, None when there was nothing to back up."""
    backup = backups.make_backup(location.path, content=found) if found is not None else None
    if plan.after is None:
        store.remove_file(location.path, unless_changed_since=found)
        return backup
    store.write_atomic(location.path, plan.after, unless_changed_since=found)
    same, facts = store.compare(location.path, plan.after)
    if not same:
        raise DraError(
            f"{location.path} does not hold what was written: {len(plan.after)} bytes expected, {facts.st_size} found.",
            f"Something else writes this file. The former content is in {backup or '(there was none)'}.",
            path=location.path,
            backup_file=backup,
        )
    return backup


def _result(location: Location, plan: Plan, restoration: Restoration | None, backup: str | None) -> Json:
    result: Json = {
        "changed": plan.changed,
        "file": location.path,
        "kubelet_root": location.root,
        "format": plan.target or None,
        **_steps(plan),
        "claims_before": len(plan.former.entries),
        "claims_after": len(plan.entries),
        **_contents(plan),
        "backup_file": backup,
    }
    if restoration is not None:
        result["restored_from"] = restoration.chosen.path if restoration.chosen is not None else None
        result["copies"] = [item.to_dict() for item in restoration.candidates]
    return result


def _steps(plan: Plan) -> Json:
    """The steps, and those of them that lose something."""
    steps = [step.to_dict() for step in plan.steps]
    return {"steps": steps, "lost": [step for step in steps if step["loses"]]}


def _contents(plan: Plan) -> Json:
    """What the file says before and after. Takes the plan apart: its parts are as large as what is told of them."""
    changed, there_before, there_after = plan.changed, plan.before is not None, plan.after is not None
    plan.before, plan.after, plan.steps = None, None, []
    before = content(plan.former)
    plan.former = NOTHING
    after = content(Contents(plan.target, plan.entries), before) if changed else before
    return {"before": before if there_before else {}, "after": after if there_after else {}}
