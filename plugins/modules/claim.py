#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare, unprepare or forget ResourceClaims on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: claim
short_description: Prepare, unprepare or forget ResourceClaims on a node
version_added: 0.1.0
description:
  - Does for a node without a kubelet, or beside one, what the DRA manager of the kubelet does. It calls the driver of
    a ResourceClaim through its socket and returns the devices with their CDI names, ready for C(podman run).
  - Everything is checked before any driver is called. What is about to be called is on disk before the call, and what
    was answered is on disk before the task ends, so a crash at any moment loses nothing.
  - Claims are given as manifests, or by name to be fetched from the API, alone, as a list, or as those of a pod.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.kubelet
  - nodeops.dra.cluster
options:
  state:
    description:
      - V(prepared) has the drivers prepare the claims for the pod, or for O(holder). Drivers are asked again in each
        run, as by a kubelet after its start; a task only counts as changed if what is recorded changes.
      - V(unprepared) has the drivers take back the claims. With O(pod) or O(holder) only their hold ends, and the
        drivers are called for claims that nobody else holds. A claim that is not recorded is fine.
      - V(forgotten) drops claims without telling their drivers, which may then keep the devices for ever. It needs a
        O(reason), which goes to an audit log.
      - V(checked) tries whether the drivers of claims that nobody uses keep the contract that every retry relies on.
        Each driver prepares twice and unprepares twice, which must succeed with the same devices. Nothing is recorded,
        and nothing stays prepared unless a driver fails to unprepare. See RV(conformance).
    type: str
    choices: [prepared, unprepared, forgotten, checked]
    default: prepared
  claims:
    description:
      - ResourceClaims of any version of the API. Each is a whole manifest with its status, or only its C(metadata)
        with C(namespace) and C(name), and C(uid) if that must match, to be fetched from the API.
      - For O(state=unprepared) and O(state=forgotten) the C(metadata) is enough, and the API is not asked.
      - With O(pod), manifests of the pod's claims that need not be fetched then.
    type: list
    elements: dict
    default: []
  pod:
    description:
      - A Pod whose claims are meant, as a whole manifest, or only its C(metadata) with C(namespace) and C(name) to be
        fetched from the API.
      - For O(state=unprepared) and O(state=forgotten) C(metadata.uid) is enough.
    type: dict
  holder:
    description:
      - Who holds claims that are prepared without a O(pod), for example the name of a systemd unit.
      - When it is absent, claims are prepared for V(nodeops.dra), and unprepared for everybody who holds them.
    type: str
  reason:
    description:
      - Why claims are forgotten. Required for O(state=forgotten).
    type: str
  force:
    description:
      - With O(state=unprepared), unprepare also claims that the kubelet of this node has recorded. Their containers
        lose the devices. The file of the kubelet stays as it is, so a claim that only the kubelet has always counts as
        a change.
      - With O(state=unprepared), unprepare also claims of pods that the node agent serves and that may still run. The
        agent prepares them again at once if the pod is not being deleted.
      - With O(state=prepared), prepare also claims whose devices the kubelet holds for other claims, for example with
        admin access.
      - Claims that only the kubelet has cannot be forgotten here, see O(nodeops.dra.checkpoint#module:drop_claims).
    type: bool
    default: false
  registry_directory:
    description:
      - The directory where drivers register. When it is absent, C(plugins_registry) below O(kubelet_root).
    type: path
  state_directory:
    description:
      - The directory where the manager of this collection keeps its files. It is made when it is missing.
      - It may be the root directory of a kubelet that will not run again, to release what its file has. While a kubelet
        runs there, the module refuses to work on it.
    type: path
    default: /var/lib/nodeops-dra
  cdi_directories:
    description:
      - The CDI spec directories that the container runtime reads. When it is absent, C(/etc/cdi) and C(/var/run/cdi).
        A prepared name that does not resolve there is a finding.
    type: list
    elements: path
  agent_socket:
    description:
      - The socket of the node agent. If the agent answers there and works on O(state_directory), it does the work, so
        that the state file has one writer; RV(via) tells. O(timeout) and O(force) hold for it too.
      - The agent has its own directories; O(kubelet_root), O(registry_directory) and O(cdi_directories) that are given
        must be the same. Objects that are given by name are fetched by the task where it says how to reach the API,
        else by the agent.
    type: path
    default: /run/nodeops-dra/agent.sock
  timeout:
    description:
      - How many seconds all drivers together may take, as in the kubelet.
    type: float
    default: 45
requirements:
  - Python 3.11 or later, grpcio and protobuf on the node. The environment of the agent is used where it is installed.
  - To fetch from the API also aiohttp and msgspec.
attributes:
  check_mode:
    description: Can run in C(check_mode). RV(calls) then lists the driver calls that would be made.
    support: full
  diff_mode:
    description: Returns who holds which claim, and whether it is prepared, before and after, in C(diff) mode.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
seealso:
  - module: nodeops.dra.claim_info
  - module: nodeops.dra.driver_info
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Prepare a claim that is in a file
  nodeops.dra.claim:
    claims:
      - "{{ lookup('ansible.builtin.file', 'claim.yml') | from_yaml }}"
    holder: training.service
  register: prepared

- name: Start a container with its devices
  ansible.builtin.command:
    argv: "{{ ['podman', 'run', '--rm'] + prepared.claims[0].device_arguments + ['image', 'nvidia-smi'] }}"
  changed_when: true

- name: Take it back
  nodeops.dra.claim:
    state: unprepared
    claims:
      - metadata: {namespace: team-a, name: training}

- name: Prepare all claims of a pod, from the API
  nodeops.dra.claim:
    kubeconfig: /etc/kubernetes/admin.conf
    pod:
      metadata: {namespace: team-a, name: training-0}

- name: Try whether a driver may be asked again and again, with a claim that was made for this
  nodeops.dra.claim:
    state: checked
    claims:
      - "{{ lookup('ansible.builtin.file', 'spare-claim.yml') | from_yaml }}"
  register: tried
  failed_when: tried is failed or not tried.conformance | map(attribute='ok') | min

- name: Give up on a claim whose driver is gone for good
  nodeops.dra.claim:
    state: forgotten
    reason: The driver was uninstalled, its devices were taken out.
    claims:
      - metadata: {uid: c0de0001-1111-4222-8333-000000000001}
"""

RETURN = r"""
via:
  description: >-
    How the work was done, V(agent) by the node agent, or V(lock) with a manager in the module itself, which holds the
    lock of the state file meanwhile.
  returned: success
  type: str
  sample: agent
calls:
  description: The driver calls that were made, or would be made in check mode, sorted by driver.
  returned: success
  type: list
  elements: dict
  contains:
    driver:
      description: The name of the driver.
      returned: always
      type: str
      sample: gpu.example.com
    method:
      description: The call.
      returned: always
      type: str
      sample: NodePrepareResources
    claims:
      description: The UIDs of its claims.
      returned: always
      type: list
      elements: str
      sample: [c0de0001-1111-4222-8333-000000000001]
claims:
  description: The claims that were meant and are recorded afterwards, sorted by namespace, name and UID.
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
      description: Its name.
      returned: always
      type: str
      sample: training
    namespace:
      description: Its namespace.
      returned: always
      type: str
      sample: team-a
    pods:
      description: >-
        The UIDs of the pods that hold it, and the names of other holders with C(holder:) before them, sorted.
      returned: always
      type: list
      elements: str
      sample: ["holder:training.service"]
    prepared:
      description: Whether all its drivers have answered in this boot.
      returned: always
      type: bool
      sample: true
    drivers:
      description: Its drivers with the devices that they prepared.
      returned: always
      type: list
      elements: dict
      sample:
        - name: gpu.example.com
          devices:
            - pool: node-1
              device: gpu-1
              share_id: null
              requests: [gpu]
              cdi_devices: [gpu.example.com/gpu=gpu-1]
    cdi_devices:
      description: The CDI names of all devices, each once.
      returned: always
      type: list
      elements: str
      sample: [gpu.example.com/gpu=gpu-1]
    device_arguments:
      description: The same as arguments for C(podman run).
      returned: always
      type: list
      elements: str
      sample: ["--device=gpu.example.com/gpu=gpu-1"]
released:
  description: The UIDs of the claims that are gone, or would be gone in check mode.
  returned: success
  type: list
  elements: str
  sample: []
forgotten:
  description: What may leak because of O(state=forgotten), one entry for each claim. Empty in check mode.
  returned: success
  type: list
  elements: dict
  sample: []
conformance:
  description: What O(state=checked) found, sorted by driver. Empty for other states and in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    driver:
      description: The name of the driver.
      returned: always
      type: str
      sample: gpu.example.com
    ok:
      description: Whether all was as it should be.
      returned: always
      type: bool
      sample: true
    steps:
      description: >-
        The calls and their comparison in order, each with its C(name), whether it was C(ok), and its C(problems).
      returned: always
      type: list
      elements: dict
      sample: [{name: first prepare, ok: true, problems: []}]
findings:
  description: >-
    What the manager has to say about its files, about CDI names that do not resolve, and about drivers that were
    checked.
  returned: success
  type: list
  elements: dict
  sample: []
"""

import asyncio

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_request import STATES, ClaimRequest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import needs_api, perform
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.kubelet import kubelet_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run, who, with_diff
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.requirements import ensure
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import locate


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **cluster_spec(),
            "state": {"type": "str", "choices": list(STATES), "default": "prepared"},
            "claims": {"type": "list", "elements": "dict", "default": []},
            "pod": {"type": "dict"},
            "holder": {"type": "str"},
            "reason": {"type": "str"},
            "force": {"type": "bool", "default": False},
            **kubelet_spec(),
            "registry_directory": {"type": "path"},
            "state_directory": {"type": "path", "default": "/var/lib/nodeops-dra"},
            "agent_socket": {"type": "path", "default": "/run/nodeops-dra/agent.sock"},
            "cdi_directories": {"type": "list", "elements": "path"},
            "timeout": {"type": "float", "default": 45},
        },
        required_if=[("state", "forgotten", ("reason",))],
        supports_check_mode=True,
    )
    options = module.params
    ensure(module, "grpc", "google.protobuf")
    directories = options["cdi_directories"]

    def work() -> dict[str, object]:
        request = ClaimRequest(
            state=options["state"],
            pod=options["pod"],
            claims=options["claims"],
            holder=options["holder"],
            state_directory=options["state_directory"],
            kubelet_root=locate(kubelet_root=options["kubelet_root"]).root,
            registry_directory=options["registry_directory"],
            cdi_directories=tuple(directories) if directories else None,
            timeout=options["timeout"],
            reason=options["reason"] or "",
            by=who(),
            force=options["force"],
        )
        if needs_api(request):
            ensure(module, "aiohttp", "msgspec")
        return with_diff(module, asyncio.run(perform(request, options, check=module.check_mode)))

    run(module, work)


if __name__ == "__main__":
    main()
