# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The console's ``--output json`` and the modules: one answer to one question, key by key."""

from __future__ import annotations

import json
import pathlib
import types
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import __main__ as program
from ansible_collections.nodeops.dra.plugins.modules import checkpoint, checkpoint_info

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures" / "checkpoint"
MANAGER = "dra_manager_state"
OF_ANSIBLE = {"invocation"}
STAMP = "20260101T000000Z"


class Twins:
    """The same files in two folders, one for each side; paths in answers are told as if they were one folder."""

    def __init__(self, directory: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.sides = {side: directory / side for side in ("console", "module")}
        for folder in self.sides.values():
            folder.mkdir()
        self._capsys = capsys

    def put(self, name: str, data: bytes) -> None:
        for folder in self.sides.values():
            (folder / name).write_bytes(data)

    def console(self, *argv: str) -> t.Any:
        folder = self.sides["console"]
        program.main([word.format(dir=folder) for word in argv] + ["--output", "json"])
        return self._answer(folder)

    def module(self, module: types.ModuleType, options: t.Mapping[str, t.Any]) -> t.Any:
        from ansible.module_utils.testing import patch_module_args

        folder = self.sides["module"]
        given = {key: value.format(dir=folder) if isinstance(value, str) else value for key, value in options.items()}
        with patch_module_args({**given, "_ansible_diff": True}), pytest.raises(SystemExit):
            module.main()
        answer = self._answer(folder)
        return {key: value for key, value in answer.items() if key not in OF_ANSIBLE}

    def _answer(self, folder: pathlib.Path) -> t.Any:
        text = self._capsys.readouterr().out.replace(str(folder), "DIR")
        answer = json.loads(text)
        if answer.get("backup_file"):
            answer["backup_file"] = "of this second"
        return answer


@pytest.fixture
def twins(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Twins:
    return Twins(tmp_path, capsys)


def sources() -> t.Iterator[tuple[str, pathlib.Path]]:
    """A name on the node, and a golden file to stand there: some of every kind."""
    for pattern in ("1.27/*.json", "1.30/*.json", "1.35-1.36/*.json", "bridge/*.json", "damaged/1.35-1.36/*.json"):
        for path in sorted(FOLDER.glob(pattern)):
            if path.name != "expected.json":
                yield MANAGER, path
    for path in sorted((FOLDER / "health").rglob("*.json")):
        if path.name != "expected.json":
            yield "dra_health_state", path
    for driver in ("gpu.nvidia.com", "compute-domain.nvidia.com"):
        for path in sorted((FOLDER / "nvidia" / driver).rglob("*.json")):
            yield "checkpoint.json", path


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_look_is_the_same_on_both_sides(twins: Twins) -> None:
    different = []
    files = list(sources())
    for number, (name, path) in enumerate(files):
        argv, options = (["--kubelet", "1.30"], {"target_version": "1.30"}) if number % 2 else ([], {})
        twins.put(name, path.read_bytes())
        by_console = twins.console("inspect", "{dir}/" + name, *argv)
        if by_console != twins.module(checkpoint_info, {"path": "{dir}/" + name, **options}):
            different.append(path.name)
    assert different == []
    assert len(files) > 150


def test_a_look_at_what_is_not_there_is_the_same(twins: Twins) -> None:
    by_console = twins.console("inspect", "{dir}/none")
    assert by_console == twins.module(checkpoint_info, {"path": "{dir}/none"})
    assert by_console["exists"] is False


CLAIM = {"uid": "u-9", "name": "c9", "namespace": "team-a", "pods": ["p-9"], "drivers": [{"name": "gpu.example.com"}]}
CHANGES = {
    "repair": (["repair"], {}),
    "repair for a release": (["repair", "--kubelet", "1.36"], {"target_version": "1.36"}),
    "repair for another release": (["repair", "--kubelet", "1.30"], {"target_version": "1.30"}),
    "repair with pods": (["repair", "--known-pod", "p"], {"known_pods": ["p"]}),
    "convert": (["convert", "--to", "1.30"], {"state": "converted", "target_version": "1.30"}),
    "convert to universal": (["convert", "--to", "universal"], {"state": "converted", "target_version": "universal"}),
    "convert to nonsense": (["convert", "--to", "x"], {"state": "converted", "target_version": "x"}),
    "restore": (["restore"], {"state": "restored"}),
    "restore for a release": (["restore", "--kubelet", "1.27"], {"state": "restored", "target_version": "1.27"}),
    "restore one": (["restore", "--from", "{dir}/copy"], {"state": "restored", "restore_from": "{dir}/copy"}),
    "restore none": (["restore", "--from", "{dir}/x"], {"state": "restored", "restore_from": "{dir}/x"}),
    "drop": (["repair", "--drop", "default/claim-1"], {"drop_claims": [{"namespace": "default", "name": "claim-1"}]}),
    "keep": (["repair", "--keep", "u-7"], {"keep_claims": [{"uid": "u-7"}]}),
    "add": (["repair", "--add", "{dir}/add.json"], {"add_claims": [CLAIM]}),
}
FILES = {
    "sound": "1.35-1.36/multi_pod.json",
    "old": "1.30/one_claim_one_device.json",
    "cut": "damaged/1.35-1.36/truncated_half.json",
    "checksum": "damaged/1.35-1.36/bad_checksum_zero.json",
    "zeros": "damaged/1.30/zero_filled_whole.json",
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_the_same_on_both_sides(name: str, file: str, twins: Twins) -> None:
    argv, options = CHANGES[name]
    twins.put(MANAGER, (FOLDER / FILES[file]).read_bytes())
    twins.put("copy", (FOLDER / FILES["sound"]).read_bytes())
    twins.put(f"{MANAGER}.{STAMP}.bak", (FOLDER / FILES["sound"]).read_bytes())
    twins.put("add.json", json.dumps([CLAIM]).encode())
    for check in (True, False):
        words = [argv[0], "{dir}/" + MANAGER, *argv[1:], *(["--check"] if check else [])]
        by_console = twins.console(*words)
        assert by_console == twins.module(
            checkpoint, {"path": "{dir}/" + MANAGER, **options, "_ansible_check_mode": check}
        )
    left = [(folder / MANAGER).read_bytes() for folder in twins.sides.values()]
    assert left[0] == left[1]


def test_a_file_of_another_kind_is_refused_the_same(twins: Twins) -> None:
    twins.put("dra_health_state", b"{}")
    by_console = twins.console("repair", "{dir}/dra_health_state")
    assert by_console == twins.module(checkpoint, {"path": "{dir}/dra_health_state"})
    assert by_console["failed"] is True
