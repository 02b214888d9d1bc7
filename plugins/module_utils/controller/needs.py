# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether we may do what we will have to do: asked before the work begins, so that nothing stays half done."""

from __future__ import annotations

import typing as t

from ..kube.client import KubeClient
from ..kube.errors import ForbiddenError
from ..kube.rights import Review, Right, review
from .requests import needed_rights, rights_in
from .target import Target


class MissingRightsError(ForbiddenError):
    """Rights are missing. Facts: ``missing``, a list of ``verb resource.group in namespace``."""


async def review_rights(client: KubeClient, target: Target, namespaces: t.Sequence[str] = ()) -> list[Review]:
    """The API server's answer for each right that the controller needs."""
    return await review(client, rights_in(target, namespaces))


async def check_rights(
    client: KubeClient, target: Target, namespaces: t.Sequence[str] = (), others: t.Sequence[Right] = ()
) -> None:
    """Raise ``MissingRightsError`` with everything that is missing, also of ``others``."""
    reviews = [*await review_rights(client, target, namespaces), *await review(client, others)]
    missing = [str(found.right) for found in reviews if not found.allowed]
    if not missing:
        return
    purposes = {f"{use.verb} {use.resource}": use.why for use in needed_rights(target)}
    first = missing[0].split(".")[0].split(" in ")[0]
    why = purposes.get(first, "")
    raise MissingRightsError(
        f"{len(missing)} of the rights that the controller needs are missing: {', '.join(missing)}."
        + (f" The first is for: {why}." if why else ""),
        "Grant them in a ClusterRole that is bound to the controller's account; the role `controller` of this "
        "collection makes one that fits.",
        missing=missing,
    )
