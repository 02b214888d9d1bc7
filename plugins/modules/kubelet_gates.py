#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch feature gates of DRA on in the configuration of a kubelet."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_gates
short_description: Switch feature gates of DRA on for a kubelet
version_added: 0.1.0
description:
  - Sets feature gates in the configuration file of a kubelet, such as the C(/var/lib/kubelet/config.yaml) that kubeadm
    writes, as far as its release needs that. C(DynamicResourceAllocation) is off by default up to 1.33, on from 1.34
    and cannot be switched off from 1.35 on.
  - Comments, order and every other letter of the file stay. Every line of this module is marked, and a line that it
    replaces stays as a comment, so that O(state=absent) gives the file back as it was, to the byte, and keeps what
    others changed meanwhile.
  - The new file is read again before it is used, and must say what was asked for and otherwise what it said before.
    Without PyYAML on the node, a file in another than the usual style is refused.
  - Gates on the kubelet's command line win over the file. M(nodeops.dra.node_info) tells what holds.
  - The kubelet is not restarted. Until it is, it goes on with the old gates.
extends_documentation_fragment:
  - nodeops.dra.attributes
options:
  state:
    description:
      - V(present) switches the gates on.
      - V(absent) takes back what this module did, and nothing else.
    type: str
    choices: [present, absent]
    default: present
  configuration:
    description:
      - The configuration file, as the kubelet gets it with C(--config). It must exist.
      - A file that k3s, rke2, k0s or microk8s writes is refused, with what to do there.
    type: path
    default: /var/lib/kubelet/config.yaml
  gates:
    description:
      - The gates that must be on. One that is on by default in this release is not set.
      - A gate of DRA that this release does not know is refused, because no kubelet starts with it.
    type: list
    elements: str
    default: [DynamicResourceAllocation]
  version:
    description:
      - The release of the kubelet, such as V(1.33) or V(v1.33.4).
      - When it is absent, O(program) is asked.
    type: str
  program:
    description:
      - The kubelet, for its version.
      - When it is absent, it is looked for in C(/usr/bin) and C(/usr/local/bin). One that others than root may replace
        is not run.
    type: path
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would do without doing it.
    support: full
  diff_mode:
    description: Returns the file before and after.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
seealso:
  - module: nodeops.dra.node_info
  - module: nodeops.dra.runtime_cdi
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Let the kubelet of this node prepare claims
  nodeops.dra.kubelet_gates:
  register: gates
  notify: Restart the kubelet

- name: Say which gates the file sets now
  ansible.builtin.debug:
    var: gates.gates

- name: Take that back
  nodeops.dra.kubelet_gates:
    state: absent
"""

RETURN = r"""
files:
  description: What was done to the file. Empty if nothing was.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file.
      returned: always
      type: str
      sample: /var/lib/kubelet/config.yaml
    action:
      description: V(changed), or V(restored) where it is again as it was.
      returned: always
      type: str
      sample: changed
    backup:
      description: The file without the lines of this module, null if there is none.
      returned: always
      type: str
      sample: /var/lib/kubelet/config.yaml.nodeops-dra.bak
gates:
  description: All gates that the file sets.
  returned: success
  type: dict
  sample:
    DynamicResourceAllocation: true
kubelet_version:
  description: The release of the kubelet, null if it is unknown.
  returned: success
  type: str
  sample: 1.33.4
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.kubelet_gates import (
    set_gates,
    take_back_gates,
)
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.runtime_request import version_of_kubelet
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import Result, run, with_file_diffs


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "configuration": {"type": "path", "default": "/var/lib/kubelet/config.yaml"},
            "gates": {"type": "list", "elements": "str", "default": ["DynamicResourceAllocation"]},
            "version": {"type": "str"},
            "program": {"type": "path"},
        },
        supports_check_mode=True,
    )
    options = module.params

    def work() -> Result:
        path = options["configuration"]
        version = version_of_kubelet(options["version"], options["program"])
        if options["state"] == "present":
            result = set_gates(path, options["gates"], version, check=module.check_mode)
        else:
            result = take_back_gates(path, check=module.check_mode)
        return with_file_diffs(module, {**result, "kubelet_version": version})

    run(module, work)


if __name__ == "__main__":
    main()
