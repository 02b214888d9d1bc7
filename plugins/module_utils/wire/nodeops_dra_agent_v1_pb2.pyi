# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
# Types only, made by hack/gen_proto.py: never imported at run time.
# ruff: noqa
# fmt: off
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VersionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VersionResponse(_message.Message):
    __slots__ = ("version", "mode", "state_directory", "kubelet_root", "registry_directory", "cdi_directories", "node_name", "degraded")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    STATE_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    KUBELET_ROOT_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    CDI_DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    version: str
    mode: str
    state_directory: str
    kubelet_root: str
    registry_directory: str
    cdi_directories: _containers.RepeatedScalarFieldContainer[str]
    node_name: str
    degraded: str
    def __init__(self, version: _Optional[str] = ..., mode: _Optional[str] = ..., state_directory: _Optional[str] = ..., kubelet_root: _Optional[str] = ..., registry_directory: _Optional[str] = ..., cdi_directories: _Optional[_Iterable[str]] = ..., node_name: _Optional[str] = ..., degraded: _Optional[str] = ...) -> None: ...

class ListClaimsRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListClaimsResponse(_message.Message):
    __slots__ = ("claims",)
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    def __init__(self, claims: _Optional[_Iterable[_Union[Claim, _Mapping[str, object]]]] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("uid", "name", "namespace", "pods", "prepared", "drivers", "status", "failures", "earlier_boot", "stopped")
    UID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    DRIVERS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    EARLIER_BOOT_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    uid: str
    name: str
    namespace: str
    pods: _containers.RepeatedScalarFieldContainer[str]
    prepared: bool
    drivers: _containers.RepeatedCompositeFieldContainer[ClaimDriver]
    status: str
    failures: _containers.RepeatedCompositeFieldContainer[Failure]
    earlier_boot: str
    stopped: str
    def __init__(self, uid: _Optional[str] = ..., name: _Optional[str] = ..., namespace: _Optional[str] = ..., pods: _Optional[_Iterable[str]] = ..., prepared: _Optional[bool] = ..., drivers: _Optional[_Iterable[_Union[ClaimDriver, _Mapping[str, object]]]] = ..., status: _Optional[str] = ..., failures: _Optional[_Iterable[_Union[Failure, _Mapping[str, object]]]] = ..., earlier_boot: _Optional[str] = ..., stopped: _Optional[str] = ...) -> None: ...

class ClaimDriver(_message.Message):
    __slots__ = ("name", "answered", "devices")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    name: str
    answered: bool
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    def __init__(self, name: _Optional[str] = ..., answered: _Optional[bool] = ..., devices: _Optional[_Iterable[_Union[Device, _Mapping[str, object]]]] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("pool", "device", "share_id", "requests", "cdi_devices")
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SHARE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    CDI_DEVICES_FIELD_NUMBER: _ClassVar[int]
    pool: str
    device: str
    share_id: str
    requests: _containers.RepeatedScalarFieldContainer[str]
    cdi_devices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pool: _Optional[str] = ..., device: _Optional[str] = ..., share_id: _Optional[str] = ..., requests: _Optional[_Iterable[str]] = ..., cdi_devices: _Optional[_Iterable[str]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("operation", "text", "count", "first", "last", "retry_in")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    RETRY_IN_FIELD_NUMBER: _ClassVar[int]
    operation: str
    text: str
    count: int
    first: float
    last: float
    retry_in: float
    def __init__(self, operation: _Optional[str] = ..., text: _Optional[str] = ..., count: _Optional[int] = ..., first: _Optional[float] = ..., last: _Optional[float] = ..., retry_in: _Optional[float] = ...) -> None: ...

class ChangeRequest(_message.Message):
    __slots__ = ("pod", "claims", "holder", "force", "check", "timeout", "reason", "by")
    POD_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    pod: bytes
    claims: _containers.RepeatedScalarFieldContainer[bytes]
    holder: str
    force: bool
    check: bool
    timeout: float
    reason: str
    by: str
    def __init__(self, pod: _Optional[bytes] = ..., claims: _Optional[_Iterable[bytes]] = ..., holder: _Optional[str] = ..., force: _Optional[bool] = ..., check: _Optional[bool] = ..., timeout: _Optional[float] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ChangeResponse(_message.Message):
    __slots__ = ("changed", "calls", "claims", "released", "forgotten", "findings", "before", "after")
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    calls: _containers.RepeatedCompositeFieldContainer[DriverCall]
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    released: _containers.RepeatedScalarFieldContainer[str]
    forgotten: _containers.RepeatedScalarFieldContainer[bytes]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    before: bytes
    after: bytes
    def __init__(self, changed: _Optional[bool] = ..., calls: _Optional[_Iterable[_Union[DriverCall, _Mapping[str, object]]]] = ..., claims: _Optional[_Iterable[_Union[Claim, _Mapping[str, object]]]] = ..., released: _Optional[_Iterable[str]] = ..., forgotten: _Optional[_Iterable[bytes]] = ..., findings: _Optional[_Iterable[_Union[Finding, _Mapping[str, object]]]] = ..., before: _Optional[bytes] = ..., after: _Optional[bytes] = ...) -> None: ...

class DriverCall(_message.Message):
    __slots__ = ("driver", "method", "claims")
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    driver: str
    method: str
    claims: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, driver: _Optional[str] = ..., method: _Optional[str] = ..., claims: _Optional[_Iterable[str]] = ...) -> None: ...

class GetResourcesRequest(_message.Message):
    __slots__ = ("pod", "container")
    POD_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    pod: bytes
    container: str
    def __init__(self, pod: _Optional[bytes] = ..., container: _Optional[str] = ...) -> None: ...

class GetResourcesResponse(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedCompositeFieldContainer[ContainerResources]
    def __init__(self, containers: _Optional[_Iterable[_Union[ContainerResources, _Mapping[str, object]]]] = ...) -> None: ...

class ContainerResources(_message.Message):
    __slots__ = ("name", "cdi_devices")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CDI_DEVICES_FIELD_NUMBER: _ClassVar[int]
    name: str
    cdi_devices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., cdi_devices: _Optional[_Iterable[str]] = ...) -> None: ...

class ListDriversRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDriversResponse(_message.Message):
    __slots__ = ("drivers", "registrations")
    DRIVERS_FIELD_NUMBER: _ClassVar[int]
    REGISTRATIONS_FIELD_NUMBER: _ClassVar[int]
    drivers: _containers.RepeatedCompositeFieldContainer[Driver]
    registrations: _containers.RepeatedCompositeFieldContainer[Registration]
    def __init__(self, drivers: _Optional[_Iterable[_Union[Driver, _Mapping[str, object]]]] = ..., registrations: _Optional[_Iterable[_Union[Registration, _Mapping[str, object]]]] = ...) -> None: ...

class Driver(_message.Message):
    __slots__ = ("name", "connected", "changed_at", "instances", "claims")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    name: str
    connected: bool
    changed_at: float
    instances: _containers.RepeatedCompositeFieldContainer[DriverInstance]
    claims: int
    def __init__(self, name: _Optional[str] = ..., connected: _Optional[bool] = ..., changed_at: _Optional[float] = ..., instances: _Optional[_Iterable[_Union[DriverInstance, _Mapping[str, object]]]] = ..., claims: _Optional[int] = ...) -> None: ...

class DriverInstance(_message.Message):
    __slots__ = ("endpoint", "registration_socket", "connected", "registered_at", "service", "health_service")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    REGISTRATION_SOCKET_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_SERVICE_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    registration_socket: str
    connected: bool
    registered_at: float
    service: str
    health_service: str
    def __init__(self, endpoint: _Optional[str] = ..., registration_socket: _Optional[str] = ..., connected: _Optional[bool] = ..., registered_at: _Optional[float] = ..., service: _Optional[str] = ..., health_service: _Optional[str] = ...) -> None: ...

class Registration(_message.Message):
    __slots__ = ("socket", "state", "driver", "error")
    SOCKET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    socket: str
    state: str
    driver: str
    error: str
    def __init__(self, socket: _Optional[str] = ..., state: _Optional[str] = ..., driver: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class ListFindingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListFindingsResponse(_message.Message):
    __slots__ = ("findings",)
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    def __init__(self, findings: _Optional[_Iterable[_Union[Finding, _Mapping[str, object]]]] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("code", "severity", "place", "text", "remedy", "facts")
    CODE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    code: str
    severity: str
    place: str
    text: str
    remedy: str
    facts: bytes
    def __init__(self, code: _Optional[str] = ..., severity: _Optional[str] = ..., place: _Optional[str] = ..., text: _Optional[str] = ..., remedy: _Optional[str] = ..., facts: _Optional[bytes] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("after", "only_new")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    ONLY_NEW_FIELD_NUMBER: _ClassVar[int]
    after: int
    only_new: bool
    def __init__(self, after: _Optional[int] = ..., only_new: _Optional[bool] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("number", "at", "kind", "subject", "text")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    number: int
    at: float
    kind: str
    subject: str
    text: str
    def __init__(self, number: _Optional[int] = ..., at: _Optional[float] = ..., kind: _Optional[str] = ..., subject: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...
