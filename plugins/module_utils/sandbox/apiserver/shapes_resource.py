# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of resource.k8s.io in each of its versions."""

from __future__ import annotations

from .shapes import (
    ANY,
    BOOLEAN,
    INTEGER,
    STRING,
    STRING_MAP,
    Shape,
    items,
    keyed,
    obj,
    open_map,
    string_set,
    strings,
    top,
    whole,
)

_SELECTORS = items(obj(cel=obj(expression=STRING)))
_TOLERATIONS = items(obj(key=STRING, operator=STRING, value=STRING, effect=STRING, tolerationSeconds=INTEGER))
_CAPACITY = obj(requests=open_map())
_SUB_REQUEST = {
    "deviceClassName": STRING,
    "selectors": _SELECTORS,
    "allocationMode": STRING,
    "count": INTEGER,
    "tolerations": _TOLERATIONS,
    "capacity": _CAPACITY,
}
_EXACT = {**_SUB_REQUEST, "adminAccess": BOOLEAN}
_FIRST_AVAILABLE = items(obj(_SUB_REQUEST, name=STRING))
_OPAQUE = obj(driver=STRING, parameters=ANY)
_CONSTRAINTS = items(obj(requests=strings(), matchAttribute=STRING, distinctAttribute=STRING))
_CONFIG = items(obj(requests=strings(), opaque=_OPAQUE))

EXACT_REQUEST = obj(name=STRING, exactly=obj(_EXACT), firstAvailable=_FIRST_AVAILABLE)
FLAT_REQUEST = obj(_EXACT, name=STRING, firstAvailable=_FIRST_AVAILABLE)
_PARAMETERS_REF = obj(apiGroup=STRING, kind=STRING, name=STRING, namespace=STRING)

CONDITION = obj(
    type=STRING,
    status=STRING,
    observedGeneration=INTEGER,
    lastTransitionTime=STRING,
    reason=Shape("string", keep_empty=True),
    message=Shape("string", keep_empty=True),
)
_DEVICE_STATUS = obj(
    driver=STRING,
    pool=STRING,
    device=STRING,
    shareID=STRING,
    conditions=keyed(CONDITION, "type", patch_key=""),
    data=ANY,
    networkData=obj(interfaceName=STRING, ips=items(STRING), hardwareAddress=STRING),
)
_RESULT = obj(
    request=STRING,
    driver=STRING,
    pool=STRING,
    device=STRING,
    adminAccess=BOOLEAN,
    tolerations=_TOLERATIONS,
    bindingConditions=strings(),
    bindingFailureConditions=strings(),
    shareID=STRING,
    consumedCapacity=open_map(),
    skipNodeOperations=strings(),
)
_ALLOCATION = {
    "devices": obj(results=items(_RESULT), config=items(obj(source=STRING, requests=strings(), opaque=_OPAQUE))),
    "nodeSelector": whole(nodeSelectorTerms=items(ANY)),
    "allocationTimestamp": STRING,
}
_RESERVED_FOR = keyed(obj(apiGroup=STRING, resource=STRING, name=STRING, uid=STRING), "uid")
_STRUCTURED_STATUS = {
    "allocation": obj(_ALLOCATION),
    "reservedFor": _RESERVED_FOR,
    "devices": keyed(_DEVICE_STATUS, "driver", "device", "pool", "shareID", patch_key=""),
}


def _devices(request: Shape) -> Shape:
    return obj(requests=items(request, keep_empty=True), constraints=_CONSTRAINTS, config=_CONFIG)


_CLASSIC_SPEC = {"resourceClassName": STRING, "parametersRef": _PARAMETERS_REF, "allocationMode": STRING}
_CLASSIC_ALLOCATION = {
    "resourceHandles": items(obj(driverName=STRING, data=STRING, structuredData=ANY)),
    "availableOnNodes": whole(nodeSelectorTerms=items(ANY)),
    "shareable": BOOLEAN,
}
_CLASSIC_STATUS = {
    "driverName": STRING,
    "allocation": obj(_CLASSIC_ALLOCATION),
    "reservedFor": _RESERVED_FOR,
    "deallocationRequested": BOOLEAN,
}
# v1alpha3 of 1.31 still had drivers with a control plane part.
_ALPHA3_SPEC = {"devices": _devices(FLAT_REQUEST), "controller": STRING}
_ALPHA3_STATUS = {
    **_STRUCTURED_STATUS,
    "allocation": obj(_ALLOCATION, controller=STRING),
    "deallocationRequested": BOOLEAN,
}

_CLAIM_SPECS = {
    "v1": obj(devices=_devices(EXACT_REQUEST)),
    "v1beta2": obj(devices=_devices(EXACT_REQUEST)),
    "v1beta1": obj(devices=_devices(FLAT_REQUEST)),
    "v1alpha3": obj(_ALPHA3_SPEC),
    "v1alpha2": obj(_CLASSIC_SPEC),
}
_CLAIM_STATUSES = {
    "v1": obj(_STRUCTURED_STATUS),
    "v1beta2": obj(_STRUCTURED_STATUS),
    "v1beta1": obj(_STRUCTURED_STATUS),
    "v1alpha3": obj(_ALPHA3_STATUS),
    "v1alpha2": obj(_CLASSIC_STATUS),
}
CLAIM = {version: top(spec=spec, status=_CLAIM_STATUSES[version]) for version, spec in _CLAIM_SPECS.items()}
_TEMPLATE_METADATA = obj(
    name=STRING,
    generateName=STRING,
    labels=STRING_MAP,
    annotations=STRING_MAP,
    finalizers=string_set(),
    ownerReferences=items(ANY),
)
TEMPLATE = {version: top(spec=obj(metadata=_TEMPLATE_METADATA, spec=spec)) for version, spec in _CLAIM_SPECS.items()}

_CLASS_SPEC = {
    "selectors": _SELECTORS,
    "config": items(obj(opaque=_OPAQUE)),
    "extendedResourceName": STRING,
}
_NEW_CLASS = top(spec=obj(_CLASS_SPEC))
DEVICE_CLASS = {
    "v1": _NEW_CLASS,
    "v1beta2": _NEW_CLASS,
    "v1beta1": _NEW_CLASS,
    "v1alpha3": top(spec=obj(_CLASS_SPEC, suitableNodes=ANY)),
}
RESOURCE_CLASS = top(driverName=STRING, parametersRef=_PARAMETERS_REF, suitableNodes=ANY, structuredParameters=BOOLEAN)

_ATTRIBUTE = obj(
    int=INTEGER,
    bool=BOOLEAN,
    string=Shape("string", keep_empty=True),
    version=STRING,
    ints=items(),
    bools=items(),
    strings=strings(),
    versions=strings(),
)
_DEVICE_BODY = {
    "attributes": open_map(_ATTRIBUTE),
    "capacity": open_map(ANY),
    "consumesCounters": items(),
    "nodeName": STRING,
    "nodeSelector": ANY,
    "allNodes": BOOLEAN,
    "taints": items(),
    "bindsToNode": BOOLEAN,
    "bindingConditions": strings(),
    "bindingFailureConditions": strings(),
    "allowMultipleAllocations": BOOLEAN,
    "nodeAllocatableResourceMappings": ANY,
}


def _slice(device: Shape) -> Shape:
    return top(
        spec=obj(
            driver=STRING,
            pool=obj(name=STRING, generation=INTEGER, resourceSliceCount=INTEGER),
            nodeName=STRING,
            nodeSelector=whole(nodeSelectorTerms=items(ANY)),
            allNodes=BOOLEAN,
            perDeviceNodeSelection=BOOLEAN,
            devices=items(device),
            sharedCounters=items(),
            skipNodeOperations=strings(),
        )
    )


_FLAT_SLICE = _slice(obj(_DEVICE_BODY, name=STRING))
_BASIC_SLICE = _slice(obj(name=STRING, basic=obj(_DEVICE_BODY)))
SLICE = {"v1": _FLAT_SLICE, "v1beta2": _FLAT_SLICE, "v1beta1": _BASIC_SLICE, "v1alpha3": _BASIC_SLICE}
CLASSIC_SLICE = top(nodeName=STRING, driverName=STRING, namedResources=ANY)
TAINT_RULE = top(spec=obj(deviceSelector=ANY, taint=ANY), status=obj(conditions=keyed(CONDITION, "type", patch_key="")))
SCHEDULING_CONTEXT = top(
    spec=obj(selectedNode=STRING, potentialNodes=string_set(patch_merge=False)),
    status=obj(
        resourceClaims=keyed(obj(name=STRING, unsuitableNodes=string_set(patch_merge=False)), "name", patch_key="")
    ),
)
OPAQUE_PARAMETERS = top(generatedFrom=ANY, shareable=BOOLEAN, driverRequests=ANY, vendorParameters=ANY, filters=ANY)
