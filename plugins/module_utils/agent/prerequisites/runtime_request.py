# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a module was asked for, with what the node itself can tell where an option is absent."""

from __future__ import annotations

import typing as t

from ..preflight.containerd import DEFAULT_FILE
from ..preflight.node import Node, version_in
from .runtime_cdi import Request

_NAMES: t.Final[t.Mapping[str, tuple[str, str]]] = {
    "containerd": ("containerd", DEFAULT_FILE),
    "cri-o": ("crio", "/etc/crio/crio.conf"),
}
_PLACES: t.Final = ("/usr/bin", "/usr/local/bin")


def request_of(options: t.Mapping[str, t.Any]) -> Request:
    """The request behind the options of the module ``runtime_cdi``."""
    name, configuration = _NAMES[options["runtime"]]
    program = options["program"] or _program(name)
    return Request(
        runtime=options["runtime"],
        version=_version(options["version"], program),
        configuration=options["configuration"] or configuration,
        drop_ins=options["drop_in_directory"],
        directories=options["spec_dirs"],
        program=program,
    )


def version_of_kubelet(given: str | None, program: str | None) -> str | None:
    """The release of the kubelet as given, else as its program says, None if neither tells."""
    return _version(given, program or _program("kubelet"))


def _version(given: str | None, program: str | None) -> str | None:
    if given:
        return version_in(given) or given
    return Node().version(program) if program is not None else None


def _program(name: str) -> str | None:
    node = Node()
    return next((path for place in _PLACES if node.exists(path := f"{place}/{name}")), None)
