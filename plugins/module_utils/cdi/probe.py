# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A harmless device by which one can see whether a container runtime applies CDI at all.

Some runtimes drop the request without a word when CDI is off: the container runs and its devices are missing. The probe
is a spec with one variable; a container that asks for the device has the variable, or the runtime ignored CDI.
"""

from __future__ import annotations

import json
import typing as t

from ..checkpoint.findings import Finding
from . import codes
from .names import QualifiedName, spec_stem

PROBE_DEVICE = QualifiedName("probe.nodeops.dra", "dev", "ok")
PROBE_VARIABLE = "CDI_PROBE=1"
#: Name of the file to write into one of the runtime's directories, and to remove afterwards.
PROBE_FILE = f"{spec_stem(PROBE_DEVICE.vendor, PROBE_DEVICE.class_name)}.json"


def probe_spec() -> str:
    """Text of the spec file of the probe."""
    spec = {
        "cdiVersion": "0.3.0",
        "kind": PROBE_DEVICE.kind,
        "devices": [{"name": PROBE_DEVICE.device, "containerEdits": {"env": [PROBE_VARIABLE]}}],
    }
    return json.dumps(spec, indent=2) + "\n"


def probe_findings(environment: t.Iterable[str], runtime: str, directory: str) -> list[Finding]:
    """Nothing when the variable arrived, else the finding.

    ``environment`` holds the ``NAME=VALUE`` lines of the probe container, ``runtime`` names the runtime for the
    message, ``directory`` is where the spec of the probe was written.
    """
    if PROBE_VARIABLE in {line.strip() for line in environment}:
        return []
    return [
        Finding(
            codes.RUNTIME_IGNORED,
            "error",
            runtime,
            f"{runtime} ignored CDI: a container that asked for {PROBE_DEVICE} started without {PROBE_VARIABLE}, so "
            "containers that ask for real devices start without them too.",
            f"Switch CDI on in the runtime (containerd: enable_cdi = true), let cdi_spec_dirs hold {directory}, and "
            "restart the runtime.",
            {"runtime": runtime, "device": str(PROBE_DEVICE), "directory": directory},
        )
    ]
