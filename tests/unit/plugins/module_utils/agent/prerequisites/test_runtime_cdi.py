# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""CDI is switched on in real files of containerd and CRI-O, and taken back to the byte."""

from __future__ import annotations

import os
import pathlib
import stat
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.containerd import containerd_settings
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.node import Node, release
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.runtime_cdi import (
    Request,
    set_cdi,
    take_back_cdi,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError

from ..preflight import configurations

Files = dict[str, tuple[int, bytes]]
MANAGED_1_7 = """\
# Written by the image builder. Do not edit!
version = 2
root = "/var/lib/containerd"
[plugins."io.containerd.grpc.v1.cri"]
# the pause image of the region
sandbox_image = "registry.example.com/pause:3.10"
discard_unpacked_layers = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin\""""
OFF_2 = 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\n  enable_cdi = false # for now\n'
IMPORTS = 'version = 2\nimports = ["conf.d/*.toml"]\n'
IMPORTED = '[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "/etc/containerd/certs.d"\n'


class Runtime:
    """A runtime with its files in a directory of the test."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.main = root / "etc" / "config.toml"
        self.drop_ins = root / "etc" / "conf.d"
        self.main.parent.mkdir()
        self.program: str | None = None

    def has(self, text: str, *, mode: int = 0o640) -> None:
        """Write the main file."""
        self.main.write_text(text)
        self.main.chmod(mode)

    def request(
        self, version: str | None = "1.7.24", runtime: str = "containerd", dirs: t.Sequence[str] = ()
    ) -> Request:
        """What a task would ask for."""
        return Request(runtime, version, str(self.main), str(self.drop_ins), dirs, self.program)

    def files(self) -> Files:
        """Every file and directory with its mode and content."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            data = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(self.root))] = (stat.S_IMODE(path.stat().st_mode), data)
        return found

    def cdi(self, version: str) -> tuple[bool | None, list[str] | None]:
        """What the preflight of a node says of these files."""
        settings = containerd_settings(Node(), str(self.main), release(version))
        return settings.cdi, settings.directories


@pytest.fixture
def runtime(tmp_path: pathlib.Path) -> Runtime:
    return Runtime(tmp_path)


def goes_there_and_back(runtime: Runtime, request: Request) -> dict[str, t.Any]:
    """Check, run, run again, check again, take back: the result of the first run."""
    before = runtime.files()
    planned = set_cdi(request, check=True)
    assert runtime.files() == before
    done = set_cdi(request, check=False)
    assert {**done, "validated": False} == planned
    between = runtime.files()
    for check in (False, True):
        assert set_cdi(request, check=check)["changed"] is False
    assert runtime.files() == between
    assert take_back_cdi(request, check=True)["changed"] is done["changed"]
    assert runtime.files() == between
    taken = take_back_cdi(request, check=False)
    assert taken["changed"] is done["changed"]
    assert runtime.files() == before
    assert take_back_cdi(request, check=False)["changed"] is False
    set_cdi(request, check=False)
    return done


@pytest.mark.report("F096")
@pytest.mark.parametrize(
    ("version", "text"),
    [
        pytest.param("1.7.24", configurations.CONTAINERD_1_7, id="whole default of 1.7"),
        pytest.param("1.7.24", MANAGED_1_7, id="written by an image builder, no line end"),
        pytest.param(
            "1.7.24", 'version = 2\n[plugins."io.containerd.internal.v1.opt"]\n  path = "/x"\n', id="no table"
        ),
        pytest.param("1.7.24", f"version = 2\n{IMPORTED}", id="a part of the table only"),
        pytest.param("1.7.2", "[plugins.cri]\n  sandbox_image = 'x'\n", id="version 1"),
        pytest.param("1.7.24", "", id="empty"),
        pytest.param("2.1.4", OFF_2, id="switched off in 2"),
        pytest.param("2.1.4", configurations.CONTAINERD_1_7, id="file of 1.7 with 2"),
    ],
)
def test_containerd_is_switched_on_and_back(runtime: Runtime, version: str, text: str) -> None:
    runtime.has(text)
    done = goes_there_and_back(runtime, runtime.request(version))
    assert done["changed"] is True
    assert done["files"] == [
        {"path": str(runtime.main), "action": "changed", "backup": f"{runtime.main}.nodeops-dra.bak"}
    ]
    assert runtime.cdi(version)[0] is True
    assert stat.S_IMODE(runtime.main.stat().st_mode) == 0o640
    assert (runtime.root / "etc" / "config.toml.nodeops-dra.bak").read_text() == text


@pytest.mark.report("F096")
@pytest.mark.parametrize(
    ("version", "text"),
    [("2.1.4", configurations.CONTAINERD_2), ("2.2.0", "version = 3\n"), ("2.0.0", None)],
)
def test_containerd_2_needs_nothing(runtime: Runtime, version: str, text: str | None) -> None:
    if text is not None:
        runtime.has(text)
    done = goes_there_and_back(runtime, runtime.request(version))
    assert done["changed"] is False
    assert done["cdi"] is True


def test_containerd_1_7_without_a_file_gets_one(runtime: Runtime) -> None:
    done = goes_there_and_back(runtime, runtime.request())
    assert [one["action"] for one in done["files"]] == ["created"]
    assert done["files"][0]["backup"] is None
    assert runtime.cdi("1.7.24") == (True, ["/etc/cdi", "/var/run/cdi"])
    assert stat.S_IMODE(runtime.main.stat().st_mode) == 0o644


@pytest.mark.report("F096")
def test_a_file_is_dropped_in_where_no_file_has_the_table(runtime: Runtime) -> None:
    runtime.has(IMPORTS)
    runtime.drop_ins.mkdir()
    (runtime.drop_ins / "10-grpc.toml").write_text("[grpc]\n  gid = 0\n")
    goes_there_and_back(runtime, runtime.request())
    assert runtime.main.read_text() == IMPORTS
    assert (runtime.drop_ins / "99-nodeops-dra.toml").read_text().splitlines()[1:] == [
        "version = 2  # nodeops.dra",
        '[plugins."io.containerd.grpc.v1.cri"]  # nodeops.dra',
        "  enable_cdi = true  # nodeops.dra",
    ]
    assert runtime.cdi("1.7.24")[0] is True


def test_a_directory_that_was_made_for_a_file_goes_with_it(runtime: Runtime) -> None:
    runtime.has(IMPORTS)
    goes_there_and_back(runtime, runtime.request())
    assert runtime.drop_ins.is_dir()


@pytest.mark.report("F096")
def test_the_imported_file_is_changed_where_its_table_would_hide_ours(runtime: Runtime) -> None:
    """Releases up to 1.7 take the table of a plugin whole from the last file that has a part of it."""
    runtime.has(f"{IMPORTS}[plugins.'io.containerd.grpc.v1.cri']\n  sandbox_image = 'x'\n")
    runtime.drop_ins.mkdir()
    imported = runtime.drop_ins / "registry.toml"
    imported.write_text(f"version = 2\n{IMPORTED}")
    done = goes_there_and_back(runtime, runtime.request())
    assert [one["path"] for one in done["files"]] == [str(imported)]
    assert runtime.cdi("1.7.24")[0] is True


@pytest.mark.report("F116", "F115")
def test_directories_are_set_and_compared_without_their_slashes(runtime: Runtime) -> None:
    runtime.has(OFF_2.replace("false", "true") + "  cdi_spec_dirs = ['/var/cdi/static/', '/var/cdi//dynamic']\n")
    wanted = ["/var/cdi/static", "/var/cdi/dynamic/"]
    assert set_cdi(runtime.request("2.1.4", dirs=wanted), check=False)["changed"] is False
    done = goes_there_and_back(runtime, runtime.request("2.1.4", dirs=["/a b/", "/var/run/cdi"]))
    assert done["cdi_directories"] == ["/a b", "/var/run/cdi"]


def test_other_options_change_only_our_lines(runtime: Runtime) -> None:
    runtime.has(MANAGED_1_7)
    set_cdi(runtime.request(dirs=["/a", "/b"]), check=False)
    set_cdi(runtime.request(), check=False)
    assert runtime.cdi("1.7.24") == (True, ["/etc/cdi", "/var/run/cdi"])
    runtime.main.write_text(runtime.main.read_text().replace("3.10", "3.11"))
    take_back_cdi(runtime.request(), check=False)
    assert runtime.main.read_text() == MANAGED_1_7.replace("3.10", "3.11")
    assert (runtime.root / "etc" / "config.toml.nodeops-dra.bak").read_text() == MANAGED_1_7


def test_a_link_to_the_file_stays_a_link(runtime: Runtime) -> None:
    real = runtime.root / "real.toml"
    real.write_text(MANAGED_1_7)
    runtime.main.symlink_to(real)
    set_cdi(runtime.request(), check=False)
    assert os.readlink(runtime.main) == str(real)
    assert runtime.cdi("1.7.24")[0] is True


@pytest.mark.parametrize(
    ("version", "text", "said"),
    [
        pytest.param("1.6.20", MANAGED_1_7, "1.6.20 does not know CDI", id="too old"),
        pytest.param(None, MANAGED_1_7, "version of containerd is not known", id="unknown version"),
        pytest.param("1.7.24", "version = 2\n[plugins\n", "is not valid TOML", id="no TOML"),
        pytest.param("1.7.24", 'disabled_plugins = ["cri"]\n', "switches off the CRI plugin", id="cri disabled"),
        pytest.param(
            "1.7.24", "version = 2\n[plugins]\n'io.containerd.grpc.v1.cri' = { a = 1 }\n", "by hand", id="inline table"
        ),
        pytest.param("1.7.24", 'version = 2\nimports = ["/none.toml"]\n', "does not exist", id="import missing"),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_changes(
    runtime: Runtime, version: str | None, text: str, said: str
) -> None:
    runtime.has(text)
    before = runtime.files()
    with pytest.raises(DraError) as caught:
        set_cdi(runtime.request(version), check=False)
    assert said in str(caught.value)
    assert runtime.files() == before


@pytest.mark.report("F096")
@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "config.toml.tmpl"),
        ("/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "config-v3.toml.tmpl"),
        ("/etc/k0s/containerd.toml", "/etc/k0s/containerd.d"),
        ("/var/snap/microk8s/current/args/containerd.toml", "containerd-template.toml"),
    ],
)
def test_generated_files_are_refused_with_what_to_do(path: str, remedy: str) -> None:
    with pytest.raises(DraError) as caught:
        set_cdi(Request("containerd", "1.7.24", path, "", (), None), check=True)
    assert remedy in str(caught.value)


def test_a_drop_in_that_somebody_changed_is_not_touched(runtime: Runtime) -> None:
    runtime.has(IMPORTS)
    set_cdi(runtime.request(), check=False)
    dropped = runtime.drop_ins / "99-nodeops-dra.toml"
    dropped.write_text(f"{dropped.read_text()}  sandbox_image = 'x'\n")
    for change in (set_cdi, take_back_cdi):
        with pytest.raises(DraError, match="changed by somebody else"):
            change(runtime.request(dirs=["/a"]), check=False)


# containerd is asked


def containerd(runtime: Runtime, script: str) -> None:
    """A containerd that answers as told."""
    program = runtime.root / "containerd"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    runtime.program = str(program)


def test_containerd_is_asked_about_each_file_before_it_is_used(runtime: Runtime) -> None:
    runtime.has(MANAGED_1_7)
    containerd(runtime, f'echo "$@" >>{runtime.root}/asked; cat "$2"')
    assert set_cdi(runtime.request(), check=False)["validated"] is True
    assert (runtime.root / "asked").read_text().splitlines() == [
        f"--config {runtime.main}.nodeops-dra.check config dump",
        f"--config {runtime.main} config dump",
    ]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("echo 'containerd: no such key' >&2; exit 1", "no such key", id="refuses"),
        pytest.param("exit 3", "exit status 3", id="fails without a word"),
        pytest.param(
            "printf '[plugins.\"io.containerd.grpc.v1.cri\"]\\nenable_cdi = false\\n'", "CDI is off", id="says off"
        ),
    ],
)
@pytest.mark.parametrize("text", [MANAGED_1_7, IMPORTS, None], ids=["edit", "drop-in", "new file"])
def test_what_containerd_does_not_like_is_taken_back(
    runtime: Runtime, text: str | None, script: str, said: str
) -> None:
    if text is not None:
        runtime.has(text)
    containerd(runtime, script)
    before = runtime.files()
    with pytest.raises(DraError) as caught:
        set_cdi(runtime.request(), check=False)
    assert said in str(caught.value)
    assert runtime.files() == before


def test_a_program_that_others_may_write_is_not_run(runtime: Runtime) -> None:
    runtime.has(MANAGED_1_7)
    containerd(runtime, f"touch {runtime.root}/ran")
    pathlib.Path(runtime.program or "").chmod(0o777)
    assert set_cdi(runtime.request(), check=False)["validated"] is False
    assert not (runtime.root / "ran").exists()


# CRI-O


@pytest.mark.report("F096")
def test_crio_needs_nothing_by_default(runtime: Runtime) -> None:
    runtime.has(configurations.CRIO)
    done = goes_there_and_back(runtime, runtime.request("1.30.0", "cri-o"))
    assert done["cdi"] is True
    assert done["changed"] is (done["cdi_directories"] is None)


@pytest.mark.report("F115")
@pytest.mark.parametrize("exists", [True, False])
def test_crio_gets_directories_by_a_drop_in(runtime: Runtime, exists: bool) -> None:
    runtime.has("[crio.runtime]\ncdi_spec_dirs = []\n")
    if exists:
        runtime.drop_ins.mkdir()
        (runtime.drop_ins / "10-x.conf").write_text("[crio.runtime]\ncdi_spec_dirs = ['/x']\n")
    done = goes_there_and_back(runtime, runtime.request("1.30.0", "cri-o", ["/var/cdi/static"]))
    assert done["cdi_directories"] == ["/var/cdi/static"]
    assert done["files"] == [{"path": f"{runtime.drop_ins}/99-nodeops-dra.conf", "action": "created", "backup": None}]


def test_crio_without_directories_is_refused_unless_some_are_given(runtime: Runtime) -> None:
    runtime.has("[crio.runtime]\ncdi_spec_dirs = []\n")
    with pytest.raises(DraError, match="spec_dirs"):
        set_cdi(runtime.request("1.30.0", "cri-o"), check=False)


def test_a_later_drop_in_of_crio_that_decides_is_told(runtime: Runtime) -> None:
    runtime.has("")
    runtime.drop_ins.mkdir()
    (runtime.drop_ins / "zz.conf").write_text("[crio.runtime]\ncdi_spec_dirs = ['/x']\n")
    before = runtime.files()
    with pytest.raises(DraError, match="Another file"):
        set_cdi(runtime.request("1.30.0", "cri-o", ["/a"]), check=False)
    assert runtime.files() == before
