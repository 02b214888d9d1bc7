# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Finding another ResourceClaim controller: what is evidence, what is none, and what cannot be seen."""

from __future__ import annotations

import asyncio
import contextlib
import time
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.coexistence import (
    LEASE_LABEL,
    LEASE_LABEL_VALUE,
    NAMESPACES_ANNOTATION,
    AnotherControllerError,
    Verdict,
    Weight,
    look,
    refuse_others,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.coexistence_flags import (
    is_manager,
    runs_controller,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.requests import coexistence_rights
from ansible_collections.nodeops.dra.plugins.module_utils.controller.rights import roles
from ansible_collections.nodeops.dra.plugins.module_utils.kube.lease import Lease, LeaseSettings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.lease_record import micro_time
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import Rule, User

from .world import NS, TOKEN, World, world

LEASE, POD = resource_of("Lease"), resource_of("Pod")
SYSTEM = "kube-system"
OFF = "--controllers=*,-resourceclaim-controller"


@contextlib.asynccontextmanager
async def cluster(version: str = "v1", release: tuple[int, int, int] | None = None) -> t.AsyncIterator[World]:
    """A cluster that makes namespaces on first use."""
    async with world(version, release, auto_namespaces=True) as made:
        yield made


async def manager_lease(made: World, *, renewed: float = 0.0, holder: str = "host-1_x", acquired: float = 0.0) -> None:
    """The Lease of a kube-controller-manager, last renewed so many seconds ago."""
    now = time.time()
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 1,
        "renewTime": micro_time(now - renewed),
        "acquireTime": micro_time(now - acquired),
    }
    await made.client.create(LEASE, {"metadata": {"name": "kube-controller-manager"}, "spec": spec}, SYSTEM)


@contextlib.asynccontextmanager
async def renewing(made: World) -> t.AsyncIterator[None]:
    """Somebody renews that Lease."""

    async def renew() -> None:
        while True:
            spec = {"spec": {"renewTime": micro_time(time.time())}}
            await made.client.patch(LEASE, spec, "kube-controller-manager", SYSTEM)
            await asyncio.sleep(0.1)

    task = asyncio.create_task(renew())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def manager_pod(made: World, *arguments: str, phase: str = "Running", age: float = 3600.0) -> None:
    """A pod of kube-controller-manager."""
    container = {"name": "kcm", "image": "x", "command": ["kube-controller-manager", *arguments]}
    await made.client.create(POD, {"metadata": {"name": "kcm-1"}, "spec": {"containers": [container]}}, SYSTEM)
    started = micro_time(time.time() - age)[:19] + "Z"
    await made.client.patch(
        POD, {"status": {"phase": phase, "startTime": started}}, "kcm-1", SYSTEM, subresource="status"
    )


async def generated_claim(made: World, maker: str) -> None:
    """A claim as a controller makes it for a pod."""
    pod = await made.pod()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p-1", "uid": pod["metadata"]["uid"], "controller": True}
    body = {"metadata": {"name": "p-1-gpu-x", "ownerReferences": [owner]}, "spec": made.spec()}
    await made.client.create(made.target.resource("ResourceClaim"), body, NS, field_manager=maker)


async def verdict(made: World) -> Verdict:
    """What an administrator sees."""
    return await look(made.client, made.target)


def texts(found: Verdict) -> str:
    """All evidence."""
    return "\n".join(map(str, found.evidence))


@pytest.mark.asyncio
async def test_an_empty_cluster_has_nobody() -> None:
    async with cluster() as made:
        found = await verdict(made)
    assert not found.against
    assert "nobody holds it" in texts(found)


@pytest.mark.asyncio
@pytest.mark.parametrize(("version", "release", "refused"), [("v1", (1, 34, 0), True), ("v1beta2", (1, 33, 1), False)])
async def test_a_lease_that_is_renewed_means_what_the_release_does_by_default(
    version: str, release: tuple[int, int, int], refused: bool
) -> None:
    async with cluster(version, release) as made:
        await manager_lease(made)
        async with renewing(made):
            found = await verdict(made)
    assert bool(found.against) is refused
    assert "Lease kube-system/kube-controller-manager (20" in texts(found)
    assert "held by host-1_x and being renewed" in texts(found)
    assert f"is {'on' if refused else 'off'} by default" in texts(found)


@pytest.mark.asyncio
@pytest.mark.parametrize("age", [0.0, 7200.0])
async def test_a_lease_that_nobody_renews_is_a_leftover(age: float) -> None:
    async with cluster() as made:
        await manager_lease(made, renewed=age)
        found = await verdict(made)
    assert not found.against
    assert "not renewed any more" in texts(found)


@pytest.mark.asyncio
async def test_a_pod_that_has_it_off_goes_before_the_default() -> None:
    async with cluster() as made:
        await manager_pod(made, OFF)
        await manager_lease(made)
        async with renewing(made):
            found = await verdict(made)
    assert not found.against
    assert f"controller off: --controllers={OFF.split(',')[1]}" in texts(found)


@pytest.mark.asyncio
async def test_a_pod_that_has_it_on_is_enough_even_without_a_lease() -> None:
    async with cluster("v1beta2", (1, 33, 1)) as made:
        await manager_pod(made, "--feature-gates=DynamicResourceAllocation=true")
        found = await verdict(made)
        assert [one.object for one in found.against] == ["Pod kube-system/kcm-1"]
        await made.client.patch(POD, {"status": {"phase": "Failed"}}, "kcm-1", SYSTEM, subresource="status")
        assert not (await verdict(made)).against


@pytest.mark.asyncio
@pytest.mark.parametrize(("maker", "refused"), [("some-controller", True), ("nodeops.dra", False)])
async def test_a_fresh_claim_tells_who_made_it(maker: str, refused: bool) -> None:
    async with cluster() as made:
        await made.template()
        await generated_claim(made, maker)
        found = await verdict(made)
    assert bool(found.against) is refused
    assert (f"ResourceClaim {NS}/p-1-gpu-x" in texts(found)) is refused


@pytest.mark.asyncio
async def test_claims_prove_nothing_when_they_are_older_than_what_is_there_now() -> None:
    async with cluster() as made:
        await made.template()
        await generated_claim(made, "kube-controller-manager")
        later = await look(made.client, made.target, now=lambda: time.time() + 301)
        assert not later.against
        await manager_pod(made, OFF, age=-60.0)  # it was started with the controller off after the claim was made
        assert not (await verdict(made)).against


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("version", "release", "weight"),
    [("v1", (1, 36, 2), Weight.NOT_RULED_OUT), ("v1beta2", (1, 33, 1), Weight.NOTE)],
)
async def test_what_may_not_be_read_is_told_and_does_not_count_as_nobody(
    version: str, release: tuple[int, int, int], weight: Weight
) -> None:
    async with cluster(version, release) as made:
        await made.grant()
        async with made.connection(TOKEN) as client:
            may_list_pods = made.server.settings.tokens[TOKEN].without("get", "leases")
            made.server.settings.tokens[TOKEN] = may_list_pods.without("list", "pods")
            found = await look(client, made.target)
            assert "the right to get leases.coordination.k8s.io in kube-system is missing" in texts(found)
            assert "the right to list pods in kube-system is missing" in texts(found)
            assert max(one.weight is weight for one in found.evidence)
            assert bool(found.against) is (weight is Weight.NOT_RULED_OUT)
            # A pod that says "off" settles it.
            made.server.settings.tokens[TOKEN] = may_list_pods
            await manager_pod(made, OFF)
            assert not (await look(client, made.target)).against


@pytest.mark.asyncio
async def test_its_rules_are_all_it_takes() -> None:
    async with cluster() as made:
        rules = [
            Rule(
                tuple(rule["verbs"]),
                tuple(rule["apiGroups"]),
                tuple(rule["resources"]),
                tuple(rule.get("resourceNames", ())),
                (namespace,) if namespace else (),
            )
            for namespace, found in roles(coexistence_rights()).items()
            for rule in found
        ]
        claims = Rule(("list",), ("resource.k8s.io",), ("resourceclaims",))
        made.server.settings.tokens["looker"] = User("looker", (*rules, claims))
        async with made.connection("looker") as client:
            assert "is missing" not in texts(await look(client, made.target))


@contextlib.asynccontextmanager
async def sibling(made: World, namespaces: str = "", place: str = "dra/other") -> t.AsyncIterator[asyncio.Event]:
    """Another controller of this collection leads under a Lease of its own; set the event to end it."""
    leads, ended = asyncio.Event(), asyncio.Event()
    namespace, _slash, name = place.partition("/")

    async def work(_fence: object) -> None:
        leads.set()
        await ended.wait()

    lease = Lease(
        made.client,
        namespace,
        name,
        identity="host-2_x",
        labels={LEASE_LABEL: LEASE_LABEL_VALUE},
        annotations={NAMESPACES_ANNOTATION: namespaces},
        settings=LeaseSettings(10.0, 5.0, 0.1),
    )
    task = asyncio.create_task(lease.run(work))
    await leads.wait()
    try:
        yield ended
    finally:
        ended.set()
        await task


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("theirs", "ours", "where"),
    [
        ("", (), "all namespaces"),
        ("", ("team-a",), "all namespaces"),
        ("team-a,team-b", (), "team-a, team-b"),
        ("team-a,team-b", ("team-b", "team-c"), "team-b"),
        ("team-a", ("team-b",), ""),
    ],
)
async def test_another_of_this_collection_under_another_lease(theirs: str, ours: tuple[str, ...], where: str) -> None:
    async with cluster() as made, sibling(made, theirs):
        found = await look(made.client, made.target, ours, "kube-system/other")
    assert "Lease dra/other (20" in texts(found)
    assert "held by host-2_x and being renewed, a controller of this collection" in texts(found)
    assert [one.object for one in found.against] == (["Lease dra/other"] if where else [])
    assert f"that looks after {where or 'other namespaces than ours'}" in texts(found)


@pytest.mark.asyncio
async def test_a_replica_of_ours_is_no_other_controller() -> None:
    async with cluster() as made, sibling(made):
        found = await look(made.client, made.target, (), "dra/other")
    assert "dra/other" not in texts(found)


@pytest.mark.asyncio
async def test_one_of_this_collection_that_has_ended_is_none() -> None:
    async with cluster() as made:
        async with sibling(made):
            pass  # it gives its Lease up
        dead = {"name": "dead", "labels": {LEASE_LABEL: LEASE_LABEL_VALUE}}
        spec = {"holderIdentity": "gone", "renewTime": micro_time(time.time()), "leaseDurationSeconds": 1}
        await made.client.create(LEASE, {"metadata": dead, "spec": spec}, "dra")
        found = texts(await look(made.client, made.target))
    assert "dra/other" not in found
    assert "dra/dead" not in found


@pytest.mark.asyncio
async def test_without_the_right_others_of_this_collection_stay_unseen_and_that_is_told() -> None:
    async with cluster() as made, sibling(made):
        await made.grant()
        made.server.settings.tokens[TOKEN] = made.server.settings.tokens[TOKEN].without("list", "leases")
        async with made.connection(TOKEN) as client:
            found = await look(client, made.target)
    assert "leases in all namespaces: the right to list leases.coordination.k8s.io is missing" in texts(found)
    assert "dra/other" not in texts(found)


@pytest.mark.asyncio
async def test_refusing_and_allowing() -> None:
    async with cluster() as made:
        await manager_pod(made)
        with pytest.raises(AnotherControllerError, match="Another ResourceClaim controller is at work") as raised:
            await refuse_others(made.client, made.target, (), "", allowed=False)
        assert "allow_coexistence" in raised.value.hint
        assert any("kcm-1" in text for text in raised.value.facts["evidence"])
        assert (await refuse_others(made.client, made.target, (), "", allowed=True)).against


@pytest.mark.parametrize(
    ("arguments", "release", "on"),
    [
        ([], (1, 36), True),
        ([], (1, 34), True),
        ([], (1, 33), False),
        ([], (1, 31), False),
        ([OFF], (1, 36), False),
        (["--controllers", "*,-resource-claim-controller"], (1, 36), False),
        (["--controllers=deployment,job"], (1, 36), False),
        (["--controllers=job,resourceclaim-controller"], (1, 36), True),
        (["--controllers=*", "--controllers=-resourceclaim-controller"], (1, 36), False),
        (["--feature-gates=Other=false,DynamicResourceAllocation=false"], (1, 34), False),
        (["--feature-gates=DynamicResourceAllocation=false"], (1, 35), True),
        (["--feature-gates=DynamicResourceAllocation=true"], (1, 31), True),
        (["--feature-gates=DynamicResourceAllocation=true", OFF], (1, 31), False),
        (["--feature-gates=AllBeta=true"], (1, 33), True),
        (["--feature-gates=AllBeta=true"], (1, 31), False),
        (["--feature-gates=AllAlpha=true"], (1, 31), True),
        (["--feature-gates=AllAlpha=true,DynamicResourceAllocation=false"], (1, 31), False),
        (["-c", f"exec kube-controller-manager '{OFF}' --v=2"], (1, 36), False),
    ],
)
def test_arguments_that_switch_it(arguments: list[str], release: tuple[int, int], on: bool) -> None:
    found, why = runs_controller(["kube-controller-manager", *arguments], Release(*release))
    assert found is on
    assert why


def test_which_containers_are_a_manager() -> None:
    assert is_manager(["/usr/local/bin/kube-controller-manager", "--v=2"])
    assert is_manager(["sh", "-c", "exec kube-controller-manager --v=2"])
    assert not is_manager(["cloud-controller-manager"])
    assert not is_manager(["my-kube-controller-manager-exporter"])
