# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The agent that works on a state directory now, if one does: then it alone writes there, and tasks go through it."""

from __future__ import annotations

import contextlib
import os
import typing as t

from ..checkpoint.errors import DraError
from ..driver.endpoint import is_socket
from .local_client import LocalClient, connected
from .local_errors import AgentSilentError

Json = dict[str, t.Any]


@contextlib.asynccontextmanager
async def agent_of(
    state_directory: str, options: t.Mapping[str, t.Any], *, mode: str | None = None
) -> t.AsyncIterator[LocalClient | None]:
    """A client of the agent on the socket ``agent_socket`` of ``options`` if it works on ``state_directory``.

    None where there is none, none in ``mode`` if one is given, or none that answers: it may be about to end. While one
    that manages lives it holds the lock of its state file, so nobody writes beside it. Raises DraError when it answers,
    and works with other directories than the options name: neither way would do what is meant.
    """
    path = options.get("agent_socket")
    if not path or not is_socket(path):
        yield None
        return
    async with connected(path) as client:
        try:
            version = await client.version()
        except AgentSilentError:
            version = {"state_directory": "", "mode": ""}
        if mode not in (None, version["mode"]) or _real(version["state_directory"] or "/") != _real(state_directory):
            yield None
            return
        _compare(version, options, path)
        yield client


def _compare(version: Json, options: t.Mapping[str, t.Any], socket: str) -> None:
    """Only what a person has said counts: what an option is when it is absent says nothing."""
    for option in ("kubelet_root", "registry_directory", "cdi_directories"):
        wanted, found = options.get(option), version[option]
        if wanted and _real(wanted) != _real(found):
            raise DraError(
                f"The agent on {socket} works on {version['state_directory']} with {option} {_shown(found)}, and the "
                f"task has {_shown(wanted)}.",
                f"Leave out {option}, or set it in the agent's settings and restart the agent.",
                option=option,
                expected=wanted,
                found=found,
            )


def _real(value: t.Any) -> t.Any:
    return os.path.realpath(value) if isinstance(value, str) else sorted(map(os.path.realpath, value))


def _shown(value: t.Any) -> str:
    return value if isinstance(value, str) else ", ".join(value) or "those that runtimes read by default"
