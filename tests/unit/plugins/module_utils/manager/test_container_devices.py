# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What each container of a pod gets, and what PodResources tells of it."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.manager.container_devices import NotPreparedError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import (
    GPU,
    NIC,
    Json,
    claim,
    device,
    pod,
)

pytestmark = pytest.mark.asyncio


def container(name: str, *uses: tuple[str, str]) -> Json:
    claims = [{"name": claim_name, **({"request": request} if request else {})} for claim_name, request in uses]
    return {"name": name, "resources": {"claims": claims}}


def cdi(uid: str, name: str, driver: str = GPU) -> str:
    return f"k8s.{driver}/claim={uid}-{name}"


async def prepared(node: Node, made: Json, *claims: Json) -> t.Any:
    await node.add_driver(GPU)
    await node.add_driver(NIC)
    manager = await node.start()
    node.claims.update({one["metadata"]["uid"]: one for one in claims})
    await manager.prepare(made, claims)
    return manager


# kubelet: TestGetResources
async def test_containers_get_the_requests_they_name(node: Node) -> None:
    both = claim("c1", "u-1", device("dev-0", request="a"), device("nic-0", NIC, request="b/sub"))
    made = pod(
        containers=[
            container("first", ("ref-c1", "a")),
            container("second", ("ref-c1", "b")),
            container("all", ("ref-c1", "")),
            container("twice", ("ref-c1", ""), ("ref-c1", "a")),
            container("none"),
        ]
    )
    manager = await prepared(node, made, both)
    first, second = cdi("u-1", "dev-0"), cdi("u-1", "nic-0", NIC)
    assert manager.resources_for(made, "first") == (first,)
    assert manager.resources_for(made, "second") == (second,)
    assert manager.resources_for(made, "all") == (first, second)
    assert manager.resources_for(made, "twice") == (first, second)
    assert manager.resources_for(made, "none") == ()
    with pytest.raises(DraError, match="no container 'nobody'; its containers are: first, second"):
        manager.resources_for(made, "nobody")


async def test_devices_come_in_the_order_of_the_claims(node: Node) -> None:
    made = pod("p-1", "c1", "c2", containers=[container("main", ("ref-c2", ""), ("ref-c1", ""))])
    manager = await prepared(node, made, claim("c1", "u-1", device("dev-0")), claim("c2", "u-2", device("dev-1")))
    assert manager.resources_for(made, "main") == (cdi("u-2", "dev-1"), cdi("u-1", "dev-0"))


async def test_extended_resources_come_from_their_claim(node: Node) -> None:
    made = pod("p-1", "c1", containers=[container("main"), container("other", ("ref-c1", ""))])
    made["status"] = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": "ext",
            "requestMappings": [{"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r-x"}],
        }
    }
    extended = claim("ext", "u-x", device("dev-8", request="r-x"), device("dev-9", request="r-y"))
    manager = await prepared(node, made, claim(), extended)
    assert manager.resources_for(made, "main") == (cdi("u-x", "dev-8"),)
    assert manager.resources_for(made, "other") == (cdi("u-1", "dev-0"),)
    assert [info.claim_name for info in manager.claim_infos(made, "main")] == ["ext"]
    assert manager.allocated_resources_status(made, "main") == []


async def test_nothing_is_given_to_a_pod_that_does_not_hold_the_claim(node: Node) -> None:
    shared = claim(pods=["p-1", "p-2"])
    manager = await prepared(node, pod(), shared)
    with pytest.raises(NotPreparedError, match=r"p-2.*it is prepared for pods p-1"):
        manager.resources_for(pod("p-2"), "main")
    with pytest.raises(NotPreparedError, match="it is unknown"):
        manager.resources_for(pod("p-1", "c9"), "main")


async def test_a_claim_that_is_not_needed_gives_nothing(node: Node) -> None:
    made = pod("p-1", "c1", containers=[container("main", ("maybe", ""), ("ref-c1", ""))])
    made["spec"]["resourceClaims"].append({"name": "maybe", "resourceClaimTemplateName": "t"})
    made["status"] = {"resourceClaimStatuses": [{"name": "maybe"}]}
    manager = await prepared(node, made, claim())
    assert manager.resources_for(made, "main") == (cdi("u-1", "dev-0"),)


# kubelet: TestGetContainerClaimInfos. In 1.36 each entry repeats the CDI names of those before it.
async def test_pod_resources_tell_each_device_with_its_own_names(node: Node) -> None:
    both = claim("c1", "u-1", device("dev-0", shareID="s-0"), device("dev-1", request="r1"))
    manager = await prepared(node, pod(), both)
    (info,) = manager.claim_infos(pod(), "main")
    assert (info.claim_uid, info.claim_name, info.namespace) == ("u-1", "c1", "team-a")
    assert [
        (one.driver, one.device.device_name, one.device.cdi_device_ids, one.device.share_id) for one in info.devices
    ] == [
        (GPU, "dev-0", (cdi("u-1", "dev-0"),), "s-0"),
        (GPU, "dev-1", (cdi("u-1", "dev-1"),), None),
    ]
    assert manager.claim_infos(pod("p-1", "c9"), "main") == []


async def test_counts_and_questions(node: Node) -> None:
    manager = await prepared(node, pod(), claim("c1", "u-1", device("dev-0"), device("nic-0", NIC, request="r1")))
    assert manager.claims_in_use() == {"<any>": 1, GPU: 1, NIC: 1}
    assert manager.pod_might_need_unprepare("p-1")
    assert not manager.pod_might_need_unprepare("p-2")
    (report,) = manager.claims()
    assert (report.status, report.drivers_called, report.failures) == ("prepared", (GPU, NIC), ())
    written, syncs = manager.disk_use()
    assert written > 0
    assert syncs == 6, "notes of a new boot, write-ahead, answer: file and directory each"
