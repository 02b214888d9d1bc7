# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The list of requests: complete, no longer than needed, and the only way to the API server."""

from __future__ import annotations

import ast
import asyncio
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.controller import requests
from ansible_collections.nodeops.dra.plugins.module_utils.controller.gateway import Gateway
from ansible_collections.nodeops.dra.plugins.module_utils.controller.requests import (
    Use,
    needed_rights,
    requests_of,
    rights_in,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.target import Target
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import api_version

V1 = Target(api_version("v1"), Release(1, 36), pod_groups="v1alpha2")
V1_34 = Target(api_version("v1"), Release(1, 34))
ALPHA2 = Target(api_version("v1alpha2"), Release(1, 30), contexts=True)
ALPHA2_27 = Target(api_version("v1alpha2"), Release(1, 27), contexts=True)


def names(uses: t.Iterable[Use]) -> set[str]:
    """Verb and resource of each."""
    return {f"{use.verb} {use.resource}" for use in uses}


def test_what_only_some_clusters_need() -> None:
    assert "update pods/finalizers" not in names(needed_rights(V1))
    assert "update pods/finalizers" in names(needed_rights(V1_34))
    assert "patch resourceclaims/binding" not in names(needed_rights(V1_34))
    assert not any("podgroups" in name for name in names(requests_of(V1_34)))
    assert {name for name in names(requests_of(ALPHA2)) if "podschedulingcontexts" in name} == {
        f"{verb} podschedulingcontexts" for verb in ("list", "watch", "create", "patch")
    }
    assert "patch pods/status" in names(requests_of(ALPHA2))
    assert "patch pods/status" not in names(requests_of(ALPHA2_27))


def test_rights_by_namespace_but_for_the_one_that_is_asked_for_everywhere() -> None:
    rights = rights_in(V1, ("a", "b"))
    assert {right.namespace for right in rights if right.resource == "resourceclaims/binding"} == {""}
    assert {right.namespace for right in rights if right.resource != "resourceclaims/binding"} == {"a", "b"}
    assert {right.namespace for right in rights_in(V1)} == {""}


def test_every_request_in_the_list_is_made_somewhere() -> None:
    folder = pathlib.Path(requests.__file__).parent
    used: set[str] = set()
    for path in folder.glob("*.py"):
        if path.name == "requests.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "requests":
                used.add(node.attr)
    defined = {name for name, value in vars(requests).items() if isinstance(value, Use) and not name.startswith("_")}
    # The recorder of events is of the layer below and makes these two by itself.
    assert defined - {"CREATE_EVENT", "PATCH_EVENT"} == used


def test_a_request_that_is_not_in_the_list_is_not_sent() -> None:
    class Client:
        async def patch(self, *_what: object, **_how: object) -> None:
            raise AssertionError("it was sent")

    gateway = Gateway(t.cast("t.Any", Client()), V1_34)
    with pytest.raises(DraError, match="patch podgroups/status, which is not in its list"):
        asyncio.run(gateway.patch(requests.APPLY_POD_GROUP_STATUS, {}, "pg", "team-a"))
