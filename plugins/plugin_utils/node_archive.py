# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The archive that puts this collection's code on a node, where its daemons run without ansible-core.

It is made on the control node from the collection as it is there, a checkout or an installed one: there is no second
copy of the code in a wheel. Unpacked into a folder it is used as

    PYTHONPATH=FOLDER python -m ansible_collections.nodeops.dra.plugins.module_utils.agent --config FILE

The same content gives the same bytes: sorted names, one date, root as owner, modes that no umask has touched. Only the
compression is the zlib library's own; what names the content is therefore the digest in the manifest, which is the same
whatever compressed the archive.
"""

from __future__ import annotations

import ast
import dataclasses
import gzip
import hashlib
import io
import json
import pathlib
import tarfile
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError

COLLECTION = pathlib.Path(__file__).parents[2]
"""The collection that this file belongs to."""
INSIDE = "ansible_collections/nodeops/dra"
"""Where the collection is in the archive: below it, paths are those of the collection."""
MANIFEST = "manifest.json"
"""At the top of the archive: ``version``, ``digest``, and ``files``, path in the archive to SHA-256."""

_CODE = "plugins/module_utils"
_VERSION = f"{_CODE}/daemon/version.py"
# What comes along beside the code: the licence of all of it, and what a virtual environment for it is made from.
_BESIDE = (
    "LICENSES/Apache-2.0.txt",
    "requirements/agent.txt",
    "requirements/constraints.txt",
    "requirements/controller.txt",
)
_DATE = 315532800  # 1980-01-01: tar warns of the year 1970


@dataclasses.dataclass(frozen=True)
class NodeArchive:
    """The packed code of one collection."""

    version: str
    """Version of the collection."""
    digest: str
    """Names the content: SHA-256 in hexadecimal over version, paths and the sums of all files."""
    files: t.Mapping[str, str]
    """Path in the archive to the SHA-256 of the file, the manifest apart."""
    content: bytes
    """The archive itself, ``tar.gz``."""

    @property
    def release(self) -> str:
        """Name for the folder that the archive is unpacked to, another one for any other content.

        Never unpack over other content: all files have one date, so that Python would take the cached bytecode of an
        older file of the same length for that of the new one.
        """
        return f"{self.version}-{self.digest[:12]}"


def pack(collection: pathlib.Path = COLLECTION) -> NodeArchive:
    """Pack the collection whose root this is; ``DraError`` when a part of it is not there."""
    found = {f"{INSIDE}/{name}": data for name, data in _contents(collection).items()}
    version = _version(found[f"{INSIDE}/{_VERSION}"], collection)
    files = {name: hashlib.sha256(found[name]).hexdigest() for name in sorted(found)}
    digest = content_digest(version, files)
    manifest = {"version": version, "digest": digest, "files": files}
    found[MANIFEST] = json.dumps(manifest, indent=1).encode() + b"\n"
    return NodeArchive(version, digest, files, _gzip(_tar(found)))


def content_digest(version: str, files: t.Mapping[str, str]) -> str:
    """What names the content: SHA-256 over the version and one line for each file as ``sha256sum`` writes it."""
    lines = [f"{sum_}  {name}\n" for name, sum_ in sorted(files.items())]
    return hashlib.sha256(f"{version}\n{''.join(lines)}".encode()).hexdigest()


def _contents(collection: pathlib.Path) -> dict[str, bytes]:
    """Path in the collection to bytes. Hidden files are editors' own; compiled ones belong to one interpreter."""
    code = collection / _CODE
    sources = [path.relative_to(collection).as_posix() for path in code.rglob("*.py") if not path.name.startswith(".")]
    names = [*sorted(sources), *_BESIDE]
    missing = [name for name in (_VERSION, *_BESIDE) if not (collection / name).is_file()]
    if missing:
        raise DraError(
            f"The collection in {collection} is not complete: {', '.join(missing)} is missing.",
            "Install nodeops.dra again, or work from a checkout.",
            path=str(collection),
            missing=missing,
        )
    try:
        return {name: (collection / name).read_bytes() for name in names}
    except OSError as error:
        raise DraError(
            f"The collection in {collection} cannot be packed: {error.filename}: {error.strerror}.",
            "Make its files readable for the user who runs Ansible, or install nodeops.dra again.",
            path=str(error.filename),
        ) from error


def _version(source: bytes, collection: pathlib.Path) -> str:
    """The version that this source gives to ``VERSION``; it is read, not run, for it may be another collection's."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and [getattr(name, "id", "") for name in node.targets] == ["VERSION"]:
            return str(ast.literal_eval(node.value))
    raise DraError(f"{collection / _VERSION} does not say the version.", "Install nodeops.dra again.")


def _tar(files: t.Mapping[str, bytes]) -> bytes:
    """An uncompressed archive of these files and of the folders that lead to them."""
    folders = {folder.as_posix() for name in files for folder in pathlib.PurePosixPath(name).parents} - {"."}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted({*folders, *files}):
            entry = tarfile.TarInfo(name)
            entry.mtime = _DATE
            entry.uname = entry.gname = "root"
            if name in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(files[name]), 0o644
                archive.addfile(entry, io.BytesIO(files[name]))
    return stream.getvalue()


def _gzip(data: bytes) -> bytes:
    """Compressed, with a header that has no name, no time and no operating system in any Python."""
    stream = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as file:
        file.write(data)
    return stream.getvalue()
