# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The report of the playbook ``unstick_pods`` as a filter."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.stuck_report import stuck_report

DOCUMENTATION = r"""
name: stuck_report
short_description: Claims that wait for a driver that is gone
version_added: 0.1.0
author:
  - nodeops.dra contributors (@nodeops)
description:
  - Makes a table of the claims that nobody can take back because their driver is gone, from results of
    M(nodeops.dra.claim_info), at most 100 columns wide as Ansible prints it.
positional: _input, forget
options:
  _input:
    description: Name of the node to the registered result. One that failed is told.
    type: dict
    required: true
  forget:
    description: Claims to forget, each as its UID or as namespace and name with a slash between.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show what is stuck on this node
  ansible.builtin.debug:
    msg: "{{ ({inventory_hostname: found} | nodeops.dra.stuck_report).summary }}"
"""

RETURN = r"""
_value:
  description:
    - C(summary) has the lines of the table, C(stuck) maps each node to its stuck claims.
    - C(forget) maps each node to those that are named, as C(manager) and C(kubelet) have recorded them, and C(unknown)
      are the names that no stuck claim has.
  type: dict
"""


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"stuck_report": stuck_report}
