# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a client may send as an object: JSON of the right type, with unknown fields judged as it asked."""

from __future__ import annotations

import typing as t

from . import decoding
from .cluster import Cluster
from .failures import bad_request
from .field_errors import invalid_object, not_supported
from .json_text import Json, from_bytes
from .request import ApiRequest

_LEVELS = ("Ignore", "Warn", "Strict")


def decode(request: ApiRequest, data: bytes) -> t.Any:
    """JSON of a body. ApiError 400 when it is none."""
    kind = request.served.kind.kind
    try:
        return from_bytes(data)
    except ValueError as error:
        raise decoding.cannot_be_handled(kind, request.served.version, f"invalid JSON: {error}") from None


def check_type(request: ApiRequest, value: t.Any) -> Json:
    """A body that names another type than the path is refused; one without a type is taken."""
    served = request.served
    if not isinstance(value, dict):
        raise decoding.cannot_be_handled(served.kind.kind, served.version, "json: cannot unmarshal into an object")
    kind, version = value.get("kind", served.kind.kind), value.get("apiVersion", served.version_name)
    if version != served.version_name:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({served.version_name})"
        )
    if kind != served.kind.kind:
        raise bad_request(f"the kind in the data ({kind}) does not match the expected kind ({served.kind.kind})")
    return value


def clean(cluster: Cluster, request: ApiRequest, value: Json) -> tuple[Json, list[str]]:
    """The object without type and unknown fields, and the warnings about those. ApiError 400 for a strict client."""
    served = request.served
    level = request.query.get("fieldValidation") or "Warn"
    if level not in _LEVELS:
        raise invalid_object("PatchOptions", "meta.k8s.io", "", [not_supported("fieldValidation", level, _LEVELS)])
    keep = cluster.settings.keep_unknown_fields
    cleaned, unknown = decoding.clean(served.kind.kind, served.version, value, served.shape, keep)
    cleaned.pop("kind", None)
    cleaned.pop("apiVersion", None)
    cleaned.setdefault("metadata", {})
    texts = [] if keep or level == "Ignore" else decoding.unknown_field_texts(unknown)
    if texts and level == "Strict":
        raise decoding.strict_error(served.kind.kind, served.version, texts)
    return cleaned, texts
