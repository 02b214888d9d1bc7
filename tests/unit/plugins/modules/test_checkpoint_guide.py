# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the guide to the state file tells to do with Ansible, done on a made-up node."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
GUIDE = ROOT / "docs" / "docsite" / "rst" / "checkpoint.rst"
FIXTURES = ROOT / "tests" / "unit" / "fixtures" / "checkpoint"


def blocks(language: str) -> list[str]:
    """The code blocks of the guide in one language."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", text)
    return [re.sub("^    ", "", block, flags=re.MULTILINE) for block in found]


class Node:
    """``node-1``: this machine, with a kubelet root directory of its own."""

    def __init__(self, folder: pathlib.Path, source: str) -> None:
        self.folder = folder
        self.file = folder / "kubelet" / "dra_manager_state"
        self.file.parent.mkdir()
        self.file.write_bytes((FIXTURES / source).read_bytes())
        inventory = f"node-1 ansible_connection=local ansible_python_interpreter={sys.executable}\n"
        (folder / "inventory").write_text(inventory)

    def run(self, words: t.Sequence[str]) -> str:
        collections = next(
            path for path in sys.path if (pathlib.Path(path) / "ansible_collections" / "nodeops").is_dir()
        )
        done = subprocess.run(
            [str(pathlib.Path(sys.executable).parent / words[0]), "-i", str(self.folder / "inventory"), *words[1:]],
            cwd=self.folder,
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": collections,
                "ANSIBLE_HOME": str(self.folder / "home"),
                "ANSIBLE_NOCOLOR": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_commands_get_the_node_back(tmp_path: pathlib.Path) -> None:
    node = Node(tmp_path, "damaged/1.35-1.36/bad_checksum_zero.json")
    (block,) = [block for block in blocks("console") if block.startswith("$ ansible ")]
    said = []
    for line in block.strip().splitlines():
        words = [word for word in shlex.split(line[2:]) if word != "-b"]  # whoever runs the tests owns the files
        words[words.index("-a") + 1] += f" kubelet_root={node.file.parent}"
        said.append(node.run(words))
    assert re.findall(r'"status": "(\w+)"', said[0] + said[3]) == ["refused", "sound"]
    assert ["CHANGED" in text for text in said] == [False, True, True, False]
    assert '"backup_file": null' in said[1]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_playbook_makes_the_file_ready_for_the_new_kubelet(tmp_path: pathlib.Path) -> None:
    node = Node(tmp_path, "1.30/one_claim_one_device.json")
    (block,) = blocks("yaml")
    tasks = [task for task in yaml.safe_load(block) if not any("systemd" in key for key in task)]
    assert len(tasks) == 2
    defaults = {"group/nodeops.dra.dra": {"kubelet_root": str(node.file.parent)}}
    play = {"hosts": "node-1", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    assert re.search(r"ok=2 +changed=1 ", node.run(["ansible-playbook", "play.yml"]))
    assert json.loads(node.file.read_bytes()).keys() == {"version", "entries", "Data", "checksum"}
    assert re.search(r"ok=2 +changed=0 ", node.run(["ansible-playbook", "play.yml"]))
