#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy the ResourceClaim controller in a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_deployment
short_description: Deploy the ResourceClaim controller in a cluster
version_added: 0.1.0
description:
  - Makes the namespace, the service account with the rights for exactly the requests that the controller makes on this
    cluster, its settings, a Deployment, a PodDisruptionBudget and a NetworkPolicy, by server-side apply. What others
    have set in other fields of these objects stays.
  - The server is asked first what each request would make of the object, so that nothing is written where one is
    refused.
  - Needs no access to nodes. Run it on the control node with C(delegate_to=localhost). Run it again after an upgrade
    of the cluster, for the rights that the new version takes.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.cluster
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status without writing anything.
    support: full
  diff_mode:
    description: Returns the objects that change, without what the server keeps by itself.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
options:
  state:
    description:
      - V(present) makes and changes the objects, V(absent) removes them.
    type: str
    choices: [present, absent]
    default: present
  purge:
    description:
      - Whether V(absent) also removes the namespace, with everything in it.
    type: bool
    default: false
  namespace:
    description:
      - The namespace of the controller and, unless O(settings) says otherwise, of its Lease.
    type: str
    default: nodeops-dra
  image:
    description:
      - The image with the controller, with a tag or a digest. Needed for O(state=present).
    type: str
  replicas:
    description:
      - How many there are. One leads, the others stand by.
    type: int
    default: 2
  settings:
    description:
      - The settings of the controller, as its guide has them. The address and port of its server and its run directory
        are set to what the objects need.
      - With C(controller.namespaces), rights on pods and claims are granted in these namespaces only.
    type: dict
    default: {}
  resources:
    description:
      - Requests and limits of the container. When it is empty, requests of 50 m CPU and 128 MiB and a limit of 512 MiB.
    type: dict
    default: {}
  pull_secrets:
    description:
      - Names of secrets in the namespace for the image.
    type: list
    elements: str
    default: []
  node_selector:
    description:
      - Labels of the nodes to run on.
    type: dict
    default: {}
  tolerations:
    description:
      - Taints to run in spite of, as in a pod.
    type: list
    elements: dict
    default: []
  priority_class:
    description:
      - The priority class of the pods. When it is absent, the cluster's default.
    type: str
  api_ports:
    description:
      - Ports of the API server, which the NetworkPolicy lets out beside DNS.
    type: list
    elements: int
    default: [443, 6443]
  timeout:
    description:
      - How many seconds it may take.
    type: float
    default: 120
requirements:
  - Python 3.11 or later, aiohttp and msgspec where it runs.
  - The right to get and patch these objects, and all rights that are granted to the controller.
seealso:
  - module: nodeops.dra.claim_sync
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Show what would change
  nodeops.dra.controller_deployment:
    kubeconfig: /etc/kubernetes/admin.conf
    image: registry.example/nodeops-dra-controller:0.1.0
  check_mode: true
  diff: true
  delegate_to: localhost
  run_once: true
  register: plan

- name: Tell it
  ansible.builtin.debug:
    msg: "{{ plan.objects | rejectattr('action', 'equalto', 'unchanged') }}"

- name: Run three controllers for two namespaces
  nodeops.dra.controller_deployment:
    kubeconfig: /etc/kubernetes/admin.conf
    image: registry.example/nodeops-dra-controller:0.1.0
    replicas: 3
    settings:
      controller:
        namespaces: [team-a, team-b]
  delegate_to: localhost
  run_once: true

- name: Remove it with its namespace
  nodeops.dra.controller_deployment:
    kubeconfig: /etc/kubernetes/admin.conf
    state: absent
    purge: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
api_version:
  description: The version of the API that the rights are for.
  returned: success
  type: str
  sample: resource.k8s.io/v1
lease:
  description: Namespace and name of the Lease.
  returned: success
  type: str
  sample: nodeops-dra/nodeops-dra-controller
objects:
  description: The objects in the order of the requests.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Its kind.
      returned: always
      type: str
      sample: Deployment
    namespace:
      description: Its namespace, empty where it has none.
      returned: always
      type: str
      sample: nodeops-dra
    name:
      description: Its name.
      returned: always
      type: str
      sample: nodeops-dra-controller
    action:
      description: V(created), V(changed), V(removed) or V(unchanged); in check mode what it would be.
      returned: always
      type: str
      sample: created
"""

import asyncio

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run, with_diff
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.requirements import ensure
from ansible_collections.nodeops.dra.plugins.module_utils.controller.deploying import deploy


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **cluster_spec(),
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "purge": {"type": "bool", "default": False},
            "namespace": {"type": "str", "default": "nodeops-dra"},
            "image": {"type": "str"},
            "replicas": {"type": "int", "default": 2},
            "settings": {"type": "dict", "default": {}},
            "resources": {"type": "dict", "default": {}},
            "pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "node_selector": {"type": "dict", "default": {}},
            "tolerations": {"type": "list", "elements": "dict", "default": []},
            "priority_class": {"type": "str"},
            "api_ports": {"type": "list", "elements": "int", "default": [443, 6443]},
            "timeout": {"type": "float", "default": 120},
        },
        supports_check_mode=True,
    )
    ensure(module, "aiohttp", "msgspec")
    run(module, lambda: with_diff(module, asyncio.run(deploy(module.params, act=not module.check_mode))))


if __name__ == "__main__":
    main()
