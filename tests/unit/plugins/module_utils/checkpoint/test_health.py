# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``dra_health_state``: verdicts of real kubelets, what is said about a file, and mending.

Follows: TestLoadFromCheckpoint, TestUpdateHealthInfo (pkg/kubelet/cm/dra/healthinfo_test.go).
"""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import gotime, health

from . import vectors

EXPECTED: dict[str, dict[str, t.Any]] = json.loads((vectors.FOLDER / "health" / "expected.json").read_text())
FULL = vectors.read("health/1.36/health_full.json")


def codes(data: bytes, **options: t.Any) -> list[str]:
    return [finding.code for finding in health.read_health(data, **options).findings]


@pytest.mark.parametrize("name", EXPECTED)
def test_verdict_of_the_newest_kubelet(name: str) -> None:
    expected = EXPECTED[name]
    verdict = health.read_health(vectors.read(f"health/{name}")).verdicts["1.36"]
    assert verdict == (
        expected["loads_without_error"],
        expected["devices_loaded"],
        expected["first_health_update_panics"],
        expected.get("go_error", ""),
    )


@pytest.mark.parametrize("name", [name for name in EXPECTED if not name.startswith("damaged")])
def test_good_files_are_told_to_be_of_their_release(name: str) -> None:
    reading = health.read_health(vectors.read(f"health/{name}"))
    assert name.split("/")[0] in reading.releases
    assert reading.layout == (EXPECTED[name]["format"] if reading.devices else "")
    assert reading.findings == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("array", ["health_wrong_type"]),
        ("bad_time", ["health_bad_time"]),
        ("devices_null", ["health_devices_null"]),
        ("driver_empty_object", ["health_devices_null"]),
        ("driver_null", ["health_driver_null"]),
        ("null", ["health_null_root"]),
        ("timeout_string", ["health_wrong_type", "health_unknown_value"]),
        ("truncated", ["health_unreadable"]),
        ("unknown_health_and_field", ["health_unknown_value", "health_negative_timeout"]),
        ("zero_padding", ["health_unreadable"]),
        ("zerobytes", ["health_unreadable"]),
    ],
)
def test_every_damage_has_its_code(name: str, found: list[str]) -> None:
    assert codes(vectors.read(f"health/damaged/{name}.json")) == found


def test_findings_are_plain_and_complete() -> None:
    for name in EXPECTED:
        for finding in health.read_health(vectors.read(f"health/{name}"), now=2e9).findings:
            assert finding.place
            assert finding.text.endswith(".")
            assert finding.severity == "info" or "Delete the file" in finding.remedy
            json.dumps(finding.to_dict())


def test_an_older_kubelet_does_not_mind_a_field_that_it_does_not_know() -> None:
    verdicts = health.read_health(vectors.read("health/damaged/timeout_string.json")).verdicts
    assert [verdicts[release].loads_without_error for release in health.RELEASES] == [True, False, False]


def test_devices_as_they_stand_in_the_file() -> None:
    devices = health.read_health(FULL).devices
    assert [(device.driver, device.key) for device in devices] == [
        ("gpu.example.com", "node-1/gpu-0"),
        ("gpu.example.com", "node-1/gpu-1"),
        ("gpu.example.com", "node-1/gpu-2"),
        ("net.example.org", "rack/a/b"),
    ]
    assert devices[1].to_dict() == {
        "driver": "gpu.example.com",
        "key": "node-1/gpu-1",
        "pool": "node-1",
        "device": "gpu-1",
        "health": "Unhealthy",
        "last_updated": "2026-05-14T10:11:12Z",
        "timeout": 90500000000,
        "message": 'ECC error: <row 7> & "bank" 3\nsee é😀',
        "stale": None,
    }
    assert devices[2].to_dict()["last_updated"] is None
    assert (devices[3].pool, devices[3].device) == ("rack/a", "b")


def test_very_many_faults_hide_no_device() -> None:
    wrong = ",".join(f'"p/{number}":{{"PoolName":{number}}}' for number in range(200))
    data = f'{{"d":{{"Devices":{{{wrong}}}}},"e":null}}'.encode()
    verdict = health.read_health(data).verdicts[health.NEWEST]
    assert verdict[:3] == (False, 200, True)


UPDATED = gotime.parse_rfc3339("2026-05-14T10:11:12.123456789Z") / 1e9


@pytest.mark.parametrize(
    ("now", "stale"),
    [
        pytest.param(UPDATED + 29, ["rack/a/b"], id="within the timeout"),
        pytest.param(UPDATED + 31, ["node-1/gpu-0", "rack/a/b"], id="after the default"),
        pytest.param(UPDATED + 91, ["node-1/gpu-0", "node-1/gpu-1", "rack/a/b"], id="after a longer one"),
    ],
)
def test_reports_grow_old(now: float, stale: list[str]) -> None:
    data = FULL.replace(b'"LastUpdated":"2026-05-14T10:11:12Z"', b'"LastUpdated":"2026-05-14T10:00:00Z"')
    reading = health.read_health(data, now=now)
    assert [device.key for device in reading.devices if device.stale and device.health != "Unknown"] == stale
    findings = {finding.facts["driver"]: finding for finding in reading.findings}
    assert set(codes(data, now=now)) == {"health_stale"}
    assert findings["net.example.org"].severity == "info"
    assert findings["net.example.org"].facts["devices"] == ["rack/a/b"]


def test_an_entry_under_another_name_is_never_found_again() -> None:
    data = b'{"d":{"Devices":{"p/b":{"PoolName":"p","DeviceName":"a","Health":"Healthy"}}}}'
    assert codes(data) == ["health_key_differs"]
