# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A kubelet for tests: it starts with the state files that a real one starts with, says to the API that it lives, and
then does nothing more. Which files a real one starts with, the judge behind ``checkpoint inspect`` knows, which is
compared with recordings of real kubelets elsewhere.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import time
import urllib.request

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import inspect, locate

NODE = pathlib.Path(os.environ["FAKE_NODE"])
SETTINGS = json.loads((NODE / "settings.json").read_text())


def starts() -> bool:
    """Whether a kubelet of the release starts with its file; a missing one it makes."""
    report = inspect(locate(kubelet_root=SETTINGS["root"]), target=SETTINGS["release"])
    return bool(report["kubelet_start"][SETTINGS["release"]] == "ok") if report["exists"] else True


def say_that_it_lives(api: dict[str, str]) -> None:
    """Write the heartbeat into the status of the node."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"{now} {os.getpid()}"}
    request = urllib.request.Request(
        f"{api['url']}/api/v1/nodes/{api['node']}/status",
        json.dumps({"status": {"conditions": [condition]}}).encode(),
        {"Content-Type": "application/merge-patch+json", "Authorization": f"Bearer {api['token']}"},
        method="PATCH",
    )
    with urllib.request.urlopen(request):
        pass


def main() -> int:
    """Entry point."""
    if SETTINGS["behaviour"] == "refuses_all" or not starts():
        sys.stderr.write("failed to run Kubelet: failed to get checkpoint dra_manager_state: checkpoint is corrupted\n")
        return 1
    if SETTINGS.get("api"):
        say_that_it_lives(SETTINGS["api"])
    (NODE / f"ready.{os.getpid()}").touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    raise SystemExit(main())
