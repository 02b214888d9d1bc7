# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The gRPC side of the simulated driver: the services of each API generation, registration and health.

Messages are read and written here by hand, so that the driver can also answer bytes that are no message.
"""

from __future__ import annotations

import typing as t

from ..wire.messages import Method, api
from .driver_calls import AskedClaim
from .driver_store import PreparedDevice

if t.TYPE_CHECKING:
    import grpc

    from .driver import SimulatedDriver

# Name on the command line -> what a driver of that generation puts into supported_versions.
ADVERTISED = {
    "v1": "v1.DRAPlugin",
    "v1beta1": "v1beta1.DRAPlugin",
    "v1alpha4": "v1alpha3.NodeService",
    "v1alpha3": "1.0.0",
    "v1alpha2": "1.0.0",
}
HEALTH_ADVERTISED = {"v1": "v1.DRAResourceHealth", "v1alpha1": "v1alpha1.DRAResourceHealth"}

# Claim UID -> its devices, or the error text of that claim.
Results = dict[str, t.Union[tuple[PreparedDevice, ...], str]]

NONSENSE = b"\xff\xff\xff\xffno message"


class CallFailedError(Exception):
    """Ends the running call with this gRPC status."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def advertised(apis: t.Sequence[str], health: t.Sequence[str]) -> list[str]:
    """supported_versions as a driver of these generations lists them: newest first, health last, nothing twice."""
    order = [name for name in ADVERTISED if name in apis]
    services = [ADVERTISED[name] for name in order] + [
        HEALTH_ADVERTISED[name] for name in HEALTH_ADVERTISED if name in health
    ]
    return list(dict.fromkeys(services))


def plugin_handlers(driver: SimulatedDriver) -> list[grpc.GenericRpcHandler]:
    """Handlers of the driver's own socket."""
    import grpc

    handlers = []
    for name in driver.config.apis:
        service = api(f"dra/{name}")
        single = name == "v1alpha2"
        suffix = "" if single else "s"
        methods = service.service()
        make = _single_claim_handler if single else _batch_handler
        handlers.append(
            grpc.method_handlers_generic_handler(
                service.service_name(),
                {
                    f"NodePrepareResource{suffix}": make(driver, "prepare", methods[f"NodePrepareResource{suffix}"]),
                    f"NodeUnprepareResource{suffix}": make(
                        driver, "unprepare", methods[f"NodeUnprepareResource{suffix}"]
                    ),
                },
            )
        )
    for name in driver.config.health:
        service = api(f"health/{name}")
        method = service.service()["NodeWatchResources"]
        handlers.append(
            grpc.method_handlers_generic_handler(
                service.service_name(), {"NodeWatchResources": _health_handler(driver, method)}
            )
        )
    return handlers


def registration_handlers(driver: SimulatedDriver) -> list[grpc.GenericRpcHandler]:
    """Handlers of the registration socket."""
    import grpc

    service = api("registration/v1")
    methods = service.service()

    async def get_info(_data: bytes, context: t.Any) -> bytes:
        nonsense = await _guard(context, driver.serve_registration("get_info"))
        if nonsense:
            return NONSENSE
        info = driver.plugin_info()
        return methods["GetInfo"].response(**info).SerializeToString()

    async def notify(data: bytes, context: t.Any) -> bytes:
        status = t.cast("t.Any", methods["NotifyRegistrationStatus"].request.FromString(data))
        await _guard(context, driver.serve_notification(status.plugin_registered, status.error))
        return b""

    return [
        grpc.method_handlers_generic_handler(
            service.service_name(),
            {
                "GetInfo": grpc.unary_unary_rpc_method_handler(t.cast("t.Any", get_info)),
                "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(t.cast("t.Any", notify)),
            },
        )
    ]


async def _guard(context: t.Any, work: t.Awaitable[t.Any]) -> t.Any:
    """Run the work of a call and turn its failure into the gRPC status."""
    import grpc

    try:
        return await work
    except CallFailedError as error:
        await context.abort(grpc.StatusCode[error.code], error.text)


def _service_of(method: Method) -> str:
    return method.path.split("/")[1]


def _batch_handler(driver: SimulatedDriver, kind: str, method: Method) -> t.Any:
    import grpc

    async def handle(data: bytes, context: t.Any) -> bytes:
        request = t.cast("t.Any", method.request.FromString(data))
        claims = [
            AskedClaim(c.uid, c.namespace, c.name, getattr(c, "resource_handle", ""), _structured(c))
            for c in request.claims
        ]
        results = await _guard(context, driver.serve(kind, _service_of(method), claims))
        return NONSENSE if results is None else _batch_answer(method, results)

    return grpc.unary_unary_rpc_method_handler(t.cast("t.Any", handle))


def _batch_answer(method: Method, results: Results) -> bytes:
    answer = t.cast("t.Any", method.response())
    for uid, result in results.items():
        entry = answer.claims[uid]  # made by the access: an empty message is an answer too
        if isinstance(result, str):
            entry.error = result
        elif "cdi_devices" in entry.DESCRIPTOR.fields_by_name:
            entry.cdi_devices.extend(name for device in result for name in device.cdi_ids)
        else:
            for device in result:
                _fill_device(entry.devices.add() if hasattr(entry, "devices") else None, device)
    return bytes(answer.SerializeToString())


def _fill_device(target: t.Any, device: PreparedDevice) -> None:
    if target is None:  # the answer of an unprepare call has no devices
        return
    target.pool_name, target.device_name = device.pool, device.device
    target.request_names.extend(device.requests)
    target.cdi_device_ids.extend(device.cdi_ids)
    if device.share_id is not None and "share_id" in target.DESCRIPTOR.fields_by_name:
        target.share_id = device.share_id


def _single_claim_handler(driver: SimulatedDriver, kind: str, method: Method) -> t.Any:
    import grpc

    async def handle(data: bytes, context: t.Any) -> bytes:
        request = t.cast("t.Any", method.request.FromString(data))
        claim = AskedClaim(
            request.claim_uid, request.namespace, request.claim_name, request.resource_handle, _structured(request)
        )
        results = await _guard(context, driver.serve(kind, _service_of(method), [claim]))
        if results is None:
            return NONSENSE
        result = results.get(claim.uid, ())
        if isinstance(result, str):
            await context.abort(grpc.StatusCode.UNKNOWN, result)
        answer = t.cast("t.Any", method.response())
        if kind == "prepare":
            answer.cdi_devices.extend(name for device in result for name in device.cdi_ids)
        return bytes(answer.SerializeToString())

    return grpc.unary_unary_rpc_method_handler(t.cast("t.Any", handle))


def _structured(message: t.Any) -> dict[str, t.Any] | None:
    from google.protobuf import json_format

    handles = getattr(message, "structured_resource_handle", None)
    return json_format.MessageToDict(handles[0]) if handles else None


def _health_handler(driver: SimulatedDriver, method: Method) -> t.Any:
    import grpc

    async def watch(_data: bytes, context: t.Any) -> t.AsyncIterator[bytes]:
        try:
            async for devices in driver.serve_health(_service_of(method)):
                yield method.response(devices=devices).SerializeToString()
        except CallFailedError as error:
            await context.abort(grpc.StatusCode[error.code], error.text)

    return grpc.unary_stream_rpc_method_handler(t.cast("t.Any", watch))
