# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Images with systemd and Python for the molecule scenarios, made from a Debian mirror: no image registry is needed.

    python hack/molecule_images.py SUITE...

An image is made once; it is made anew when what is in it changes. Only podman can import what is made here. For docker:
``podman save IMAGE | docker load``.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t

SUITES = {"debian12": "bookworm", "debian13": "trixie"}
"""Platform of the scenarios to the Debian release of its image."""

_LABEL = "nodeops.key"
# The last three keep Ansible from installing them by itself, which needs the mirror and takes five seconds.
_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "procps", "sudo", "ca-certificates"),
    *("python3", "python3-venv", "python3-apt", "python3-packaging"),
)
_OPTIONS = (
    "--variant=minbase",
    f"--include={','.join(_PACKAGES)}",
    "--dpkgopt=force-unsafe-io",
    # A mirror may serve a snapshot whose files have expired.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    '--customize-hook=rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/*',
    '--customize-hook=printf "" >"$1/etc/machine-id"; rm -f "$1/etc/hostname" "$1/etc/resolv.conf"',
    '--customize-hook=for t in apt-daily apt-daily-upgrade; do ln -sf /dev/null "$1/etc/systemd/system/$t.timer"; done',
)


class ImageError(Exception):
    """An image could not be made; the text is for a person."""


def image_name(suite: str) -> str:
    """The name that the image of a Debian release has here."""
    return f"localhost/nodeops-systemd:{suite}"


def _run(argv: t.Sequence[str], env: t.Mapping[str, str] | None = None) -> str:
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise ImageError(f"{' '.join(argv[:2])} failed:\n{done.stdout.rstrip()}")
    return done.stdout.strip()


def _is_current(name: str, key: str) -> bool:
    shown = ["podman", "image", "inspect", "--format", f'{{{{index .Config.Labels "{_LABEL}"}}}}', name]
    done = subprocess.run(shown, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == key


def build(suite: str) -> bool:
    """Make the image of a Debian release unless it is there already; whether it was made. `ImageError`."""
    name, key = image_name(suite), hashlib.sha256(f"{suite} {_OPTIONS}".encode()).hexdigest()[:16]
    if _is_current(name, key):
        return False
    if shutil.which("mmdebstrap") is None:
        raise ImageError(f"{name} is not there and mmdebstrap, which makes it, is not installed")
    memory = pathlib.Path("/dev/shm")  # noqa: S108  (extraction to memory takes half the time)
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    with tempfile.TemporaryDirectory(prefix="nodeops-image-", dir=memory if roomy else None) as folder:
        os.chmod(folder, 0o755)  # noqa: S103  mmdebstrap lets apt work as its own user
        archive = os.path.join(folder, "root.tar")
        _run(["mmdebstrap", "--quiet", *_OPTIONS, suite, archive], {**os.environ, "TMPDIR": folder})
        changes = ('CMD ["/sbin/init"]', "STOPSIGNAL SIGRTMIN+3", f"LABEL {_LABEL}={key}")
        _run(["podman", "import", *(part for text in changes for part in ("--change", text)), archive, name])
    return True


def main(argv: t.Sequence[str]) -> int:
    """Entry point; returns the exit status."""
    unknown = [suite for suite in argv if suite not in SUITES.values()]
    if unknown or not argv:
        sys.stderr.write(f"usage: molecule_images.py SUITE...   of {', '.join(SUITES.values())}\n")
        return 2
    for suite in argv:
        started = time.monotonic()
        try:
            made = build(suite)
        except ImageError as error:
            sys.stderr.write(f"molecule_images: {error}\n")
            return 1
        state = f"made in {time.monotonic() - started:.0f} s" if made else "is current"
        sys.stdout.write(f"{image_name(suite)} {state}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
