#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a kubelet's DRA state file."""

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_info
short_description: Look at the DRA state file of a kubelet
version_added: 0.1.0
description:
  - Reads C(dra_manager_state), the file in which a kubelet remembers the ResourceClaims that it prepared, and says for
    every Kubernetes release from 1.27 to 1.36 whether its kubelet starts with this file.
  - Finds every fault in one pass, with what kubelets do about it, the repair that is proposed and what it may lose.
  - Also reads C(dra_health_state) and the C(checkpoint.json) of the NVIDIA and example drivers, told apart by name and
    content.
  - Reads only. It needs nothing but the Python 3.9 of the node, so it works on a node that is otherwise broken.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.attributes.info
  - nodeops.dra.kubelet
  - nodeops.dra.state_file
options:
  target_version:
    description:
      - The Kubernetes version that the node runs or is about to run, such as V(1.36) or V(v1.31.4).
      - Faults that only other releases mind are then left out, and RV(status) is the word of this release alone.
      - When it is absent, the releases that write the format of the file are asked.
    type: str
seealso:
  - module: nodeops.dra.checkpoint
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Look at the state file of this node's kubelet
  nodeops.dra.checkpoint_info:
  register: state

- name: Stop before the upgrade if the new kubelet would not start
  ansible.builtin.assert:
    that: state.kubelet_start['1.36'] == 'ok'
    fail_msg: "{{ state.file }} would stop a kubelet of 1.36: {{ state.kubelet_verdicts['1.36'] }}"

- name: Judge a copy by the rules of the release that the node runs
  nodeops.dra.checkpoint_info:
    path: /var/backups/dra_manager_state
    target_version: "1.34"

- name: Look at the state file of a kubelet with another root directory
  nodeops.dra.checkpoint_info:
    kubelet_root: /var/lib/k0s/kubelet
  register: k0s

- name: Name the claims that are in it
  ansible.builtin.debug:
    msg: "{{ item.namespace }}/{{ item.name }} is held by {{ item.pods | length }} pods"
  loop: "{{ k0s.claims }}"
"""

RETURN = r"""
file:
  description: The file that was looked at.
  returned: success
  type: str
  sample: /var/lib/kubelet/dra_manager_state
kubelet_root:
  description: The kubelet root directory that the file belongs to.
  returned: success
  type: str
  sample: /var/lib/kubelet
found_by:
  description: How the file was found when O(path) was not given.
  returned: success
  type: str
  sample: the path that was given
exists:
  description: Whether the file is there. A kubelet creates a missing file.
  returned: success
  type: bool
  sample: true
kind:
  description:
    - What the file is, V(dra_manager_state), V(dra_health_state), V(nvidia) or V(example-driver).
    - Files other than V(dra_manager_state) return RV(faults) and what their reader makes of them in RV(reading).
  returned: success
  type: str
  sample: dra_manager_state
size:
  description: The size of the file in bytes.
  returned: success
  type: int
  sample: 498
mode:
  description: The permissions of the file, null if there is none.
  returned: success
  type: str
  sample: "0600"
status:
  description:
    - V(sound) if the kubelets that matter start with the file and it has no fault worth mending.
    - V(faulty) if they start with it, but it has faults.
    - V(refused) if one of them does not start with it.
  returned: success
  type: str
  sample: refused
format:
  description:
    - The format, V(fnv-1.27), V(fnv-1.28), V(fnv-1.30), V(crc-1.31) or V(crc-1.35), named after the first release that
      writes it. Null if the bytes do not tell.
  returned: when RV(kind) is V(dra_manager_state)
  type: str
  sample: crc-1.35
universal:
  description: Whether the kubelets of all releases from 1.27 on start with the file and then know all its claims.
  returned: when RV(kind) is V(dra_manager_state)
  type: bool
  sample: false
written_by:
  description: The releases that write this format.
  returned: when RV(kind) is V(dra_manager_state)
  type: list
  elements: str
  sample: ["1.35", "1.36"]
readable_by:
  description: The releases whose kubelet loads the file.
  returned: when RV(kind) is V(dra_manager_state)
  type: list
  elements: str
  sample: ["1.31", "1.32", "1.33", "1.34", "1.35", "1.36"]
kubelet_verdicts:
  description:
    - Release to what its kubelet says when it loads the file, C(ok:) with the number of claims, or the class of the
      error, V(checksum_mismatch), V(truncated), V(syntax), V(trailing_data), V(wrong_type), or one of these with
      C(inner_) before it when the text inside C(Data) is at fault.
  returned: when RV(kind) is V(dra_manager_state)
  type: dict
  sample: {"1.30": "checksum_mismatch", "1.36": "ok:1"}
kubelet_start:
  description:
    - Release to how its kubelet comes up, V(ok), V(fails) or V(panic). Kubelets up to 1.30 refuse CDI names that later
      ones accept.
  returned: when RV(kind) is V(dra_manager_state)
  type: dict
  sample: {"1.30": "fails", "1.36": "ok"}
claims_kept:
  description: Release to the number of claims that its kubelet knows after its start, equal names counted once.
  returned: when RV(kind) is V(dra_manager_state)
  type: dict
  sample: {"1.30": 0, "1.36": 1}
checksum:
  description: The checksum of the file.
  returned: when RV(kind) is V(dra_manager_state)
  type: dict
  contains:
    stored:
      description: The number in the file, null if there is none to read.
      returned: always
      type: int
      sample: 198144363
    computed:
      description: The number that its data gives, null if there are no data to read.
      returned: always
      type: int
      sample: 198144363
    ok:
      description: Whether kubelets of the file's own format accept it, null if that is not known.
      returned: always
      type: bool
      sample: true
claims_in_file:
  description: The number of claims in a file that can be read, null if it cannot.
  returned: when RV(kind) is V(dra_manager_state)
  type: int
  sample: 1
claims_saved:
  description: The number of whole claims found in a file that cannot be read, null if it can.
  returned: when RV(kind) is V(dra_manager_state)
  type: int
  sample: 12
claims_broken:
  description: The number of places where a claim begins but does not end.
  returned: when RV(kind) is V(dra_manager_state)
  type: int
  sample: 1
claims:
  description: The claims that are in the file or can be saved from it, sorted by namespace, name and UID.
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
      sample: claim-1
    namespace:
      description: Its namespace.
      returned: always
      type: str
      sample: default
    pods:
      description: >-
        The UIDs of the pods that hold it, sorted. Null where a kubelet's file says null, which makes the kubelet panic.
      returned: always
      type: list
      elements: str
      sample: [b0d00001-aaaa-4bbb-8ccc-000000000001]
    class_name:
      description: The resource class, null in files of 1.31 and later, which do not have it.
      returned: when RV(kind) is V(dra_manager_state)
      type: str
      sample: null
    drivers:
      description: The drivers that are called for the claim, sorted by name.
      returned: when RV(kind) is V(dra_manager_state)
      type: list
      elements: dict
      contains:
        name:
          description: The name of the driver.
          returned: always
          type: str
          sample: gpu.example.com
        devices:
          description: What the driver prepared, null while its answer was outstanding.
          returned: always
          type: list
          elements: dict
          sample:
            - pool: node-1
              device: gpu-1
              share_id: null
              requests: [req-0]
              cdi_devices: [vendor.example.com/gpu=dev-1]
    pod_names:
      description: The names of the pods, sorted.
      returned: when RV(kind) is V(nvidia) or V(example-driver)
      type: list
      elements: str
      sample: [pod-1]
    state:
      description: The driver's own word for how far the claim is, empty if it has none.
      returned: when RV(kind) is V(nvidia) or V(example-driver)
      type: str
      sample: PrepareCompleted
    devices:
      description: What the driver prepared, with its own words for the C(kind) of device and its C(uuid).
      returned: when RV(kind) is V(nvidia) or V(example-driver)
      type: list
      elements: dict
      sample:
        - kind: gpu
          pool: node-1
          device: gpu-1
          share_id: null
          requests: [gpu]
          cdi_devices: [k8s.gpu.nvidia.com/device=gpu-1]
          uuid: GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c
faults:
  description: Every fault, the file first, then its members, then its claims.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: The stable name of this kind of fault.
      returned: always
      type: str
      sample: checksum_mismatch
    severity:
      description: V(error), V(warning) or V(info).
      returned: always
      type: str
      sample: error
    place:
      description: Where in the file.
      returned: always
      type: str
      sample: Checksum
    text:
      description: What is wrong, in one sentence.
      returned: always
      type: str
      sample: The checksum is 0, the data gives 198144363.
    remedy:
      description: What to do next, empty if nothing.
      returned: always
      type: str
      sample: "Compare the claims with the API, stop the kubelet, then repair: the checksum is made anew."
    facts:
      description: Details for programs.
      returned: always
      type: dict
      sample: {"stored": 0}
    kubelets:
      description: What kubelets of which releases do about it.
      returned: when RV(kind) is V(dra_manager_state)
      type: list
      elements: dict
      sample: [{"releases": "all releases", "effect": "does not start"}]
    repair:
      description: The action that mends it, empty if none is proposed.
      returned: when RV(kind) is V(dra_manager_state)
      type: str
      sample: recompute_checksum
    loses:
      description: What that action may lose, empty for nothing.
      returned: when RV(kind) is V(dra_manager_state)
      type: str
      sample: ""
repair:
  description: What M(nodeops.dra.checkpoint) with C(state=repaired) would do.
  returned: when RV(kind) is V(dra_manager_state)
  type: dict
  contains:
    possible:
      description: Whether the file can be repaired without a decision by a person.
      returned: always
      type: bool
      sample: true
    reason:
      description: Why not.
      returned: always
      type: str
      sample: ""
    changed:
      description: Whether anything would be changed.
      returned: always
      type: bool
      sample: true
    claims:
      description: The number of claims in the repaired file.
      returned: always
      type: int
      sample: 1
    steps:
      description: The steps, in order.
      returned: always
      type: list
      elements: dict
      contains:
        action:
          description: The name of the action.
          returned: always
          type: str
          sample: recompute_checksum
        place:
          description: Where in the file, or which claim.
          returned: always
          type: str
          sample: Checksum
        text:
          description: What it is about, in one sentence.
          returned: always
          type: str
          sample: The checksum is 0, the data gives 198144363.
        loses:
          description: What it loses, empty for nothing.
          returned: always
          type: str
          sample: ""
kubelet:
  description: The kubelet that runs on this root directory, and how to stop it. Null if there is none.
  returned: success
  type: dict
  sample: null
target_version:
  description: The release that the file was judged for, null if none was given.
  returned: success
  type: str
  sample: "1.36"
reading:
  description: What the reader of another kind of state file makes of it.
  returned: when RV(kind) is not V(dra_manager_state)
  type: dict
  sample: {"loads_without_error": true}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.state_file import location_spec
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import inspect, locate


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={**location_spec(), "target_version": {"type": "str"}},
        mutually_exclusive=[("path", "kubelet_root")],
        supports_check_mode=True,
    )
    options = module.params
    run(
        module,
        lambda: {
            "changed": False,
            **inspect(
                locate(options["path"], options["kubelet_root"]),
                target=options["target_version"],
                known_pods=options["known_pods"],
            ),
        },
    )


if __name__ == "__main__":
    main()
