# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of pods, in both generations of claim references."""

from __future__ import annotations

from .shapes import (
    ANY,
    BOOLEAN,
    INTEGER,
    POINTER_STRING,
    STRING,
    TIME,
    Shape,
    items,
    keyed,
    obj,
    open_map,
    strings,
    top,
    whole,
)

CONDITION = obj(
    type=STRING,
    status=STRING,
    observedGeneration=INTEGER,
    lastProbeTime=TIME,
    lastTransitionTime=STRING,
    reason=STRING,
    message=STRING,
)
RESOURCE_REQUIREMENTS = obj(
    limits=open_map(), requests=open_map(), claims=keyed(obj(name=STRING, request=STRING), "name", patch_key="")
)
_PORTS = keyed(
    obj(containerPort=INTEGER, hostIP=STRING, hostPort=INTEGER, name=STRING, protocol=STRING),
    "containerPort",
    "protocol",
    defaults={"protocol": "TCP"},
)
_ENV = keyed(obj(name=STRING, value=STRING, valueFrom=ANY), "name")
_MOUNTS = keyed(
    obj(
        mountPath=STRING,
        mountPropagation=STRING,
        name=STRING,
        readOnly=BOOLEAN,
        recursiveReadOnly=STRING,
        subPath=STRING,
        subPathExpr=STRING,
    ),
    "mountPath",
)
_OPEN_CONTAINER_FIELDS = (
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
)
CONTAINER = obj(
    dict.fromkeys(_OPEN_CONTAINER_FIELDS, ANY),
    args=strings(),
    command=strings(),
    env=_ENV,
    image=STRING,
    imagePullPolicy=STRING,
    name=STRING,
    ports=_PORTS,
    resources=RESOURCE_REQUIREMENTS,
    restartPolicy=STRING,
    stdin=BOOLEAN,
    stdinOnce=BOOLEAN,
    terminationMessagePath=STRING,
    terminationMessagePolicy=STRING,
    tty=BOOLEAN,
    volumeDevices=keyed(obj(devicePath=STRING, name=STRING), "devicePath"),
    volumeMounts=_MOUNTS,
    workingDir=STRING,
)
_CONTAINERS = keyed(CONTAINER, "name")
POD_CLAIM = obj(name=STRING, resourceClaimName=STRING, resourceClaimTemplateName=STRING)
#: References of releases up to 1.30.
CLASSIC_POD_CLAIM = obj(name=STRING, source=obj(resourceClaimName=STRING, resourceClaimTemplateName=STRING))
_CLAIM_STATUSES = keyed(obj(name=STRING, resourceClaimName=STRING), "name")
_RESOURCE_HEALTH = obj(resourceID=STRING, health=STRING, message=STRING)
_ALLOCATED = keyed(obj(name=STRING, resources=keyed(_RESOURCE_HEALTH, "resourceID", patch_key="")), "name")
#: Of releases up to 1.30. The lists of these are replaced as a whole, whoever patches or applies.
_CLASSIC_CONTAINER_STATUS = obj(
    dict.fromkeys(("allocatedResources", "lastState", "resources", "state", "user", "volumeMounts"), ANY),
    name=STRING,
    ready=BOOLEAN,
    restartCount=INTEGER,
    image=STRING,
    imageID=STRING,
    containerID=STRING,
    started=BOOLEAN,
    stopSignal=STRING,
)
_CONTAINER_STATUS = obj(_CLASSIC_CONTAINER_STATUS.fields, allocatedResourcesStatus=_ALLOCATED)

_POD_TEXTS = (
    "dnsPolicy",
    "hostname",
    "hostnameOverride",
    "nodeName",
    "preemptionPolicy",
    "priorityClassName",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "serviceAccount",
    "serviceAccountName",
    "subdomain",
)
_POD_NUMBERS = ("activeDeadlineSeconds", "priority", "terminationGracePeriodSeconds")
_POD_FLAGS = (
    "automountServiceAccountToken",
    "enableServiceLinks",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
)


def _pod(claim: Shape, container_status: Shape) -> Shape:
    spec = obj(
        {
            **dict.fromkeys(_POD_TEXTS, STRING),
            **dict.fromkeys(_POD_NUMBERS, INTEGER),
            **dict.fromkeys(_POD_FLAGS, BOOLEAN),
        },
        affinity=ANY,
        containers=_CONTAINERS,
        dnsConfig=ANY,
        ephemeralContainers=_CONTAINERS,
        hostAliases=keyed(obj(ip=STRING, hostnames=strings()), "ip"),
        imagePullSecrets=keyed(obj(name=STRING), "name"),
        initContainers=_CONTAINERS,
        nodeSelector=Shape("map", item=POINTER_STRING, whole=True),
        os=obj(name=STRING),
        overhead=open_map(),
        readinessGates=items(),
        resourceClaims=keyed(claim, "name"),
        resources=RESOURCE_REQUIREMENTS,
        schedulingGates=keyed(obj(name=STRING), "name"),
        schedulingGroup=obj(podGroupName=STRING),
        securityContext=ANY,
        tolerations=items(),
        topologySpreadConstraints=keyed(ANY, "topologyKey", "whenUnsatisfiable"),
        volumes=keyed(ANY, "name"),
        workloadRef=obj(name=STRING, podGroup=STRING, podGroupReplicaKey=STRING),
    )
    status = obj(
        observedGeneration=INTEGER,
        phase=STRING,
        conditions=keyed(CONDITION, "type"),
        message=STRING,
        reason=STRING,
        nominatedNodeName=STRING,
        hostIP=STRING,
        hostIPs=items(ANY),
        podIP=STRING,
        podIPs=keyed(obj(ip=STRING), "ip"),
        startTime=STRING,
        initContainerStatuses=items(container_status),
        containerStatuses=items(container_status),
        ephemeralContainerStatuses=items(container_status),
        qosClass=STRING,
        resize=STRING,
        resourceClaimStatuses=_CLAIM_STATUSES,
        extendedResourceClaimStatus=obj(resourceClaimName=STRING, requestMappings=items()),
        nodeAllocatableResourceClaimStatuses=items(),
        allocatedResources=open_map(),
        resources=RESOURCE_REQUIREMENTS,
    )
    return top(spec=spec, status=status)


POD = _pod(POD_CLAIM, _CONTAINER_STATUS)
CLASSIC_POD = _pod(CLASSIC_POD_CLAIM, _CLASSIC_CONTAINER_STATUS)
BINDING = top(target=whole(apiVersion=STRING, kind=STRING, name=STRING, namespace=STRING, uid=STRING))
