# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a connection to one API server needs, whatever it was read from."""

from __future__ import annotations

import dataclasses
import typing as t
import urllib.parse

from .credentials import Credential, NoCredential
from .errors import ConfigurationError
from .secrets import Secrets


@dataclasses.dataclass(frozen=True)
class Pem:
    """Certificates or a key: a file that may be replaced while we run, or the content itself."""

    path: str | None = None
    data: bytes | None = dataclasses.field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.path is not None or self.data is not None


@dataclasses.dataclass(frozen=True)
class ClusterAccess:
    """Everything that a connection needs. ``origin`` says in words where it comes from."""

    server: str
    origin: str
    credential: Credential = dataclasses.field(default_factory=NoCredential, repr=False)
    ca: Pem = Pem()
    client_certificate: Pem = Pem()
    client_key: Pem = dataclasses.field(default_factory=Pem, repr=False)
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = dataclasses.field(default=None, repr=False)
    proxy_headers: t.Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    headers: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)
    namespace: str = ""
    secrets: Secrets = dataclasses.field(default_factory=Secrets, repr=False)


def server_url(url: str) -> str:
    """The URL without a trailing slash; raises ``ConfigurationError`` when it has what does not belong there."""
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            f"The API server's address {Secrets().scrub(url)[:120]!r} is no URL.",
            "Write it with scheme, host and port, such as https://192.0.2.10:6443.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigurationError(
            f"The API server's address {Secrets().scrub(url)[:120]!r} has a user, a query or a fragment in it.",
            "Give the address alone; credentials go to api_key, or username and password.",
        )
    return url.rstrip("/")
