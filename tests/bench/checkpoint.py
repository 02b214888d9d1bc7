# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How long a look at a large state file takes, as a ratio to what the standard library needs to decode it, and how much
memory a change of a very large one.

``json.loads`` of a file of 1.31 and later gives one long string, not a claim: the second ratio is to decoding the file
and the text inside ``Data``, which is what it takes to see the claims.
"""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import statistics
import tempfile
import time
import tracemalloc
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import checksums, claims, formats, statefile
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.diagnosis import diagnose
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.document import Document
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.entries import EntryList
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.gojson import encode_text
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.report import diagnosis_report

CLAIMS = 10_000
CHANGED_CLAIMS = 120_000
"""So many make a file of some 45 MB."""
MEMORY = 10.0
RUNS = 5
TARGETS = {formats.CRC: 5.0, formats.FNV: 60.0}


def crc_file(form: formats.Format, count: int) -> bytes:
    """A file of 1.31 and later with some claims of one device each."""
    parts = []
    for number in range(count):
        device = claims.Device("node-1", f"gpu-{number}", ("req-0",), (f"vendor.example.com/gpu=dev-{number}",))
        claim = claims.ClaimState(
            _uid("c0de", number), f"claim-{number}", "default", frozenset([_uid("b0d0", number)]),
            {"gpu.example.com": (device,)},
        )  # fmt: skip
        parts.append(claims.EncodedClaim.of(form.claim.encode(claim.to_fields())))
    return claims.assemble(parts)


def fnv_file(form: formats.Format, count: int) -> bytes:
    """A file of 1.27 to 1.30 with some claims of one device each."""
    entries = [
        {
            "DriverName": "gpu.example.com",
            "ClassName": f"class-{number}",
            "ClaimUID": _uid("c0de", number),
            "ClaimName": f"claim-{number}",
            "Namespace": "default",
            "PodUIDs": {_uid("b0d0", number): {}},
            "ResourceHandles": [{"driverName": "gpu.example.com", "data": f"device-{number}"}],
            "CDIDevices": {"gpu.example.com": [f"vendor.example.com/gpu=dev-{number}"]},
        }
        for number in range(count)
    ]
    document: dict[str, t.Any] = {"version": "v1", "entries": entries}
    document["checksum"] = checksums.fnv_of_document(form, document)
    return encode_text(form.document.encode(document))


def _uid(prefix: str, number: int) -> str:
    return f"{prefix}{number % 10000:04d}-1111-4222-8333-{number:012d}"


def _decode_all(data: bytes) -> None:
    outer = json.loads(data)
    if "Data" in outer:
        json.loads(outer["Data"])


def _seconds(work: t.Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _ratios(data: bytes) -> tuple[float, float, float]:
    """Median seconds of an inspection, and its median ratios to the two ways of decoding, pair by pair."""
    rows = []
    for _unused in range(RUNS):
        outer = _seconds(lambda: json.loads(data))
        both = _seconds(lambda: _decode_all(data))
        ours = _seconds(lambda: diagnosis_report(diagnose(data)))
        rows.append((ours, ours / both, ours / outer))
    return t.cast("tuple[float, float, float]", tuple(statistics.median(column) for column in zip(*rows)))


def _peak(data: bytes) -> float:
    tracemalloc.start()
    diagnose(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / len(data)


def _resident(what: str) -> int:
    """Bytes of memory of this process: ``VmRSS`` now, ``VmHWM`` the most since the peak was forgotten."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what))


def _change(state: str, target: str | None, cut: int) -> tuple[int, float, float]:
    """The size of a large file, the seconds of its change, and the memory of that as a multiple of the size."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "dra_manager_state"
        data = crc_file(formats.CRC_1_35, CHANGED_CLAIMS)
        path.write_bytes(data[: len(data) - cut])
        del data
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        before, size = _resident("VmRSS"), path.stat().st_size
        request = statefile.Request(state, target, force=True)
        seconds = _seconds(lambda: statefile.change(statefile.locate(str(path)), request))
        return size, seconds, (_resident("VmHWM") - before) / size


def _changes() -> t.Iterator[str]:
    yield f"\nChange a file of {CHANGED_CLAIMS} claims on disk, backup and all; each in a process of its own"
    yield "change               MB  seconds   memory  target"
    for name, *job in (("repair of a cut", "repaired", None, 100), ("convert to 1.31", "converted", "1.31", 0)):
        with multiprocessing.Pool(1) as pool:
            size, seconds, memory = pool.apply(_change, job)
        yield f"{name:<16}{size / 1e6:>7.1f}{seconds:>9.1f}{memory:>8.1f}x{MEMORY:>8.0f}"


def run() -> t.Iterator[str]:
    """The lines of the table."""
    yield f"Inspect a file of {CLAIMS} claims; medians of {RUNS} runs, ratios pair by pair"
    yield "format        MB  seconds  to claims  to outer  target   memory  2x claims"
    for form in formats.FORMATS:
        make = crc_file if form.family == formats.CRC else fnv_file
        data = make(form, CLAIMS)
        assert len(EntryList(Document(data), form.family).entries) == CLAIMS
        ours, to_claims, to_outer = _ratios(data)
        double = _seconds(lambda form=form, make=make: diagnose(make(form, 2 * CLAIMS)))  # type: ignore[misc]
        single = _seconds(lambda form=form, make=make: diagnose(make(form, CLAIMS)))  # type: ignore[misc]
        yield (
            f"{form.name:<10}{len(data) / 1e6:>6.1f}{ours:>9.3f}{to_claims:>11.1f}{to_outer:>10.1f}"
            f"{TARGETS[form.family]:>8.0f}{_peak(data):>8.1f}x{double / single:>10.1f}x"
        )
    yield from _changes()
