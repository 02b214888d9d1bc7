# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The report of the playbook ``upgrade_check`` as a filter."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.upgrade_report import upgrade_report

DOCUMENTATION = r"""
name: upgrade_report
short_description: Whether nodes are ready for another release of Kubernetes
version_added: 0.1.0
author:
  - nodeops.dra contributors (@nodeops)
description:
  - Makes a table for each node and a summary of all from what M(nodeops.dra.node_info), M(nodeops.dra.checkpoint_info)
    and M(nodeops.dra.driver_info) returned, at most 100 columns wide as Ansible prints it.
positional: _input, target
options:
  _input:
    description:
      - Name of the node to its results, as C(node), C(file) and C(drivers). Those that failed are told.
    type: dict
    required: true
  target:
    description: The release to go to.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show all nodes
  ansible.builtin.debug:
    msg: "{{ (looks | nodeops.dra.upgrade_report('1.34')).summary }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes) maps each node to the lines of its table, C(summary) has the lines of the summary, C(problems) what
      stands against the upgrade, a sentence each with the next step.
  type: dict
"""


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"upgrade_report": upgrade_report}
