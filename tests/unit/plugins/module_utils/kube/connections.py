# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What tests of connections share."""

from __future__ import annotations

import typing as t

from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of

from .stub_api import StubApi

PODS = resource_of("Pod")


async def authorization(access: ClusterAccess) -> str:
    """The header that this access sends."""
    return await access.credential.header()


def kubeconfig(server: str = "https://192.0.2.1:6443", **user: t.Any) -> dict[str, t.Any]:
    """A kubeconfig with one context."""
    return {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


async def who_am_i(api: StubApi, access: ClusterAccess) -> str:
    """The Authorization header that arrives at a stub."""

    async def route(request: web.Request) -> web.StreamResponse:
        return web.json_response({"metadata": {}})

    api.otherwise = route
    async with KubeClient.connect(access, tries=1) as client:
        await client.get(PODS, "p1", "team-a")
    return api.headers[-1].get("Authorization", "")
