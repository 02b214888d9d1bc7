# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a person may say about how to reach the API server, under the names that kubernetes.core uses."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from .errors import ConfigurationError

#: Environment variables of kubernetes.core, by option. They count where the option itself is not given.
ENVIRONMENT: t.Mapping[str, str] = {
    "kubeconfig": "K8S_AUTH_KUBECONFIG",
    "context": "K8S_AUTH_CONTEXT",
    "host": "K8S_AUTH_HOST",
    "api_key": "K8S_AUTH_API_KEY",
    "username": "K8S_AUTH_USERNAME",
    "password": "K8S_AUTH_PASSWORD",
    "ca_cert": "K8S_AUTH_SSL_CA_CERT",
    "client_cert": "K8S_AUTH_CERT_FILE",
    "client_key": "K8S_AUTH_KEY_FILE",
    "validate_certs": "K8S_AUTH_VERIFY_SSL",
    "proxy": "K8S_AUTH_PROXY",
    "no_proxy": "K8S_AUTH_NO_PROXY",
    "impersonate_user": "K8S_AUTH_IMPERSONATE_USER",
    "impersonate_groups": "K8S_AUTH_IMPERSONATE_GROUPS",
}

_FALSE = {"0", "false", "no", "off", "n", "f"}
_TRUE = {"1", "true", "yes", "on", "y", "t"}


@dataclasses.dataclass(frozen=True)
class ConnectionOptions:
    """How to reach the API server. Everything is optional; ``cluster.resolve`` says what counts when nothing is given.

    ``kubeconfig`` is a path, several paths joined by ``:``, or the content as a dict. ``host`` is a URL. ``ca_cert``,
    ``client_cert`` and ``client_key`` are paths of PEM files. ``proxy_headers`` has the keys ``basic_auth``,
    ``proxy_basic_auth`` (``user:password``) and ``user_agent``. ``tls_server_name`` is the name that the certificate
    must carry when it is not the host's.
    """

    kubeconfig: str | t.Mapping[str, t.Any] | None = dataclasses.field(default=None, repr=False)
    context: str | None = None
    host: str | None = None
    api_key: str | None = dataclasses.field(default=None, repr=False)
    username: str | None = None
    password: str | None = dataclasses.field(default=None, repr=False)
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    validate_certs: bool | None = None
    tls_server_name: str | None = None
    proxy: str | None = dataclasses.field(default=None, repr=False)
    no_proxy: str | None = None
    proxy_headers: t.Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    impersonate_user: str | None = None
    impersonate_groups: t.Sequence[str] | None = None

    @property
    def has_credential(self) -> bool:
        """Whether one is given beside a kubeconfig."""
        return bool(self.api_key or self.username or self.client_cert)


def options_from(
    values: t.Mapping[str, t.Any], environ: t.Mapping[str, str] | None = None, *, aliases: bool = True
) -> ConnectionOptions:
    """Options from module parameters or settings, completed from the environment.

    Keys that are None or empty count as not given; keys that are no connection options are ignored. ``aliases``
    accepts the older names ``verify_ssl``, ``ssl_ca_cert``, ``cert_file`` and ``key_file``.
    """
    environ = os.environ if environ is None else environ
    names = {field.name for field in dataclasses.fields(ConnectionOptions)}
    found: dict[str, t.Any] = {}
    for name, value in values.items():
        target = _ALIASES.get(name, name) if aliases else name
        if target in names and value not in (None, "", [], {}):
            found.setdefault(target, value)
    for name, variable in ENVIRONMENT.items():
        if name not in found and environ.get(variable):
            found[name] = environ[variable]
    if isinstance(found.get("validate_certs"), str):
        found["validate_certs"] = _boolean(found["validate_certs"])
    if isinstance(found.get("impersonate_groups"), str):
        found["impersonate_groups"] = [part.strip() for part in found["impersonate_groups"].split(",") if part.strip()]
    options = ConnectionOptions(**found)
    check(options)
    return options


_ALIASES = {
    "verify_ssl": "validate_certs",
    "ssl_ca_cert": "ca_cert",
    "cert_file": "client_cert",
    "key_file": "client_key",
}


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ConfigurationError(
        f"validate_certs is {text!r:.40}, expected true or false.", "Correct the option or K8S_AUTH_VERIFY_SSL."
    )


def check(options: ConnectionOptions) -> None:
    """Refuse options that contradict each other; raises ``ConfigurationError``."""
    for one, other in (("client_cert", "client_key"), ("username", "password")):
        given, missing = (one, other) if getattr(options, one) else (other, one)
        if getattr(options, given) and not getattr(options, missing):
            raise ConfigurationError(
                f"{given} is given without {missing}.", f"Give both {one} and {other}, or none of them.", option=missing
            )
    if options.host is not None and not options.host.startswith(("https://", "http://")):
        raise ConfigurationError(
            f"host {options.host!r:.80} is no URL.", "Write it with the scheme, such as https://192.0.2.10:6443."
        )
    if options.api_key and not options.api_key.strip().isprintable():
        raise ConfigurationError(
            "api_key holds characters that cannot be part of a token.", "Pass the token alone, without line breaks."
        )
