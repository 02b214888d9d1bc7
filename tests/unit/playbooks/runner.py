# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs a playbook of this collection as a person does, against nodes that are this machine."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

COLLECTIONS = next(path for path in sys.path if (pathlib.Path(path) / "ansible_collections" / "nodeops").is_dir())
LOCAL = {
    "ansible_connection": "local",
    "ansible_python_interpreter": sys.executable,
    "ansible_become": False,  # whoever runs the tests owns the files
}
UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_become": False}


@dataclasses.dataclass
class Played:
    """How a playbook ended: exit status, what it printed, and the counts of its recap by host."""

    status: int
    text: str

    def count(self, host: str, what: str) -> int:
        """``changed``, ``failed`` ... of a host in the recap."""
        line = re.search(rf"^{re.escape(host)} +: (.*)$", self.text, re.MULTILINE)
        assert line is not None, self.text
        return int(re.findall(rf"{what}=(\d+)", line.group(1))[0])

    def task(self, name: str) -> str:
        """What was printed for a task, every time that it ran."""
        parts = re.split(r"^(?=TASK \[|PLAY \[|PLAY RECAP|RUNNING HANDLER)", self.text, flags=re.MULTILINE)
        return "".join(part for part in parts if part.startswith("TASK [") and name in part.split("\n")[0])

    def lines(self, name: str) -> list[str]:
        """The strings that a debug task printed as a list."""
        return [
            json.loads(line.strip().rstrip(",")) for line in re.findall(r'^ {8}".*$', self.task(name), re.MULTILINE)
        ]


def play(
    name: str,
    folder: pathlib.Path,
    hosts: t.Mapping[str, t.Mapping[str, t.Any]],
    *arguments: str,
    variables: t.Mapping[str, t.Any] | None = None,
    environ: t.Mapping[str, str] | None = None,
) -> Played:
    """``ansible-playbook nodeops.dra.NAME`` with an inventory of ``hosts``, all of them in the group ``dra_nodes``."""
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps({"dra_nodes": {"hosts": {host: dict(own) for host, own in hosts.items()}}}))
    inventory.rename(folder / "inventory.yml")  # JSON is YAML
    extra = ["-e", json.dumps(variables)] if variables else []
    done = subprocess.run(
        [
            str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
            *("-i", str(folder / "inventory.yml"), *extra, *arguments, f"nodeops.dra.{name}"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "PYTHONPATH": COLLECTIONS,
            **(environ or {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return Played(done.returncode, done.stdout + done.stderr)
