# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``dra_health_state``: what the kubelet of 1.34 and later remembers about the health of devices.

The file has no checksum and never keeps a kubelet from starting. What can hurt is JSON that loads and then makes the
code panic at a driver's next health report: a driver without a map of devices.

Symbols followed: pkg/kubelet/cm/dra ``healthInfoCache.loadFromCheckpoint``, ``updateHealthInfo``, ``getHealthInfo``.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import gotime
from .findings import Finding
from .godecode import Decoded, decode
from .gofields import Int, Time
from .gojson import GoSyntaxError, decode_bytes, quote
from .gotypes import Field, Map, Str, Struct
from .lazyjson import read_root

RELEASES = ("1.34", "1.35", "1.36")
NEWEST = RELEASES[-1]
STATES = ("Healthy", "Unhealthy", "Unknown")
DEFAULT_TIMEOUT = 30 * 1_000_000_000
"""Nanoseconds after which a report counts as unknown where the driver names no time (``DefaultHealthTimeout``)."""

_LISTED = 100
_DELETE = (
    "Delete the file; that is always safe. The kubelet starts with no health known and writes a new one at the next "
    "change that a driver reports. It reads the file only at its start."
)


def _file_type(release: str) -> Map:
    fields = [
        Field("PoolName", Str()),
        Field("DeviceName", Str()),
        Field("Health", Str("state.DeviceHealthStatus")),
        Field("LastUpdated", Time()),
    ]
    if release != "1.34":
        fields.append(Field("HealthCheckTimeout", Int("time.Duration")))
    if release not in ("1.34", "1.35"):
        fields.append(Field("Message", Str()))
    devices = Map("map[string]state.DeviceHealth", Struct("state.DeviceHealth", fields))
    return Map("state.DevicesHealthMap", Struct("state.DriverHealthState", [Field("Devices", devices)]))


_TYPES = {release: _file_type(release) for release in RELEASES}


class HealthDevice(t.NamedTuple):
    """One device of the file, as the newest release reads it.

    ``key`` is its name in the map; ``last_updated`` and ``timeout`` are nanoseconds, the former since 1970 and None for
    "never". ``stale`` tells that the kubelet takes the device's health for unknown, None where nobody asked.
    """

    driver: str
    key: str
    pool: str
    device: str
    health: str
    last_updated: int | None
    timeout: int
    message: str
    stale: bool | None

    def to_dict(self) -> dict[str, t.Any]:
        """The device with JSON types only; the time as text."""
        return {**self._asdict(), "last_updated": gotime.timestamp(self.last_updated)}


class HealthVerdict(t.NamedTuple):
    """What the kubelet of a release makes of the file: how much it loads, with which error, and if that hurts later."""

    loads_without_error: bool
    devices_loaded: int
    first_health_update_panics: bool
    go_message: str


@dataclasses.dataclass
class HealthReading:
    """A health file. ``layout`` is ``health-1.34`` and so on, empty where the file does not show it; ``releases`` are
    those that write files of this shape."""

    layout: str = ""
    releases: tuple[str, ...] = ()
    verdicts: dict[str, HealthVerdict] = dataclasses.field(default_factory=dict)
    devices: list[HealthDevice] = dataclasses.field(default_factory=list)
    findings: list[Finding] = dataclasses.field(default_factory=list)


def read_health(data: bytes, now: float | None = None) -> HealthReading:
    """Read a health file. ``now``, in seconds since 1970, adds which reports are too old. Raises for no content."""
    text = decode_bytes(data)
    try:
        root = read_root(text)
    except GoSyntaxError as error:
        verdict = HealthVerdict(False, 0, False, error.go_message)
        return HealthReading(verdicts=dict.fromkeys(RELEASES, verdict), findings=[_unreadable(error)])
    newest = decode(_TYPES[NEWEST], root, text, {}, to_the_end=True)
    reading = HealthReading()
    for release in RELEASES:
        mine = newest
        if newest.go_message and release != NEWEST:
            mine = decode(_TYPES[release], root, text, {}, to_the_end=True)
        reading.verdicts[release] = _verdict(mine)
    reading.devices = list(_devices(newest.value, now))
    reading.releases = _writers(text, bool(reading.devices)) if root.kind == "object" else ()
    reading.layout = f"health-{reading.releases[0]}" if len(reading.releases) == 1 else ""
    reading.findings = [
        *_load_findings(newest),
        *_null_findings(newest.value, {name: node.kind for name, node in root.members()}),
        *_device_findings(reading.devices),
    ]
    return reading


def _verdict(decoded: Decoded) -> HealthVerdict:
    drivers = decoded.value or {}
    loaded = sum(len(driver["Devices"] or ()) for driver in drivers.values())
    return HealthVerdict(not decoded.go_message, loaded, _panics(decoded.value), decoded.go_message)


def _panics(drivers: t.Mapping[str, t.Any] | None) -> bool:
    return drivers is None or any(driver["Devices"] is None for driver in drivers.values())


def _writers(text: str, has_devices: bool) -> tuple[str, ...]:
    if not has_devices:
        return RELEASES
    if re.search(r'"Message"[ \t\n\r]*:', text):
        return ("1.36",)
    return ("1.35",) if re.search(r'"HealthCheckTimeout"[ \t\n\r]*:', text) else ("1.34",)


def _devices(drivers: t.Mapping[str, t.Any] | None, now: float | None) -> t.Iterator[HealthDevice]:
    moment = None if now is None else int(now * 1_000_000_000)
    for driver, state in sorted((drivers or {}).items()):
        for key, device in sorted((state["Devices"] or {}).items()):
            updated = device["LastUpdated"]
            timeout = device["HealthCheckTimeout"]
            yield HealthDevice(
                driver,
                key,
                device["PoolName"],
                device["DeviceName"],
                device["Health"],
                None if updated == gotime.ZERO else updated,
                timeout,
                device["Message"],
                None if moment is None else moment - updated > (timeout or DEFAULT_TIMEOUT),
            )


def _unreadable(error: GoSyntaxError) -> Finding:
    return Finding(
        "health_unreadable",
        "warning",
        f"offset {error.offset}",
        f"The file is not one JSON document: {error.go_message}. The kubelet logs this at its start and goes on with "
        "no health known.",
        _DELETE,
        {"kind": error.kind, "go_message": error.go_message, "offset": error.offset, "cut": error.cut},
    )


def _load_findings(decoded: Decoded) -> t.Iterator[Finding]:
    for fault in decoded.faults:
        yield Finding(
            "health_wrong_type",
            "warning",
            fault.path or "(document)",
            f"A {fault.found} stands where {fault.expected} belongs. The kubelet logs this at its start and keeps the "
            "rest of what it read.",
            _DELETE,
            {"expected": fault.expected, "found": fault.found, "go_message": decoded.go_message},
        )
    if decoded.stopped:
        yield Finding(
            "health_bad_time",
            "warning",
            "LastUpdated",
            f"A LastUpdated is no time: {decoded.go_message}. The kubelet logs this at its start and keeps only the "
            "drivers that stand before it.",
            _DELETE,
            {"go_message": decoded.go_message},
        )


def _null_findings(drivers: t.Mapping[str, t.Any] | None, kinds: t.Mapping[str, str]) -> t.Iterator[Finding]:
    panic = "The kubelet loads this and then panics at the first health report of"
    mend = f"{_DELETE} Or give each such driver an empty map of devices."
    if drivers is None:
        yield Finding("health_null_root", "error", "(document)", f"The file is null. {panic} any driver.", mend)
        return
    for name, driver in sorted(drivers.items()):
        if driver["Devices"] is not None:
            continue
        is_null = kinds.get(name) == "null"
        what = "is null" if is_null else "has no map of devices"
        yield Finding(
            "health_driver_null" if is_null else "health_devices_null",
            "error",
            f"[{quote(name)}]" if is_null else f"[{quote(name)}].Devices",
            f"The driver {name} {what}. {panic} that driver.",
            mend,
            {"driver": name},
        )


def _device_findings(devices: t.Sequence[HealthDevice]) -> t.Iterator[Finding]:
    stale: dict[str, list[str]] = {}
    for device in devices:
        place = f"[{quote(device.driver)}].Devices[{quote(device.key)}]"
        facts = {"driver": device.driver, "pool": device.pool, "device": device.device}
        if device.health not in STATES:
            yield Finding(
                "health_unknown_value",
                "warning",
                f"{place}.Health",
                f"The health {quote(device.health)} is none of {', '.join(STATES)}. The kubelet loads it as it stands, "
                "until the driver reports again.",
                _DELETE,
                {**facts, "health": device.health},
            )
        if device.key != f"{device.pool}/{device.device}":
            yield Finding(
                "health_key_differs",
                "warning",
                place,
                f"The entry is about {device.pool}/{device.device}. The kubelet looks devices up by the name of the "
                "entry, so it never finds this one.",
                _DELETE,
                {**facts, "key": device.key},
            )
        if device.timeout < 0:
            yield Finding(
                "health_negative_timeout",
                "warning",
                f"{place}.HealthCheckTimeout",
                f"The timeout is {device.timeout} ns, so the kubelet takes the device's health for unknown always.",
                _DELETE,
                {**facts, "timeout": device.timeout},
            )
        if device.stale and device.health != "Unknown":
            stale.setdefault(device.driver, []).append(device.key)
    for driver, keys in stale.items():
        yield Finding(
            "health_stale",
            "info",
            f"[{quote(driver)}].Devices",
            f"{len(keys)} device{'' if len(keys) == 1 else 's'} of {driver} have a report in the file that is older "
            "than its timeout. A kubelet that starts now takes their health for unknown until the driver reports "
            "again. That is usual: the file is written only when something changes.",
            "",
            {"driver": driver, "devices": keys[:_LISTED], "devices_total": len(keys)},
        )
