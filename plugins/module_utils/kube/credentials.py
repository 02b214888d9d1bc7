# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who we are to the API server: tokens that are renewed, and the header that carries them."""

from __future__ import annotations

import asyncio
import base64
import os
import time
import typing as t

from .errors import CredentialError
from .secrets import Secrets

#: Kubelets replace a token at 80 % of its life, at least 2 minutes before the end; the file is looked at this often.
TOKEN_FILE_PERIOD = 10.0


class Credential(t.Protocol):
    """Gives the Authorization header, and can be told that the server did not like it."""

    async def header(self) -> str:
        """Value of the Authorization header; empty for none. Raises ``CredentialError``."""

    async def renew(self) -> bool:
        """After a 401: get a new credential. False when there is nothing new, so that asking again is pointless."""

    def certificate(self) -> tuple[bytes, bytes] | None:
        """Client certificate and key in PEM that came with the credential; None when it has none."""


class NoCredential:
    """Anonymous, or known by a client certificate alone."""

    async def header(self) -> str:
        """No header."""
        return ""

    async def renew(self) -> bool:
        """Nothing to renew."""
        return False

    def certificate(self) -> tuple[bytes, bytes] | None:
        """None."""
        return None


class StaticToken(NoCredential):
    """A bearer token that never changes. A leading ``Bearer`` is accepted and dropped."""

    def __init__(self, token: str, secrets: Secrets) -> None:
        token = token.strip()
        if token[:7].lower() == "bearer ":
            token = token[7:].strip()
        secrets.add(token)
        self._value = f"Bearer {token}"

    async def header(self) -> str:
        """The token."""
        return self._value


class BasicAuth(NoCredential):
    """User and password, for servers behind a proxy that asks for them."""

    def __init__(self, user: str, password: str, secrets: Secrets) -> None:
        encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
        secrets.add(password)
        secrets.add(encoded)
        self.value = f"Basic {encoded}"

    async def header(self) -> str:
        """The pair in base64."""
        return self.value


class TokenFile(NoCredential):
    """A token that somebody else keeps fresh in a file: a pod's service account, ``tokenFile`` of a kubeconfig."""

    def __init__(self, path: str, secrets: Secrets, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._path, self._secrets, self._clock = path, secrets, clock
        self._token = ""
        self._looked = float("-inf")
        self._stamp: tuple[int, int, int] = (0, 0, 0)

    async def header(self) -> str:
        """The token in the file, read again when the file changed."""
        now = self._clock()
        if now - self._looked >= TOKEN_FILE_PERIOD:
            await asyncio.to_thread(self._load)
            self._looked = now
        return f"Bearer {self._token}"

    async def renew(self) -> bool:
        """Read the file now; True when it holds another token."""
        before = self._token
        self._stamp = (0, 0, 0)
        await asyncio.to_thread(self._load)
        self._looked = self._clock()
        return self._token != before

    def _load(self) -> None:
        try:
            found = os.stat(self._path)
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            if stamp == self._stamp:
                return
            with open(self._path, encoding="utf-8") as file:
                token = file.read().strip()
        except (OSError, ValueError) as error:
            if self._token:
                return  # between two steps of the replacement; the token at hand is most likely still good
            reason = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
            raise CredentialError(
                f"The token file {self._path} cannot be read: {reason}.",
                "Check its path and rights; in a pod, that the service account token is mounted.",
                path=self._path,
            ) from error
        if not token and not self._token:
            raise CredentialError(f"The token file {self._path} is empty.", "Write the token into it.", path=self._path)
        if token:
            self._token, self._stamp = token, stamp
            self._secrets.add(token)
