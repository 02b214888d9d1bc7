# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The content of a spec file: what runtimes accept, what they refuse, and what is said about it."""

from __future__ import annotations

import json
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.features import required_version, version_text
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.spec import document_problems, parse_spec
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import (
    FULL,
    Json,
    device,
    needs_yaml,
    spec,
)


def test_spec_with_every_field_is_accepted() -> None:
    file = parse_spec(json.dumps(FULL).encode(), "/x/a.json", 3)
    assert file.findings == ()
    assert file.spec is not None
    assert (file.spec.kind, file.spec.version, file.spec.priority) == ("gpu.test.example/gpu", "1.1.0", 3)
    assert file.spec.qualified("gpu-0") == "gpu.test.example/gpu=gpu-0"
    assert file.spec.devices["gpu-0"].edits == FULL["devices"][0]["containerEdits"]
    assert file.spec.annotations == {"a": "b"}
    assert file.stem == "a"


def edits(**fields: t.Any) -> Json:
    return spec(device("x", **{"env": ["A=1"], **fields}), version="1.1.0")


@pytest.mark.report("F112")
@pytest.mark.parametrize(
    ("document", "field", "text"),
    [
        pytest.param(None, "", "is empty", id="nothing"),
        pytest.param([], "", "is a list of 0", id="list"),
        pytest.param("x", "", 'is the text "x"', id="text"),
        pytest.param({}, "cdiVersion", "is missing", id="empty object"),
        pytest.param(spec(version="x"), "cdiVersion", "expected one of 0.1.0", id="no version"),
        pytest.param(spec(version="0.9.0"), "cdiVersion", "expected one of 0.1.0", id="version that never was"),
        pytest.param(spec(version="0.2.0"), "cdiVersion", "any spec needs at least 0.3.0", id="too old for anything"),
        pytest.param(spec(kind="gpu"), "kind", "the vendor is empty", id="kind without vendor"),
        pytest.param(spec(kind="a/b/c"), "kind", "the class", id="kind with two slashes"),
        pytest.param({**spec(), "devices": []}, "devices", "is empty", id="no devices"),
        pytest.param({**spec(), "devices": {}}, "devices", "is an object, expected a list", id="devices object"),
        pytest.param({**spec(), "devices": [None]}, "devices[0]", "is null, expected an object", id="null device"),
        pytest.param({**spec(), "future": 1}, "future", "is not a field of a CDI spec", id="unknown field"),
        pytest.param(
            spec({"name": "x"}), "devices[0].containerEdits", 'device "x" has no edits', id="device without edits"
        ),
        pytest.param(spec(device("x", env=[])), "devices[0].containerEdits", "has no edits", id="empty edits"),
        pytest.param(spec({"containerEdits": {}}), "devices[0].name", "is missing", id="device without name"),
        pytest.param(spec(device("-x")), "devices[0].name", "must start with a letter or digit", id="device name"),
        pytest.param(spec(device("x"), device("x")), "devices[1].name", "for the second time", id="device twice"),
        pytest.param(
            edits(env=["A"]), "devices[0].containerEdits.env[0]", "expected NAME=VALUE", id="env without value"
        ),
        pytest.param(
            edits(env=["=A"]), "devices[0].containerEdits.env[0]", "expected NAME=VALUE", id="env without name"
        ),
        pytest.param(edits(env="A=1"), "devices[0].containerEdits.env", "expected a list", id="env text"),
        pytest.param(
            edits(deviceNodes=[{}]), "devices[0].containerEdits.deviceNodes[0].path", "is missing", id="no path"
        ),
        pytest.param(
            edits(deviceNodes=[{"path": ""}]),
            "devices[0].containerEdits.deviceNodes[0].path",
            "is empty",
            id="empty path",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "type": "z"}]),
            "devices[0].containerEdits.deviceNodes[0].type",
            'expected one of "b", "c", "u", "p"',
            id="node type",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "permissions": "rx"}]),
            "devices[0].containerEdits.deviceNodes[0].permissions",
            "expected letters of r, w and m",
            id="permissions",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "permissions": "rw\n"}]),
            "devices[0].containerEdits.deviceNodes[0].permissions",
            "expected letters of r, w and m",
            id="permissions with line feed",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "major": -1}]),
            "devices[0].containerEdits.deviceNodes[0].major",
            "expected a whole number from 0",
            id="negative major",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "uid": 2**32}]),
            "devices[0].containerEdits.deviceNodes[0].uid",
            "expected a whole number from 0 to 4294967295",
            id="uid too large",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "fileMode": "0666"}]),
            "devices[0].containerEdits.deviceNodes[0].fileMode",
            "expected a whole number",
            id="mode as text",
        ),
        pytest.param(
            edits(deviceNodes=[{"path": "/x", "minor": True}]),
            "devices[0].containerEdits.deviceNodes[0].minor",
            "is true, expected a whole number",
            id="minor true",
        ),
        pytest.param(
            edits(mounts=[{"hostPath": "/a"}]),
            "devices[0].containerEdits.mounts[0].containerPath",
            "missing",
            id="mount",
        ),
        pytest.param(
            edits(hooks=[{"hookName": "x", "path": "/a"}]),
            "devices[0].containerEdits.hooks[0].hookName",
            "expected one of",
            id="hook name",
        ),
        pytest.param(
            edits(hooks=[{"hookName": "poststop", "path": "/a", "env": ["x"]}]),
            "devices[0].containerEdits.hooks[0].env[0]",
            "expected NAME=VALUE",
            id="hook env",
        ),
        pytest.param(
            edits(netDevices=[{"hostInterfaceName": "a", "name": "b"}, {"hostInterfaceName": "a", "name": "c"}]),
            "devices[0].containerEdits.netDevices[1].hostInterfaceName",
            "for the second time",
            id="net device twice",
        ),
        pytest.param(
            edits(netDevices=[{"hostInterfaceName": "a", "name": "b"}, {"hostInterfaceName": "c", "name": "b"}]),
            "devices[0].containerEdits.netDevices[1].name",
            "for the second time",
            id="net device name twice",
        ),
        pytest.param(
            edits(intelRdt={"closID": "a/b"}),
            "devices[0].containerEdits.intelRdt.closID",
            "plain file name",
            id="closID",
        ),
        pytest.param(
            edits(intelRdt={"closID": "x" * 4096}),
            "devices[0].containerEdits.intelRdt.closID",
            "at most 4095",
            id="long closID",
        ),
        pytest.param(
            edits(intelRdt={"enableCMT": True}),
            "devices[0].containerEdits.intelRdt.enableCMT",
            "is not allowed in 1.1.0 any more",
            id="retired field",
        ),
        pytest.param(
            edits(additionalGids=[-1]),
            "devices[0].containerEdits.additionalGids[0]",
            "expected a whole number",
            id="gid",
        ),
        pytest.param({**spec(), "annotations": {"a": []}}, "annotations.a", "expected a string", id="annotation"),
        pytest.param(
            {**spec(), "containerEdits": {"env": [[]]}}, "containerEdits.env[0]", "expected a string", id="spec edits"
        ),
    ],
)
def test_what_runtimes_refuse(document: t.Any, field: str, text: str) -> None:
    file = parse_spec(json.dumps(document).encode(), "/x/a.json")
    assert file.spec is None
    finding = file.findings[0]
    assert (finding.code, finding.severity, finding.facts["field"]) == ("cdi_invalid_spec", "error", field)
    assert text in finding.text
    assert "/x/a.json" in finding.text
    assert "runtimes ignore the whole file" in finding.text
    assert finding.remedy
    assert finding.place == (f"/x/a.json: {field}" if field else "/x/a.json")


@pytest.mark.parametrize(
    ("document", "needed"),
    [
        pytest.param(spec(), "0.3.0", id="plain"),
        pytest.param(
            spec(device("x", mounts=[{"hostPath": "a", "containerPath": "b", "type": "t"}])), "0.4.0", id="mount type"
        ),
        pytest.param(spec(device("0")), "0.5.0", id="digit first"),
        pytest.param(spec(device("x", deviceNodes=[{"path": "a", "hostPath": "b"}])), "0.5.0", id="hostPath"),
        pytest.param(spec(annotations={"a": "b"}), "0.6.0", id="annotations"),
        pytest.param(spec({**device("x"), "annotations": {"a": "b"}}), "0.6.0", id="device annotations"),
        pytest.param(spec(kind="v/c.d"), "0.6.0", id="dot in class"),
        pytest.param(spec(device("x", intelRdt={})), "0.7.0", id="intelRdt"),
        pytest.param(spec(containerEdits={"additionalGids": [1]}), "0.7.0", id="gids of the spec"),
        pytest.param(spec(device("x", netDevices=[{"hostInterfaceName": "a", "name": "b"}])), "1.1.0", id="netDevices"),
        pytest.param(spec(device("x", intelRdt={"schemata": []})), "1.1.0", id="schemata"),
        pytest.param(spec(device("x", intelRdt={"enableMonitoring": True})), "1.1.0", id="monitoring"),
        pytest.param(spec(device("x", intelRdt={"enableMonitoring": False})), "0.7.0", id="no monitoring"),
    ],
)
def test_lowest_version_for_what_a_spec_uses(document: Json, needed: str) -> None:
    assert version_text(required_version(document)[0]) == needed
    versions = ["0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"]
    for version in versions:
        problems = document_problems({**document, "cdiVersion": version})
        assert bool(problems) is (versions.index(version) < versions.index(needed)), version
    assert document_problems({**document, "cdiVersion": f"v{needed}"}) == []


@pytest.mark.report("F112")
def test_version_too_low_names_version_and_feature() -> None:
    file = parse_spec(json.dumps(spec(device("0-gpu"), version="0.4.0")).encode(), "/x/a.json")
    assert "is 0.4.0, but a device name that starts with a digit (0-gpu) needs at least 0.5.0" in file.findings[0].text


def test_newer_version_is_used_with_a_warning() -> None:
    document = {**spec(version="1.2.0"), "future": {"x": 1}}
    file = parse_spec(json.dumps(document).encode(), "/x/a.json")
    assert file.spec is not None
    assert [(f.severity, f.facts["field"]) for f in file.findings] == [("warning", "future"), ("warning", "cdiVersion")]
    document["devices"] = 3
    assert parse_spec(json.dumps(document).encode(), "/x/a.json").spec is None


@pytest.mark.parametrize(
    ("hook", "field"),
    [({"path": "relative"}, "path"), ({"path": "/x", "timeout": 0}, "timeout")],
)
def test_hooks_that_oci_runtimes_refuse_are_warnings(hook: Json, field: str) -> None:
    file = parse_spec(json.dumps(edits(hooks=[{"hookName": "poststop", **hook}])).encode(), "/x/a.json")
    assert file.spec is not None
    assert [(f.severity, f.facts["field"]) for f in file.findings] == [
        ("warning", f"devices[0].containerEdits.hooks[0].{field}")
    ]


def test_every_problem_is_told_up_to_a_limit() -> None:
    file = parse_spec(json.dumps({**spec(*({"x": 1} for _unused in range(30))), "y": 1}).encode(), "/x/a.json")
    assert len(file.findings) == 21
    assert "has 41 more problems" in file.findings[-1].text


@pytest.mark.report("F112")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b'{"cdiVersion": "0.5.0"', "cannot be loaded: it is not valid JSON", id="cut off"),
        pytest.param(b"\xff\xfe{}", "is not UTF-8 text: byte 0xff at offset 0", id="bytes"),
        pytest.param(b'{"kind": "\xc3"}', "is not UTF-8 text: byte 0xc3 at offset 10", id="half a character"),
        pytest.param(b'{"a": "\x00"}', "NUL byte", id="NUL"),
        pytest.param(b"\x00" * 4096, "NUL byte at character 0", id="zero-filled"),
        pytest.param(b"[" * 100_000, "cannot be loaded", id="deep"),
        pytest.param(b'{"kind": ' + b"9" * 5000 + b"}", "", id="huge number"),
        pytest.param(json.dumps({"kind": "\ud800"}).encode(), "", id="half a surrogate"),
    ],
)
def test_broken_bytes_are_findings(data: bytes, text: str) -> None:
    file = parse_spec(data, "/x/a.json")
    assert file.spec is None
    assert {finding.code for finding in file.findings} == {"cdi_invalid_spec"}
    assert text in file.findings[0].text
    for finding in file.findings:
        assert finding.text.isprintable()
        json.dumps(finding.to_dict()).encode("utf-8")


@needs_yaml
@pytest.mark.report("F112")
def test_broken_yaml_is_a_finding_with_its_line() -> None:
    file = parse_spec(b"cdiVersion: 0.5.0\nkind: [\n", "/x/a.yaml")
    assert file.spec is None
    assert "it is not valid YAML" in file.findings[0].text
    assert "line 3" in file.findings[0].text


def test_yaml_without_a_parser_is_unchecked_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = parse_spec(b"cdiVersion: 0.5.0\nkind: a/b\n", "/x/a.yaml")
    (finding,) = file.findings
    assert (finding.code, finding.severity) == ("cdi_unreadable", "warning")
    assert "PyYAML" in finding.remedy
    assert "kind: a/b" in file.excerpt
