# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Drivers, devices and handles of allocations of every generation."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.resource import (
    allocation,
    classification,
    devices,
    handles,
    requests,
)
from ansible_collections.nodeops.dra.plugins.module_utils.resource.view import MalformedObjectError
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.resource import objects

BOTH = {"NodePrepareResources", "NodeUnprepareResources"}


def allocated(*results: dict[str, t.Any], **parts: t.Any) -> dict[str, t.Any]:
    return objects.claim(status={"allocation": {"devices": {"results": list(results)}}}, **parts)


def test_drivers_come_once_in_order() -> None:
    claim = allocated(
        objects.result("b.example"), objects.result("a.example", device="x"), objects.result("b.example", device="y")
    )
    assert allocation.allocated_drivers(claim) == ("b.example", "a.example")
    assert len(allocation.allocation_results(claim)) == 3


def test_unallocated_claim_is_refused_with_name_and_uid() -> None:
    with pytest.raises(allocation.NotAllocatedError, match=r"ResourceClaim team-a/c1 \(u-1\): not allocated"):
        allocation.allocated_drivers(objects.claim())


def test_allocation_without_results_is_refused_when_devices_were_asked_for() -> None:
    with pytest.raises(allocation.NotAllocatedError, match="has no results, expected at least one device"):
        allocation.allocated_drivers(objects.claim(status={"allocation": {}}))


def test_a_manifest_without_spec_does_not_say_that_no_device_is_asked_for() -> None:
    claim = objects.claim(status={"allocation": {"devices": {"results": []}}})
    del claim["spec"]
    with pytest.raises(allocation.NotAllocatedError, match=r"has no results.*in a manifest without spec"):
        allocation.allocated_drivers(claim)


def test_claim_without_requests_has_no_drivers() -> None:
    claim = objects.claim(spec={"devices": {"requests": []}}, status={"allocation": {}})
    assert allocation.allocated_drivers(claim) == ()


@pytest.mark.parametrize("driver", ["", None, "../../etc", "a/b", "a b", ".hidden", "a\x00", "x\n"])
def test_driver_names_that_would_leave_a_socket_path_are_malformed(driver: t.Any) -> None:
    claim = allocated(objects.result(driver=driver))
    for reader in (allocation.allocated_drivers, devices.allocated_devices):
        with pytest.raises(MalformedObjectError) as caught:
            reader(claim)
        assert caught.value.facts["path"] == "status.allocation.devices.results[0].driver"
    if not driver:
        assert "DRA driver name is empty" in str(caught.value)


@pytest.mark.parametrize(
    ("claim", "classic"),
    [
        pytest.param(objects.claim(), False, id="v1"),
        pytest.param(objects.classic_claim(), True, id="v1alpha2"),
        pytest.param({"status": {"allocation": {"resourceHandles": []}}}, True, id="only handles"),
        pytest.param({"status": {"allocation": {"resourceHandle": "x"}}}, True, id="only one handle"),
        pytest.param({"spec": None, "status": {"allocation": objects.allocation()}}, False, id="extended, no spec"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_classic_and_structured_are_told_apart(claim: dict[str, t.Any], classic: bool) -> None:
    assert allocation.is_classic(claim) is classic


@pytest.mark.parametrize(
    ("per_device", "expected"),
    [
        pytest.param([["*"]], BOTH, id="star"),
        pytest.param([["*"], ["*"]], BOTH, id="all devices"),
        pytest.param([["*"], []], set(), id="one device does not"),
        pytest.param([["*"], None], set(), id="one device says nothing"),
        pytest.param([["NodePrepareResources", "NodeUnprepareResources"]], BOTH, id="both named"),
        pytest.param([["NodeUnprepareResources"]], {"NodeUnprepareResources"}, id="only unprepare"),
        pytest.param([["NodePrepareResources"]], set(), id="prepare alone does not count"),
        pytest.param([["*"], ["NodeUnprepareResources"]], {"NodeUnprepareResources"}, id="intersection"),
        pytest.param([["Future", "NodeUnprepareResources"]], {"NodeUnprepareResources"}, id="unknown ignored"),
    ],
)
def test_skipped_node_operations(per_device: list[list[str] | None], expected: set[str]) -> None:
    results = [objects.result(device=f"d{i}", skipNodeOperations=ops) for i, ops in enumerate(per_device)]
    claim = allocated(*results, objects.result("other.example"))
    assert allocation.skipped_operations(claim, "gpu.test.example") == expected
    assert allocation.skipped_operations(claim, "other.example") == set()
    assert allocation.skipped_operations(claim, "absent.example") == set()


@pytest.mark.report("F095")
def test_devices_carry_request_share_and_admin_access() -> None:
    claim = allocated(
        objects.result(request="gpu/large", shareID="11111111-2222-3333-4444-555555555555"),
        objects.result(pool="node-1/sub", device="dev-1", adminAccess=True),
        objects.result(device="dev-2", adminAccess=None),
    )
    first, second, third = devices.allocated_devices(claim)
    assert first.key == ("gpu.test.example", "pool-0", "dev-0", "11111111-2222-3333-4444-555555555555")
    assert (first.request, first.main_request) == ("gpu/large", "gpu")
    assert str(first) == "gpu.test.example/pool-0/dev-0 (share 11111111-2222-3333-4444-555555555555)"
    assert (second.pool, second.admin_access, second.share_id) == ("node-1/sub", True, None)
    assert str(second) == "gpu.test.example/node-1/sub/dev-1"
    assert not third.admin_access


@pytest.mark.parametrize(
    ("spec_request", "expected"),
    [
        ({"name": "gpu", "adminAccess": True}, True),
        ({"name": "gpu", "adminAccess": False}, False),
        ({"name": "other", "adminAccess": True}, False),
    ],
)
def test_admin_access_of_1_31_comes_from_the_request(spec_request: dict[str, t.Any], expected: bool) -> None:
    claim = allocated(objects.result(), spec={"devices": {"requests": [spec_request]}})
    assert devices.allocated_devices(claim)[0].admin_access is expected


@pytest.mark.report("F003")
def test_overlap_is_the_whole_key_and_admin_access_is_exempt() -> None:
    held = devices.exclusive_keys(
        devices.allocated_devices(
            allocated(
                objects.result(),
                objects.result(device="dev-1", adminAccess=True),
                objects.result(device="dev-2", shareID="a"),
            )
        )
    )
    wanted = devices.allocated_devices(
        allocated(
            objects.result(),
            objects.result(adminAccess=True),
            objects.result(device="dev-1"),
            objects.result(device="dev-2", shareID="b"),
            objects.result(device="dev-2", shareID="a"),
            objects.result(pool="pool-1"),
            objects.result("other.example"),
        )
    )
    assert [str(d) for d in devices.overlapping(wanted, held)] == [
        "gpu.test.example/pool-0/dev-0",
        "gpu.test.example/pool-0/dev-2 (share a)",
    ]


def test_device_with_a_slash_is_malformed() -> None:
    with pytest.raises(MalformedObjectError, match="without a slash"):
        devices.allocated_devices(allocated(objects.result(device="a/b")))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            {"driverName": "d.example", "allocation": {"resourceHandles": [{"driverName": "e.example", "data": "x"}]}},
            [("e.example", "x", None)],
            id="named handle",
        ),
        pytest.param(
            {
                "driverName": "d.example",
                "allocation": {"resourceHandles": [{"data": "x"}, {"driverName": "e.example"}]},
            },
            [("d.example", "x", None), ("e.example", "", None)],
            id="unnamed handle",
        ),
        pytest.param({"driverName": "d.example", "allocation": {}}, [("d.example", "", None)], id="no handles"),
        pytest.param(
            {"driverName": "d.example", "allocation": {"resourceHandle": "old"}},
            [("d.example", "old", None)],
            id="1.26",
        ),
        pytest.param(
            {
                "driverName": "d.example",
                "allocation": {"resourceHandles": [{"driverName": "d.example", "structuredData": {"nodeName": "n"}}]},
            },
            [("d.example", "", {"nodeName": "n"})],
            id="1.30 structured",
        ),
    ],
)
def test_resource_handles(status: dict[str, t.Any], expected: list[t.Any]) -> None:
    found = handles.resource_handles(objects.classic_claim(status=status))
    assert [(h.driver, h.data, h.structured) for h in found] == expected


def test_structured_data_is_a_copy() -> None:
    claim = objects.classic_claim(
        status={"allocation": {"resourceHandles": [{"driverName": "d", "structuredData": {"results": [1]}}]}}
    )
    structured = handles.resource_handles(claim)[0].structured
    assert structured is not None
    structured["results"].append(2)
    assert claim["status"]["allocation"]["resourceHandles"][0]["structuredData"] == {"results": [1]}


def test_handles_need_an_allocation_and_a_driver() -> None:
    with pytest.raises(allocation.NotAllocatedError):
        handles.resource_handles(objects.classic_claim())
    with pytest.raises(MalformedObjectError, match="DRA driver name is empty"):
        handles.resource_handles(objects.classic_claim(status={"allocation": {}}))


@pytest.mark.parametrize(
    ("request_form", "admin", "prioritized"),
    [
        pytest.param({"exactly": {"adminAccess": True}}, True, False, id="v1 exactly"),
        pytest.param({"adminAccess": True}, True, False, id="v1beta1 flat"),
        pytest.param({"exactly": {"adminAccess": None}}, False, False, id="unset"),
        pytest.param({"firstAvailable": [{"name": "a"}]}, False, True, id="alternatives"),
        pytest.param({"firstAvailable": []}, False, False, id="no alternatives"),
    ],
)
def test_features_of_requests(request_form: dict[str, t.Any], admin: bool, prioritized: bool) -> None:
    claim = objects.claim(spec={"devices": {"requests": [{"name": "plain"}, {"name": "gpu", **request_form}]}})
    assert requests.uses_admin_access(claim) is admin
    assert requests.uses_prioritized_list(claim) is prioritized
    assert requests.device_requests(claim) == ("plain", "gpu")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({}, ("false", "false", ""), id="user"),
        pytest.param(
            {"metadata": {"annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"}}},
            ("false", "false", "resource_claim_template"),
            id="template",
        ),
        pytest.param(
            {"metadata": {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}},
            ("false", "false", "extended_resource"),
            id="extended",
        ),
        pytest.param(
            {
                "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"adminAccess": True}}]}},
                "status": {"allocation": {}},
            },
            ("true", "true", ""),
            id="allocated admin",
        ),
    ],
)
def test_metric_labels(parts: dict[str, t.Any], expected: tuple[str, ...]) -> None:
    assert classification.metric_labels(objects.claim(**parts)) == expected


def test_which_step_a_claim_waits_for() -> None:
    step, steps = classification.next_step, classification.Step
    pod = objects.pod()
    free = objects.claim(status={"allocation": objects.allocation()})
    other = objects.claim(status={"allocation": objects.allocation(), "reservedFor": [objects.pod_entry(uid="x")]})
    mine = objects.claim(status={"allocation": objects.allocation(), "reservedFor": [objects.pod_entry()]})
    deleted = objects.claim(metadata={"deletionTimestamp": "t"})
    assert step(None, pod) is steps.CREATION
    assert step(objects.claim(), pod) is steps.ALLOCATION
    assert step(free, pod) is steps.RESERVATION
    assert step(other, pod) is steps.RESERVATION
    assert step(other) is steps.PREPARATION
    assert step(mine, pod) is steps.PREPARATION
    assert step(mine, pod, prepared=True) is steps.NONE
    assert step(deleted, pod) is steps.REMOVAL
