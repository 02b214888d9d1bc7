#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring ResourceClaims in line with the pods that use them, once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: claim_sync
short_description: Bring ResourceClaims in line with their pods, once
version_added: 0.1.0
description:
  - Does what the ResourceClaim controller of a cluster does, in one pass and by the same code as the controller of this
    collection. Claims are made from templates and published in the pods' status, pods that were bound without a
    reservation get it, reservations of pods that are gone are dropped, claims that nobody uses are deallocated, and
    generated claims of finished pods are deleted.
  - In check mode nothing is written. What is returned is the plan, each request with its reason.
  - For a cluster whose controller is missing, behind or stuck. It does no harm beside a controller that works, since
    each write carries the version of the object that it was decided on.
  - Needs no access to nodes. Run it on the control node with C(delegate_to=localhost).
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.cluster
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the plan without writing anything.
    support: full
  diff_mode:
    description: Returns one line for each request.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
options:
  namespaces:
    description:
      - Namespaces to look at as a whole.
      - Without O(namespaces), O(pods) and O(claims) the whole cluster is looked at.
    type: list
    elements: str
  pods:
    description:
      - Pods to look at, each with the claims and the PodGroup that it uses, as C(namespace/name).
    type: list
    elements: str
  claims:
    description:
      - Claims to look at, as C(namespace/name).
    type: list
    elements: str
  admin_access:
    description:
      - Whether claims are made from templates that ask for admin access.
    type: bool
    default: true
  prioritized_list:
    description:
      - Whether claims are made from templates with a prioritized list of requests.
    type: bool
    default: true
  timeout:
    description:
      - How many seconds the pass may take.
    type: float
    default: 600
requirements:
  - Python 3.11 or later, aiohttp and msgspec where it runs.
  - The right to get, list and watch pods, resourceclaims and resourceclaimtemplates, to create, patch and delete
    resourceclaims, and to patch resourceclaims/status, resourceclaims/binding and pods/status. What is missing is named
    before anything is written.
seealso:
  - module: nodeops.dra.claim_info
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Show what is due in a namespace, without doing it
  nodeops.dra.claim_sync:
    kubeconfig: /etc/kubernetes/admin.conf
    namespaces: [team-a]
  check_mode: true
  delegate_to: localhost
  run_once: true
  register: plan

- name: Tell it
  ansible.builtin.debug:
    msg: "{{ plan.requests | map(attribute='reason') }}"

- name: Make the claims of one pod that waits for them
  nodeops.dra.claim_sync:
    kubeconfig: /etc/kubernetes/admin.conf
    pods: [team-a/training-0]
  delegate_to: localhost

- name: Let go of a claim that a deleted pod still holds
  nodeops.dra.claim_sync:
    kubeconfig: /etc/kubernetes/admin.conf
    claims: [team-a/shared-gpu]
  delegate_to: localhost

- name: Bring the whole cluster in line, and stop if a pod cannot get its claims
  nodeops.dra.claim_sync:
    kubeconfig: /etc/kubernetes/admin.conf
  delegate_to: localhost
  register: done
  failed_when: done is failed or done.problems | length > 0
"""

RETURN = r"""
api_version:
  description: The version of the API that was spoken.
  returned: success
  type: str
  sample: resource.k8s.io/v1
release:
  description: The release of the API server, or the oldest that serves this version where it does not tell.
  returned: success
  type: str
  sample: 1.36.0
looked_at:
  description: How many pods, claims and PodGroups were looked at.
  returned: success
  type: int
  sample: 12
requests:
  description:
    - What was written, or would be in check mode, in its order for each object.
    - In check mode the names of claims to be made are not those that they will get.
  returned: success
  type: list
  elements: dict
  contains:
    verb:
      description: The verb, as in RBAC rules.
      returned: always
      type: str
      sample: create
    resource:
      description: The resource with its group, as in RBAC rules.
      returned: always
      type: str
      sample: resourceclaims.resource.k8s.io
    namespace:
      description: The namespace of the object.
      returned: always
      type: str
      sample: team-a
    name:
      description: The name of the object.
      returned: always
      type: str
      sample: training-0-gpu-x7k2p
    reason:
      description: Why it is due.
      returned: always
      type: str
      sample: Pod team-a/training-0 needs a claim for its entry gpu
    body:
      description: What is sent.
      returned: always
      type: dict
      sample: {metadata: {name: training-0-gpu-x7k2p}}
problems:
  description: What keeps pods and PodGroups from their claims and cannot be mended by a request, as in events.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Pod or PodGroup.
      returned: always
      type: str
      sample: Pod
    namespace:
      description: Its namespace.
      returned: always
      type: str
      sample: team-a
    name:
      description: Its name.
      returned: always
      type: str
      sample: training-0
    reason:
      description: The reason of the event that the controller would write.
      returned: always
      type: str
      sample: FailedResourceClaimCreation
    message:
      description: What is wrong.
      returned: always
      type: str
      sample: "PodResourceClaim gpu: resource claim template \"gpu\" not found"
failures:
  description: Objects that could not be brought in line. The task fails when there are any, and returns the rest too.
  returned: always
  type: list
  elements: dict
  sample: []
  contains:
    kind:
      description: Pod, ResourceClaim or PodGroup.
      returned: always
      type: str
      sample: ResourceClaim
    namespace:
      description: Its namespace.
      returned: always
      type: str
      sample: team-a
    name:
      description: Its name.
      returned: always
      type: str
      sample: shared-gpu
    message:
      description: What failed.
      returned: always
      type: str
      sample: The API server cannot be reached.
    hint:
      description: What to do next.
      returned: always
      type: str
      sample: Check the network.
missing:
  description:
    - What was named in O(pods) and O(claims) and does not exist, or is a pod without claims. A warning tells of it.
  returned: success
  type: list
  elements: dict
  sample: []
  contains:
    kind:
      description: Pod or ResourceClaim.
      returned: always
      type: str
      sample: Pod
    namespace:
      description: Its namespace.
      returned: always
      type: str
      sample: team-a
    name:
      description: Its name.
      returned: always
      type: str
      sample: training-1
"""

import asyncio

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.requirements import ensure
from ansible_collections.nodeops.dra.plugins.module_utils.controller.sync import shown, sync


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **cluster_spec(),
            "namespaces": {"type": "list", "elements": "str"},
            "pods": {"type": "list", "elements": "str"},
            "claims": {"type": "list", "elements": "str"},
            "admin_access": {"type": "bool", "default": True},
            "prioritized_list": {"type": "bool", "default": True},
            "timeout": {"type": "float", "default": 600},
        },
        supports_check_mode=True,
    )
    ensure(module, "aiohttp", "msgspec")

    def work() -> dict[str, object]:
        result = asyncio.run(sync(module.params, perform=not module.check_mode))
        for one in result["missing"]:
            module.warn(f"{one['kind']} {one['namespace']}/{one['name']} does not exist, or is a pod without claims.")
        if module._diff:
            result["diff"] = {"before": "", "after": shown(result["requests"])}
        return result

    run(module, work)


if __name__ == "__main__":
    main()
