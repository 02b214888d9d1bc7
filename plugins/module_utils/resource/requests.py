# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Device requests in a claim's spec: flat up to v1beta1, wrapped in ``exactly`` from v1beta2."""

from __future__ import annotations

from .ownership import claim_view
from .view import JsonObject, ObjectView, Path


def device_requests(claim: JsonObject) -> tuple[str, ...]:
    """Names of the claim's requests in their order, empty for a classic claim."""
    view = claim_view(claim)
    listed = ("spec", "devices", "requests")
    return tuple(view.required_text(*listed, index, "name") for index, _entry in enumerate(view.entries(*listed)))


def admin_requests(view: ObjectView, spec: Path) -> frozenset[str]:
    """Names of the requests with ``adminAccess`` in the claim spec at path ``spec`` of a claim or a template."""
    listed = (*spec, "devices", "requests")
    return frozenset(view.text(*at, "name") for at in _each(view, listed) if view.flag(*_body(view, at), "adminAccess"))


def has_prioritized_list(view: ObjectView, spec: Path) -> bool:
    """Whether a request of the claim spec at path ``spec`` offers alternatives (``firstAvailable``)."""
    return any(view.entries(*at, "firstAvailable") for at in _each(view, (*spec, "devices", "requests")))


def uses_admin_access(claim: JsonObject) -> bool:
    """Whether the claim asks for admin access to some device."""
    return bool(admin_requests(claim_view(claim), ("spec",)))


def uses_prioritized_list(claim: JsonObject) -> bool:
    """Whether some request of the claim has alternatives."""
    return has_prioritized_list(claim_view(claim), ("spec",))


def _each(view: ObjectView, listed: Path) -> list[Path]:
    return [(*listed, index) for index, _entry in enumerate(view.entries(*listed))]


def _body(view: ObjectView, at: Path) -> Path:
    return (*at, "exactly") if view.mapping(*at, "exactly") else at
