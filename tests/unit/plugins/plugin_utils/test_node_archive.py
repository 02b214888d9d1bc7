# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The archive for nodes: the same bytes for the same content, all that the daemons need, and nothing else."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.version import VERSION
from ansible_collections.nodeops.dra.plugins.plugin_utils.node_archive import (
    COLLECTION,
    INSIDE,
    MANIFEST,
    NodeArchive,
    content_digest,
    pack,
)

ROOT = pathlib.Path(__file__).resolve().parents[4]
CODE = "plugins/module_utils"
DAEMONS = ("agent", "controller")


def checkout(folder: pathlib.Path) -> pathlib.Path:
    """A copy of what is packed, without anything that a tool left in it."""
    shutil.copytree(ROOT / CODE, folder / CODE, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSES", "requirements"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def unpack(archive: NodeArchive, folder: pathlib.Path) -> pathlib.Path:
    """The folder, with what is in the archive."""
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as packed:
        packed.extractall(folder, filter="data")
    return folder


def members(archive: NodeArchive) -> list[tarfile.TarInfo]:
    """Entries of the archive in their order."""
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as packed:
        return packed.getmembers()


def test_two_checkouts_of_the_same_content_give_the_same_bytes(tmp_path: pathlib.Path) -> None:
    first, second = checkout(tmp_path / "first"), checkout(tmp_path / "second")
    for number, path in enumerate(sorted(second.rglob("*"))):
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
        path.chmod(0o700 if path.is_dir() else 0o640)
    leftovers = second / CODE / "agent"
    for name in ("__pycache__/daemon.cpython-311.pyc", "notes.txt", ".#daemon.py", "daemon.py.orig"):
        (leftovers / name).parent.mkdir(exist_ok=True)
        (leftovers / name).write_bytes(b"left over")
    assert pack(second).content == pack(first).content


def test_a_changed_byte_is_another_release(tmp_path: pathlib.Path) -> None:
    root = checkout(tmp_path)
    before = pack(root)
    changed = root / CODE / "agent" / "daemon.py"
    changed.write_bytes(changed.read_bytes().replace(b"the", b"thE", 1))
    after = pack(root)
    name = f"{INSIDE}/{CODE}/agent/daemon.py"
    assert {path for path in after.files if after.files[path] != before.files[path]} == {name}
    assert after.digest != before.digest
    assert after.release != before.release
    assert after.version == before.version == VERSION


def test_a_renamed_file_is_another_release(tmp_path: pathlib.Path) -> None:
    root = checkout(tmp_path)
    before = pack(root).digest
    (root / CODE / "agent" / "daemon.py").rename(root / CODE / "agent" / "daemons.py")
    assert pack(root).digest != before


def test_the_manifest_tells_what_is_there(tmp_path: pathlib.Path) -> None:
    archive = pack()
    folder = unpack(archive, tmp_path)
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert manifest == {"version": VERSION, "digest": archive.digest, "files": dict(archive.files)}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == {MANIFEST, *archive.files}
    listing = "".join(f"{sum_}  {name}\n" for name, sum_ in archive.files.items())
    told = subprocess.run(["sha256sum", "--check", "--quiet"], cwd=folder, input=listing.encode(), check=False)
    assert told.returncode == 0
    assert content_digest(manifest["version"], manifest["files"]) == manifest["digest"]


def test_it_holds_code_licence_and_requirements_alone() -> None:
    inner = {name.removeprefix(f"{INSIDE}/") for name in pack().files}
    code = {name for name in inner if name.startswith(f"{CODE}/")}
    assert {name.rpartition(".")[2] for name in code} == {"py"}
    assert not [name for name in code if "test" in name or "/." in name]
    assert inner - code == {
        "LICENSES/Apache-2.0.txt",
        *(f"requirements/{name}.txt" for name in ("agent", "constraints", "controller")),
    }


def test_the_header_tells_neither_name_nor_time_nor_system() -> None:
    assert pack().content[:10] == b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"


def test_entries_belong_to_root_and_can_be_read_by_all() -> None:
    entries = members(pack())
    assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {(0, 0, "root", "root")}
    assert {(entry.isdir(), entry.mode) for entry in entries} == {(True, 0o755), (False, 0o644)}
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert len({entry.mtime for entry in entries}) == 1


@pytest.mark.parametrize("daemon", DAEMONS)
def test_unpacked_each_daemon_starts_without_anything_else(tmp_path: pathlib.Path, daemon: str) -> None:
    folder = unpack(pack(), tmp_path)
    told = subprocess.run(
        # -S: no site-packages, therefore no ansible and no other collection.
        [sys.executable, "-S", "-m", f"ansible_collections.nodeops.dra.plugins.module_utils.{daemon}", "--version"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert VERSION in told.stdout


def test_the_collection_is_the_one_around_the_code() -> None:
    assert (COLLECTION / "plugins" / "plugin_utils" / "node_archive.py").is_file()
    assert pack().digest == pack(ROOT).digest


def test_an_installed_collection_that_is_not_complete_is_told(tmp_path: pathlib.Path) -> None:
    root = checkout(tmp_path)
    (root / "requirements" / "agent.txt").unlink()
    with pytest.raises(DraError, match=r"requirements/agent\.txt is missing\. Install nodeops\.dra again") as caught:
        pack(root)
    assert caught.value.facts == {"path": str(root), "missing": ["requirements/agent.txt"]}


def test_a_collection_that_is_not_there_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DraError, match="is not complete"):
        pack(tmp_path / "nowhere")


def test_a_tree_without_version_is_told(tmp_path: pathlib.Path) -> None:
    root = checkout(tmp_path)
    (root / CODE / "daemon" / "version.py").write_text("", encoding="utf-8")
    with pytest.raises(DraError, match="does not say the version"):
        pack(root)


def test_the_builder_leaves_one_file_that_is_not_taken_for_the_collection(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dra-node-0.0.9.tar.gz").touch()
    (tmp_path / "nodeops-dra-0.0.9.tar.gz").touch()
    subprocess.run([sys.executable, str(ROOT / "hack" / "build_node_archive.py"), str(tmp_path)], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"dra-node-{VERSION}.tar.gz",
        "nodeops-dra-0.0.9.tar.gz",
    ]
    assert (tmp_path / f"dra-node-{VERSION}.tar.gz").read_bytes() == pack(ROOT).content
