# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Names of unix sockets: one spelling, and the length limit of the kernel checked before anything dials or binds.

gRPC libraries disagree about ``unix:``, ``unix://`` and abstract names, and the kernel answers a path that is too long
with a bare "invalid argument". Here every accepted spelling becomes an absolute path, and the rest is refused in words.
"""

from __future__ import annotations

import os
import stat
import typing as t
import urllib.parse

from ..checkpoint.errors import DraError

# struct sockaddr_un has 108 bytes for the path, and the last one is the terminating NUL.
MAX_PATH_BYTES = 107


class EndpointError(DraError):
    """A socket address that cannot be used. ``facts``: endpoint; length and limit in bytes when those are the cause."""


def socket_path(text: str) -> str:
    """The absolute path that a socket address names: ``/p``, ``unix:/p`` and ``unix:///p`` are the same.

    EndpointError for relative paths, abstract sockets, hosts, ``..`` and paths of more than 107 bytes.
    """
    path = text
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if path.startswith("//"):
            path = path[2:]
    if path.startswith(("@", "\0", "unix-abstract:")):
        raise EndpointError(
            f"The socket address {text!r} is an abstract socket, which has no file permissions.",
            "Let the driver listen on a socket file and give its absolute path.",
            endpoint=text,
        )
    if not path.startswith("/"):
        raise EndpointError(
            f"The socket address {text!r} is not an absolute path.",
            "Give an absolute path, such as /var/lib/kubelet/plugins/gpu.example.com/dra.sock.",
            endpoint=text,
        )
    if "\0" in path or ".." in path.split("/"):
        raise EndpointError(
            f"The socket address {text!r} holds {'a NUL byte' if chr(0) in path else 'a .. component'}.",
            "Give the plain absolute path of the socket.",
            endpoint=text,
        )
    path = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
    check_length(path)
    return path


def check_length(path: str) -> None:
    """EndpointError when the path does not fit into a unix socket address. Counted in bytes, as the kernel does."""
    length = len(os.fsencode(path))
    if length > MAX_PATH_BYTES:
        raise EndpointError(
            f"The socket path {path} has {length} bytes, and a unix socket path can have {MAX_PATH_BYTES} at most.",
            "Use a shorter kubelet root directory, driver name or socket name.",
            endpoint=path,
            length=length,
            limit=MAX_PATH_BYTES,
        )


def grpc_target(path: str) -> str:
    """The gRPC target of a checked path. gRPC reads it as a URI, so everything but plain characters is escaped."""
    return "unix:" + urllib.parse.quote(os.fsencode(path), safe="/-_.~:@+,=")


def is_socket(path: str) -> bool:
    """Whether a socket is there now (links are followed)."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def check_owner(path: str, trusted: t.Collection[int]) -> None:
    """EndpointError when the socket belongs to somebody else than root, this process's user or a trusted user.

    ``trusted`` holds the owner of the driver's registration socket. Without the check, a driver could send the calls
    for its claims to a socket that some other user put there.
    """
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return  # not there (yet): dialling it tells
    if owner not in {0, os.geteuid(), *trusted}:
        raise EndpointError(
            f"The socket {path} belongs to the user {owner}, not to root or to the user of the driver.",
            "Check who made that socket, then restart the driver.",
            endpoint=path,
            owner=owner,
        )
