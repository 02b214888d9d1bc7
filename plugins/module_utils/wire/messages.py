# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Message classes and methods of the gRPC APIs, built from the descriptors on first use.

``api("dra/v1")`` gives one API version. Each version has a descriptor pool of its own: the package ``v1alpha3`` exists
twice with different messages. protobuf is imported by the first call, not by importing this module.

For types, import the stub of the same version under ``TYPE_CHECKING`` (``dra_v1_pb2`` for ``dra/v1``) and cast::

    if t.TYPE_CHECKING:
        from ..wire import dra_v1_pb2
    claim_class = t.cast("type[dra_v1_pb2.Claim]", api("dra/v1").message("Claim"))
"""

from __future__ import annotations

import base64
import functools
import typing as t
import zlib

from ..checkpoint.errors import DraError
from ._descriptors import SETS

if t.TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor
    from google.protobuf.message import Message


class LibraryMissing(DraError):  # noqa: N818 - the name that callers know
    """A third-party library that speaking with drivers needs is not there. Facts: ``library``."""


class Method(t.NamedTuple):
    """One RPC: the path on the wire, its message classes, and whether the answer is a stream."""

    path: str
    request: type[Message]
    response: type[Message]
    server_streaming: bool


class Api:
    """The messages and services of one API version. Get one from `api`."""

    def __init__(self, name: str, files: t.Sequence[FileDescriptor]) -> None:
        self.name = name
        self._files = files
        self._classes: dict[str, type[Message]] = {}
        self._methods: dict[str, dict[str, Method]] = {}

    @property
    def package(self) -> str:
        """The proto package, which is the first part of every full name."""
        return self._files[0].package

    def message(self, name: str) -> type[Message]:
        """The class of a message, by its short name (``Claim``) or its full one; KeyError when there is none."""
        if name not in self._classes:
            self._classes[name] = self._class_of(self._descriptor(name))
        return self._classes[name]

    def service(self, name: str = "") -> dict[str, Method]:
        """The methods of a service by name; ``name`` (short) may be left out where there is only one service."""
        if name not in self._methods:
            service = self._service(name)
            self._methods[name] = {
                method.name: Method(
                    f"/{service.full_name}/{method.name}",
                    self._class_of(method.input_type),
                    self._class_of(method.output_type),
                    method.server_streaming,
                )
                for method in service.methods
            }
        return self._methods[name]

    def service_name(self, name: str = "") -> str:
        """Full name of a service, as it stands in the path of each of its calls."""
        return str(self._service(name).full_name)

    def _service(self, name: str) -> t.Any:
        services = {key: value for file in self._files for key, value in file.services_by_name.items()}
        if not name:
            (name,) = services
        return services[name]

    def _descriptor(self, name: str) -> t.Any:
        for file in self._files:
            short = name[len(file.package) + 1 :] if name.startswith(f"{file.package}.") else name
            if short in file.message_types_by_name:
                return file.message_types_by_name[short]
        raise KeyError(f"the API {self.name} has no message {name}")

    @staticmethod
    def _class_of(descriptor: t.Any) -> type[Message]:
        from google.protobuf import message_factory

        return message_factory.GetMessageClass(descriptor)


def names() -> list[str]:
    """Every API version that `api` knows, sorted."""
    return sorted(SETS)


@functools.cache
def api(name: str) -> Api:
    """Load one API version, named by its folder in ``proto/``. LibraryMissing when protobuf is not there."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
    except ImportError as error:
        raise LibraryMissing(
            f"The Python library protobuf, which speaks with DRA drivers, cannot be imported: {error}.",
            "Install protobuf for this interpreter, or run the module with the interpreter of the node agent.",
            library="protobuf",
        ) from error
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(zlib.decompress(base64.b64decode(SETS[name]))).file
    for file in files:
        pool.Add(file)
    own = [pool.FindFileByName(file.name) for file in files if file.name.rpartition("/")[0] == name]
    return Api(name, own)
