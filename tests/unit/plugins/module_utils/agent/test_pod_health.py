# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What should stand in a pod's status about the health of devices, and the patch that brings it there."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.agent.pod_health import (
    health_patch,
    known_health,
    same_health,
    shown_health,
    without_doubt,
)
from ansible_collections.nodeops.dra.plugins.module_utils.manager.container_devices import ResourceStatus
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.patches import json_patch

Json = dict[str, t.Any]
PLUGIN = {"name": "example.com/dev", "resources": [{"resourceID": "d", "health": "Healthy"}]}


def entry(name: str = "claim:gpu/r0", health: str = "Healthy", identity: str = "a/b=c", **more: str) -> Json:
    return {"name": name, "resources": [{"resourceID": identity, "health": health, **more}]}


def pod(*statuses: Json) -> Json:
    """A pod with an init container and three containers, two of which use claims, and these container statuses."""
    use = {"resources": {"claims": [{"name": "gpu", "request": "r0"}]}}
    containers = [{"name": "main", **use}, {"name": "other"}, {"name": "twin", **use}]
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"initContainers": [{"name": "init", **use}], "containers": containers},
        "status": {"containerStatuses": list(statuses)},
    }


def status(name: str, *health: Json) -> Json:
    return {"name": name, "ready": True, **({"allocatedResourcesStatus": list(health)} if health else {})}


def test_containers_that_use_claims_and_have_a_status() -> None:
    asked = []

    def statuses(_pod: Json, container: str) -> list[ResourceStatus]:
        asked.append(container)
        return [ResourceStatus("claim:gpu/r0", ({"resourceID": "a/b=c", "health": "Healthy"},))]

    assert known_health(pod(status("other"), status("main"), status("init")), statuses) == {"main": [entry()]}
    assert asked == ["main"]
    assert known_health({"metadata": {"uid": "u"}, "spec": {}}, statuses) == {}


def test_a_claim_without_devices_is_not_told_of() -> None:
    """Between the record of what a driver will be asked for and its answer."""
    assert known_health(pod(status("main")), lambda _pod, _name: [ResourceStatus("claim:gpu/r0", ())]) == {}


def test_the_patch_changes_one_field_of_one_container() -> None:
    before = pod(status("other"), status("main", PLUGIN), status("twin", entry()))
    wanted = {"main": [entry(health="Unhealthy", message="hot")], "twin": [entry()]}
    operations = health_patch(before, wanted)
    assert [(one["op"], one["path"]) for one in operations] == [
        ("test", "/metadata/resourceVersion"),
        ("add", "/status/containerStatuses/1/allocatedResourcesStatus"),
    ]
    after = json_patch(before, operations)
    assert after["status"]["containerStatuses"] == [
        status("other"),
        status("main", PLUGIN, entry(health="Unhealthy", message="hot")),
        status("twin", entry()),
    ]
    assert shown_health(after, wanted) == wanted


def test_entries_keep_their_places() -> None:
    before = pod(status("main", entry(), PLUGIN))
    (_test, add) = health_patch(before, {"main": [entry("claim:nic"), entry(health="Unknown")]})
    assert [one["name"] for one in add["value"]] == ["claim:gpu/r0", "example.com/dev", "claim:nic"]
    assert add["value"][0] == entry(health="Unknown")
    wanted = {"main": [entry("claim:nic"), entry()]}
    other_way_round = pod(status("main", entry(), PLUGIN, entry("claim:nic")))
    assert shown_health(other_way_round, wanted) == wanted, "the order of entries is nobody's business"


def test_in_doubt_a_status_keeps_what_it_knows() -> None:
    shown = {"main": [entry(health="Unhealthy", message="hot")], "twin": []}
    unknown = {"main": [entry(health="Unknown")], "twin": [entry(health="Unknown")]}
    assert without_doubt(unknown, shown) == {"main": shown["main"], "twin": unknown["twin"]}
    for certain in (entry(health="Healthy"), entry(health="Unknown", message="the driver says so")):
        assert without_doubt({"main": [certain]}, shown) == {"main": [certain]}
    other = {"main": [entry(identity="x/y=z", health="Unknown")]}
    assert without_doubt(other, shown) == other


def test_messages_do_not_count_where_a_server_drops_them() -> None:
    wanted = {"main": [entry(health="Unhealthy", message="hot")]}
    assert same_health({"main": [entry(health="Unhealthy")]}, wanted)
    assert not same_health({"main": [entry()]}, wanted)
    assert not same_health({"main": []}, wanted)
