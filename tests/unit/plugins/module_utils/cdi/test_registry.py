# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""All directories together: precedence, conflicts, what is ignored, and why a name does not resolve."""

from __future__ import annotations

import pathlib
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.cdi import codes
from ansible_collections.nodeops.dra.plugins.module_utils.cdi.registry import (
    FileCache,
    Registry,
    UnresolvedDevicesError,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.cdi.specs import (
    UID_1,
    UID_2,
    device,
    needs_yaml,
    spec,
    write,
)

GPU0 = "gpu.test.example/gpu=gpu-0"
CLAIM = "gpu.test.example/claim"


class World:
    """A static and a dynamic directory."""

    def __init__(self, root: pathlib.Path) -> None:
        self.static = root / "etc" / "cdi"
        self.dynamic = root / "run" / "cdi"
        self.static.mkdir(parents=True)
        self.dynamic.mkdir(parents=True)

    def load(self, cache: FileCache | None = None) -> Registry:
        return Registry.load([str(self.static), str(self.dynamic)], cache)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


def summary(findings: t.Iterable[t.Any]) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in findings]


def test_devices_of_all_directories(world: World) -> None:
    write(world.static, "a.json", spec(device("a"), device("b")))
    write(world.dynamic, "b.json", spec(device("x"), kind=CLAIM))
    registry = world.load()
    assert sorted(registry.devices) == [f"{CLAIM}=x", "gpu.test.example/gpu=a", "gpu.test.example/gpu=b"]
    assert registry.findings == []
    assert registry.kinds() == [CLAIM, "gpu.test.example/gpu"]
    found = registry.resolve(f"{CLAIM}=x")
    assert found is not None
    assert (found.spec.path, found.spec.priority) == (str(world.dynamic / "b.json"), 1)
    assert registry.resolve("gpu.test.example/gpu=c") is None
    assert registry.unresolved(["a/b=c", f"{CLAIM}=x", "a/b=c"]) == ["a/b=c"]


@needs_yaml
def test_yaml_and_json_are_read_alike(world: World) -> None:
    write(
        world.dynamic,
        "a.yaml",
        "---\ncdiVersion: 0.5.0\nkind: v/c\ndevices:\n- name: 0\n  containerEdits:\n    env: [A=1]\n",
    )
    write(
        world.dynamic, "b.json", "cdiVersion: 0.5.0\nkind: v/d\ndevices:\n- name: x\n  containerEdits: {env: [A=1]}\n"
    )
    registry = world.load()
    assert sorted(registry.devices) == ["v/c=0", "v/d=x"]
    assert registry.findings == []


def test_missing_directories_are_only_noted(tmp_path: pathlib.Path) -> None:
    registry = Registry.load([str(tmp_path / "a"), str(tmp_path / "b/")])
    assert summary(registry.findings) == [("cdi_directory_missing", "info")] * 2
    assert registry.devices == {}


def test_relative_directory_is_an_error() -> None:
    with pytest.raises(DraError, match="not an absolute path"):
        Registry.load(["cdi"])


@pytest.mark.report("F116")
@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_directory_with_blanks_and_slashes(tmp_path: pathlib.Path, ending: str) -> None:
    directory = tmp_path / "my cdi specs"
    write(directory, "a.json", spec())
    registry = Registry.load([f"{directory}{ending}"])
    assert registry.devices[GPU0].spec.path == f"{directory}/a.json"


@pytest.mark.report("F115", "F116")
def test_linked_directory_named_twice_is_no_conflict(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "run" / "cdi", "a.json", spec())
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "run").symlink_to("../run")
    registry = Registry.load([f"{tmp_path}/run/cdi", f"{tmp_path}/var/run/cdi/"])
    assert list(registry.devices) == [GPU0]
    assert registry.findings == []


@pytest.mark.report("F116")
def test_directory_that_is_a_link_is_read_here_and_warned_about(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "real", "a.json", spec())
    (tmp_path / "cdi").symlink_to("real")
    registry = Registry.load([f"{tmp_path}/cdi"])
    assert list(registry.devices) == [GPU0]
    assert summary(registry.findings) == [("cdi_ignored_directory", "warning")]


@pytest.mark.report("F112")
def test_later_directory_wins_and_the_shadow_is_told(world: World) -> None:
    write(world.static, "a.json", spec(device("gpu-0", env=["A=old"]), device("gpu-1")))
    write(world.dynamic, "b.json", spec(device("gpu-0", env=["A=new"])))
    registry = world.load()
    assert registry.container_edits([GPU0]).env == ("A=new",)
    assert "gpu.test.example/gpu=gpu-1" in registry.devices
    (finding,) = registry.findings
    assert (finding.code, finding.severity) == ("cdi_shadowed", "warning")
    assert finding.facts["devices"] == [GPU0]
    assert finding.place == str(world.static / "a.json")
    assert finding.facts["winner"] == str(world.dynamic / "b.json")


def test_shadow_with_the_same_content_is_only_noted(world: World) -> None:
    write(world.static, "a.json", spec())
    write(world.dynamic, "a.json", spec())
    assert summary(world.load().findings) == [("cdi_shadowed", "info")]


@pytest.mark.report("F112")
def test_conflict_at_equal_priority_takes_the_device_away(world: World) -> None:
    write(world.dynamic, "a.json", spec(device("gpu-0"), device("gpu-1")))
    write(world.dynamic, "b.json", spec(device("gpu-0")))
    write(world.dynamic, "c.json", spec(device("gpu-0")))
    registry = world.load()
    assert list(registry.devices) == ["gpu.test.example/gpu=gpu-1"]
    (finding,) = registry.findings
    assert (finding.code, finding.severity) == ("cdi_conflict", "error")
    assert finding.facts["devices"] == [GPU0]
    assert finding.facts["paths"] == [str(world.dynamic / name) for name in ("a.json", "b.json", "c.json")]
    (unresolved,) = registry.check({UID_1: [GPU0]})
    assert unresolved.code == "cdi_unresolved"
    assert "both define it with equal priority" in unresolved.text
    assert unresolved.facts["conflicts"] == finding.facts["paths"]


def test_conflict_below_makes_the_name_unusable_above_too(world: World) -> None:
    write(world.static, "a.json", spec())
    write(world.static, "b.json", spec())
    write(world.dynamic, "c.json", spec())
    registry = world.load()
    assert registry.resolve(GPU0) is None
    assert summary(registry.findings) == [("cdi_shadowed", "info"), ("cdi_conflict", "error")]


def test_equal_names_of_different_kinds_do_not_conflict(world: World) -> None:
    write(world.dynamic, "a.json", spec(kind="a.example/gpu"))
    write(world.dynamic, "b.json", spec(kind="b.example/gpu"))
    assert world.load().findings == []


@pytest.mark.report("F112")
@pytest.mark.parametrize(
    ("name", "content", "severity"),
    [
        pytest.param("a.yml", "cdiVersion: 0.5.0\n", "warning", id="yml"),
        pytest.param("a.yml", "x", "warning", id="yml without a spec"),
        pytest.param("a.YAML", "x", "warning", id="capitals"),
        pytest.param("a.json.bak", '{"cdiVersion": "0.5.0"}', "warning", id="backup of a spec"),
        pytest.param("README", "x", "info", id="something else"),
        pytest.param("spec.123.tmp", '{"cdiVersion": "0.5.0"}', "info", id="temporary file"),
        pytest.param(".a.json.swp", '{"cdiVersion": "0.5.0"}', "info", id="editor's file"),
    ],
)
def test_files_that_no_runtime_reads(world: World, name: str, content: str, severity: str) -> None:
    path = write(world.dynamic, name, content)
    (finding,) = world.load().findings
    assert (finding.code, finding.severity, finding.place) == ("cdi_ignored_extension", severity, str(path))


def test_hidden_files_and_bare_endings_are_read_as_runtimes_do(world: World) -> None:
    write(world.dynamic, ".hidden.json", spec(device("a")))
    write(world.dynamic, ".json", spec(device("b")))
    registry = world.load()
    assert sorted(registry.devices) == ["gpu.test.example/gpu=a", "gpu.test.example/gpu=b"]
    assert registry.findings == []


def test_subdirectories_are_not_read(world: World) -> None:
    write(world.dynamic / "sub", "a.json", spec())
    write(world.dynamic / "dir.json", "a.json", spec())
    registry = world.load()
    assert registry.devices == {}
    assert summary(registry.findings) == [("cdi_ignored_directory", "info")] * 2


@pytest.mark.report("F112")
def test_each_bad_file_has_its_own_finding_and_the_good_ones_work(world: World) -> None:
    write(world.dynamic, "a.json", spec())
    write(world.dynamic, "bad1.json", spec({"name": "x"}, kind="a.example/x"))
    write(world.dynamic, "bad2.json", b"{")
    write(world.dynamic, "bad3.json", spec(version="0.4.0", annotations={"a": "b"}, kind="a.example/y"))
    write(world.dynamic, "empty.json", b"")
    registry = world.load()
    assert list(registry.devices) == [GPU0]
    assert [f.place.split("/")[-1].split(":")[0] for f in registry.findings] == [
        "bad1.json",
        "bad2.json",
        "bad3.json",
        "empty.json",
    ]
    assert {f.severity for f in registry.findings} <= {"error", "warning"}
    assert len(registry.files) == 5


# Unresolved names


@pytest.mark.report("F109")
def test_lost_spec_names_device_claim_and_directories(world: World) -> None:
    name = f"gpu.test.example/gpu={UID_1}-gpu-0"
    (finding,) = world.load().check({UID_1: [name]})
    assert (finding.code, finding.severity, finding.place) == ("cdi_unresolved", "error", f"claim {UID_1}")
    assert f"CDI device {name} of claim {UID_1} cannot be resolved" in finding.text
    assert f"no spec in {world.static}, {world.dynamic} defines it" in finding.text
    assert "Prepare the claim again" in finding.remedy
    write(world.dynamic, f"gpu.test.example-gpu_{UID_1}.json", spec(device(f"{UID_1}-gpu-0")))
    assert world.load().check({UID_1: [name]}) == []


@pytest.mark.report("F109", "F112")
def test_near_misses_of_the_same_kind_come_first(world: World) -> None:
    write(world.dynamic, "a.json", spec(device("gpu-1"), device("gpu-10"), device("nic"), device("other")))
    write(world.dynamic, "b.json", spec(device("gpu-0"), kind="gpu.test.example/gpux"))
    registry = world.load()
    (finding,) = registry.check([GPU0])
    assert finding.facts["near_misses"] == ["gpu.test.example/gpu=gpu-10", "gpu.test.example/gpu=gpu-1"]
    assert "Defined are gpu.test.example/gpu=gpu-10, gpu.test.example/gpu=gpu-1." in finding.text
    assert registry.near_misses("gpu.test.example/gpy=gpu-0")[0] == "gpu.test.example/gpu=gpu-0".replace(
        "gpu=", "gpux="
    )
    assert registry.near_misses("zzz/q=0") == []
    assert len(registry.near_misses("gpu.test.example/gpu=" + "z" * 60)) == 4


def test_thousands_of_lost_names_are_told_quickly(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write(world.dynamic, "a.json", spec(*(device(f"gpu-{i:05}") for i in range(2100))))
    registry = world.load()
    asked: list[str] = []

    def counted(name: str) -> list[str]:
        asked.append(name)
        return []

    monkeypatch.setattr(registry, "near_misses", counted)
    findings = registry.check({f"u-{i}": [f"gpu.test.example/gpu=lost-{i}"] for i in range(3000)})
    assert len(findings) == 3000
    assert len(asked) == 20
    assert len(Registry.near_misses(registry, "gpu.test.example/gpu=gpu-99999", limit=3)) == 3


@pytest.mark.report("F112")
@pytest.mark.parametrize(
    ("name", "content", "suspect"),
    [
        pytest.param(f"gpu.test.example-claim_{UID_1}.json", b"{", True, id="claim UID in the file name"),
        pytest.param("gpu.test.example-claim.json", b"{", True, id="kind in the file name"),
        pytest.param("gpu.test.example_claim_x.json", b"{", True, id="kind with underscore"),
        pytest.param("gpu.test.example-claims.json", b"{", False, id="longer kind"),
        pytest.param("x.json", b'{"kind": "gpu.test.example/claim", ', True, id="kind in the text"),
        pytest.param("x.json", b'{"kind": "gpu.test.example/claim2", ', False, id="longer kind in the text"),
        pytest.param("x.json", f'{{"name": "{UID_1}-gpu-0"'.encode(), True, id="device in the text"),
        pytest.param("x.json", f'{{"name": "{UID_1}-gpu-00"'.encode(), False, id="longer device in the text"),
        pytest.param("x.json", b'{"kind": "other.example/claim"}', False, id="something else"),
    ],
)
def test_bad_file_is_tied_to_the_claims_that_need_it(world: World, name: str, content: bytes, suspect: bool) -> None:
    path = write(world.dynamic, name, content)
    (finding,) = world.load().check({UID_1: [f"{CLAIM}={UID_1}-gpu-0"]})
    assert finding.facts["broken_files"] == ([str(path)] if suspect else [])
    assert ("a file that may do so is refused" in finding.text) is suspect
    assert (str(path) in finding.text) is suspect


def test_one_finding_for_a_name_that_several_claims_need(world: World) -> None:
    (finding,) = world.load().check({UID_1: [GPU0], UID_2: [GPU0]})
    assert finding.facts["claims"] == [UID_1, UID_2]
    assert f"of claim {UID_1}, {UID_2}" in finding.text


def test_file_that_only_this_python_cannot_read_makes_a_warning(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    write(world.dynamic, f"gpu.test.example-claim_{UID_1}.yaml", "cdiVersion: 0.5.0\nkind: gpu.test.example/claim\n")
    (finding,) = world.load().check({UID_1: [f"{CLAIM}={UID_1}-gpu-0"]})
    assert (finding.code, finding.severity) == ("cdi_unresolved", "warning")
    assert "could not be checked" in finding.text
    assert "PyYAML" in finding.remedy


@pytest.mark.parametrize("name", ["gpu-0", "a/b", "../x=y", "a\x00/b=c", "\ud800/b=c"])
def test_names_that_are_no_names(world: World, name: str) -> None:
    (finding,) = world.load().check({UID_1: [name]})
    assert (finding.code, finding.severity) == ("cdi_invalid_name", "error")
    assert finding.text.isprintable()
    assert str(finding.facts["device"]).isprintable()


# Edits


def test_container_edits_take_the_spec_once_and_each_device(world: World) -> None:
    write(
        world.static,
        "a.json",
        spec(device("a", env=["A=1"]), device("b", env=["B=1"]), containerEdits={"env": ["S=1"]}),
    )
    write(world.dynamic, "b.json", spec(device("c", env=["S=2", "A=2"]), kind=CLAIM))
    registry = world.load()
    names = ["gpu.test.example/gpu=a", f"{CLAIM}=c", "gpu.test.example/gpu=b"]
    assert registry.container_edits(names).env == ("S=2", "A=2", "B=1")
    assert registry.container_edits([]).to_dict()["env"] == []


@pytest.mark.report("F112")
def test_container_edits_of_unresolved_devices_are_an_error_with_the_cause(world: World) -> None:
    write(world.dynamic, "gpu.test.example-gpu.json", b"{")
    with pytest.raises(UnresolvedDevicesError) as caught:
        world.load().container_edits([GPU0, "a/b=c"])
    assert f"unresolvable CDI devices {GPU0}, a/b=c" in caught.value.message
    assert "not valid JSON" in caught.value.message
    assert caught.value.facts["unresolved"] == [GPU0, "a/b=c"]


# Changes


def test_cache_reads_only_what_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write(world.static, "a.json", spec(device("a")))
    write(world.dynamic, "b.json", spec(device("b")))
    cache: FileCache = {}
    first = world.load(cache)
    assert set(cache) == {file.path for file in first.files}
    again = world.load(cache)
    assert all(new is old for new, old in zip(again.files, first.files))
    write(world.dynamic, "b.json", spec(device("longer")))
    (world.static / "a.json").unlink()
    changed = world.load(cache)
    assert list(changed.devices) == ["gpu.test.example/gpu=longer"]
    assert set(cache) == {str(world.dynamic / "b.json")}


def test_cache_does_not_trust_links(world: World) -> None:
    target = write(world.static, "a.json", spec(device("a")))
    (world.dynamic / "link.json").symlink_to(target)
    cache: FileCache = {}
    world.load(cache)
    write(world.static, "a.json", spec(device("bb")))
    assert list(world.load(cache).devices) == ["gpu.test.example/gpu=bb"]


def test_codes_are_listed_once() -> None:
    defined = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert defined == set(codes.ALL)
    assert len(codes.ALL) == len(defined)
