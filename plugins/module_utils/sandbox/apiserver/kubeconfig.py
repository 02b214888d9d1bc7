# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A kubeconfig for the embedded API server. JSON is YAML too, so no YAML library is needed."""

from __future__ import annotations

import base64
import json
import os
import pathlib

from .json_text import Json

_NAME = "nodeops-dra-sandbox"


def kubeconfig(url: str, token: str, certificate: bytes | None, namespace: str = "default") -> Json:
    """The document as data; ``certificate`` is the PEM text that clients must trust."""
    cluster: Json = {"server": url}
    if certificate is not None:
        cluster["certificate-authority-data"] = base64.b64encode(certificate).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace}}],
        "current-context": _NAME,
        "preferences": {},
    }


def write_private(path: pathlib.Path, document: Json) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")
    temporary.replace(path)
