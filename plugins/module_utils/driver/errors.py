# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a driver, and whether trying again can help.

A gRPC failure is **permanent** when the same call gives the same failure until somebody changes the claim, the driver
or this node; else it is **passing** and worth a retry with back-off:

========================================================================================  =========
Status                                                                                    Class
========================================================================================  =========
INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED, PERMISSION_DENIED,
UNAUTHENTICATED, DATA_LOSS, an answer that is no message                                  permanent
UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED, CANCELLED, RESOURCE_EXHAUSTED, NOT_FOUND and
ALREADY_EXISTS (the driver's view of the API server may be old), UNKNOWN and INTERNAL
(what Go drivers answer for any error of theirs)                                          passing
========================================================================================  =========

The error text of a single claim has no class on the wire and counts as passing, as does a claim left out of an answer.
"""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError

PERMANENT_CODES = frozenset(
    {
        "INVALID_ARGUMENT",
        "FAILED_PRECONDITION",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "PERMISSION_DENIED",
        "UNAUTHENTICATED",
        "DATA_LOSS",
    }
)

NO_STATUS = frozenset({"ANSWER", "CLAIM"})
"""Values of `DriverCallFailed.code` that are no gRPC status: the call itself was answered."""

# What the person should do, by status.
_HINTS = {
    "UNAVAILABLE": "Check that the driver runs on this node and look at its log; the call can be repeated.",
    "DEADLINE_EXCEEDED": "The driver may still be at work; look at its log. The call can be repeated.",
    "UNIMPLEMENTED": "The driver does not serve the API version it advertises; update the driver.",
}
_DEFAULT_HINT = "Look at the log of the driver."


class DriverNotRegistered(DraError):  # noqa: N818 - the name that callers know
    """No driver of this name is registered. ``facts``: driver, registry_dir, known (names), failing (sockets)."""


class DriverCallFailed(DraError):  # noqa: N818 - the name that callers know
    """A call to a driver failed, or its answer for one claim was a failure.

    ``code`` is the gRPC status name, ``ANSWER`` when the answer itself was wrong, or ``CLAIM`` when the driver refused
    this claim. ``text`` is what the driver said. ``permanent``: see the table above.
    """

    def __init__(
        self,
        message: str,
        hint: str = _DEFAULT_HINT,
        *,
        driver: str,
        method: str,
        socket: str,
        code: str,
        text: str,
        permanent: bool | None = None,
        **facts: t.Any,
    ) -> None:
        self.driver = driver
        self.method = method
        self.socket = socket
        self.code = code
        self.text = text
        self.permanent = code in PERMANENT_CODES if permanent is None else permanent
        super().__init__(
            message,
            hint,
            driver=driver,
            method=method,
            socket=socket,
            code=code,
            text=text,
            permanent=self.permanent,
            **facts,
        )


class RegistrationError(DraError):
    """A driver could not be registered. ``facts``: registration_socket and, once known, driver, endpoint, versions."""


class AnswerError(Exception):
    """The bytes of an answer are not what they should be. Only between the codec and the client."""


def call_failed(driver: str, method: str, socket: str, code: str, text: str) -> DriverCallFailed:
    """The error of a whole call that ended with a gRPC status."""
    permanent = True if _too_large(code, text) else None
    return DriverCallFailed(
        f"The driver {driver} failed {method} at {socket}: {code}{f', {text}' if text else ''}.",
        _HINTS.get(code, _DEFAULT_HINT),
        driver=driver,
        method=method,
        socket=socket,
        code=code,
        text=text,
        permanent=permanent,
    )


def _too_large(code: str, text: str) -> bool:
    # The one RESOURCE_EXHAUSTED that gRPC makes by itself: no retry shrinks a message.
    return code == "RESOURCE_EXHAUSTED" and "larger than max" in text
