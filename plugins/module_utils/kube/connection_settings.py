# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The section of a daemon's settings that says how to reach the API server: its schema, and what its values mean.

Each daemon gives the section a name and adds what is its own.
"""

from __future__ import annotations

import typing as t

from .options import ConnectionOptions, options_from

Schema = t.Mapping[str, t.Any]


def connection_section(description: str, own: t.Mapping[str, Schema] | None = None) -> Schema:
    """The schema of such a section; ``own`` are the daemon's own settings in it, which come first."""
    return {
        "type": "object",
        "description": f"{description} How to reach it goes by the names of kubernetes.core. With nothing given: "
        "inside a pod its service account, else $KUBECONFIG or ~/.kube/config. Tokens and certificates in files are "
        "read again when they change.",
        "additionalProperties": False,
        "dependentRequired": {
            "client_cert": ["client_key"],
            "client_key": ["client_cert"],
            "username": ["password"],
            "password": ["username"],
        },
        "properties": {**(own or {}), **_PROPERTIES},
    }


def connection_options(section: t.Mapping[str, t.Any]) -> ConnectionOptions:
    """What the values of such a section say, and nothing else: variables of kubernetes.core do not count.

    Raises ``ConfigurationError`` when they contradict each other.
    """
    return options_from(section, {}, aliases=False)


def _optional(description: str, example: t.Any, **more: t.Any) -> Schema:
    return {"type": ["string", "null"], "default": None, "examples": [example], "description": description, **more}


def _file(description: str, example: str) -> Schema:
    return _optional(description, example, pattern="^/", **{"x-expected": "an absolute path", "x-file": True})


_PROPERTIES: t.Mapping[str, Schema] = {
    "kubeconfig": _file(
        "A kubeconfig file. A tokenFile in it is read again when it changes.", "/etc/nodeops-dra/kubeconfig"
    ),
    "context": _optional("The context of the kubeconfig. Absent: its current one.", "prod"),
    "host": _optional(
        "URL of the API server.",
        "https://192.0.2.10:6443",
        pattern="^https?://",
        **{"x-expected": "a URL that begins with https:// or http://"},
    ),
    "api_key": _optional(
        "A bearer token. It never changes while the daemon runs; better give a kubeconfig with tokenFile.",
        "eyJhbGciOi...",
        **{"x-secret": True},
    ),
    "username": _optional("User, for a server that asks for a password.", "nodeops-dra"),
    "password": _optional("Password of that user.", "secret", **{"x-secret": True}),
    "ca_cert": _file("Authorities that may sign the server's certificate, PEM.", "/etc/nodeops-dra/ca.crt"),
    "client_cert": _file("A client certificate, PEM.", "/etc/nodeops-dra/client.crt"),
    "client_key": _file("The private key of the client certificate, PEM.", "/etc/nodeops-dra/client.key"),
    "validate_certs": {
        "type": ["boolean", "null"],
        "default": None,
        "examples": [True],
        "description": "Whether the server's certificate is checked. Absent: as the kubeconfig says, else yes.",
    },
    "tls_server_name": _optional("The name that the server's certificate must carry.", "kubernetes"),
    "proxy": _optional("URL of an HTTP proxy.", "http://192.0.2.1:3128", **{"x-secret": True}),
    "no_proxy": _optional("Hosts that are reached without the proxy.", "10.0.0.0/8,.local"),
    "impersonate_user": _optional("Act as this user.", "system:serviceaccount:kube-system:nodeops-dra"),
    "impersonate_groups": {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "default": [],
        "examples": [["system:authenticated"]],
        "description": "Act as a member of these groups.",
    },
}
