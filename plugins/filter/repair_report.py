# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the playbook ``repair_checkpoint`` tells, as a filter."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.repair_report import repair_report

DOCUMENTATION = r"""
name: repair_report
short_description: Lines about the repair of a state file
version_added: 0.1.0
author:
  - nodeops.dra contributors (@nodeops)
description:
  - Says in lines of at most 100 columns, as Ansible prints them, what is wrong with a state file and what a repair does
    about it.
positional: _input, plan, restore, service
options:
  _input:
    description: A result of M(nodeops.dra.checkpoint_info).
    type: dict
    required: true
  plan:
    description: A result of M(nodeops.dra.checkpoint) with C(state=repaired), in check mode or not.
    type: dict
    required: true
  restore:
    description: The same with C(state=restored), where that comes first.
    type: dict
  service:
    description: The C(status) that M(ansible.builtin.systemd_service) returns for the kubelet.
    type: dict
"""

EXAMPLES = r"""
- name: Look at the state file
  nodeops.dra.checkpoint_info:
  register: look

- name: Plan a repair
  nodeops.dra.checkpoint:
  check_mode: true
  register: plan

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ look | nodeops.dra.repair_report(plan) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"repair_report": repair_report}
