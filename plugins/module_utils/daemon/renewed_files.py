# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that somebody replaces while we run: certificates and tokens."""

from __future__ import annotations

import hmac
import logging
import os
import ssl
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import from_os_error

log = logging.getLogger(__name__)

_MAX_TOKEN = 64 * 1024


class Watched:
    """Tells when one of some files is another one than before. Links are followed, since renewal often moves a link."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths
        self._seen: tuple[t.Any, ...] = ()

    def is_new(self) -> bool:
        """Whether any of them changed since the last call; true the first time."""
        seen = tuple(map(_signature, self._paths))
        changed, self._seen = seen != self._seen, seen
        return changed


def _signature(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError as error:
        return (error.errno or 0,)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class ServerTls:
    """TLS of a server with the newest usable pair of files. Raises DraError when the first pair cannot be used."""

    def __init__(self, certificate: str, key: str) -> None:
        self._certificate, self._key = certificate, key
        self._files = Watched(certificate, key)
        self._files.is_new()
        self._current = self._load()

    def context(self) -> ssl.SSLContext:
        """The context to listen with. Each handshake takes the certificate that is current then."""
        context = self._load()
        # Loading into a context that is in use could leave it with half a pair, so each pair gets a context of its own.
        context.sni_callback = self._choose
        return context

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if self._files.is_new():
            try:
                self._current = self._load()
                log.info("certificate loaded again file=%s", self._certificate)
            except DraError as error:
                log.error("new certificate is not used, keeping the former one error=%s", error)
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            # Without a password function OpenSSL would ask on the terminal for that of an encrypted key.
            context.load_cert_chain(self._certificate, self._key, password=lambda: "")
        except ssl.SSLError as error:
            raise DraError(
                f"{self._certificate} and {self._key} cannot be used as certificate and key: "
                f"{error.reason or 'no PEM, or an encrypted key'}.",
                "Give the certificate with its chain and the key that belongs to it, both PEM, without a passphrase.",
                path=self._certificate,
                errno="EINVAL",
            ) from error
        except OSError as error:
            for path in (self._certificate, self._key):
                if not os.access(path, os.R_OK):
                    raise from_os_error(error, path, "could not be read for TLS") from error
            raise from_os_error(error, self._certificate, "could not be read for TLS") from error
        return context


class BearerToken:
    """A token in a file that clients have to present. Raises DraError when the file has none at the start.

    When the file cannot be read later nobody is let in until it can.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = Watched(path)
        self._file.is_new()
        self._token: bytes | None = self._read()

    def matches(self, header: str) -> bool:
        """Whether an Authorization header has the token."""
        if self._file.is_new():
            try:
                self._token = self._read()
                log.info("token loaded again file=%s", self._path)
            except DraError as error:
                self._token = None
                log.error("token cannot be read, nobody is let in error=%s", error)
        scheme, _space, given = header.strip().partition(" ")
        if self._token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)

    def _read(self) -> bytes:
        try:
            with open(self._path, "rb") as file:
                token = file.read(_MAX_TOKEN).strip()
        except OSError as error:
            raise from_os_error(error, self._path, "could not be read for the token") from error
        if not token:
            raise DraError(
                f"{self._path} is empty, expected a token.",
                "Write one line with a long random text into it (openssl rand -hex 32).",
                path=self._path,
            )
        return token
