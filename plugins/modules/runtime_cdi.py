#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let containerd or CRI-O inject CDI devices into containers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime_cdi
short_description: Let containerd or CRI-O inject CDI devices
version_added: 0.1.0
description:
  - Switches CDI on in the configuration of a container runtime and sets the directories that it reads specs from, where
    they are not so already. Nothing is changed on a runtime that does all that by default.
  - Of containerd's files, the one is changed that decides. Comments, order and every other letter of it stay. Where no
    file has a table of the CRI plugin and the main one imports a directory, a file is dropped in there. For CRI-O it
    always is.
  - Every line of this module is marked, a line that it replaces stays as a comment, so that O(state=absent) gives the
    file back as it was, to the byte, and keeps what others changed meanwhile.
  - A new file is read again before it is used, and must say what was asked for and otherwise what it said before.
    C(containerd config dump) must accept it too, and say that CDI is on, where that program is there.
  - The runtime is not restarted. Until it is, it goes on with the old configuration.
extends_documentation_fragment:
  - nodeops.dra.attributes
options:
  runtime:
    description: The container runtime. Podman has CDI from 4.1 on and needs no setting.
    type: str
    choices: [containerd, cri-o]
    required: true
  state:
    description:
      - V(present) lets the runtime inject CDI devices.
      - V(absent) takes back what this module did, and nothing else.
    type: str
    choices: [present, absent]
    default: present
  spec_dirs:
    description:
      - The directories to read CDI specs from, in rising priority.
      - When it is empty, those stay that the runtime has, which are C(/etc/cdi) and C(/var/run/cdi) unless it was told
        otherwise.
    type: list
    elements: path
    default: []
  version:
    description:
      - The release of the runtime, such as V(1.7.24).
      - When it is absent, O(program) is asked.
    type: str
  configuration:
    description:
      - The main configuration file. When it is absent, C(/etc/containerd/config.toml) or C(/etc/crio/crio.conf).
      - A file that k3s, rke2, k0s or microk8s writes is refused, with what to do there.
    type: path
  drop_in_directory:
    description: The drop-in directory of CRI-O. It is not used for containerd, which imports what its file names.
    type: path
    default: /etc/crio/crio.conf.d
  program:
    description:
      - The program of the runtime, for its version and, of containerd, for C(config dump).
      - When it is absent, it is looked for in C(/usr/bin) and C(/usr/local/bin). One that others than root may replace
        is not run.
    type: path
attributes:
  check_mode:
    description: >-
      Can run in C(check_mode) and return what it would do without doing it. C(containerd config dump) is not asked
      then.
    support: full
  diff_mode:
    description: Returns the files before and after.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
seealso:
  - module: nodeops.dra.node_info
  - module: nodeops.dra.kubelet_gates
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Let containerd inject CDI devices
  nodeops.dra.runtime_cdi:
    runtime: containerd
  register: cdi
  notify: Restart containerd

- name: Say which files were changed
  ansible.builtin.debug:
    msg: "{{ item.action }} {{ item.path }}"
  loop: "{{ cdi.files }}"

- name: Let CRI-O read CDI specs from directories of its own
  nodeops.dra.runtime_cdi:
    runtime: cri-o
    spec_dirs:
      - /var/cdi/static
      - /var/cdi/dynamic

- name: Take all that back
  nodeops.dra.runtime_cdi:
    runtime: containerd
    state: absent
"""

RETURN = r"""
files:
  description: What was done to which file. Empty if nothing was.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file.
      returned: always
      type: str
      sample: /etc/containerd/config.toml
    action:
      description: V(changed), V(created), V(restored) (it is again as it was) or V(removed).
      returned: always
      type: str
      sample: changed
    backup:
      description: The file without the lines of this module, null if there is none.
      returned: always
      type: str
      sample: /etc/containerd/config.toml.nodeops-dra.bak
cdi:
  description: Whether the runtime injects CDI devices with these files, null if that is unknown.
  returned: success
  type: bool
  sample: true
cdi_directories:
  description: The spec directories that it reads with these files, in rising priority. Null if they are unknown.
  returned: success
  type: list
  elements: str
  sample: [/etc/cdi, /var/run/cdi]
runtime_version:
  description: The release of the runtime, null if it is unknown.
  returned: success
  type: str
  sample: 1.7.24
validated:
  description: Whether C(containerd config dump) accepted what was changed.
  returned: success
  type: bool
  sample: true
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.runtime_cdi import (
    set_cdi,
    take_back_cdi,
)
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.runtime_request import request_of
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import Result, run, with_file_diffs


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "runtime": {"type": "str", "choices": ["containerd", "cri-o"], "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "spec_dirs": {"type": "list", "elements": "path", "default": []},
            "version": {"type": "str"},
            "configuration": {"type": "path"},
            "drop_in_directory": {"type": "path", "default": "/etc/crio/crio.conf.d"},
            "program": {"type": "path"},
        },
        supports_check_mode=True,
    )
    options = module.params

    def work() -> Result:
        request = request_of(options)
        change = set_cdi if options["state"] == "present" else take_back_cdi
        result = change(request, check=module.check_mode)
        return with_file_diffs(module, {**result, "runtime_version": request.version})

    run(module, work)


if __name__ == "__main__":
    main()
