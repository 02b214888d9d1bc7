#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at the DRA drivers of a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_info
short_description: Look at the DRA drivers of a node
version_added: 0.1.0
description:
  - Asks every registration socket of the node who is behind it, and connects to the socket of its service.
  - Tells apart that a socket exists, that somebody answers on it, and that the driver's service can be reached, since a
    driver that was killed leaves its files behind.
  - Changes nothing. No driver is registered or told anything, and without O(with_api) no credentials are needed.
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
  with_api:
    description:
      - Whether to compare the drivers with the ResourceSlices of this node. It needs O(node_name) and the right to list
        C(resourceslices).
    type: bool
    default: false
  node_name:
    description:
      - The name of this node in the API. Required with O(with_api).
    type: str
requirements:
  - Python 3.11 or later, grpcio and protobuf on the node. The environment of the agent is used where it is installed.
  - For O(with_api) also aiohttp and msgspec.
seealso:
  - module: nodeops.dra.claim_info
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Look at the drivers of this node
  nodeops.dra.driver_info:
  register: found

- name: Stop if the GPU driver cannot be reached
  ansible.builtin.assert:
    that: found.drivers | selectattr('name', 'equalto', 'gpu.example.com') | selectattr('reachable') | length == 1
    fail_msg: "{{ found.findings | map(attribute='text') | join(' ') }}"

- name: Stop if the scheduler still hands out devices of a driver that is gone
  nodeops.dra.driver_info:
    with_api: true
    node_name: node-1
    kubeconfig: /etc/kubernetes/admin.conf
  register: found
  failed_when: found is failed or 'stale_slices' in found.findings | map(attribute='code')

- name: Look at the drivers below another directory
  nodeops.dra.driver_info:
    registry_directory: /run/nodeops-dra/plugins_registry
"""

RETURN = r"""
registry_directory:
  description: The directory that was looked at.
  returned: success
  type: str
  sample: /var/lib/kubelet/plugins_registry
drivers:
  description: The drivers that answered, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name of the driver.
      returned: always
      type: str
      sample: gpu.example.com
    reachable:
      description: Whether the service of at least one instance can be reached.
      returned: always
      type: bool
      sample: true
    instances:
      description: The instances, sorted by registration socket. There are two during a rolling update.
      returned: always
      type: list
      elements: dict
      contains:
        registration_socket:
          description: The socket where the driver tells who it is.
          returned: always
          type: str
          sample: /var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock
        endpoint:
          description: The socket of its service.
          returned: always
          type: str
          sample: /var/lib/kubelet/plugins/gpu.example.com/dra.sock
        endpoint_reachable:
          description: Whether somebody listens there.
          returned: always
          type: bool
          sample: true
        advertised:
          description: What the driver says that it speaks, in its order.
          returned: always
          type: list
          elements: str
          sample: [v1.DRAPlugin, v1beta1.DRAPlugin]
        service:
          description: The entry that is chosen, empty if none can be used.
          returned: always
          type: str
          sample: v1.DRAPlugin
        generation:
          description: The generation of the API that this means.
          returned: always
          type: str
          sample: v1
        health_service:
          description: The health service that the driver advertises, null if it has none.
          returned: always
          type: str
          sample: null
sockets:
  description: Every registration socket, sorted by path, also those where nobody answers.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The socket.
      returned: always
      type: str
      sample: /var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock
    answers:
      description: Whether somebody answers.
      returned: always
      type: bool
      sample: true
    plugin_type:
      description: What kind of plugin is behind it.
      returned: always
      type: str
      sample: DRAPlugin
    driver:
      description: The name that it gives.
      returned: always
      type: str
      sample: gpu.example.com
    made_at:
      description: When the socket was made, which is when its plugin was started. Null if it has just gone.
      returned: always
      type: str
      sample: "2026-01-02T03:04:05Z"
other_files:
  description: Files in the directory that are no sockets.
  returned: success
  type: list
  elements: str
  sample: []
slices:
  description: The ResourceSlices of this node, one entry for each driver and pool. Null without O(with_api).
  returned: success
  type: list
  elements: dict
  contains:
    driver:
      description: The driver that has published them.
      returned: always
      type: str
      sample: gpu.example.com
    pool:
      description: The pool, empty up to Kubernetes 1.30.
      returned: always
      type: str
      sample: node-1
    slices:
      description: How many slices there are.
      returned: always
      type: int
      sample: 1
    devices:
      description: How many devices they hold.
      returned: always
      type: int
      sample: 8
    since:
      description: When the oldest of them was made.
      returned: always
      type: str
      sample: "2026-01-02T03:04:05Z"
findings:
  description: What is wrong, sorted by place.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: The stable name of this kind of finding.
      returned: always
      type: str
      sample: stale_socket
    severity:
      description: V(error), V(warning) or V(info).
      returned: always
      type: str
      sample: error
    place:
      description: The socket or directory.
      returned: always
      type: str
      sample: /var/lib/kubelet/plugins_registry/old.example.com-reg.sock
    text:
      description: What is wrong, in one sentence.
      returned: always
      type: str
      sample: Nobody listens on this socket.
    remedy:
      description: What to do next.
      returned: always
      type: str
      sample: Restart the driver, or remove the file if the driver is gone.
    facts:
      description: Details for programs.
      returned: always
      type: dict
      sample: {}
"""

import asyncio
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.agent.driver_report import driver_report
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.kubelet import kubelet_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.requirements import ensure
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import locate


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **kubelet_spec(),
            **cluster_spec(),
            "registry_directory": {"type": "path"},
            "with_api": {"type": "bool", "default": False},
            "node_name": {"type": "str"},
        },
        required_if=[("with_api", True, ("node_name",))],
        supports_check_mode=True,
    )
    options = module.params
    ensure(module, "grpc", "google.protobuf", *(("aiohttp", "msgspec") if options["with_api"] else ()))

    def work() -> dict[str, object]:
        directory = options["registry_directory"]
        if directory is None:
            directory = os.path.join(locate(kubelet_root=options["kubelet_root"]).root, "plugins_registry")
        return {"changed": False, **asyncio.run(driver_report(directory, options))}

    run(module, work)


if __name__ == "__main__":
    main()
