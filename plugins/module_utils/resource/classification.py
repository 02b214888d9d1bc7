# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where a claim comes from and what it waits for: labels for metrics, words for people."""

from __future__ import annotations

import enum

from .allocation import is_allocated
from .consumers import consumers, is_reserved_for
from .names import EXTENDED_RESOURCE_ANNOTATION, POD_CLAIM_ANNOTATION
from .ownership import claim_view
from .requests import uses_admin_access
from .view import JsonObject

SOURCE_TEMPLATE = "resource_claim_template"
SOURCE_EXTENDED_RESOURCE = "extended_resource"
SOURCE_USER = ""


def claim_source(claim: JsonObject) -> str:
    """Value of the metric label ``source``: how the claim came to be, empty for claims of users."""
    annotations = claim_view(claim).mapping("metadata", "annotations")
    if annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
        return SOURCE_EXTENDED_RESOURCE
    return SOURCE_TEMPLATE if POD_CLAIM_ANNOTATION in annotations else SOURCE_USER


def metric_labels(claim: JsonObject) -> tuple[str, str, str]:
    """Values of the labels ``allocated``, ``admin_access``, ``source`` of the controller's claim gauge."""
    return (_word(is_allocated(claim)), _word(uses_admin_access(claim)), claim_source(claim))


def _word(value: bool) -> str:
    return "true" if value else "false"


class Step(enum.Enum):
    """The next thing that has to happen to a claim before a container can have its devices."""

    #: The claim object is missing; the controller or the user has to create it.
    CREATION = "creation"
    #: The scheduler has to allocate it.
    ALLOCATION = "allocation"
    #: The scheduler or the controller has to reserve it for the pod.
    RESERVATION = "reservation"
    #: The node has to prepare it.
    PREPARATION = "preparation"
    #: It is prepared and in use.
    NONE = "none"
    #: It is deleted and waits for its consumers or finalizers.
    REMOVAL = "removal"


def next_step(claim: JsonObject | None, pod: JsonObject | None = None, *, prepared: bool = False) -> Step:
    """Which step the claim waits for, seen from ``pod`` when one is given, else from any consumer."""
    if claim is None:
        return Step.CREATION
    if prepared:
        return Step.NONE
    if claim_view(claim).is_deleted:
        return Step.REMOVAL
    if not is_allocated(claim):
        return Step.ALLOCATION
    reserved = is_reserved_for(pod, claim) if pod is not None else bool(consumers(claim))
    return Step.PREPARATION if reserved else Step.RESERVATION
