# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Options that the modules for state files share. The doc fragment ``state_file`` describes them for people."""

from __future__ import annotations

import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.selection import Selection, Selector
from .kubelet import kubelet_spec

Spec = dict[str, dict[str, t.Any]]


def location_spec() -> Spec:
    """Where the file is."""
    return {
        "path": {"type": "path"},
        **kubelet_spec(),
        "known_pods": {"type": "list", "elements": "str"},
    }


def change_spec() -> Spec:
    """What shall become of it."""
    return {
        "state": {
            "type": "str",
            "choices": ["repaired", "converted", "restored", "absent"],
            "default": "repaired",
        },
        "target_version": {"type": "str"},
        "drop_claims": selector_spec(),
        "keep_claims": selector_spec(),
        "add_claims": claims_spec(),
        "restore_from": {"type": "path"},
        "ring_directory": {"type": "path"},
        "force": {"type": "bool", "default": False},
        "lock_timeout": {"type": "float", "default": 10},
    }


def selection_of(options: t.Mapping[str, t.Any]) -> Selection:
    """The claims that were chosen by hand. Raises `DraError` where the state has no use for them."""
    selection = Selection(
        drop=[Selector.of(item) for item in options["drop_claims"]],
        keep=[Selector.of(item) for item in options["keep_claims"]],
        add=options["add_claims"],
    )
    if selection and options["state"] in ("restored", "absent"):
        raise DraError(
            f"drop_claims, keep_claims and add_claims do not go with state={options['state']}.",
            "Restore first, then drop, keep or add with state=repaired in a second task.",
        )
    return selection


def selector_spec() -> dict[str, t.Any]:
    """A list of selectors of claims."""
    return {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "uid": {"type": "str"},
            "name": {"type": "str"},
            "namespace": {"type": "str"},
        },
    }


def claims_spec() -> dict[str, t.Any]:
    """A list of whole claims, each as checkpoint_info returns it."""
    device: Spec = {
        "pool": {"type": "str", "default": ""},
        "device": {"type": "str", "default": ""},
        "share_id": {"type": "str"},
        "requests": {"type": "list", "elements": "str", "default": []},
        "cdi_devices": {"type": "list", "elements": "str", "default": []},
    }
    driver: Spec = {
        "name": {"type": "str", "required": True},
        "devices": {"type": "list", "elements": "dict", "options": device},
    }
    return {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "uid": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str", "required": True},
            "pods": {"type": "list", "elements": "str", "default": []},
            "drivers": {"type": "list", "elements": "dict", "default": [], "options": driver},
        },
    }
