# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Folders below ``.build`` that let every tool run from any checkout, and the environment they run in."""

from __future__ import annotations

import ast
import configparser
import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build"
NAME = pathlib.Path("ansible_collections/nodeops/dra")
PYTHONS = BUILD / "pythons"
HOME = BUILD / "home"

# ansible-test would download this script. The interpreter's own ensurepip does the same without a network.
_GET_PIP = '''"""Stands in for the get-pip script that ansible-test would download: pip comes from ensurepip."""
import os
import subprocess
import sys

subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL)
# ensurepip's pip is good enough; another one costs two seconds for each of a dozen environments.
wanted = [arg for arg in sys.argv[1:] if arg not in ("--no-setuptools", "--no-wheel") and not arg.startswith("pip==")]
if any(not arg.startswith("-") for arg in wanted):
    subprocess.check_call([sys.executable, "-m", "pip", "install", *wanted])
'''


def environment() -> dict[str, str]:
    """Variables for every tool: our interpreters first, our collection only, plain output."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    env.pop("PYTHONPATH", None)
    env.pop("PYTHONHOME", None)
    env.pop("MAKEFLAGS", None)
    env.update(
        PATH=os.pathsep.join([str(ROOT / ".venv" / "bin"), str(PYTHONS), env.get("PATH", os.defpath)]),
        VIRTUAL_ENV=str(ROOT / ".venv"),
        ANSIBLE_COLLECTIONS_PATH=str(BUILD),
        ANSIBLE_HOME=str(BUILD / "ansible"),
        ANSIBLE_NOCOLOR="1",
        LC_ALL="C.UTF-8",
    )
    return env


def link_collection() -> None:
    """``.build/ansible_collections/nodeops/dra`` as a link to the checkout: for pytest, mypy and ansible."""
    link = BUILD / NAME
    link.parent.mkdir(parents=True, exist_ok=True)
    if not (link.is_symlink() and link.resolve() == ROOT):
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        with contextlib.suppress(FileExistsError):  # another make was faster
            link.symlink_to(os.path.relpath(ROOT, link.parent))


@contextlib.contextmanager
def locked(name: str) -> t.Iterator[None]:
    """Keep two runs of one check in one checkout apart; says that it waits."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"{name}: waits for another run in this checkout\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def copy_collection(purpose: str, leave_out: str = "") -> pathlib.Path:
    """A fresh real copy of what git tracks or would track: ansible-test refuses links. Call it under ``locked``.

    Files whose path begins with ``leave_out`` are not copied.
    """
    target = BUILD / "copies" / purpose / NAME
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    wanted = [name for name in listed if name and not (leave_out and name.startswith(leave_out.encode()))]
    present = [name for name in wanted if os.path.lexists(os.path.join(os.fsencode(ROOT), name))]
    packed = subprocess.run(
        ["tar", "--null", "-T", "-", "-c"], cwd=ROOT, input=b"\0".join(present), capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(target)], input=packed.stdout, check=True)
    # Without its own repository ansible-test asks the outer one, which ignores this folder, and tests nothing.
    subprocess.run(["git", "init", "-q", "--template=", str(target)], check=True)
    return target


def _pip_settings() -> dict[str, dict[str, str]]:
    """What pip reads from its files and variables, as section to key to value."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    settings: dict[str, dict[str, str]] = {}
    for line in listed.splitlines():
        name, separator, value = line.partition("=")
        section, _dot, key = name.rpartition(".")
        if separator and key:
            settings.setdefault("global" if section == ":env:" else section, {})[key] = str(ast.literal_eval(value))
    return settings


def make_home() -> pathlib.Path:
    """A home folder for ansible-test, so that its caches stay in the checkout.

    ansible-test hides the environment from pip, so the host's pip settings, files and variables, are written down here.
    They may hold a password: the file is for the owner only and git ignores the folder.
    """
    script = HOME / ".ansible" / "test" / "cache" / "get_pip_24_2.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_GET_PIP, encoding="utf-8")
    settings = _pip_settings()
    cache = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if cache:
        settings.setdefault("global", {}).setdefault("cache-dir", cache)
    parser = configparser.RawConfigParser()
    parser.read_dict(
        {section: {k: v.replace("\n", "\n ") for k, v in keys.items()} for section, keys in settings.items()}
    )
    config = HOME / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        parser.write(stream)
    return HOME
