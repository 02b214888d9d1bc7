# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Options to reach the API server, named as in kubernetes.core. The doc fragment ``cluster`` describes them."""

from __future__ import annotations

import typing as t


def cluster_spec() -> dict[str, dict[str, t.Any]]:
    """Everything that a person may say about the API server."""
    return {
        "kubeconfig": {"type": "raw", "no_log": True},
        "context": {"type": "str"},
        "host": {"type": "str"},
        "api_key": {"type": "str", "no_log": True},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "client_cert": {"type": "path", "aliases": ["cert_file"]},
        "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
        "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
        "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
        "tls_server_name": {"type": "str"},
        "proxy": {"type": "str"},
        "no_proxy": {"type": "str"},
        "impersonate_user": {"type": "str"},
        "impersonate_groups": {"type": "list", "elements": "str"},
    }
