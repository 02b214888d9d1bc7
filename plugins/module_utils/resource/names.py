# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Names and annotations of claims that are generated for a pod or a PodGroup."""

from __future__ import annotations

import hashlib
import typing as t

#: Annotation on a generated claim; its value is the name of the entry in ``spec.resourceClaims`` (since 1.28).
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
#: Annotation with value ``true`` on a claim that the scheduler made for extended resources (since 1.34).
EXTENDED_RESOURCE_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"

#: The API server cuts ``generateName`` here before it appends the suffix.
GENERATE_NAME_LIMIT = 58
SUFFIX_LENGTH = 5
#: No vowels, no 0, 1 and 3: suffixes shall neither form words nor be misread.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_BASE_LIMIT = 57


def generated_name_base(owner_name: str, claim_name: str) -> str:
    """``metadata.generateName`` of the claim for entry ``claim_name`` of a pod or PodGroup (kubelet: handleClaim,
    1.28+).

    A base that is too long is shortened on both sides in proportion, because the API server alone would cut off all of
    the claim's name. The shortened form has no hyphen at its end, as in the original.
    """
    base = f"{owner_name}-{claim_name}-"
    length = len(base)
    if length <= _BASE_LIMIT:
        return base
    owner_share = owner_name[: len(owner_name) * _BASE_LIMIT // length]
    claim_share = claim_name[: len(claim_name) * _BASE_LIMIT // length]
    return f"{owner_share}-{claim_share}"


def deterministic_name(pod_name: str, pod_claim_name: str) -> str:
    """The whole name of a generated claim up to 1.27."""
    return f"{pod_name}-{pod_claim_name}"


def extended_resource_name_base(pod_name: str) -> str:
    """``generateName`` of the claim that the scheduler makes for a pod's extended resources (1.34+)."""
    return f"{pod_name}-extended-resources-"


def name_with_suffix(base: str, choose: t.Callable[[str], str]) -> str:
    """The name that an API server makes of ``base``: cut, plus five characters picked by ``choose``."""
    suffix = "".join(choose(SUFFIX_ALPHABET) for _unused in range(SUFFIX_LENGTH))
    return base[:GENERATE_NAME_LIMIT] + suffix


def derived_name(base: str, owner_uid: str, claim_name: str, attempt: int = 0) -> str:
    """The name of a generated claim, with a suffix that follows from what the claim is for.

    It looks like one that the API server makes of ``generateName``. But whoever makes the claim of this entry of this
    very owner comes to the same name, so a create that is repeated after a lost answer, or made by two controllers at
    once, meets the first one and not a free place. ``attempt`` counts up where a name is taken by something else.
    """
    digest = iter(hashlib.sha256(f"{owner_uid}/{claim_name}/{attempt}".encode()).digest())
    return name_with_suffix(base, lambda alphabet: alphabet[next(digest) % len(alphabet)])
