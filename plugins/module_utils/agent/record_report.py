# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A claim that our manager has recorded, as modules return it."""

from __future__ import annotations

import typing as t

from ..checkpoint.claims import Device
from ..manager.durable_claims import Record
from .claim_diff import is_prepared

Json = dict[str, t.Any]


def record_report(record: Record) -> Json:
    """One recorded claim with its CDI names, ready for ``podman run``. JSON types only."""
    state = record.state
    drivers = [
        {"name": driver, "devices": None if devices is None else [_device(device) for device in devices]}
        for driver, devices in sorted(state.drivers.items())
    ]
    return {
        "uid": state.uid,
        "name": state.name,
        "namespace": state.namespace,
        "pods": sorted(state.pod_uids),
        "prepared": is_prepared(record),
        "drivers": drivers,
        **container_arguments(drivers),
    }


def container_arguments(drivers: t.Iterable[Json]) -> Json:
    """``cdi_devices``, the CDI names of all devices, each once, and ``device_arguments`` made of them."""
    devices = [device for driver in drivers for device in driver["devices"] or ()]
    names = list(dict.fromkeys(name for device in devices for name in device["cdi_devices"]))
    return {"cdi_devices": names, "device_arguments": [f"--device={name}" for name in names]}


def _device(device: Device) -> Json:
    return {
        "pool": device.pool_name,
        "device": device.device_name,
        "share_id": device.share_id,
        "requests": list(device.request_names),
        "cdi_devices": list(device.cdi_device_ids),
    }
