#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordon, drain and uncordon a node, and wait for its kubelet."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_scheduling
short_description: Cordon, drain and uncordon a node
version_added: 0.1.0
description:
  - Keeps new pods off a node, evicts those that are there, lets pods come back, and waits until its kubelet is ready.
  - It works through the API server alone, so it runs on any host that reaches it, usually with C(delegate_to).
  - Pods are evicted and never deleted, so disruption budgets hold. Static pods and pods of DaemonSets stay.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.cluster
options:
  name:
    description:
      - The name of the node in the API.
    type: str
    required: true
  state:
    description:
      - V(cordoned) keeps new pods off the node.
      - V(drained) does that too, evicts the pods, and waits until they are gone.
      - V(uncordoned) lets pods come to the node again.
      - V(ready) changes nothing and waits until the kubelet says that the node is ready. In check mode it only looks.
    type: str
    choices: [cordoned, drained, uncordoned, ready]
    default: cordoned
  heartbeat:
    description:
      - With O(state=ready), a RV(heartbeat) that was returned before. A kubelet that has said nothing since does not
        count, since the API keeps what the last one said for a while.
      - When it is absent, what the API has counts.
    type: str
  claims_only:
    description:
      - With O(state=drained), evict only pods that use ResourceClaims.
    type: bool
    default: false
  force:
    description:
      - With O(state=drained), evict also pods that have no controller, so that nobody makes them again.
      - Without it, such a pod is an error before anything is changed.
    type: bool
    default: false
  delete_emptydir_data:
    description:
      - With O(state=drained), evict also pods with an emptyDir, whose content is lost.
      - Without it, such a pod is an error before anything is changed.
    type: bool
    default: false
  grace_period:
    description:
      - How many seconds evicted pods get to end. When it is absent, as many as each of them says.
    type: int
  timeout:
    description:
      - How many seconds everything together may take.
    type: float
    default: 300
requirements:
  - Python 3.11 or later, aiohttp and msgspec on the host where the module runs.
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would do without doing it.
    support: full
  diff_mode:
    description: Returns whether the node is cordoned, and the pods that are evicted, before and after.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
seealso:
  - module: nodeops.dra.checkpoint
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Keep new pods off the node
  nodeops.dra.node_scheduling:
    name: node-1
    kubeconfig: /etc/kubernetes/admin.conf
  delegate_to: localhost
  register: cordon

- name: Evict the pods that use claims
  nodeops.dra.node_scheduling:
    name: node-1
    state: drained
    claims_only: true
    timeout: 600
  delegate_to: localhost

- name: Wait until the kubelet that was started since is ready
  nodeops.dra.node_scheduling:
    name: node-1
    state: ready
    heartbeat: "{{ cordon.heartbeat }}"
  delegate_to: localhost

- name: Let pods come back, if it was this play that kept them off
  nodeops.dra.node_scheduling:
    name: node-1
    state: uncordoned
  delegate_to: localhost
  when: cordon is changed
"""

RETURN = r"""
name:
  description: The node.
  returned: success
  type: str
  sample: node-1
unschedulable:
  description: Whether the node is cordoned, afterwards.
  returned: success
  type: bool
  sample: true
ready:
  description: Whether the API has the node for ready.
  returned: success
  type: bool
  sample: true
heartbeat:
  description: When its kubelet last said that it lives, by its own clock. Empty if it never did.
  returned: success
  type: str
  sample: "2026-01-02T03:04:05.123456Z"
evicted:
  description: The pods that were evicted, or would be in check mode, sorted by namespace and name.
  returned: success
  type: list
  elements: dict
  contains: &pod
    namespace:
      description: The namespace of the pod.
      returned: always
      type: str
      sample: team-a
    name:
      description: Its name.
      returned: always
      type: str
      sample: training-0
    uid:
      description: Its UID.
      returned: always
      type: str
      sample: b0d00001-aaaa-4bbb-8ccc-000000000001
    reason:
      description: Why it stays, empty if it does not.
      returned: always
      type: str
      sample: ""
left:
  description: The pods that stay when a node is drained, sorted by namespace and name.
  returned: success
  type: list
  elements: dict
  contains: *pod
"""

import asyncio

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run, with_diff
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.requirements import ensure
from ansible_collections.nodeops.dra.plugins.module_utils.kube.node_scheduling import STATES, schedule


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **cluster_spec(),
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": list(STATES), "default": "cordoned"},
            "heartbeat": {"type": "str"},
            "claims_only": {"type": "bool", "default": False},
            "force": {"type": "bool", "default": False},
            "delete_emptydir_data": {"type": "bool", "default": False},
            "grace_period": {"type": "int"},
            "timeout": {"type": "float", "default": 300},
        },
        supports_check_mode=True,
    )
    ensure(module, "aiohttp", "msgspec")
    run(module, lambda: with_diff(module, asyncio.run(schedule(module.params, check=module.check_mode))))


if __name__ == "__main__":
    main()
