# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""JSON as the API server reads and writes it: compact, UTF-8 unescaped, one encoder for all."""

from __future__ import annotations

import json
import typing as t

Json = dict[str, t.Any]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_encode_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def to_bytes(value: t.Any) -> bytes:
    """``value`` as compact JSON in UTF-8. Lone surrogates become the replacement character, as in Go."""
    return _encode(value).encode("utf-8", "replace")


def to_sorted_text(value: t.Any) -> str:
    """``value`` as JSON with sorted keys: equal values give equal text."""
    return _encode_sorted(value)


def from_bytes(data: bytes | str) -> t.Any:
    """What the JSON text holds. Raises ValueError for anything that is no JSON."""
    return json.loads(data)
