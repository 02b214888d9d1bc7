# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of the other kinds: namespaces, nodes, events, leases, configuration, pod groups, access reviews."""

from __future__ import annotations

from .shapes import (
    ANY,
    BOOLEAN,
    INTEGER,
    POINTER_STRING,
    STRING,
    STRING_MAP,
    TIME,
    items,
    keyed,
    obj,
    open_map,
    string_set,
    strings,
    top,
    whole,
)
from .shapes_pod import CONDITION

NAMESPACE = top(
    spec=obj(finalizers=strings()),
    status=obj(phase=STRING, conditions=keyed(CONDITION, "type")),
)

_NODE_CONDITION = obj(
    type=STRING, status=STRING, lastHeartbeatTime=STRING, lastTransitionTime=STRING, reason=STRING, message=STRING
)
NODE = top(
    spec=obj(
        podCIDR=STRING,
        podCIDRs=string_set(),
        providerID=STRING,
        unschedulable=BOOLEAN,
        taints=items(),
        configSource=ANY,
        externalID=STRING,
    ),
    status=obj(
        capacity=open_map(),
        allocatable=open_map(),
        phase=STRING,
        conditions=keyed(_NODE_CONDITION, "type"),
        addresses=keyed(obj(type=STRING, address=STRING), "type"),
        daemonEndpoints=obj(kubeletEndpoint=obj(Port=INTEGER)),
        nodeInfo=ANY,
        images=items(),
        volumesInUse=strings(),
        volumesAttached=items(),
        config=ANY,
        runtimeHandlers=items(),
        features=ANY,
        declaredFeatures=strings(),
    ),
)

_REFERENCE = whole(
    kind=STRING,
    namespace=STRING,
    name=STRING,
    uid=STRING,
    apiVersion=STRING,
    resourceVersion=STRING,
    fieldPath=STRING,
)
_SERIES = obj(count=INTEGER, lastObservedTime=TIME)
_SOURCE = obj(component=STRING, host=STRING)
CORE_EVENT = top(
    involvedObject=_REFERENCE,
    reason=STRING,
    message=STRING,
    source=_SOURCE,
    firstTimestamp=TIME,
    lastTimestamp=TIME,
    count=INTEGER,
    type=STRING,
    eventTime=TIME,
    series=_SERIES,
    action=STRING,
    related=_REFERENCE,
    reportingComponent=POINTER_STRING,
    reportingInstance=POINTER_STRING,
)
#: The same event under events.k8s.io: other names for half of the fields.
NEW_EVENT = top(
    eventTime=TIME,
    series=_SERIES,
    reportingController=STRING,
    reportingInstance=STRING,
    action=STRING,
    reason=STRING,
    regarding=_REFERENCE,
    related=_REFERENCE,
    note=STRING,
    type=STRING,
    deprecatedSource=_SOURCE,
    deprecatedFirstTimestamp=TIME,
    deprecatedLastTimestamp=TIME,
    deprecatedCount=INTEGER,
)

LEASE = top(
    spec=obj(
        holderIdentity=POINTER_STRING,
        leaseDurationSeconds=INTEGER,
        acquireTime=STRING,
        renewTime=STRING,
        leaseTransitions=INTEGER,
        strategy=STRING,
        preferredHolder=STRING,
    )
)
CONFIG_MAP = top(data=STRING_MAP, binaryData=STRING_MAP, immutable=BOOLEAN)
SERVICE_ACCOUNT = top(
    secrets=keyed(ANY, "name"),
    imagePullSecrets=items(ANY),
    automountServiceAccountToken=BOOLEAN,
)
POD_GROUP = top(
    spec=obj(
        podGroupTemplateRef=ANY,
        schedulingPolicy=ANY,
        schedulingConstraints=ANY,
        resourceClaims=keyed(obj(name=STRING, resourceClaimName=STRING, resourceClaimTemplateName=STRING), "name"),
        disruptionMode=ANY,
        priorityClassName=STRING,
        priority=INTEGER,
    ),
    status=obj(
        conditions=keyed(CONDITION, "type"),
        resourceClaimStatuses=keyed(obj(name=STRING, resourceClaimName=STRING), "name"),
    ),
)
_RESOURCE_ATTRIBUTES = obj(
    namespace=STRING,
    verb=STRING,
    group=STRING,
    version=STRING,
    resource=STRING,
    subresource=STRING,
    name=STRING,
    fieldSelector=ANY,
    labelSelector=ANY,
)
ACCESS_REVIEW = top(
    spec=obj(resourceAttributes=_RESOURCE_ATTRIBUTES, nonResourceAttributes=obj(path=STRING, verb=STRING)),
    status=obj(allowed=BOOLEAN, denied=BOOLEAN, reason=STRING, evaluationError=STRING),
)
#: Kinds of a deployment, of which the server only keeps what was written.
FREE_SPEC = top(spec=open_map(), status=open_map())
RBAC_ROLE = top(rules=items(), aggregationRule=ANY)
RBAC_BINDING = top(roleRef=ANY, subjects=items())
