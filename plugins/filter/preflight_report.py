# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The report of the playbook ``preflight`` as a filter."""

from __future__ import annotations

import typing as t

from ansible_collections.nodeops.dra.plugins.plugin_utils.preflight_report import preflight_report

DOCUMENTATION = r"""
name: preflight_report
short_description: Tables from what node_info found on several nodes
version_added: 0.1.0
author:
  - nodeops.dra contributors (@nodeops)
description:
  - Makes a table for each node and a summary of all from results of M(nodeops.dra.node_info), at most 100 columns wide
    as Ansible prints it, and says which nodes fail.
positional: _input, fail_on
options:
  _input:
    description:
      - Name of the node to the registered result. A node that failed or could not be reached is a row of its own.
    type: dict
    required: true
  fail_on:
    description:
      - The least that makes a node fail. With V(blocker) only what stands against its mode counts, with V(error) and
        V(warning) every finding of that severity or a worse one. With V(never) nothing does.
      - A node without a result fails with all of them but V(never).
    type: str
    choices: [blocker, error, warning, never]
    default: blocker
"""

EXAMPLES = r"""
- name: Look at the node
  nodeops.dra.node_info:
    mode: observe
  register: look

- name: Show what was found
  ansible.builtin.debug:
    msg: "{{ ({inventory_hostname: look} | nodeops.dra.preflight_report).nodes[inventory_hostname] }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes) maps each node to the lines of its table, C(summary) has the lines of the summary.
    - C(failed) are the nodes that fail, C(problems) what stands against them, a sentence each with the next step.
  type: dict
"""


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"preflight_report": preflight_report}
