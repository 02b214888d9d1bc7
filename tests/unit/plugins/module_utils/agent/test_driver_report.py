# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What nodeops.dra.driver_info returns of drivers on real sockets."""

from __future__ import annotations

import datetime
import socket

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.driver_report import driver_report
from ansible_collections.nodeops.dra.plugins.module_utils.agent.node_slices import pools_of, slice_findings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Json, Node, codes
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import NIC

OPTIONS: Json = {"with_api": False, "node_name": None}


async def report(node: Node) -> Json:
    return await driver_report(str(node.registry), OPTIONS)


@pytest.mark.report("F028")
@pytest.mark.asyncio
async def test_a_good_driver(node: Node) -> None:
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    async with node.driver(GPU, health=("v1alpha1",)) as driver:
        result = await report(node)
        assert driver.notifications == []
        assert {call.method for call in driver.calls} == {"get_info"}

    path, endpoint = str(driver.config.registration_socket), str(driver.config.socket)
    made_at = datetime.datetime.fromisoformat(result["sockets"][0].pop("made_at").replace("Z", "+00:00"))
    assert before <= made_at <= datetime.datetime.now(datetime.timezone.utc)
    assert result == {
        "registry_directory": str(node.registry),
        "drivers": [
            {
                "name": GPU,
                "reachable": True,
                "instances": [
                    {
                        "registration_socket": path,
                        "endpoint": endpoint,
                        "endpoint_reachable": True,
                        "advertised": ["v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"],
                        "service": "v1.DRAPlugin",
                        "generation": "v1",
                        "health_service": "v1alpha1",
                    }
                ],
            }
        ],
        "sockets": [{"path": path, "answers": True, "plugin_type": "DRAPlugin", "driver": GPU}],
        "other_files": [],
        "slices": None,
        "findings": [],
    }


@pytest.mark.report("F028")
@pytest.mark.parametrize(
    ("advertised", "service", "generation"),
    [
        (("v1beta1.DRAPlugin",), "v1beta1.DRAPlugin", "v1beta1"),
        (("v1.DRAPlugin", "v1beta1.DRAPlugin"), "v1.DRAPlugin", "v1"),
        (("1.0.0",), "1.0.0", "classic"),
        ((), "", ""),
        (("v9.DRAPlugin",), "", ""),
    ],
)
@pytest.mark.asyncio
async def test_the_service_that_is_chosen_is_told(
    node: Node, advertised: tuple[str, ...], service: str, generation: str
) -> None:
    async with node.driver(GPU, advertise=advertised):
        result = await report(node)
    (instance,) = result["drivers"][0]["instances"]
    assert (instance["advertised"], instance["service"], instance["generation"]) == (
        list(advertised),
        service,
        generation,
    )
    assert codes(result) == ([] if service else ["no_common_service"])
    assert result["drivers"][0]["reachable"] is bool(service)


@pytest.mark.report("F023")
@pytest.mark.asyncio
async def test_socket_answers_and_service_are_three_things(node: Node) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(node.registry / "old-reg.sock"))
    (node.registry / "note.txt").touch()
    async with node.driver(), node.driver(NIC) as half:
        await half.stop_service()
        result = await report(node)

    told = {one["name"]: one["reachable"] for one in result["drivers"]}
    assert told == {GPU: True, NIC: False}
    assert {one["driver"]: one["answers"] for one in result["sockets"]} == {GPU: True, NIC: True, "": False}
    assert codes(result) == ["endpoint_missing", "stale_socket"]
    for finding in result["findings"]:
        assert finding["remedy"], finding
        assert finding["severity"] == "error"
    missing = next(finding for finding in result["findings"] if finding["code"] == "endpoint_missing")
    assert missing["facts"] == {"driver": NIC}
    assert str(half.config.socket) in missing["text"]
    assert result["other_files"] == [str(node.registry / "note.txt")]


@pytest.mark.report("F025")
@pytest.mark.asyncio
async def test_two_instances_of_a_driver(node: Node) -> None:
    async with node.driver(GPU, instance="a"), node.driver(GPU, instance="b") as second:
        await second.stop_service()
        result = await report(node)
    (one,) = result["drivers"]
    assert one["reachable"]
    assert [instance["endpoint_reachable"] for instance in one["instances"]] == [True, False]


@pytest.mark.asyncio
async def test_a_driver_on_a_busy_node_is_not_called_dead(node: Node) -> None:
    async with node.driver(GPU, "slow:method=get_info,seconds=1.5"):
        result = await report(node)
    assert ([one["reachable"] for one in result["drivers"]], codes(result)) == ([True], [])


@pytest.mark.asyncio
async def test_a_directory_that_is_not_there(node: Node) -> None:
    node.registry.rmdir()
    result = await report(node)
    assert (result["drivers"], codes(result)) == ([], ["registry_missing"])


# Slices


def of(driver: str, pool: str, made: str, devices: int = 1) -> Json:
    spec = {"driver": driver, "pool": {"name": pool}, "devices": [{"name": str(n)} for n in range(devices)]}
    return {"metadata": {"creationTimestamp": made}, "spec": spec}


@pytest.mark.report("F033")
def test_slices_are_told_by_driver_and_pool_with_the_age_of_the_oldest() -> None:
    pools = pools_of(
        [
            of(NIC, "b", "2026-01-01T00:00:00Z"),
            of(GPU, "b", "2026-01-01T00:00:30Z", 2),
            of(GPU, "b", "2026-01-01T00:00:10Z", 3),
            of(GPU, "a", ""),
        ]
    )
    assert [(one["driver"], one["pool"], one["slices"], one["devices"]) for one in pools] == [
        (GPU, "a", 1, 1),
        (GPU, "b", 2, 5),
        (NIC, "b", 1, 1),
    ]
    now = datetime.datetime(2026, 1, 1, 0, 1, tzinfo=datetime.timezone.utc).timestamp()
    found = slice_findings(pools, {NIC: True}, now=now)
    assert [(one.place, one.facts["age"]) for one in found] == [(f"{GPU}/a", None), (f"{GPU}/b", 50.0)]
    assert "50 s old" in found[1].text
