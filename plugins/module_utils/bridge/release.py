# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A release on a node: the archive of the collection's code, unpacked to a folder that nothing else changes."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import tarfile
import tempfile
import typing as t
import zlib

from ..checkpoint.errors import DraError

MANIFEST = "manifest.json"
"""At the top of archive and release: ``files``, path to SHA-256."""


def sha256(data: bytes) -> str:
    """The sum in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def faults(path: str, manifest_sum: str) -> list[str]:
    """What keeps the folder from being the release whose manifest has this SHA-256; empty when nothing does.

    Files that the manifest does not name, such as a virtual environment, are not looked at.
    """
    folder = pathlib.Path(path)
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        return [f"{MANIFEST}: {error.strerror}"]
    if sha256(manifest) != manifest_sum:
        return [f"{MANIFEST}: is that of other content"]
    found = []
    for name, sum_ in json.loads(manifest)["files"].items():
        try:
            if sha256((folder / name).read_bytes()) != sum_:
                found.append(f"{name}: was changed")
        except OSError as error:
            found.append(f"{name}: {error.strerror}")
    return found


def unpack(archive: str, path: str, manifest_sum: str) -> None:
    """Make the folder from the archive, complete or not at all. A folder that is there goes. `DraError`.

    All files of an archive have one date. So a release is never unpacked over another one: Python would take cached
    bytecode of an older file of the same length for that of the new one.
    """
    parent, name = os.path.split(os.path.abspath(path))
    try:
        os.makedirs(parent, mode=0o755, exist_ok=True)
        staging = tempfile.mkdtemp(prefix=f".{name}.", dir=parent)
    except OSError as error:
        raise _refused(error, parent) from error
    try:
        os.chmod(staging, 0o755)  # noqa: S103
        _extract(archive, staging)
        wrong = faults(staging, manifest_sum)
        if wrong:
            raise DraError(f"The archive {archive} is damaged: {'; '.join(wrong[:3])}.", "Run the task again.")
        _replace(staging, path)
    except OSError as error:
        raise _refused(error, path) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _extract(archive: str, folder: str) -> None:
    """Only folders and files, only below the folder: names from a file are not trusted."""
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for entry in packed:
                inside = pathlib.PurePosixPath(entry.name)
                if inside.is_absolute() or ".." in inside.parts or not (entry.isdir() or entry.isfile()):
                    raise DraError(f"The archive {archive} holds {entry.name!r}.", "Expected plain files and folders.")
                target = os.path.join(folder, *inside.parts)
                if entry.isdir():
                    os.makedirs(target, mode=0o755, exist_ok=True)
                    os.chmod(target, 0o755)  # noqa: S103
                else:
                    _write(packed, entry, target)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DraError(f"The archive {archive} cannot be unpacked: {error}.", "Run the task again.") from error


def _write(packed: tarfile.TarFile, entry: tarfile.TarInfo, target: str) -> None:
    source = packed.extractfile(entry)
    if source is None:
        return
    with source, open(target, "xb") as file:
        shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), 0o644)
        file.flush()
        os.fsync(file.fileno())
    os.utime(target, (entry.mtime, entry.mtime))


def _replace(staging: str, path: str) -> None:
    old = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.old-", dir=os.path.dirname(path))
    try:
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, os.path.join(old, "release"))
        os.rename(staging, path)
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _refused(error: OSError, path: str) -> DraError:
    return DraError(
        f"{error.filename or path} could not be written: {error.strerror}.",
        "Mend this, or set agent_prefix to another place; nothing was changed.",
        path=path,
    )


def release_spec() -> dict[str, dict[str, t.Any]]:
    """Options of the module, set by its action plugin but for ``directory`` and ``collection``."""
    return {
        "directory": {"type": "path", "required": True},
        "collection": {"type": "path"},
        "release": {"type": "str"},
        "manifest_sum": {"type": "str"},
        "archive": {"type": "path"},
    }
