# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Libraries that a module needs: here, else in the agent's virtual environment, else a message that names the way."""

from __future__ import annotations

import importlib
import os
import sys
import typing as t

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ENVIRONMENTS = ("/opt/nodeops-dra/current/venv/bin/python",)
"""Interpreters of the agent, which has every library that the modules need."""

VARIABLE = "NODEOPS_DRA_PYTHON"
"""Environment variable of a task that names such an interpreter in another place."""


class Package(t.NamedTuple):
    """What has to be installed for a library, and the version that everything was tested with."""

    name: str
    tested: str
    url: str


PACKAGES: t.Mapping[str, Package] = {
    "grpc": Package("grpcio", "1.85.3", "https://grpc.io"),
    "google.protobuf": Package("protobuf", "7.36.2", "https://protobuf.dev"),
    "msgspec": Package("msgspec", "0.23.0", "https://jcristharif.com/msgspec"),
    "aiohttp": Package("aiohttp", "3.14.5", "https://docs.aiohttp.org"),
}


def ensure(module: AnsibleModule, *libraries: str, python: tuple[int, int] = (3, 11)) -> None:
    """Return if this interpreter is new enough and has the libraries.

    Otherwise the module is started once more in the agent's virtual environment, if there is one that has them; else
    it fails and says which package this very interpreter lacks.
    """
    from ansible.module_utils.basic import missing_required_lib
    from ansible.module_utils.common.respawn import has_respawned, probe_interpreters_for_module, respawn_module

    missing = [library for library in libraries if not _importable(library)]
    if not missing and sys.version_info >= python:
        return
    if not has_respawned():
        probe = missing[0] if missing else "asyncio.taskgroups"
        environments = [path for path in (os.environ.get(VARIABLE), *ENVIRONMENTS) if path]
        other = probe_interpreters_for_module(environments, probe)
        if other is not None and other != sys.executable:
            respawn_module(other)
    if missing:
        package = PACKAGES[missing[0]]
        reason = f"by this module, which was tested with {package.name} {package.tested}; {_AGENT}"
        module.fail_json(
            msg=missing_required_lib(package.name, reason=reason, url=package.url),
            missing=[PACKAGES[library].name for library in missing],
            interpreter=sys.executable,
        )
    module.fail_json(
        msg=f"This module needs Python {python[0]}.{python[1]} or later, {sys.executable} is "
        f"{sys.version_info[0]}.{sys.version_info[1]}. Set ansible_python_interpreter, or {_AGENT}.",
        missing=[],
        interpreter=sys.executable,
    )


_AGENT = (
    "install the agent of this collection, whose environment has what is needed, or name such an environment's python "
    f"in the variable {VARIABLE} of the task's environment"
)


def _importable(library: str) -> bool:
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True
