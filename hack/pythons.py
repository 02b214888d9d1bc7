# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Find real Python interpreters of the versions that managed nodes have.

Version managers put shims named ``python3.9`` on PATH that run only when that version is switched on. A shim is not an
interpreter, so each candidate is started, asked for its version, and resolved to the file that really runs.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
# venv and ensurepip too: an interpreter without them cannot get a test environment.
_ASK = (
    "import ensurepip, os, sys, venv; "
    "print('%d.%d' % sys.version_info[:2], os.path.realpath(getattr(sys, '_base_executable', sys.executable)))"
)


def candidates(version: str) -> list[pathlib.Path]:
    """Places where an interpreter of this version may be, best first: PATH, then version managers' folders."""
    name = f"python{version}"
    places = [pathlib.Path(folder) / name for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    home = pathlib.Path.home()
    roots = [
        pathlib.Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions",
        pathlib.Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local" / "share" / "uv" / "python"),
        home / ".local" / "share" / "mise" / "installs" / "python",
        home / ".asdf" / "installs" / "python",
    ]
    for root in roots:
        places.extend(sorted(root.glob(f"*{version}*/bin/{name}"), reverse=True))
    return places


def real_interpreter(candidate: pathlib.Path, version: str) -> pathlib.Path | None:
    """The file behind the candidate, or None when it does not run, is another version or has no venv."""
    if not os.access(candidate, os.X_OK):
        return None
    try:
        asked = subprocess.run([str(candidate), "-c", _ASK], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    answer = asked.stdout.split()
    if asked.returncode or len(answer) != 2 or answer[0] != version:
        return None
    return pathlib.Path(answer[1])


def find() -> dict[str, pathlib.Path]:
    """Version to interpreter, for those of VERSIONS that exist on this machine."""
    found: dict[str, pathlib.Path] = {}
    for version in VERSIONS:
        if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
            found[version] = pathlib.Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
            continue
        for candidate in candidates(version):
            real = real_interpreter(candidate, version)
            if real:
                found[version] = real
                break
    return found


def link(found: dict[str, pathlib.Path], folder: pathlib.Path) -> None:
    """Make the folder hold ``pythonX.Y`` links to what was found and nothing else, for use at the head of PATH."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for version, path in found.items():
        (folder / f"python{version}").symlink_to(path)
