# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the playbook ``repair_checkpoint`` says when it has put a node back, as a filter."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.repair_report import repair_undone

DOCUMENTATION = r"""
name: repair_undone
short_description: Why a node was not repaired, and how it is now
version_added: 0.1.0
author:
  - nodeops.dra contributors (@nodeops)
description:
  - Puts the failure of a repair and what became of putting the node back into one text.
positional: _input, task, result, undone
options:
  _input:
    description: The name of the node.
    type: str
    required: true
  task:
    description: The name of the task that failed.
    type: str
    required: true
  result:
    description: Its result.
    type: dict
    required: true
  undone:
    description: The results of the tasks that put back the C(file), the C(kubelet) and the C(cordon).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Tell what failed
  ansible.builtin.fail:
    msg: "{{ inventory_hostname | nodeops.dra.repair_undone(ansible_failed_task.name, ansible_failed_result, undone) }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"repair_undone": repair_undone}
