# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How a `DraError` travels through the local API: its message, hint and facts, in the trailing metadata of a call."""

from __future__ import annotations

import json
import typing as t

from ..checkpoint.errors import DraError

if t.TYPE_CHECKING:
    import grpc

KEY = "nodeops-dra-error-bin"
MAX_METADATA = 64 * 1024
"""Bytes that a call's metadata may have. gRPC's own limit of 8 KiB is less than a row of drivers' failures."""
_LONGEST = 32 * 1024

OPTIONS: list[tuple[str, t.Any]] = [
    ("grpc.max_metadata_size", MAX_METADATA),
    ("grpc.absolute_max_metadata_size", MAX_METADATA),
]


class AgentSilentError(DraError):
    """Nobody answers on the agent's socket. Facts: ``socket``."""


def encode_error(error: DraError) -> bytes:
    """The error as JSON. Facts that are too many are left out, and a fact says so."""
    content = {"message": error.message, "hint": error.hint, "facts": error.facts}
    data = json.dumps(content, default=str).encode()
    if len(data) <= _LONGEST:
        return data
    content = {"message": error.message[:8000], "hint": error.hint[:4000], "facts": {"facts_left_out": True}}
    return json.dumps(content).encode()


def decode_error(failure: grpc.aio.AioRpcError, socket: str, method: str) -> DraError:
    """What went wrong with a call, in the agent's words if it said any."""
    import grpc

    for key, value in failure.trailing_metadata() or ():
        if key == KEY:
            content = json.loads(value)
            return DraError(content["message"], content["hint"], **content["facts"])
    code, details = failure.code(), failure.details() or "no reason was given"
    facts = {"socket": socket, "method": method, "status": code.name}
    if code is grpc.StatusCode.UNAVAILABLE:
        return AgentSilentError(
            f"The agent does not answer on {socket} ({method}): {details}.",
            "Look whether it runs and at its log. What it began before it went is recorded; the call can be repeated.",
            **facts,
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return AgentSilentError(
            f"The agent at {socket} did not finish {method} in time.",
            "It goes on with what it has begun: look at the claims and at its log, then repeat the call.",
            **facts,
        )
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return DraError(
            f"The agent at {socket} does not know {method}.", "Update the agent to the version of this client.", **facts
        )
    return DraError(
        f"The agent at {socket} ended {method} with {code.name}: {details}.", "Look at the agent's log.", **facts
    )
