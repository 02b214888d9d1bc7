# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From what aiohttp raises to the errors of this layer."""

from __future__ import annotations

import socket
import ssl
import typing as t

from . import errors
from .access import ClusterAccess
from .resources import Call


def describe_failure(call: Call, url: str, error: Exception, access: ClusterAccess) -> Exception:
    """The error of this layer for a transport failure; one of ours, wherever it is in the chain, comes out unchanged.

    Anything that is no transport failure is returned as it is: a bug shall look like one.
    """
    import aiohttp

    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, errors.KubeError):
            return link
    if not isinstance(error, (aiohttp.ClientError, OSError)):
        return error
    found, what, hint = _classify(chain, access)
    failure = found(
        f"Could not {call.describe()}: {call.method} {url} got no answer, {access.secrets.scrub(what)}.",
        hint,
        **call.facts(),
        url=url,
        cause=type(error).__name__,
    )
    # Connector errors come before the first byte of the request; all others may have come after it.
    failure.maybe_applied = call.writes and not isinstance(error, (aiohttp.ClientConnectorError, aiohttp.InvalidURL))
    return failure


def _chain(error: BaseException | None) -> t.Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_REACH = "Check address, port and network from this host, for example with `curl -k URL/readyz`."
_PROXY = "Check the option proxy, proxy-url of the kubeconfig, or HTTPS_PROXY and NO_PROXY."
_AGAIN = "Try again; if it stays, look at the API server and at proxies or balancers before it."


def _classify(
    chain: t.Sequence[BaseException], access: ClusterAccess
) -> tuple[type[errors.UnreachableError], str, str]:
    import aiohttp

    for error in chain:
        if isinstance(error, (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)):
            status = getattr(error, "status", None)
            said = f"the proxy answered {status}" if status else "the proxy cannot be reached"
            return errors.UnreachableError, said, _PROXY
        if isinstance(error, aiohttp.ClientError):
            continue  # some of these claim to be TLS errors too, but know nothing: the cause further down does
        if isinstance(error, ssl.SSLCertVerificationError):
            return errors.TlsError, f"its certificate is not trusted: {error.verify_message}", _tls_hint(error, access)
        if isinstance(error, ssl.SSLError):
            reason = (error.reason or "TLS failed").replace("_", " ").lower()
            return errors.TlsError, f"TLS failed: {reason}", _handshake_hint(error)
        if isinstance(error, socket.gaierror):
            return errors.UnreachableError, f"its name does not resolve: {error.strerror}", _REACH
    first = chain[0]
    if isinstance(first, aiohttp.ConnectionTimeoutError):
        return errors.UnreachableError, "the connection did not come up", _REACH
    if isinstance(first, aiohttp.ServerDisconnectedError):
        return errors.UnreachableError, "the connection was closed before the answer", _AGAIN
    if isinstance(first, aiohttp.ClientPayloadError):
        return errors.UnreachableError, "the answer broke off", _AGAIN
    if isinstance(first, aiohttp.ClientResponseError):
        return errors.UnreachableError, f"the answer is no HTTP: {first.message}"[:200], _AGAIN
    if isinstance(first, aiohttp.InvalidURL):
        return errors.UnreachableError, "the address is no URL", "Correct the address of the API server."
    for error in chain:
        if isinstance(error, OSError) and error.strerror:
            return errors.UnreachableError, error.strerror.lower(), _REACH
    return errors.UnreachableError, type(first).__name__, _AGAIN


def _tls_hint(error: ssl.SSLCertVerificationError, access: ClusterAccess) -> str:
    if error.verify_code in (62, 64):  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
        return "Use a name or address that is in the certificate, or set tls_server_name to one that is."
    if error.verify_code == 10:  # X509_V_ERR_CERT_HAS_EXPIRED
        return (
            "Renew the API server's certificate (kubeadm: `kubeadm certs renew apiserver`), and check the clock here."
        )
    given = f" {access.ca.path} is another authority's." if access.ca.path else ""
    return f"Give the cluster's authority as ca_cert (certificate-authority in the kubeconfig).{given}"


def _handshake_hint(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if "CERTIFICATE" in reason:
        return "The server does not accept our client certificate: renew it, and check that it is this cluster's."
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "Something there speaks no TLS: check port and scheme."
    return "Check that this is the API server's port, and that no middle box breaks TLS."
