# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Tell what the node has to offer: python probe.py PYTHON PATH. Prints JSON; runs on any Python 3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

ASK = "import ensurepip, json, sys, venv; sys.stdout.write(json.dumps(sys.version_info[:3]))"

wanted, place = sys.argv[1:]
interpreter = shutil.which(wanted)
found = {"interpreter": interpreter, "version": None, "usable": False, "problem": ""}
if interpreter is None:
    found["problem"] = wanted + " is not installed"
else:
    done = subprocess.run([interpreter, "-c", ASK], capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason was given"]
        found["problem"] = interpreter + " cannot make virtual environments: " + lines[-1]
    else:
        version = json.loads(done.stdout.decode())
        found["version"] = ".".join(str(part) for part in version)
        found["usable"] = version >= [3, 11]
        if not found["usable"]:
            found["problem"] = interpreter + " is Python " + found["version"] + ", expected 3.11 or newer"
while not os.path.isdir(place):
    place = os.path.dirname(place)
found["free_mb"] = shutil.disk_usage(place).free // 1000000
sys.stdout.write(json.dumps(found))
