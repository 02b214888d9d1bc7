# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Make or refresh a virtual environment from one requirement file and the constraints.

    python hack/make_venv.py FOLDER REQUIREMENTS STAMP

STAMP is the file that tells the caller "nothing to do": its name holds a hash of the requirement files, it is written
last. Index and mirror settings are pip's own business: nothing is passed to it here. Runs on Python 3.9 and later,
with the standard library only. pip's output goes to a log and is shown only when something fails.
"""

from __future__ import annotations

import fcntl
import importlib.util
import pathlib
import re
import subprocess
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
# ensurepip puts these in; they are not ours to pin.
FROM_ENSUREPIP = {"pip", "setuptools"}


def normal_name(name: str) -> str:
    """Name of a distribution in the one spelling that comparisons use."""
    return re.sub(r"[-_.]+", "-", name).lower()


def run(command: t.Sequence[str | pathlib.Path], log: pathlib.Path) -> None:
    """Run a command into the log; end the program with the log's text when it fails."""
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    with log.open("ab") as stream:
        stream.write(done.stdout)
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        raise SystemExit("venv: failed: " + " ".join(str(part) for part in command))


def pinned() -> set[str]:
    """``name==version`` of every line of the constraints, names normalised, markers dropped."""
    pins = set()
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        requirement = line.split("#")[0].split(";")[0].strip()
        if requirement:
            name, _sep, version = requirement.partition("==")
            pins.add(f"{normal_name(name)}=={version}")
    return pins


def unpinned(python: pathlib.Path) -> list[str]:
    """What the environment holds that the constraints do not name in that version."""
    script = "import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'] + '==' + d.version)"
    listed = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=True).stdout.split()
    found = set()
    for entry in listed:
        name, _sep, version = entry.partition("==")
        if normal_name(name) not in FROM_ENSUREPIP:
            found.add(f"{normal_name(name)}=={version}")
    return sorted(found - pinned())


def install(folder: pathlib.Path, requirements: pathlib.Path, log: pathlib.Path, clear: bool) -> list[str]:
    """Bring the environment to the wanted state; returns what it then holds beside the pinned versions."""
    python = folder / "bin" / "python"
    if clear:
        run([sys.executable, "-m", "venv", "--clear", folder], log)
    pip: list[str | pathlib.Path] = [python, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "-r", requirements, "-c", CONSTRAINTS], log)
    run([*pip, "check"], log)
    return unpinned(python)


def make(folder: pathlib.Path, requirements: pathlib.Path, stamp: pathlib.Path, log: pathlib.Path) -> None:
    """Create the environment when it is not there, install, check, and leave the stamp."""
    python = folder / "bin" / "python"
    fresh = not python.exists() or subprocess.run([str(python), "-c", ""], check=False).returncode != 0
    for old in folder.glob(".ready-*"):
        old.unlink()
    loose = install(folder, requirements, log, clear=fresh)
    if loose and not fresh:  # left over from older requirements
        loose = install(folder, requirements, log, clear=True)
    if loose:
        raise SystemExit(f"venv: not pinned in requirements/constraints.txt: {', '.join(loose)}")
    stamp.touch()


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    folder, requirements, stamp = (pathlib.Path(arg).absolute() for arg in argv)
    for module, package in (("ensurepip", "venv"), ("venv", "venv")):
        if importlib.util.find_spec(module) is None:
            version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
            raise SystemExit(f"venv: {version} has no {module} module. Install {version}-{package} and try again.")
    work = ROOT / ".build" / "venv"
    work.mkdir(parents=True, exist_ok=True)
    log = work / f"{folder.name.lstrip('.')}.log"
    with log.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists():  # somebody else made it while we waited
            return 0
        log.unlink(missing_ok=True)
        started = time.monotonic()
        make(folder, requirements, stamp, log)
        sys.stdout.write(f"venv: {folder.name} ready in {time.monotonic() - started:.0f} s\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
