#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at the ResourceClaims of a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: claim_info
short_description: Look at the ResourceClaims of a node
version_added: 0.1.0
description:
  - Lists every claim that anything on the node knows of, with its devices, CDI names and pods, and with who knows it.
    The sources are the manager of this collection, the kubelet's state file, the files of drivers that keep one, the
    CDI spec files, and the API if it is asked.
  - Where the sources contradict each other, there is a finding with a stable code and the next step.
  - Says for each claim which step it waits for.
  - Reads only. Without O(with_api) and without grpcio on the node it needs nothing but Python 3.9; what it then
    cannot know is null.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.attributes.info
  - nodeops.dra.kubelet
  - nodeops.dra.cluster
options:
  registry_directory:
    description:
      - The directory where drivers register. When it is absent, C(plugins_registry) below O(kubelet_root).
    type: path
  state_directory:
    description:
      - The directory where the manager of this collection keeps its files.
    type: path
    default: /var/lib/nodeops-dra
  cdi_directories:
    description:
      - The CDI spec directories that the container runtime reads. When it is absent, C(/etc/cdi) and C(/var/run/cdi).
    type: list
    elements: path
  agent_socket:
    description:
      - The socket of the node agent. If the agent answers there and works on O(state_directory), what it finds is told
        too, such as operations that keep failing; RV(via) tells.
    type: path
    default: /run/nodeops-dra/agent.sock
  with_api:
    description:
      - Whether to compare with the claims and pods of the API server.
    type: bool
    default: false
  node_name:
    description:
      - The name of the node in the API. Only its pods are read then, and claims that they wait for are listed too,
        with the step that each waits for.
      - When it is absent, the pods of all nodes are read, and only claims that something on this node knows are listed.
    type: str
requirements:
  - For O(with_api) Python 3.11 or later, aiohttp and msgspec on the host where the module runs.
seealso:
  - module: nodeops.dra.claim
  - module: nodeops.dra.driver_info
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Look at the claims of this node
  nodeops.dra.claim_info:
  register: found

- name: Say who holds which device
  ansible.builtin.debug:
    msg: "{{ item.namespace }}/{{ item.name }} holds {{ item.cdi_devices | join(', ') }}"
  loop: "{{ found.claims }}"

- name: Stop if a device is held by two claims
  ansible.builtin.assert:
    that: found.findings | selectattr('code', 'equalto', 'device_held_twice') | length == 0
    fail_msg: "{{ found.findings | map(attribute='text') | join(' ') }}"

- name: Compare with the API
  nodeops.dra.claim_info:
    with_api: true
    kubeconfig: /etc/kubernetes/admin.conf
    node_name: node-1
"""

RETURN = r"""
via:
  description: >-
    Whether the node agent was asked for what it finds, V(agent), or only files and sockets were looked at, V(files).
  returned: success
  type: str
  sample: files
claims:
  description: The claims, sorted by namespace, name and UID.
  returned: success
  type: list
  elements: dict
  contains:
    uid:
      description: The UID of the ResourceClaim.
      returned: always
      type: str
      sample: c0de0001-1111-4222-8333-000000000001
    name:
      description: Its name, empty where only a driver or CDI files know the claim and do not say.
      returned: always
      type: str
      sample: claim-1
    namespace:
      description: Its namespace.
      returned: always
      type: str
      sample: default
    source:
      description:
        - Who the names, pods and devices are from, the first of V(manager), V(kubelet), V(api), V(driver NAME) and
          V(cdi) that knows the claim.
      returned: always
      type: str
      sample: kubelet
    pods:
      description:
        - The pods that hold the claim, sorted by UID. Name, phase and C(alive) are null without O(with_api), and name
          and phase also where the API does not have the pod. C(deleting_since) is the pod's C(deletionTimestamp), null
          unless it is being deleted.
        - Holders that are no pods, such as systemd units, have a C(uid) that starts with C(holder:), and nothing more
          is known of them.
      returned: always
      type: list
      elements: dict
      sample:
        - uid: b0d00001-aaaa-4bbb-8ccc-000000000001
          name: null
          phase: null
          alive: null
          deleting_since: null
    drivers:
      description: >-
        The drivers of the claim with the devices they prepared, null while their answer is outstanding and where only
        the API knows the claim.
      returned: always
      type: list
      elements: dict
      sample:
        - name: gpu.example.com
          devices:
            - pool: node-1
              device: gpu-1
              share_id: null
              requests: [req-0]
              cdi_devices: [vendor.example.com/gpu=dev-1]
    prepared:
      description: Whether the manager of this collection prepared it in this boot. Null for claims of others.
      returned: always
      type: bool
      sample: null
    cdi_devices:
      description: The CDI names of all devices, each once.
      returned: always
      type: list
      elements: str
      sample: [vendor.example.com/gpu=dev-1]
    device_arguments:
      description: The same as arguments for C(podman run).
      returned: always
      type: list
      elements: str
      sample: ["--device=vendor.example.com/gpu=dev-1"]
    in_manager:
      description: Whether the manager of this collection has recorded the claim. Null if its file cannot be read.
      returned: always
      type: bool
      sample: false
    in_kubelet:
      description: Whether the kubelet has. Null if its file cannot be read.
      returned: always
      type: bool
      sample: true
    in_drivers:
      description: The drivers whose own file has the claim.
      returned: always
      type: list
      elements: str
      sample: [gpu.example.com]
    in_cdi:
      description: The CDI spec files that belong to the claim.
      returned: always
      type: list
      elements: str
      sample: [/var/run/cdi/gpu.example.com-claim_c0de0001-1111-4222-8333-000000000001.json]
    in_api:
      description: Whether the API has a claim with this UID. Null without O(with_api).
      returned: always
      type: bool
      sample: null
    waits_for:
      description: The step that the claim waits for, empty if none.
      returned: always
      type: str
      sample: its CDI files
    lost_record:
      description:
        - What is missing in the kubelet's state file although the claim was prepared here for a pod that is alive, as
          O(nodeops.dra.checkpoint#module:add_claims) takes it. The devices of a driver are null where its answer cannot
          be told any more.
        - Null if nothing is missing, and without O(with_api) and O(node_name).
      returned: always
      type: dict
      sample: null
    findings:
      description: The codes of the findings about this claim.
      returned: always
      type: list
      elements: str
      sample: [cdi_unresolved]
findings:
  description: Everything that is not as it should be, those about the sources first.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: The stable name of this kind of finding.
      returned: always
      type: str
      sample: cdi_unresolved
    severity:
      description: V(error), V(warning) or V(info).
      returned: always
      type: str
      sample: error
    place:
      description: The claim, file or directory.
      returned: always
      type: str
      sample: default/claim-1 (c0de0001-1111-4222-8333-000000000001)
    text:
      description: What is wrong, in one sentence.
      returned: always
      type: str
      sample: The CDI device vendor.example.com/gpu=dev-1 is not defined.
    remedy:
      description: What to do next.
      returned: always
      type: str
      sample: Prepare the claim again.
    facts:
      description: Details for programs.
      returned: always
      type: dict
      sample: {}
kubelet_root:
  description: The kubelet root directory that was looked at.
  returned: success
  type: str
  sample: /var/lib/kubelet
drivers_checked:
  description: Whether the drivers' sockets were looked at, which needs grpcio on the node.
  returned: success
  type: bool
  sample: true
"""

import asyncio

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_look import look
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.kubelet import kubelet_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.requirements import ensure
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import locate


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **cluster_spec(),
            **kubelet_spec(),
            "registry_directory": {"type": "path"},
            "state_directory": {"type": "path", "default": "/var/lib/nodeops-dra"},
            "agent_socket": {"type": "path", "default": "/run/nodeops-dra/agent.sock"},
            "cdi_directories": {"type": "list", "elements": "path"},
            "with_api": {"type": "bool", "default": False},
            "node_name": {"type": "str"},
        },
        supports_check_mode=True,
    )
    options = module.params
    if options["with_api"]:
        ensure(module, "aiohttp", "msgspec")
    run(
        module,
        lambda: asyncio.run(look(locate(kubelet_root=options["kubelet_root"]).root, options)),
    )


if __name__ == "__main__":
    main()
