#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repair, convert, restore or remove a kubelet's DRA state file."""

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint
short_description: Repair, convert or restore the DRA state file of a kubelet
version_added: 0.1.0
description:
  - Mends C(dra_manager_state), the file in which a kubelet remembers the ResourceClaims that it prepared, carries it
    from one Kubernetes release to another, or goes back to the newest good copy of it.
  - A change is planned in full first. Then, while no kubelet runs on this root directory, the old file is copied to a
    backup beside it, the new one is written and renamed into place, read again and compared. Whatever fails on the way
    leaves the file as it was. In check mode a kubelet may run.
  - What need not change stays as it was, letter for letter, unknown fields and the order of keys included.
  - It needs nothing but the Python 3.9 of the node, so it works on a node that is otherwise broken.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.kubelet
  - nodeops.dra.state_file
options:
  state:
    description:
      - V(repaired) mends every fault that M(nodeops.dra.checkpoint_info) proposes a repair for, and nothing else. Of a
        file that cannot be read, every claim that is whole is saved. With O(target_version), the result is a file that
        the kubelet of that release accepts.
      - V(converted) carries a file that at least one release reads to O(target_version), and names what the target
        cannot hold.
      - V(restored) replaces the file by O(restore_from), or else a file that is not good by the newest copy that is.
        A file is good if the kubelet of O(target_version) starts with it and nothing in it breaks that kubelet later.
      - V(absent) removes the file, after a backup. The kubelet then forgets which drivers it must tell to unprepare.
    type: str
    choices: [repaired, converted, restored, absent]
    default: repaired
  target_version:
    description:
      - The Kubernetes version that the node runs or is about to run, such as V(1.31) or V(v1.34.2), or the name of a
        format, such as V(crc-1.31), or V(universal) for one file that every release from 1.27 on accepts, so that an
        upgrade can be rolled back.
      - Required for O(state=converted). When it is absent otherwise, the format of the file is kept.
    type: str
  drop_claims:
    description:
      - Claims to leave out, for O(state=repaired) and O(state=converted). A claim must match all that is given of a
        selector. Their drivers are not told to unprepare them.
      - Nothing happens for a selector that matches no claim.
    type: list
    elements: dict
    default: []
    suboptions: &selector
      uid:
        description: The UID of the claim.
        type: str
      name:
        description: The name of the claim.
        type: str
      namespace:
        description: The namespace of the claim.
        type: str
  keep_claims:
    description:
      - The only claims to keep, for O(state=repaired) and O(state=converted). When it is absent, all are kept.
    type: list
    elements: dict
    default: []
    suboptions: *selector
  add_claims:
    description:
      - Claims to add, for O(state=repaired) and O(state=converted), each as
        RV(nodeops.dra.checkpoint_info#module:claims) returns it.
      - A claim whose UID is in the file already is left as it is.
    type: list
    elements: dict
    default: []
    suboptions:
      uid:
        description: The UID of the ResourceClaim.
        type: str
        required: true
      name:
        description: Its name.
        type: str
        required: true
      namespace:
        description: Its namespace.
        type: str
        required: true
      pods:
        description: The UIDs of the pods that hold it.
        type: list
        elements: str
        default: []
      drivers:
        description: The drivers that must be called to unprepare it.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: The name of the driver.
            type: str
            required: true
          devices:
            description: What the driver prepared. When it is absent, the kubelet asks the driver again.
            type: list
            elements: dict
            suboptions:
              pool:
                description: The name of the device's pool.
                type: str
                default: ""
              device:
                description: The name of the device in its pool.
                type: str
                default: ""
              share_id:
                description: The share ID of a device that several claims share.
                type: str
              requests:
                description: The requests of the claim that the device serves. An empty list stands for all of them.
                type: list
                elements: str
                default: []
              cdi_devices:
                description: The fully qualified CDI names of the device.
                type: list
                elements: str
                default: []
  restore_from:
    description:
      - The copy to restore, for O(state=restored). When it is absent, the newest good one is taken, from beside the
        file and from O(ring_directory), unless the file itself is good.
    type: path
  ring_directory:
    description:
      - A directory of further copies to choose from, for O(state=restored).
      - When it is absent, C(/var/lib/nodeops-dra/ring) is looked at, where a node agent in the mode C(observe) keeps
        the last good copies, if those are copies of this very file.
    type: path
  force:
    description:
      - Change the file even if a kubelet runs on this root directory or a process holds the file. A running kubelet
        does not read the file again and overwrites it at its next change.
    type: bool
    default: false
  lock_timeout:
    description:
      - How many seconds to wait while another writer of this collection is at work on the file.
    type: float
    default: 10
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would do without doing it.
    support: full
  diff_mode:
    description: Returns the format and the claims before and after.
    support: full
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
seealso:
  - module: nodeops.dra.checkpoint_info
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Mend the state file of this node's kubelet, which is stopped
  nodeops.dra.checkpoint:
  register: mended

- name: Say what was lost
  ansible.builtin.debug:
    msg: "{{ item.text }} Lost is {{ item.loses }}."
  loop: "{{ mended.lost }}"

- name: Make the file ready for a kubelet of 1.31, before the upgrade
  nodeops.dra.checkpoint:
    state: converted
    target_version: "1.31"

- name: Make the file one that the old and the new kubelet read
  nodeops.dra.checkpoint:
    state: converted
    target_version: universal

- name: Go back to the newest good copy, from beside the file or from the ring of the node agent
  nodeops.dra.checkpoint:
    state: restored

- name: Forget one claim that its driver no longer knows
  nodeops.dra.checkpoint:
    state: repaired
    drop_claims:
      - namespace: team-a
        name: c1

- name: Remove the file
  nodeops.dra.checkpoint:
    state: absent
"""

RETURN = r"""
file:
  description: The file.
  returned: success
  type: str
  sample: /var/lib/kubelet/dra_manager_state
kubelet_root:
  description: The kubelet root directory that the file belongs to.
  returned: success
  type: str
  sample: /var/lib/kubelet
format:
  description: The format of the file afterwards, or V(universal). Null if there is none.
  returned: success
  type: str
  sample: crc-1.35
steps:
  description: What was done, in order.
  returned: success
  type: list
  elements: dict
  contains: &step
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
      description: What it was about, in one sentence.
      returned: always
      type: str
      sample: The checksum is 0, the data gives 198144363.
    loses:
      description: What it loses, empty for nothing.
      returned: always
      type: str
      sample: ""
lost:
  description: Those of RV(steps) that lose something.
  returned: success
  type: list
  elements: dict
  contains: *step
claims_before:
  description: The number of claims in the file before, or of those that could be saved from it.
  returned: success
  type: int
  sample: 1
claims_after:
  description: The number of claims in the file afterwards.
  returned: success
  type: int
  sample: 1
backup_file:
  description: The copy of the old file. Null if nothing was changed, or nothing was there.
  returned: success
  type: str
  sample: /var/lib/kubelet/dra_manager_state.20261130T120000Z.bak
restored_from:
  description: The copy that was restored. Null if the file was good as it was.
  returned: when O(state=restored)
  type: str
  sample: /var/lib/kubelet/dra_manager_state.20261129T120000Z.bak
copies:
  description: The copies that were looked at, newest first. None if the file was good as it was.
  returned: when O(state=restored)
  type: list
  elements: dict
  contains:
    path:
      description: The copy.
      returned: always
      type: str
      sample: /var/lib/kubelet/dra_manager_state.20261129T120000Z.bak
    recorded_at:
      description: When it was made, in seconds since 1970, by its name if that tells.
      returned: always
      type: float
      sample: 1795953600.0
    problem:
      description: Why it will not do, empty if it will.
      returned: always
      type: str
      sample: ""
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import Result, run, with_diff
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.state_file import (
    change_spec,
    location_spec,
    selection_of,
)
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.statefile import Request, change, locate


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={**location_spec(), **change_spec()},
        mutually_exclusive=[("path", "kubelet_root")],
        required_if=[("state", "converted", ("target_version",))],
        supports_check_mode=True,
    )
    options = module.params

    def work() -> Result:
        request = Request(
            state=options["state"],
            target=options["target_version"],
            selection=selection_of(options),
            known_pods=options["known_pods"],
            backup=options["restore_from"],
            ring=options["ring_directory"],
            force=options["force"],
            lock_timeout=options["lock_timeout"],
        )
        location = locate(options["path"], options["kubelet_root"])
        return with_diff(module, change(location, request, check=module.check_mode))

    run(module, work)


if __name__ == "__main__":
    main()
