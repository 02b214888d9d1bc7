# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""State files other than ``dra_manager_state`` in the same report: health, and what drivers keep for themselves."""

from __future__ import annotations

import typing as t

from . import kinds
from .diagnosis import FAULTY, REFUSED, SOUND
from .driver_files import ReaderVerdict
from .example_driver import read_example_driver
from .findings import Finding
from .health import read_health
from .nvidia import read_nvidia

Json = dict[str, t.Any]


def read_other(data: bytes, path: str = "") -> Json | None:
    """The report of a file of another kind, None for a ``dra_manager_state`` or for what nobody knows."""
    kind = kinds.detect(data, path)
    reader = _READERS.get(kind)
    return None if reader is None else {"kind": kind, **reader(data)}


def _health(data: bytes) -> Json:
    reading = read_health(data)
    devices = [device.to_dict() for device in reading.devices]
    verdicts = {release: dict(verdict._asdict()) for release, verdict in reading.verdicts.items()}
    facts = {"layout": reading.layout, "written_by": list(reading.releases), "verdicts": verdicts, "devices": devices}
    return _report(facts, reading.findings, [], refused=False)  # no kubelet refuses to start because of this file


def _nvidia(data: bytes) -> Json:
    reading = read_nvidia(data)
    facts = {
        "driver": reading.driver,
        "layout": reading.layout,
        "written_by": list(reading.written_by),
        "readable_by": list(reading.readable_by),
        "verdicts": _verdicts(reading.verdicts),
        "checksum_v1": dict(reading.v1._asdict()),
        "checksum_v2": dict(reading.v2._asdict()),
        "boot_id": reading.boot_id,
    }
    claims = [claim.to_dict() for claim in reading.claims]
    return _report(facts, reading.findings, claims, refused=not reading.readable_by)


def _example(data: bytes) -> Json:
    reading = read_example_driver(data)
    facts = {
        "layout": reading.layout,
        "verdicts": _verdicts(reading.verdicts),
        "checksum": dict(reading.checksum._asdict()),
    }
    claims = [claim.to_dict() for claim in reading.claims]
    refused = not any(verdict.ok for verdict in reading.verdicts.values())
    return _report(facts, reading.findings, claims, refused=refused)


_READERS: t.Mapping[str, t.Callable[[bytes], Json]] = {
    kinds.HEALTH: _health,
    kinds.NVIDIA: _nvidia,
    kinds.EXAMPLE_DRIVER: _example,
}


def _verdicts(verdicts: t.Mapping[str, ReaderVerdict]) -> Json:
    return {version: dict(verdict._asdict()) for version, verdict in verdicts.items()}


def _report(facts: Json, findings: t.Sequence[Finding], claims: t.Sequence[Json], *, refused: bool) -> Json:
    faults = [finding.to_dict() for finding in findings]
    worth_mending = any(finding.severity != "info" for finding in findings)
    return {
        "status": REFUSED if refused else FAULTY if worth_mending else SOUND,
        "faults": faults,
        "claims": list(claims),
        "reading": facts,
    }
