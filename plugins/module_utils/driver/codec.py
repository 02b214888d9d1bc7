# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Between claims and devices on one side and the messages of each gRPC generation on the other. Bytes in, bytes out.

Answers are decoded here and not by gRPC, which logs what it cannot decode and returns None.
"""

from __future__ import annotations

import json
import typing as t

from ..wire.messages import Method, api
from .claims import ClaimRef, Device, DeviceHealth, Health, ResourceHandle
from .errors import AnswerError

if t.TYPE_CHECKING:
    # The generations differ in a field or two; each cast names the one that has all fields that are used.
    from ..wire import dra_v1_pb2, dra_v1alpha2_pb2, dra_v1alpha3_pb2, health_v1_pb2, resource_v1alpha2_pb2

# Claim UID -> devices, or the driver's error text for that claim. Unprepare answers have no devices.
Answers = dict[str, t.Union[tuple[Device, ...], str]]

DEFAULT_HEALTH_TIMEOUT = 30.0
MAX_HEALTH_MESSAGE = 1024

# A claim together with the one handle that goes into this call.
Asked = tuple[ClaimRef, t.Optional[ResourceHandle]]


def batch_method(generation: str, prepare: bool) -> Method:
    """The batched method of v1, v1beta1, v1alpha4 or v1alpha3."""
    return api(f"dra/{generation}").service()["NodePrepareResources" if prepare else "NodeUnprepareResources"]


def single_method(prepare: bool) -> Method:
    """The method of v1alpha2 for one claim."""
    return api("dra/v1alpha2").service()["NodePrepareResource" if prepare else "NodeUnprepareResource"]


def encode_batch(method: Method, asked: t.Iterable[Asked]) -> bytes:
    """A batched request. Handles are written where the generation has a field for them."""
    request = t.cast("dra_v1alpha3_pb2.NodePrepareResourcesRequest", method.request())
    for claim, handle in asked:
        entry = request.claims.add(namespace=claim.namespace, uid=claim.uid, name=claim.name)
        if handle is not None:
            _write_handle(entry, handle)
    return bytes(request.SerializeToString())


def encode_single(method: Method, claim: ClaimRef, handle: ResourceHandle | None) -> bytes:
    """A v1alpha2 request."""
    request = t.cast("dra_v1alpha2_pb2.NodePrepareResourceRequest", method.request())
    request.namespace, request.claim_uid, request.claim_name = claim.namespace, claim.uid, claim.name
    if handle is not None:
        _write_handle(request, handle)
    return bytes(request.SerializeToString())


def _write_handle(
    entry: dra_v1alpha3_pb2.Claim | dra_v1alpha2_pb2.NodePrepareResourceRequest, handle: ResourceHandle
) -> None:
    if handle.structured_data is None:
        entry.resource_handle = handle.data
        return
    target = entry.structured_resource_handle.add()
    data = handle.structured_data
    target.nodeName = data.get("nodeName") or ""
    for name in ("vendorClassParameters", "vendorClaimParameters"):
        _write_parameters(getattr(target, name), data.get(name))
    for result in data.get("results") or ():
        added = target.results.add()
        _write_parameters(added.vendorRequestParameters, result.get("vendorRequestParameters"))
        named = result.get("namedResources")
        if named is not None:
            added.allocationResultModel.namedResources.name = named.get("name") or ""


def _write_parameters(target: resource_v1alpha2_pb2.VendorParameters, value: t.Any) -> None:
    if value is not None:
        target.raw = json.dumps(value, separators=(",", ":")).encode()


def _decoded(method: Method, data: bytes) -> t.Any:
    from google.protobuf.message import DecodeError

    try:
        return method.response.FromString(data)
    except DecodeError as error:
        name = method.response.DESCRIPTOR.full_name
        raise AnswerError(f"its {len(data)} bytes are no {name}") from error


def decode_prepare(method: Method, data: bytes) -> Answers:
    """A prepare answer of v1, v1beta1 or v1alpha4."""
    answer = t.cast("dra_v1_pb2.NodePrepareResourcesResponse", _decoded(method, data))
    return {uid: entry.error or tuple(map(_device, entry.devices)) for uid, entry in answer.claims.items()}


def _device(message: dra_v1_pb2.Device) -> Device:
    shared = "share_id" in message.DESCRIPTOR.fields_by_name and message.HasField("share_id")
    return Device(
        message.pool_name,
        message.device_name,
        tuple(message.request_names),
        tuple(message.cdi_device_ids),
        message.share_id if shared else None,
    )


def decode_classic_prepare(data: bytes) -> Answers:
    """A prepare answer of ``v1alpha3.Node``: of v1alpha3 if field 1 holds CDI names, else of v1alpha4."""
    try:
        decoded = _decoded(batch_method("v1alpha3", prepare=True), data)
    except AnswerError:
        return decode_prepare(batch_method("v1alpha4", prepare=True), data)
    answer = t.cast("dra_v1alpha3_pb2.NodePrepareResourcesResponse", decoded)
    names = [name for entry in answer.claims.values() for name in entry.cdi_devices]
    if all(name[:1].isascii() and name[:1].isalpha() for name in names):
        return {uid: entry.error or _cdi_devices(entry.cdi_devices) for uid, entry in answer.claims.items()}
    return decode_prepare(batch_method("v1alpha4", prepare=True), data)


def decode_single_prepare(method: Method, data: bytes) -> tuple[Device, ...]:
    """A prepare answer of v1alpha2."""
    answer = t.cast("dra_v1alpha2_pb2.NodePrepareResourceResponse", _decoded(method, data))
    return _cdi_devices(answer.cdi_devices)


def _cdi_devices(names: t.Sequence[str]) -> tuple[Device, ...]:
    # One nameless device that serves every request: what these generations can say.
    return (Device("", "", (), tuple(names)),) if names else ()


def decode_unprepare(method: Method, data: bytes) -> Answers:
    """An unprepare answer of any batched generation."""
    answer = t.cast("dra_v1_pb2.NodeUnprepareResourcesResponse", _decoded(method, data))
    return {uid: entry.error or () for uid, entry in answer.claims.items()}


def health_method(version: str) -> Method:
    """The stream of the health service, v1 or v1alpha1."""
    return api(f"health/{version}").service()["NodeWatchResources"]


def decode_health(method: Method, data: bytes) -> list[DeviceHealth]:
    """One report: the complete list of the driver's devices."""
    return [
        DeviceHealth(
            entry.device.pool_name,
            entry.device.device_name,
            _HEALTH.get(entry.health, Health.UNKNOWN),
            float(entry.health_check_timeout_seconds)
            if entry.health_check_timeout_seconds > 0
            else DEFAULT_HEALTH_TIMEOUT,
            _shortened(entry.message),
        )
        for entry in t.cast("health_v1_pb2.NodeWatchResourcesResponse", _decoded(method, data)).devices
    ]


_HEALTH = {1: Health.HEALTHY, 2: Health.UNHEALTHY}


def _shortened(message: str) -> str:
    """At most 1024 bytes, as the kubelet keeps; a longer one ends in three dots."""
    data = message.encode()
    if len(data) <= MAX_HEALTH_MESSAGE:
        return message
    return data[: MAX_HEALTH_MESSAGE - 3].decode(errors="ignore") + "..."
