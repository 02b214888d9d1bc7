# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The probe device: a valid spec, and a finding when its variable does not arrive."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import probe
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.registry import Registry
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import write


@pytest.mark.report("F110")
def test_probe_spec_gives_the_variable(tmp_path: pathlib.Path) -> None:
    write(tmp_path, probe.PROBE_FILE, probe.probe_spec())
    registry = Registry.load([str(tmp_path)])
    assert registry.findings == []
    environment = registry.container_edits([str(probe.PROBE_DEVICE)]).env
    assert (
        probe.probe_findings(["PATH=/bin", *(f"{line}\n" for line in environment)], "containerd", str(tmp_path)) == []
    )


@pytest.mark.report("F110")
@pytest.mark.parametrize("environment", [[], ["CDI_PROBE=0"], ["X_CDI_PROBE=1"]])
def test_missing_variable_means_that_the_runtime_ignored_cdi(environment: list[str]) -> None:
    (finding,) = probe.probe_findings(environment, "containerd", "/var/run/cdi")
    assert (finding.code, finding.severity) == ("cdi_runtime_ignored", "error")
    assert "containerd ignored CDI" in finding.text
    assert "/var/run/cdi" in finding.remedy
