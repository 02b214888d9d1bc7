# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the API server is and who we are there: options, kubeconfig and pod environment brought to one answer.

The loaders of the official client are not used. Tried with 37.0.2: an exec plugin that fails is logged and the request
goes out as nobody; a ``tokenFile`` is read once; a context without a user ends in a ``TypeError``; texts of its errors
quote the user's whole entry with the token; client keys are written to files that stay until the process ends.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing as t
import urllib.parse

from .access import ClusterAccess, Pem, server_url
from .credentials import BasicAuth, Credential, NoCredential, StaticToken, TokenFile
from .errors import ConfigurationError
from .kubeconfig import load_kubeconfig
from .options import ConnectionOptions, check
from .proxies import proxy_for
from .secrets import Secrets

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


def resolve(options: ConnectionOptions | None = None, environ: t.Mapping[str, str] | None = None) -> ClusterAccess:
    """The access that the options mean; raises ``ConfigurationError`` and says where it looked.

    1. ``host`` with or without a credential: that server, no file is read unless ``kubeconfig`` or ``context`` is also
       given.
    2. ``kubeconfig`` or ``context``: that file, ``context`` or its current one.
    3. Inside a pod: its service account.
    4. ``KUBECONFIG``, then ``~/.kube/config``.

    Options override what the kubeconfig says.
    """
    options = options or ConnectionOptions()
    check(options)
    environ = os.environ if environ is None else environ
    if options.host and not (options.kubeconfig or options.context):
        return _overridden(ClusterAccess(server_url(options.host), "the option host"), options, environ)
    if options.kubeconfig or options.context:
        source = options.kubeconfig or default_kubeconfig(environ)
        return _overridden(load_kubeconfig(source, options.context, environ), options, environ)
    if environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").is_file():
        return _overridden(in_cluster(environ), options, environ)
    default = default_kubeconfig(environ)
    if any(os.path.exists(os.path.expanduser(part)) for part in default.split(os.pathsep) if part):
        return _overridden(load_kubeconfig(default, None, environ), options, environ)
    raise ConfigurationError(
        f"How to reach the API server is not known: no host, kubeconfig or context is given, this is no pod with a "
        f"service account, and {default} does not exist.",
        "Set kubeconfig (or KUBECONFIG), or host with api_key.",
        looked_at=["options", str(SERVICE_ACCOUNT), default],
    )


def default_kubeconfig(environ: t.Mapping[str, str]) -> str:
    """``$KUBECONFIG`` or ``~/.kube/config``."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return environ.get("KUBECONFIG") or os.path.join(home, ".kube", "config")


def in_cluster(environ: t.Mapping[str, str], folder: pathlib.Path | None = None) -> ClusterAccess:
    """The access of a pod by its service account. The token file is read again as the kubelet replaces it."""
    folder = folder or SERVICE_ACCOUNT
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigurationError(
            "KUBERNETES_SERVICE_HOST is not set, so this is no pod.", "Set kubeconfig, or host with api_key."
        )
    ca = folder / "ca.crt"
    if not ca.is_file():
        raise ConfigurationError(
            f"The service account has no {ca}.", "Mount the service account token into the pod.", path=str(ca)
        )
    secrets = Secrets()
    try:
        namespace = (folder / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        namespace = ""
    name = f"[{host}]" if ":" in host else host
    return ClusterAccess(
        server_url(f"https://{name}:{port}"),
        "the pod's service account",
        TokenFile(str(folder / "token"), secrets),
        ca=Pem(str(ca)),
        namespace=namespace,
        secrets=secrets,
    )


def _overridden(access: ClusterAccess, options: ConnectionOptions, environ: t.Mapping[str, str]) -> ClusterAccess:
    """The access with what the options say in their own right."""
    secrets = access.secrets
    secrets.add(options.password)
    changes: dict[str, t.Any] = {}
    if options.host and (options.kubeconfig or options.context):
        changes["server"] = server_url(options.host)
    if options.has_credential:
        # A credential replaces the other one as a whole: a certificate of one user with a token of another is nobody.
        changes.update(credential=_credential(options, secrets), client_certificate=Pem(), client_key=Pem())
    if options.client_cert:
        changes.update(client_certificate=Pem(options.client_cert), client_key=Pem(options.client_key))
    if options.ca_cert:
        changes["ca"] = Pem(options.ca_cert)
    if options.validate_certs is not None:
        changes["verify"] = options.validate_certs
    if options.tls_server_name:
        changes["tls_server_name"] = options.tls_server_name
    proxy = proxy_for(changes.get("server", access.server), options.proxy or access.proxy, options.no_proxy, environ)
    secrets.add(urllib.parse.unquote(urllib.parse.urlsplit(proxy or "").password or ""))
    changes["proxy"] = proxy
    changes["proxy_headers"], headers = _proxy_headers(options.proxy_headers or {}, secrets)
    if options.impersonate_user:
        headers.append(("Impersonate-User", options.impersonate_user))
    headers += [("Impersonate-Group", group) for group in options.impersonate_groups or ()]
    given = {name for name, _value in headers}
    changes["headers"] = (*(pair for pair in access.headers if pair[0] not in given), *headers)
    return dataclasses.replace(access, **changes)


def _credential(options: ConnectionOptions, secrets: Secrets) -> Credential:
    if options.api_key:
        return StaticToken(options.api_key, secrets)
    if options.username:
        return BasicAuth(options.username, options.password or "", secrets)
    return NoCredential()


def _proxy_headers(given: t.Mapping[str, str], secrets: Secrets) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Headers for the proxy, and for the API server, from the option ``proxy_headers``."""
    to_proxy: dict[str, str] = {}
    to_server: list[tuple[str, str]] = []
    if given.get("proxy_basic_auth"):
        user, _unused, password = given["proxy_basic_auth"].partition(":")
        to_proxy["Proxy-Authorization"] = BasicAuth(user, password, secrets).value
    if given.get("basic_auth"):
        user, _unused, password = given["basic_auth"].partition(":")
        to_server.append(("Authorization", BasicAuth(user, password, secrets).value))
    if given.get("user_agent"):
        to_proxy["User-Agent"] = given["user_agent"]
        to_server.append(("User-Agent", given["user_agent"]))
    return to_proxy, to_server
