# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The server of the PodResources API on a socket of its own, in the place of a kubelet that is not there."""

from __future__ import annotations

import asyncio
import collections
import logging
import os
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.kubelet import kubelet_on_root
from ..kube.throttle import Throttle
from .gated_server import GatedServer
from .local_socket import Gate
from .pod_resources import PodResources, PodsMissingError, PodUnknownError, podresources_api

if t.TYPE_CHECKING:
    import grpc

log = logging.getLogger(__name__)

QPS, BURST = 100.0, 10
"""Calls a second and at once (kubelet: DefaultQPS, DefaultBurstTokens of podresources)."""
PATIENCE = 1.0
"""Seconds that a call may wait for its turn. The kubelet refuses the eleventh call at once."""


class PodResourcesApi:
    """Serves ``resources`` on the unix socket ``path``. Use it as an async context manager.

    ``users`` are the user IDs that may use it: root and the agent's own unless given. ``calls`` counts them by method
    and by the name of the gRPC status that they ended with.
    """

    def __init__(self, path: str, resources: PodResources, *, users: t.Collection[int] | None = None) -> None:
        self.calls: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._resources = resources
        self._throttle = Throttle(QPS, BURST)
        self._server = GatedServer(Gate(path, "PodResources API", users), self._handlers)

    async def __aenter__(self) -> PodResourcesApi:
        await self._server.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._server.stop(0.0)

    def _handlers(self) -> grpc.GenericRpcHandler:
        import grpc

        messages = podresources_api()
        answers: dict[str, t.Callable[[t.Any], t.Any]] = {
            "List": lambda _asked: {"pod_resources": self._resources.every()},
            "Get": lambda asked: {"pod_resources": self._resources.one(asked.pod_namespace, asked.pod_name)},
            # DRA has no part in it: what drivers offer is in their ResourceSlices.
            "GetAllocatableResources": lambda _asked: {},
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._serve(name, answers[name], method.response),
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
            for name, method in messages.service().items()
        }
        return grpc.method_handlers_generic_handler(messages.service_name(), handlers)

    def _serve(self, name: str, answer: t.Callable[[t.Any], t.Any], response: t.Any) -> t.Any:
        async def serve(request: t.Any, context: grpc.aio.ServicerContext[t.Any, t.Any]) -> t.Any:
            code, text = "OK", ""
            try:
                await self._throttle.take(asyncio.get_running_loop().time() + PATIENCE)
                return response(**answer(request))
            except TimeoutError:
                code, text = "RESOURCE_EXHAUSTED", f"more than {QPS:.0f} calls a second"
            except PodUnknownError as error:
                code, text = "NOT_FOUND", error.message
            except DraError as error:
                code, text = "UNAVAILABLE" if isinstance(error, PodsMissingError) else "FAILED_PRECONDITION", str(error)
            except Exception:
                # The edge of a call: whatever it meets, the agent goes on.
                log.exception("PodResources call ended by a bug method=%s", name)
                code, text = "INTERNAL", "the agent met a bug, its log has the details"
            finally:
                self.calls[name, code] += 1
            return await _abort(context, code, text)

        return serve


async def _abort(context: grpc.aio.ServicerContext[t.Any, t.Any], code: str, text: str) -> t.NoReturn:
    import grpc

    await context.abort(grpc.StatusCode[code], text[:1000])
    raise AssertionError("abort does not return")


def refuse_beside_kubelet(path: str, kubelet_root: str) -> None:
    """Raise DraError where a running kubelet serves, or will: what it lists is more than the agent knows. Blocks."""
    place = os.path.join(kubelet_root, "pod-resources", "kubelet.sock")
    running = kubelet_on_root(kubelet_root) if os.path.realpath(path) == os.path.realpath(place) else None
    if running is not None:
        raise DraError(
            f"{path} is the PodResources socket of kubelet pid {running.pid}, which runs.",
            "Set another node.pod_resources_socket, or none: the kubelet answers what monitoring agents ask.",
            path=path,
            errno="EADDRINUSE",
        )
