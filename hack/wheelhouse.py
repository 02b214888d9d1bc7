# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Fill a folder with the wheels that the daemons need on nodes without an index, in the pinned versions.

    python hack/wheelhouse.py FOLDER

WHEEL_PYTHONS    the Python versions of the nodes ("3.11 3.12 3.13")
WHEEL_PLATFORM   their platform ("manylinux_2_28_x86_64": glibc 2.28 or newer)

The folder is made anew. Its ``SHA256SUMS`` can be checked anywhere by ``sha256sum --check``. Where wheels come from is
pip's own business: nothing about it is passed here.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing as t

from make_venv import CONSTRAINTS, normal_name, pinned

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = tuple(ROOT / "requirements" / name for name in ("agent.txt", "controller.txt"))
PYTHONS = "3.11 3.12 3.13"
PLATFORM = "manylinux_2_28_x86_64"
SUMS = "SHA256SUMS"


class WheelhouseError(Exception):
    """The folder is not what it should be; the text is for a person."""


def pythons_wanted() -> list[str]:
    """The Python versions of the nodes."""
    return (os.environ.get("WHEEL_PYTHONS") or PYTHONS).split()


def platform_wanted() -> str:
    """The platform of the nodes, as the tag of the newest wheels that they take."""
    return os.environ.get("WHEEL_PLATFORM") or PLATFORM


def platform_tags(platform: str) -> list[str]:
    """What a node of this platform accepts, best first: a newer glibc runs what was built for an older one."""
    found = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", platform)
    if not found:
        return [platform]
    newest, machine = int(found.group(1)), found.group(2)
    older_names = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    tags = []
    for minor in range(newest, 4, -1):
        tags.append(f"manylinux_2_{minor}_{machine}")
        if minor in older_names:
            tags.append(f"{older_names[minor]}_{machine}")
    return tags


def download(
    folder: pathlib.Path,
    python: str,
    platform: str,
    requirements: t.Sequence[pathlib.Path] = REQUIREMENTS,
    constraints: pathlib.Path = CONSTRAINTS,
) -> None:
    """Put into the folder what a node with this Python and platform needs, if it is not there yet."""
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    argv += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    argv += [part for tag in platform_tags(platform) for part in ("--platform", tag)]
    argv += [part for path in requirements for part in ("--requirement", str(path))]
    argv += ["--constraint", str(constraints), "--dest", str(folder)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise WheelhouseError(f"pip found no wheels for Python {python} on {platform}:\n{done.stdout.rstrip()}")


def sums(folder: pathlib.Path) -> dict[str, str]:
    """Name to SHA-256 of every file beside the list itself."""
    paths = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def write_sums(folder: pathlib.Path) -> None:
    """The list, as ``sha256sum`` writes it."""
    lines = [f"{sum_}  {name}\n" for name, sum_ in sums(folder).items()]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def verify(folder: pathlib.Path, pins: t.Collection[str]) -> None:
    """Compare the folder with its list, and the wheels with ``pins`` (``name==version``); ``WheelhouseError``."""
    wanted: dict[str, str] = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        sum_, _space, name = line.partition("  ")
        wanted[name] = sum_
    found = sums(folder)
    wrong = [f"{name}: is not in {SUMS}" for name in sorted(found.keys() - wanted.keys())]
    wrong += [f"{name}: is missing" for name in sorted(wanted.keys() - found.keys())]
    wrong += [
        f"{name}: has another sum" for name in sorted(wanted.keys() & found.keys()) if found[name] != wanted[name]
    ]
    for name in found:
        # A wheel's own spelling: NAME-VERSION-...whl, without any other "-" in the two.
        distribution, version = [*name.split("-"), ""][:2]
        if not name.endswith(".whl") or f"{normal_name(distribution)}=={version}" not in pins:
            wrong.append(f"{name}: is no wheel in a version that requirements/constraints.txt names")
    if wrong:
        raise WheelhouseError(f"{folder}:\n" + "\n".join(wrong))


def fill(folder: pathlib.Path, pythons: t.Sequence[str], platform: str) -> None:
    """Make the folder anew, complete or not at all."""
    unfinished = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for python in pythons:
        download(unfinished, python, platform)
    write_sums(unfinished)
    verify(unfinished, pinned())
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    if len(argv) != 1:
        sys.stderr.write("usage: wheelhouse.py FOLDER\n")
        return 2
    folder = pathlib.Path(argv[0]).absolute()
    pythons, platform = pythons_wanted(), platform_wanted()
    unknown = [python for python in pythons if not re.fullmatch(r"3\.(1[1-9]|[2-9]\d)", python)]
    if unknown:
        sys.stderr.write(f"wheelhouse: WHEEL_PYTHONS: {', '.join(unknown)}: expected versions such as 3.11\n")
        return 2
    try:
        fill(folder, pythons, platform)
    except WheelhouseError as error:
        sys.stderr.write(f"wheelhouse: {error}\n")
        return 1
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    count = len(sums(folder))
    sys.stdout.write(f"{folder}: {count} wheels, {size:.0f} MB, for Python {', '.join(pythons)} on {platform}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
