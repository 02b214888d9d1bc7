# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The rights of the controller's account: all that it takes for everything it does, and not one more."""

# Pylint takes the second context of one "async with" for evaluated before the first.
# pylint: disable=used-before-assignment

from __future__ import annotations

import asyncio
import dataclasses
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.coexistence import refuse_others
from ansible_collections.nodeops.dra.plugins.module_utils.controller.rights import account_rights, roles
from ansible_collections.nodeops.dra.plugins.module_utils.controller.target import Target
from ansible_collections.nodeops.dra.plugins.module_utils.kube.fence import Fence
from ansible_collections.nodeops.dra.plugins.module_utils.kube.lease import Lease
from ansible_collections.nodeops.dra.plugins.module_utils.kube.rights import Right
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.plugins.module_utils.resource.versions import api_version
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import Access, User

from .world import GENERATIONS, TOKEN, World, eventually, quiet, world

V1 = Target(api_version("v1"), Release(1, 36), pod_groups="v1alpha2")
ALPHA2 = Target(api_version("v1alpha2"), Release(1, 30), contexts=True)
SYSTEM, NAME = "kube-system", "nodeops-dra-controller"
#: Asked for by an admission plugin (OwnerReferencesPermissionEnforcement) that the embedded server does not have.
UNSEEN = Right("update", "pods/finalizers")


def test_the_roles_of_a_current_cluster() -> None:
    assert roles(account_rights([V1], (SYSTEM, NAME))) == {
        "": [
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]},
            {
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceclaims"],
                "verbs": ["create", "delete", "get", "list", "patch", "watch"],
            },
            {
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceclaims/binding", "resourceclaims/status"],
                "verbs": ["patch"],
            },
            {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaimtemplates"], "verbs": ["list", "watch"]},
            {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups/status"], "verbs": ["patch"]},
        ],
        SYSTEM: [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "verbs": ["get"],
                "resourceNames": ["kube-controller-manager"],
            },
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "verbs": ["get", "patch"],
                "resourceNames": [NAME],
            },
        ],
    }


def test_rights_for_several_clusters_are_those_of_all() -> None:
    lease = (SYSTEM, NAME)
    assert account_rights([V1, ALPHA2], lease) == account_rights([V1], lease) | account_rights([ALPHA2], lease)


def test_with_namespaces_only_what_has_none_is_for_the_whole_cluster() -> None:
    found = roles(account_rights([V1], ("dra", NAME), ("team-a", "team-b")))
    assert set(found) == {"", "dra", SYSTEM, "team-a", "team-b"}
    assert {name for rule in found[""] for name in rule["resources"]} == {"leases", "resourceclaims/binding"}
    assert found["team-a"] == found["team-b"]
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]} in found[SYSTEM]


@dataclasses.dataclass(frozen=True)
class Watched(User):
    """A user whose every use of a right is noted."""

    used: list[Access] = dataclasses.field(default_factory=list)

    def may(self, asked: Access) -> bool:
        allowed = super().may(asked)
        assert allowed, f"refused: {asked}"
        self.used.append(asked)
        return allowed


async def lead(cluster: World, work: t.Callable[[], t.Awaitable[None]]) -> None:
    """Look for others, stand for election, work, give the lease up; then the same with a Lease that exists."""
    async with cluster.connection(TOKEN) as client:
        for _unused in range(2):
            await refuse_others(client, cluster.target, (), f"{SYSTEM}/{NAME}", allowed=False)
            done = asyncio.Event()

            async def term(fence: Fence, done: asyncio.Event = done) -> None:
                done.set()
                await asyncio.Event().wait()

            election = asyncio.create_task(Lease(client, SYSTEM, NAME, identity="a").run(term))
            await asyncio.wait_for(done.wait(), 30)
            await work()
            election.cancel()
            with pytest.raises(asyncio.CancelledError):
                await election


async def everything(cluster: World) -> None:
    """All that the controller can be asked to do in this generation, from templates to release, and its mishaps."""
    number = len(cluster.stored("Pod"))
    if not number:
        await cluster.claim("c1")
        gone: dict[str, t.Any] = {"resource": "pods", "name": "p-gone", "uid": "u-gone"}
        groups = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "pg-gone", "uid": "u-pg"}
        await cluster.allocate("c1", consumers=[gone, *([groups] if cluster.target.pod_groups else [])])
    async with cluster.controller(check_rights=False) as controller:
        if number:
            return
        await quiet(cluster, controller)
        assert not cluster.stored("ResourceClaim")[0]["status"].get("reservedFor"), "consumers that are gone are let go"

        # A claim from a template; its template and the claim go, which is told; another template, told again.
        spec = {
            **cluster.spec(),
            **({"controller": "dra.test.example"} if cluster.target.contexts and not cluster.classic else {}),
        }
        await cluster.create("ResourceClaimTemplate", {"metadata": {"name": "t1"}, "spec": {"spec": spec}})
        pod = await cluster.pod()
        await quiet(cluster, controller)
        for count in (1, 2):
            await cluster.delete("ResourceClaimTemplate", "t1")
            await quiet(cluster, controller)
            await cluster.delete("ResourceClaim", str(cluster.names("p-1")["gpu"]))
            await eventually(lambda count=count: told(cluster, count), f"it was told {count} times")
            await cluster.create("ResourceClaimTemplate", {"metadata": {"name": "t1"}, "spec": {"spec": spec}})
            await quiet(cluster, controller)

        # Bound without the scheduler, then finished.
        await cluster.bind("p-1")
        await quiet(cluster, controller)
        if cluster.target.contexts:
            await cluster.patch("PodSchedulingContext", "p-1", {"spec": {"selectedNode": "another"}})
            await quiet(cluster, controller)
        await cluster.allocate(str(cluster.names("p-1")["gpu"]), pod)
        await quiet(cluster, controller)
        await cluster.finish("p-1")
        await eventually(lambda: len(cluster.stored("ResourceClaim")) <= (2 if cluster.classic else 1), "released")
        if cluster.target.pod_groups:
            group = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t1"}]}
            spec = {**group, "schedulingPolicy": {"basic": {}}}
            await cluster.create("PodGroup", {"metadata": {"name": "pg"}, "spec": spec})
            await cluster.pod("p-2", schedulingGroup={"podGroupName": "pg"})
            await eventually(lambda: cluster.names("p-2"), "the group's claim is named")
            await quiet(cluster, controller)


async def told(cluster: World, count: int) -> bool:
    """Whether the event is there so many times."""
    return sum(number for _reason, _message, number in await cluster.events()) >= count


def rights_of(user: User) -> set[Right]:
    """What the rules of a user say, right by right."""
    return {
        Right(verb, resource, group, namespace, name)
        for rule in user.rules
        for verb in rule.verbs
        for group in rule.groups
        for resource in rule.resources
        for name in rule.names or ("",)
        for namespace in rule.namespaces or ("",)
    }


@pytest.mark.asyncio
@pytest.mark.timeout(300)
@pytest.mark.report("F101")
@pytest.mark.parametrize("version", GENERATIONS)
async def test_its_rights_are_all_it_takes_and_each_of_them_is_used(version: str) -> None:
    async with world(version, auto_namespaces=True) as cluster:
        await cluster.grant()
        plain = cluster.server.settings.tokens[TOKEN]
        user = Watched(plain.name, plain.rules)
        cluster.server.settings.tokens[TOKEN] = user
        await lead(cluster, lambda: everything(cluster))
        granted = rights_of(user)
        assert len(granted) == sum(len(rule.verbs) * len(rule.resources) for rule in user.rules), "none twice"
        used = {one for one in granted if any(covers(one, asked) for asked in user.used)}
        assert sorted(map(str, granted - used - {UNSEEN})) == []
        # Each right is the only one for some request: without it that request is refused.
        for one in used:
            rest = granted - {one}
            needed = [asked for asked in user.used if covers(one, asked) and not any(covers(x, asked) for x in rest)]
            assert needed, f"others grant the same as {one}"


def covers(right: Right, asked: Access) -> bool:
    """As RBAC has it."""
    return (
        (right.verb, right.resource, right.group) == (asked.verb, asked.full_resource, asked.group)
        and right.namespace in ("", asked.namespace)
        and right.name in ("", asked.name)
    )
