# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Libraries that a module needs: here, else in the agent's virtual environment, else a message that names the way."""

from __future__ import annotations

import importlib
import sys
import typing as t

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ENVIRONMENTS = ("/opt/nodeops-dra/current/venv/bin/python",)
"""Interpreters of the agent, which has every library that the modules need."""

_PACKAGES = {
    "grpc": ("grpcio", "https://grpc.io"),
    "google.protobuf": ("protobuf", "https://protobuf.dev"),
    "kubernetes": ("kubernetes", "https://github.com/kubernetes-client/python"),
    "msgspec": ("msgspec", "https://jcristharif.com/msgspec"),
    "aiohttp": ("aiohttp", "https://docs.aiohttp.org"),
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
        other = probe_interpreters_for_module(ENVIRONMENTS, probe)
        if other is not None and other != sys.executable:
            respawn_module(other)
    if missing:
        package, url = _PACKAGES.get(missing[0], (missing[0], None))
        module.fail_json(
            msg=missing_required_lib(package, reason=f"by this module; {_AGENT}", url=url),
            missing=[_PACKAGES.get(library, (library, None))[0] for library in missing],
            interpreter=sys.executable,
        )
    module.fail_json(
        msg=f"This module needs Python {python[0]}.{python[1]} or later, {sys.executable} is "
        f"{sys.version_info[0]}.{sys.version_info[1]}. Set ansible_python_interpreter, or {_AGENT}.",
        interpreter=sys.executable,
    )


_AGENT = "install the agent of this collection, whose environment has what is needed"


def _importable(library: str) -> bool:
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True
