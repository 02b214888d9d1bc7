# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the molecule scenarios in containers, each named one or all; tell the time that each took.

SCENARIOS          "agent" for some of them
MOLECULE_ENGINE    podman or docker; the first of them that works
MOLECULE_DISTROS   platforms, "debian12,debian13" for several (debian12)
MOLECULE_IMAGE_*   an image with systemd and Python for a platform, such as MOLECULE_IMAGE_DEBIAN12
MOLECULE_WHEELS    a folder of wheels, as `make wheelhouse` makes it; one is made below .build when there is none
MOLECULE_RUN_ARGS  further arguments of the engine's run command
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import typing as t

import wheelhouse
import workspace
from make_venv import CONSTRAINTS
from molecule_images import SUITES, ImageError, build, image_name
from workspace import BUILD, ROOT

SCENARIOS = ROOT / "extensions" / "molecule"
ENGINES = ("podman", "docker")
# What podman needs where the machine does not let root raise limits, as in most build machines' containers.
LIMITED = ROOT / ".ci" / "containers.conf"
_SYS_RESOURCE = 24


NO_ENGINE = 3
"""Exit status where no container can be run here, told apart from what a scenario found."""


class MissingError(Exception):
    """What is lacking, in one line."""


class NoEngineError(MissingError):
    """No container can be run on this machine."""


def scenarios() -> list[str]:
    """The names of all scenarios."""
    return sorted(path.parent.name for path in SCENARIOS.glob("*/molecule.yml"))


def may_raise_limits() -> bool:
    """Whether this process has CAP_SYS_RESOURCE, or runs without root and leaves the matter to the engine."""
    if os.geteuid() != 0:
        return True
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is None or bool(int(found.group(1), 16) >> _SYS_RESOURCE & 1)


def engine(environ: t.Mapping[str, str]) -> str:
    """The container engine to use; `NoEngineError`."""
    wanted = environ.get("MOLECULE_ENGINE")
    silent = []
    for name in (wanted,) if wanted else ENGINES:
        if shutil.which(name) is None:
            continue
        if subprocess.run([name, "info"], env=dict(environ), capture_output=True, check=False).returncode == 0:
            return name
        silent.append(f"`{name} info` fails")
    what = wanted or " or ".join(ENGINES)
    raise NoEngineError(
        f"no container engine, {what}, is usable ({', '.join(silent) or 'not installed'}). "
        "On Debian: apt-get install podman runc netavark aardvark-dns iptables mmdebstrap"
    )


def images(name: str, platforms: t.Sequence[str], environ: t.MutableMapping[str, str]) -> None:
    """Make the images that nobody named, where this machine can; else those of the inventory are used."""
    for platform in platforms:
        variable = f"MOLECULE_IMAGE_{platform.upper()}"
        if environ.get(variable) or platform not in SUITES or name != "podman":
            continue
        if shutil.which("mmdebstrap") is None:
            continue
        started = time.monotonic()
        with workspace.locked("molecule-images"):
            if build(SUITES[platform]):
                say(
                    f"{'image':<12} {platform} made in {time.monotonic() - started:.0f} s, kept as "
                    f"{image_name(SUITES[platform])}"
                )
        environ[variable] = image_name(SUITES[platform])


def wheels() -> pathlib.Path:
    """The folder of wheels, filled when the requirements have changed."""
    digest = hashlib.sha256()
    for path in (*wheelhouse.REQUIREMENTS, CONSTRAINTS):
        digest.update(path.read_bytes())
    folder = BUILD / "molecule-wheels" / digest.hexdigest()[:16]
    with workspace.locked("molecule-wheels"):
        if not folder.exists():
            started = time.monotonic()
            for old in folder.parent.glob("*"):
                shutil.rmtree(old)
            wheelhouse.fill(folder, wheelhouse.pythons_wanted(), wheelhouse.platform_wanted())
            say(f"{'wheels':<12} {len(list(folder.iterdir())) - 1} fetched in {time.monotonic() - started:.0f} s")
    return folder


def say(line: str) -> None:
    """Print at once, also into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def prepared(environ: t.MutableMapping[str, str]) -> None:
    """Find or make all that the scenarios need, and name it in variables; `MissingError`."""
    if not may_raise_limits() and not environ.get("CONTAINERS_CONF"):
        environ["CONTAINERS_CONF"] = os.environ["CONTAINERS_CONF"] = str(LIMITED)
        say(f"{'engine':<12} this machine may not raise limits: podman is set up by .ci/containers.conf")
    environ["MOLECULE_ENGINE"] = name = engine(environ)
    platforms = environ.setdefault("MOLECULE_DISTROS", "debian12").split(",")
    try:
        images(name, platforms, environ)
        if not environ.get("MOLECULE_WHEELS"):
            environ["MOLECULE_WHEELS"] = str(wheels())
    except (ImageError, wheelhouse.WheelhouseError) as error:
        raise MissingError(str(error)) from error
    must_run(name, environ)


def must_run(name: str, environ: t.Mapping[str, str]) -> None:
    """Start a container that does nothing: an engine that answers may still be unable to; `NoEngineError`."""
    image = next((value for key, value in environ.items() if key.startswith("MOLECULE_IMAGE_")), "")
    if not image:
        return
    argv = [name, "run", "--rm", "--network=none", image, "true"]
    done = subprocess.run(argv, env=dict(environ), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise NoEngineError(f"{name} cannot run a container here: {reason}")


def run(name: str, environ: t.Mapping[str, str]) -> int:
    """Run one scenario on this terminal; its exit status."""
    argv = ["molecule", "test", "--scenario-name", name, "--no-command-borders"]
    with workspace.locked(f"molecule-{name}"):
        return subprocess.run(argv, cwd=ROOT, env=dict(environ), stdin=subprocess.DEVNULL, check=False).returncode


def main() -> int:
    """Entry point; returns the exit status."""
    wanted = os.environ.get("SCENARIOS", "").split() or scenarios()
    unknown = sorted(set(wanted) - set(scenarios()))
    if unknown:
        sys.stderr.write(f"molecule: no such scenario: {', '.join(unknown)}; there are: {', '.join(scenarios())}\n")
        return 2
    home = BUILD / "molecule-home"
    environ = {**workspace.environment(), "ANSIBLE_HOME": str(home)}
    try:
        prepared(environ)
    except MissingError as error:
        sys.stderr.write(f"molecule: {error}\n")
        return NO_ENGINE if isinstance(error, NoEngineError) else 2
    # A state of an earlier run would make molecule believe that its containers are there.
    shutil.rmtree(home, ignore_errors=True)
    taken = []
    for name in wanted:
        started = time.monotonic()
        status = run(name, environ)
        taken.append((name, status, time.monotonic() - started))
    for name, status, seconds in taken:
        say(f"{name:<12} {'FAILED' if status else 'ok':<6} {seconds:6.1f} s  {environ['MOLECULE_DISTROS']}")
    return 1 if any(status for _name, status, _seconds in taken) else 0


if __name__ == "__main__":
    raise SystemExit(main())
