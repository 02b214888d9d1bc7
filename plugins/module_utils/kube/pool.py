# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A pool of connections to the API server, opened for one set of certificates.

The official client's pool is one of aiohttp too, but importing any part of it runs its top package, which imports all
parts: 19 MB in every agent, for a session of which each option is set here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import socket
import ssl
import tempfile
import typing as t

from .access import ClusterAccess, Pem
from .errors import ConfigurationError

if t.TYPE_CHECKING:
    import aiohttp

    from .transport import Request

#: Seconds after which the kernel gives up on data that the other side does not acknowledge. Shorter than a lease, so
#: that a write which got stuck in the network cannot come out after its lease.
UNACKNOWLEDGED = 8.0
#: A dead peer is noticed after KEEPALIVE_IDLE + 3 * KEEPALIVE_PERIOD seconds, below what proxies call idle.
KEEPALIVE_IDLE, KEEPALIVE_PERIOD = 30, 5
CONNECT_TIMEOUT = 10.0


class Pool:
    """A session of aiohttp. ``users`` counts the requests that use it now."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        access: ClusterAccess,
        certificate: tuple[bytes, bytes] | None,
        stamps: tuple[object, ...],
    ) -> None:
        self._session, self._access, self.certificate, self._stamps = session, access, certificate, stamps
        self.users = 0

    async def close(self) -> None:
        """Close all connections now."""
        connector = self._session.connector
        await self._session.close()
        if connector is not None:
            await connector.close()

    def files_changed(self) -> bool:
        """Whether a certificate file is another one than when the pool was opened. Looks at the disk."""
        return _stamps(self._access) != self._stamps

    async def request(
        self,
        request: Request,
        headers: t.Sequence[tuple[str, str]],
        query: t.Sequence[tuple[str, str]],
        body: t.Any,
    ) -> aiohttp.ClientResponse:
        """Send one request and return when the headers of the answer are there."""
        import aiohttp

        access = self._access
        proxy = access.proxy
        extra: dict[str, t.Any] = {"server_hostname": access.tls_server_name} if access.tls_server_name else {}
        if proxy and access.server.startswith("https:"):
            extra.update(proxy=proxy, proxy_headers=dict(access.proxy_headers))
        elif proxy:
            # Without TLS there is no CONNECT that could carry them: the proxy reads the request itself.
            extra.update(proxy=proxy)
            headers = [*headers, *access.proxy_headers.items()]
        return await self._session.request(
            request.call.method,
            access.server + request.call.path,
            params=list(query),
            headers=list(headers),
            data=body,
            # Deadlines are kept outside; this only lets a dead address fail before the whole time is used up.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            # A redirect would take the credential to another address.
            allow_redirects=False,
            **extra,
        )


async def open_pool(access: ClusterAccess, max_connections: int) -> Pool:
    """A pool with the certificates as they are now; raises ``ConfigurationError`` when they cannot be used."""
    import aiohttp

    certificate = access.credential.certificate()
    stamps = await asyncio.to_thread(_stamps, access)
    tls = await asyncio.to_thread(_tls, access, certificate)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=max_connections, ssl=tls, socket_factory=_socket, ttl_dns_cache=30),
        # It costs two turns of a thread for every request, and sends passwords from ~/.netrc. What the environment says
        # about proxies is already in `access`.
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return Pool(session, access, certificate, stamps)


def _tls(access: ClusterAccess, certificate: tuple[bytes, bytes] | None) -> ssl.SSLContext:
    """Whom to believe and who we are. Blocks: certificates are read and parsed."""
    cert, key = access.client_certificate, access.client_key
    if certificate is not None:
        cert, key = Pem(data=certificate[0]), Pem(data=certificate[1])
    try:
        context = ssl.create_default_context(
            cafile=access.ca.path, cadata=access.ca.data.decode("ascii", "replace") if access.ca.data else None
        )
        # Python 3.13 refuses authorities without a key identifier, which older clusters have and kubectl takes.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with tempfile.TemporaryDirectory(prefix="nodeops-dra-") as folder:
            own = _as_file(cert, folder, "cert.pem")
            if own:
                context.load_cert_chain(own, _as_file(key, folder, "key.pem"))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise _unusable(access, error) from error
    return context


def _as_file(pem: Pem, folder: str, name: str) -> str | None:
    if pem.data is None:
        return pem.path
    path = pathlib.Path(folder) / name
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem.data)
    return str(path)


def _unusable(access: ClusterAccess, error: Exception) -> ConfigurationError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
    names = [
        f"{what} {pem.path or '(inline)'}"
        for what, pem in (("CA", access.ca), ("certificate", access.client_certificate), ("key", access.client_key))
        if pem
    ]
    return ConfigurationError(
        f"The TLS files for {access.server} cannot be used: {reason} ({', '.join(names) or 'system authorities'}).",
        "Check with `openssl x509 -noout -subject -in FILE` and `openssl pkey -noout -in FILE` that they are PEM, and "
        "that certificate and key belong together.",
        url=access.server,
    )


def _stamps(access: ClusterAccess) -> tuple[object, ...]:
    result: list[object] = []
    for pem in (access.ca, access.client_certificate, access.client_key):
        if pem.path is None:
            result.append(None)
            continue
        try:
            found = os.stat(pem.path)
        except OSError:
            result.append("gone")
            continue
        result.append((found.st_mtime_ns, found.st_ino, found.st_size))
    return tuple(result)


def _socket(address: t.Any) -> socket.socket:
    """A socket that notices a dead peer by itself. Options that the system does not have are left out."""
    family, kind, protocol = address[:3]
    created = socket.socket(family=family, type=kind, proto=protocol)
    settings = [(socket.SOL_SOCKET, "SO_KEEPALIVE", 1)]
    settings += [
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", KEEPALIVE_IDLE),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", KEEPALIVE_PERIOD),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", int(UNACKNOWLEDGED * 1000)),
    ]
    for level, name, value in settings:
        option = getattr(socket, name, None)
        if option is not None:
            with contextlib.suppress(OSError):
                created.setsockopt(level, option, value)
    return created
