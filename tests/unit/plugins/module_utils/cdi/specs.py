# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Builders of CDI specs and spec files for the tests of this layer."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import typing as t

import pytest

Json = dict[str, t.Any]

UID_1 = "11111111-2222-4333-8444-000000000001"
UID_2 = "11111111-2222-4333-8444-000000000002"

needs_yaml = pytest.mark.skipif(importlib.util.find_spec("yaml") is None, reason="PyYAML is not installed")


def device(name: str = "gpu-0", **edits: t.Any) -> Json:
    """A device with one environment variable unless other edits are given."""
    return {"name": name, "containerEdits": edits or {"env": [f"GPU={name}"]}}


def spec(*devices: Json, kind: str = "gpu.test.example/gpu", version: str = "0.5.0", **fields: t.Any) -> Json:
    """A spec, by default with one device."""
    return {"cdiVersion": version, "kind": kind, "devices": list(devices or (device(),)), **fields}


def write(directory: pathlib.Path, name: str, content: Json | str | bytes) -> pathlib.Path:
    """Write a file, dicts as JSON; makes the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


#: A spec that uses every field there is.
FULL = spec(
    device(
        "gpu-0",
        env=["A=1", "B="],
        deviceNodes=[
            {
                "path": "/dev/a",
                "hostPath": "/dev/b",
                "type": "c",
                "major": 1,
                "minor": 2,
                "fileMode": 438,
                "permissions": "rw",
                "uid": 0,
                "gid": 4294967295,
            },
            {"path": "/dev/c", "permissions": "none"},
            {"path": "/dev/d", "permissions": "", "type": ""},
        ],
        mounts=[{"hostPath": "/a", "containerPath": "/b", "type": "bind", "options": ["ro"]}],
        hooks=[{"hookName": "prestart", "path": "/x", "args": ["x"], "env": ["A=b"], "timeout": 3}],
        netDevices=[{"hostInterfaceName": "eth9", "name": "net0"}],
        intelRdt={
            "closID": "x",
            "l3CacheSchema": "L3",
            "memBwSchema": "MB",
            "schemata": ["a"],
            "enableMonitoring": True,
        },
        additionalGids=[5],
    ),
    version="1.1.0",
    annotations={"a": "b"},
    containerEdits={"env": ["C=3"]},
)
