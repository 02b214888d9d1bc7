# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Options to reach the API server, named as in kubernetes.core. The doc fragment ``cluster`` describes them."""

from __future__ import annotations

import typing as t

OPTIONS = ("kubeconfig", "context", "host", "api_key", "ca_cert", "validate_certs")


def cluster_spec() -> dict[str, dict[str, t.Any]]:
    """Everything that a person may say about the API server."""
    return {
        "kubeconfig": {"type": "raw", "no_log": True},
        "context": {"type": "str"},
        "host": {"type": "str"},
        "api_key": {"type": "str", "no_log": True},
        "ca_cert": {"type": "path"},
        "validate_certs": {"type": "bool"},
    }


def is_wanted(options: t.Mapping[str, t.Any]) -> bool:
    """Whether anything was said about the API server in the task."""
    return any(options.get(name) is not None for name in ("kubeconfig", "context", "host"))
