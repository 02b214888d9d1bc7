# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether the node has a Python for the agent: new enough, and able to make a virtual environment."""

from __future__ import annotations

import os
import re
import sys
import typing as t

from ...checkpoint.findings import Finding
from .codes import finding
from .node import Node

NEEDED: t.Final = (3, 11)

_DIRECTORIES: t.Final = ("/usr/bin", "/usr/local/bin", "/opt/nodeops-dra/python/bin")
_NAME: t.Final = re.compile(r"python3(?:\.(\d+))?")
_QUESTION: t.Final = (
    "import sys\n"
    "def has(name):\n"
    "    try:\n        __import__(name)\n    except ImportError:\n        return 0\n    return 1\n"
    "print(*sys.version_info[:3], has('venv'), has('ensurepip'))\n"
)
Json = dict[str, t.Any]


def look_at_pythons(node: Node) -> list[Json]:
    """The Pythons in the usual places and beside the one that runs this, newest first.

    Each with ``program``, ``version``, and ``venv``, whether it makes virtual environments.
    """
    found: dict[str, Json] = {}
    for directory in (*_DIRECTORIES, *([os.path.dirname(sys.executable)] if node.fs_root == "/" else [])):
        for name in node.names_in(directory):
            path = f"{directory}/{name}"
            if _NAME.fullmatch(name) is None or node.place(path) in found:
                continue
            answer = node.ask(path, "-I", "-c", _QUESTION)
            fields = (answer or "").split()
            if len(fields) == 5 and all(field.isdigit() for field in fields):
                version, venv = ".".join(fields[:3]), fields[3:] == ["1", "1"]
                found[node.place(path)] = {"program": path, "version": version, "venv": venv}
    return sorted(found.values(), key=lambda one: [int(part) for part in one["version"].split(".")], reverse=True)


def python_for_agent(pythons: t.Sequence[Json]) -> Json | None:
    """The newest that fits, one that makes virtual environments before one that does not; None where none fits."""
    fit = [one for one in pythons if tuple(int(part) for part in one["version"].split(".")[:2]) >= NEEDED]
    return next((one for one in fit if one["venv"]), fit[0] if fit else None)


def python_findings(pythons: t.Sequence[Json]) -> t.Iterator[Finding]:
    """What the agent lacks."""
    best, needed = python_for_agent(pythons), ".".join(map(str, NEEDED))
    if best is None:
        listed = ", ".join(f"{one['program']} ({one['version']})" for one in pythons) or "none"
        yield finding(
            "python_missing",
            "python",
            f"The agent needs Python {needed} or later, and in the usual places there is {listed}.",
            f"Install one beside the system's own (dnf install python{needed}, apt-get install python{needed}-venv).",
            needed=needed,
            found=[one["version"] for one in pythons],
        )
    elif not best["venv"]:
        minor = ".".join(best["version"].split(".")[:2])
        text = f"{best['program']} ({best['version']}) lacks venv or ensurepip, with which the agent is installed."
        yield finding(
            "venv_missing", best["program"], text, f"apt-get install python{minor}-venv", version=best["version"]
        )
