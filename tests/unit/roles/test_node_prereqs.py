# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The role ``node_prereqs`` as a person runs it, on a node that is a directory of this machine."""

from __future__ import annotations

import grp
import json
import os
import pathlib
import pwd
import stat
import subprocess
import sys
import typing as t

import pytest
import yaml

from ..playbooks.runner import COLLECTIONS, LOCAL, Played
from ..plugins.module_utils.agent.preflight import configurations

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "node_prereqs"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  NodeSwap: true\n"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

# What systemctl is asked by the module systemd_service, and what became of it.
SYSTEMCTL = """#!/bin/sh
echo "$@" >>{0}/systemctl
case "$1" in
restart) [ ! -e {0}/broken ] || grep -q nodeops {0}/etc/containerd/config.toml || exit 0; [ ! -e {0}/broken ] ;;
show) printf 'LoadState=loaded\\nActiveState=active\\nSubState=running\\nId=%s\\n' "$2" ;;
esac
"""

Files = dict[str, tuple[int, bytes]]


class World:
    """A node below ``root``: containerd 1.7 with its default file, and a kubelet as kubeadm leaves it."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path) -> None:
        self.root = root
        self.folder = folder
        self.containerd = root / "etc" / "containerd" / "config.toml"
        self.kubelet = root / "kubelet" / "config.yaml"
        self.bin = folder / "bin"
        for path in (self.containerd.parent, self.kubelet.parent, self.bin):
            path.mkdir(parents=True)
        self.containerd.write_text(configurations.CONTAINERD_1_7)
        self.kubelet.write_text(KUBELET)
        systemctl = self.bin / "systemctl"
        systemctl.write_text(SYSTEMCTL.replace("{0}/etc", f"{root}/etc").replace("{0}", str(folder)))
        systemctl.chmod(0o755)
        self.variables: dict[str, t.Any] = {
            "node_prereqs_runtime": "containerd",
            "node_prereqs_runtime_version": "1.7.24",
            "node_prereqs_runtime_config": str(self.containerd),
            "node_prereqs_runtime_program": f"{root}/none",
            "node_prereqs_crio_drop_in_directory": f"{root}/etc/crio/crio.conf.d",
            "node_prereqs_cdi_spec_dirs": [f"{root}/etc/cdi", f"{root}/run/cdi"],
            "node_prereqs_kubelet_root": str(self.kubelet.parent),
            "node_prereqs_kubelet_version": "1.33.4",
            "node_prereqs_directory_owner": pwd.getpwuid(os.getuid()).pw_name,
            "node_prereqs_directory_group": grp.getgrgid(os.getgid()).gr_name,
            "node_prereqs_record_directory": f"{root}/record",
        }
        for name in ("run", "etc/crio", "kubelet/pods"):
            (root / name).mkdir()

    def run(self, *arguments: str, **variables: t.Any) -> Played:
        """Run the role; ``variables`` have their prefix added."""
        given = {**LOCAL, **self.variables, **{f"node_prereqs_{key}": value for key, value in variables.items()}}
        return self.play("-i", "node,", "-e", json.dumps(given), *arguments)

    def play(self, *arguments: str) -> Played:
        """Run a play with nothing but the role."""
        play = self.folder / "play.yml"
        play.write_text(
            yaml.safe_dump([{"hosts": "all", "gather_facts": False, "roles": ["nodeops.dra.node_prereqs"]}])
        )
        done = subprocess.run(
            [
                str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
                *(*arguments, str(play)),
            ],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
                "ANSIBLE_HOME": str(self.folder / "home"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_PIPELINING": "1",
                "PYTHONPATH": COLLECTIONS,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Played(done.returncode, done.stdout + done.stderr)

    def files(self) -> Files:
        """Every file and directory of the node with its mode and content."""
        return {
            str(path.relative_to(self.root)): (
                stat.S_IMODE(path.lstat().st_mode),
                path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.root.rglob("*"))
        }

    def restarts(self) -> list[str]:
        """The units that were restarted."""
        log = self.folder / "systemctl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split()[-1] for line in lines if line.startswith("restart ")]


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path / "node", tmp_path / "control")


def succeeded(played: Played) -> Played:
    """The same, if it went well."""
    assert played.status == 0, played.text
    return played


def hooks(world: World) -> dict[str, str]:
    """Files of tasks to run around a restart, which leave their names among the restarts."""
    found = {}
    for name in ("before", "after"):
        file = world.folder / f"{name}.yml"
        task = {"name": "Note it", "ansible.builtin.command": f"systemctl restart {name}", "changed_when": False}
        file.write_text(yaml.safe_dump([task]))
        found[f"{name}_restart"] = str(file)
    return found


@pytest.mark.report("F096", "F099")
def test_a_node_is_made_ready_and_taken_back(world: World) -> None:
    (world.root / "kubelet" / "pods" / "a1b2").mkdir()
    before = world.files()
    around = hooks(world)

    refused = world.run(restart="when_changed")
    assert refused.status != 0
    assert "has 1 pods" in refused.text
    assert "node_prereqs_drained" in refused.text
    planned = succeeded(world.run("--check", "--diff", restart="when_changed", **around))
    assert "+    enable_cdi = true  # nodeops.dra" in planned.text
    assert "+  DynamicResourceAllocation: true  # nodeops.dra" in planned.text
    assert "containerd and kubelet would be restarted" in planned.text
    assert world.files() == before
    assert world.restarts() == []

    succeeded(world.run(restart="when_changed", **around))
    assert world.restarts() == ["before", "containerd", "kubelet", "after"]
    ready = world.files()
    assert ready["kubelet/plugins_registry"][0] == 0o750
    assert ready["etc/cdi"][0] == ready["run/cdi"][0] == 0o755

    # Nothing is left to restart, so the pods do not matter.
    again = succeeded(world.run(restart="when_changed"))
    assert again.count("node", "changed") == 0
    assert world.files() == ready
    assert len(world.restarts()) == 4

    taken = succeeded(world.run(state="absent"))
    assert "containerd and kubelet must be restarted" in taken.text
    assert world.files() == before
    assert len(world.restarts()) == 4


@pytest.mark.report("F099")
def test_only_what_was_changed_is_restarted(world: World) -> None:
    succeeded(world.run(restart="when_changed", kubelet_version="1.35", directories=False))
    assert world.restarts() == ["containerd"]


def test_a_runtime_that_does_not_start_gets_its_file_back(world: World) -> None:
    before = world.files()
    (world.folder / "broken").touch()
    played = world.run(restart="when_changed")
    assert played.status != 0
    assert "again without the lines of this role" in played.text, played.text
    assert world.files() == before


def test_crio_gets_a_drop_in_and_directories_in_use_stay(world: World) -> None:
    before = world.files()
    crio = {"runtime": "cri-o", "runtime_version": "1.30.1", "runtime_config": f"{world.root}/etc/crio/crio.conf"}
    succeeded(world.run(**crio))
    assert "etc/crio/crio.conf.d/99-nodeops-dra.conf" in world.files()
    assert world.files()["etc/containerd/config.toml"] == before["etc/containerd/config.toml"]
    (world.root / "run" / "cdi" / "vendor.yaml").write_text("---\n")
    succeeded(world.run(**crio, state="absent"))
    assert world.files().keys() - before.keys() == {"run/cdi", "run/cdi/vendor.yaml"}


REFUSED = {
    "old-runtime": ({"runtime_version": "1.6.20"}, "containerd 1.6.20 does not know CDI"),
    "unknown-gate": ({"kubelet_gates": ["DRAConsumableCapacity"]}, "1.33 does not know it"),
    "old-kubelet": ({"kubelet_version": "1.25"}, "older than DRA"),
    "no-such-file": ({"kubelet_config": "/none/config.yaml"}, "/none/config.yaml does not exist"),
    "unknown-value": ({"restart": "now"}, "value of node_prereqs_restart must be one of"),
    "k3s": ({"runtime_config": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"}, "config.toml.tmpl"),
}


def test_what_cannot_work_is_refused_first(world: World) -> None:
    before = world.files()
    hosts = {
        name: {f"node_prereqs_{key}": value for key, value in variables.items()}
        for name, (variables, _unused) in REFUSED.items()
    }
    inventory = world.folder / "inventory.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {**LOCAL, **world.variables}}}))
    played = world.play("-i", str(inventory))
    for name, (_unused, said) in REFUSED.items():
        assert played.count(name, "failed") == 1, played.text
        assert said in played.text, name
    assert "Traceback" not in played.text
    assert world.files() == before


def test_check_on_a_bare_node_passes(world: World) -> None:
    """Neither a runtime's file nor a kubelet's is there yet."""
    world.kubelet.unlink()
    world.containerd.unlink()
    before = world.files()
    succeeded(world.run("--check"))
    assert world.files() == before


def test_defaults_and_argument_specs_tell_the_same() -> None:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    options = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == defaults
    assert all(name.startswith("node_prereqs_") for name in defaults)


def test_every_variable_is_used_and_explained() -> None:
    guide = (ROLE.parents[1] / "docs" / "docsite" / "rst" / "node_prereqs.rst").read_text()
    tasks = "".join(path.read_text() for path in (ROLE / "tasks").glob("*.yml"))
    for name in yaml.safe_load((ROLE / "defaults" / "main.yml").read_text()):
        assert name in tasks, name
        assert f"``{name}``" in guide, name
