# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A systemctl for tests that supervises a fake kubelet. As with Restart=always, one that ends is started again.

FAKE_NODE names a folder with ``settings.json``: ``python``, ``root`` (of the kubelet), ``collections``, ``release``,
``behaviour`` (sound, refuses_all, ignores_stop), and ``api`` (url, token, node) where the kubelet says that it lives.
What was asked for is in ``calls``, the state of the unit in ``unit.json``.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

NODE = pathlib.Path(os.environ["FAKE_NODE"])
SETTINGS = json.loads((NODE / "settings.json").read_text())
UNIT = NODE / "unit.json"


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def spawn() -> int:
    """Start the fake kubelet, which has the command line of a real one."""
    argv = ["kubelet", str(pathlib.Path(__file__).with_name("fake_kubelet.py")), f"--root-dir={SETTINGS['root']}"]
    with (NODE / "journal").open("ab") as journal:
        process = subprocess.Popen(
            argv,
            executable=SETTINGS["python"],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=journal,
            stderr=journal,
            env={**os.environ, "PYTHONPATH": SETTINGS["collections"]},
        )
    return process.pid


def look(unit: dict[str, t.Any]) -> None:
    """Note that a kubelet has ended, and start another one if it should run."""
    if unit["wanted"] and not alive(unit["pid"]):
        unit["restarts"] += 1
        unit["pid"] = spawn()


def stop(unit: dict[str, t.Any]) -> int:
    """End the kubelet and wait until it has."""
    if SETTINGS["behaviour"] == "ignores_stop":
        sys.stderr.write("Job for kubelet.service canceled.\n")
        return 1
    unit["wanted"] = False
    if unit["pid"] and alive(unit["pid"]):
        os.kill(unit["pid"], signal.SIGKILL)
        while alive(unit["pid"]):
            time.sleep(0.01)
    return 0


def show(unit: dict[str, t.Any]) -> None:
    """The properties that matter."""
    ready = (NODE / f"ready.{unit['pid']}").exists() and alive(unit["pid"])
    state = (
        ("active", "running") if ready else ("activating", "auto-restart") if unit["wanted"] else ("inactive", "dead")
    )
    lines = {
        "Id": "kubelet.service",
        "LoadState": "loaded",
        "ActiveState": state[0],
        "SubState": state[1],
        "MainPID": unit["pid"] if unit["wanted"] else 0,
        "NRestarts": unit["restarts"],
        "UnitFileState": "enabled",
    }
    sys.stdout.write("".join(f"{key}={value}\n" for key, value in lines.items()))


def main() -> int:
    """Entry point."""
    verb, name = sys.argv[1], sys.argv[-1]
    with (NODE / "calls").open("a") as calls:
        calls.write(f"{verb} {name}\n")
    if name.removesuffix(".service") != "kubelet":
        sys.stdout.write("LoadState=not-found\nActiveState=inactive\n")
        return 0 if verb == "show" else 5
    unit = json.loads(UNIT.read_text()) if UNIT.exists() else {"wanted": False, "pid": 0, "restarts": 0}
    status = 0
    if verb == "show":
        look(unit)
        show(unit)
    elif verb == "start":
        unit["wanted"] = True
        if not alive(unit["pid"]):
            unit["pid"] = spawn()
    elif verb == "stop":
        status = stop(unit)
    UNIT.write_text(json.dumps(unit))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
