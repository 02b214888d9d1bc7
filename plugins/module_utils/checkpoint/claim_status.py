# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The status of a ResourceClaim as drivers store it: ``ResourceClaimStatus`` of resource.k8s.io/v1.

Drivers hash what they decoded and wrote again, so every field counts, with its place and whether it is left out when
empty. The types are those of Kubernetes 1.34 to 1.36, which are equal.
"""

from __future__ import annotations

from .gofields import ApiList, ApiStr, ApiStruct, ApiTime, Bool, Int, Quantity, RawJson
from .gotypes import Field, Map, Pointer

STRING = ApiStr()
STRINGS = ApiList("[]string", STRING)
UID_POINTER = Pointer(ApiStr("types.UID"))

_REQUIREMENT = ApiStruct(
    "v1.NodeSelectorRequirement",
    [
        Field("key", STRING),
        Field("operator", ApiStr("v1.NodeSelectorOperator")),
        Field("values", STRINGS, omit_empty=True),
    ],
)
_REQUIREMENTS = ApiList("[]v1.NodeSelectorRequirement", _REQUIREMENT)
_TERM = ApiStruct(
    "v1.NodeSelectorTerm",
    [Field("matchExpressions", _REQUIREMENTS, omit_empty=True), Field("matchFields", _REQUIREMENTS, omit_empty=True)],
)
_NODE_SELECTOR = ApiStruct("v1.NodeSelector", [Field("nodeSelectorTerms", ApiList("[]v1.NodeSelectorTerm", _TERM))])

_TOLERATION = ApiStruct(
    "v1.DeviceToleration",
    [
        Field("key", STRING, omit_empty=True),
        Field("operator", ApiStr("v1.DeviceTolerationOperator"), omit_empty=True),
        Field("value", STRING, omit_empty=True),
        Field("effect", ApiStr("v1.DeviceTaintEffect"), omit_empty=True),
        Field("tolerationSeconds", Pointer(Int("int64")), omit_empty=True),
    ],
)
_RESULT = ApiStruct(
    "v1.DeviceRequestAllocationResult",
    [
        Field("request", STRING),
        Field("driver", STRING),
        Field("pool", STRING),
        Field("device", STRING),
        Field("adminAccess", Pointer(Bool()), omit_empty=True),
        Field("tolerations", ApiList("[]v1.DeviceToleration", _TOLERATION), omit_empty=True),
        Field("bindingConditions", STRINGS, omit_empty=True),
        Field("bindingFailureConditions", STRINGS, omit_empty=True),
        Field("shareID", UID_POINTER, omit_empty=True),
        Field("consumedCapacity", Map("map[v1.QualifiedName]resource.Quantity", Quantity()), omit_empty=True),
    ],
)
_OPAQUE = ApiStruct("v1.OpaqueDeviceConfiguration", [Field("driver", STRING), Field("parameters", RawJson())])
_CONFIG = ApiStruct(
    "v1.DeviceAllocationConfiguration",
    [
        Field("source", ApiStr("v1.AllocationConfigSource")),
        Field("requests", STRINGS, omit_empty=True),
        # of an embedded struct, which Go's error messages name
        Field("opaque", Pointer(_OPAQUE), "DeviceConfiguration.opaque", omit_empty=True),
    ],
)
_DEVICES = ApiStruct(
    "v1.DeviceAllocationResult",
    [
        Field("results", ApiList("[]v1.DeviceRequestAllocationResult", _RESULT), omit_empty=True),
        Field("config", ApiList("[]v1.DeviceAllocationConfiguration", _CONFIG), omit_empty=True),
    ],
)
_ALLOCATION = ApiStruct(
    "v1.AllocationResult",
    [
        Field("devices", _DEVICES, omit_empty=True),
        Field("nodeSelector", Pointer(_NODE_SELECTOR), omit_empty=True),
        Field("allocationTimestamp", Pointer(ApiTime()), omit_empty=True),
    ],
)
_CONSUMER = ApiStruct(
    "v1.ResourceClaimConsumerReference",
    [
        Field("apiGroup", STRING, omit_empty=True),
        Field("resource", STRING),
        Field("name", STRING),
        Field("uid", ApiStr("types.UID")),
    ],
)
NETWORK_DATA = ApiStruct(
    "v1.NetworkDeviceData",
    [
        Field("interfaceName", STRING, omit_empty=True),
        Field("ips", STRINGS, omit_empty=True),
        Field("hardwareAddress", STRING, omit_empty=True),
    ],
)
_CONDITION = ApiStruct(
    "v1.Condition",
    [
        Field("type", STRING),
        Field("status", ApiStr("v1.ConditionStatus")),
        Field("observedGeneration", Int("int64"), omit_empty=True),
        Field("lastTransitionTime", ApiTime()),
        Field("reason", STRING),
        Field("message", STRING),
    ],
)
_ALLOCATED_DEVICE = ApiStruct(
    "v1.AllocatedDeviceStatus",
    [
        Field("driver", STRING),
        Field("pool", STRING),
        Field("device", STRING),
        Field("shareID", Pointer(STRING), omit_empty=True),
        Field("conditions", ApiList("[]v1.Condition", _CONDITION)),
        Field("data", Pointer(RawJson()), omit_empty=True),
        Field("networkData", Pointer(NETWORK_DATA), omit_empty=True),
    ],
)
CLAIM_STATUS = ApiStruct(
    "v1.ResourceClaimStatus",
    [
        Field("allocation", Pointer(_ALLOCATION), omit_empty=True),
        Field("reservedFor", ApiList("[]v1.ResourceClaimConsumerReference", _CONSUMER), omit_empty=True),
        Field("devices", ApiList("[]v1.AllocatedDeviceStatus", _ALLOCATED_DEVICE), omit_empty=True),
    ],
)
DEVICE_ATTRIBUTE = ApiStruct(
    "v1.DeviceAttribute",
    [
        Field("int", Pointer(Int("int64")), omit_empty=True),
        Field("bool", Pointer(Bool()), omit_empty=True),
        Field("string", Pointer(STRING), omit_empty=True),
        Field("version", Pointer(STRING), omit_empty=True),
        Field("ints", ApiList("[]int64", Int("int64")), omit_empty=True),
        Field("bools", ApiList("[]bool", Bool()), omit_empty=True),
        Field("strings", STRINGS, omit_empty=True),
        Field("versions", STRINGS, omit_empty=True),
    ],
)
