# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON Schema (draft 7) of a CDI spec, as runtimes read it.

It is Python source because only .py files travel with a module. It says what makes the shared CDI library refuse a file
by its shape; names, versions and what depends on several fields are checked in code. ``null`` never reaches it: the
library takes a null for an absent field, so nulls are removed before.
"""

from __future__ import annotations

import typing as t

Schema = t.Mapping[str, t.Any]

_TEXT: Schema = {"type": "string"}
_NAME: Schema = {"type": "string", "minLength": 1}
_UINT32: Schema = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_DEVICE_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
_FLAG: Schema = {"type": "boolean"}
_VARIABLES: Schema = {"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}}


def _object(required: t.Sequence[str], properties: t.Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": dict(properties),
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_ANNOTATIONS: Schema = {"type": "object", "additionalProperties": _TEXT}

_DEVICE_NODE = _object(
    ["path"],
    {
        "path": _NAME,
        "hostPath": _TEXT,
        "type": {"type": "string", "enum": ["", "b", "c", "u", "p"]},
        "major": _DEVICE_NUMBER,
        "minor": _DEVICE_NUMBER,
        "fileMode": _UINT32,
        # Python's $ also matches before a line feed at the end.
        "permissions": {"type": "string", "pattern": "^([rwm]*|none)$(?!\n)"},
        "uid": _UINT32,
        "gid": _UINT32,
    },
)

_MOUNT = _object(
    ["hostPath", "containerPath"],
    {"hostPath": _NAME, "containerPath": _NAME, "type": _TEXT, "options": _list(_TEXT)},
)

_HOOK = _object(
    ["hookName", "path"],
    {
        "hookName": {
            "type": "string",
            "enum": ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"],
        },
        "path": _NAME,
        "args": _list(_TEXT),
        "env": _VARIABLES,
        "timeout": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    },
)

_NET_DEVICE = _object(["hostInterfaceName", "name"], {"hostInterfaceName": _NAME, "name": _NAME})

_INTEL_RDT = _object(
    [],
    {
        "closID": {"type": "string", "maxLength": 4095},
        "l3CacheSchema": _TEXT,
        "memBwSchema": _TEXT,
        "schemata": _list(_TEXT),
        "enableMonitoring": _FLAG,
        "enableCMT": _FLAG,
        "enableMBM": _FLAG,
    },
)

_CONTAINER_EDITS = _object(
    [],
    {
        "env": _VARIABLES,
        "deviceNodes": _list(_DEVICE_NODE),
        "mounts": _list(_MOUNT),
        "hooks": _list(_HOOK),
        "netDevices": _list(_NET_DEVICE),
        "intelRdt": _INTEL_RDT,
        "additionalGids": _list(_UINT32),
    },
)

_DEVICE = _object(["name"], {"name": _NAME, "annotations": _ANNOTATIONS, "containerEdits": _CONTAINER_EDITS})

SPEC_SCHEMA: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "CDI spec",
    **_object(
        ["cdiVersion", "kind", "devices"],
        {
            "cdiVersion": _NAME,
            "kind": _NAME,
            "annotations": _ANNOTATIONS,
            "devices": {"type": "array", "minItems": 1, "items": _DEVICE},
            "containerEdits": _CONTAINER_EDITS,
        },
    ),
}
