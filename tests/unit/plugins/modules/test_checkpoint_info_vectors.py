# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""checkpoint_info on every golden file, against what ten releases of the kubelet made of it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.modules import checkpoint_info

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures" / "checkpoint"
MATRIX: dict[str, dict[str, str]] = json.loads((FOLDER / "reader_matrix.json").read_text())
FOLDERS = sorted({name.rpartition("/")[0] for name in MATRIX})


def by_module(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> dict[str, t.Any]:
    """What the module prints for one file."""
    from ansible.module_utils.testing import patch_module_args

    with patch_module_args({"path": str(path)}), pytest.raises(SystemExit) as ended:
        checkpoint_info.main()
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_module_says_of_each_file_what_the_kubelets_say(
    folder: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {}
    for name in (name for name in MATRIX if name.rpartition("/")[0] == folder):
        file = tmp_path / "dra_manager_state"  # its name says what it is, as on a node
        file.write_bytes((FOLDER / name).read_bytes())
        found = by_module(file, capsys)
        readable = [release for release, verdict in MATRIX[name].items() if verdict.startswith("ok:")]
        if (found["kubelet_verdicts"], found["readable_by"]) != (MATRIX[name], readable):
            wrong[name] = found["kubelet_verdicts"]
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["1.27/one_claim_one_device.json", "damaged/1.35-1.36/bad_checksum_zero.json"])
def test_ansible_says_the_same(name: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "dra_manager_state"
    file.write_bytes((FOLDER / name).read_bytes())
    collections = next(path for path in sys.path if (pathlib.Path(path) / "ansible_collections" / "nodeops").is_dir())
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
        "ANSIBLE_NOCOLOR": "1",
    }
    ansible = shutil.which("ansible", path=str(pathlib.Path(sys.executable).parent))
    assert ansible is not None
    command = [ansible, "localhost", "-m", "nodeops.dra.checkpoint_info", "-a", f"path={file}"]
    command += ["-e", f"ansible_python_interpreter={sys.executable}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.partition("=>")[2])["kubelet_verdicts"] == MATRIX[name]
