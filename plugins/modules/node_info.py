#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say whether a node is fit for Dynamic Resource Allocation."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Say whether a node is fit for DRA
version_added: 0.1.0
description:
  - Looks at everything on a node that Dynamic Resource Allocation depends on, before anything is installed - the
    kubelet and its gates, the container runtime and its CDI settings, drivers, CDI specs, lengths of socket paths,
    device plugins, rights, and the machine itself.
  - Says whether the node is ready for what it shall do, and if not, why not and what to do. Every finding has a stable
    code, see the guide about preflights.
  - Reads only. It needs nothing but Python 3.9. What cannot be told is null, and a finding says why.
  - Run it with C(become). Programs of the node are asked for their version if none but root can replace them.
extends_documentation_fragment:
  - nodeops.dra.attributes
  - nodeops.dra.attributes.info
  - nodeops.dra.kubelet
options:
  mode:
    description:
      - What the node shall do. It decides which findings matter.
      - With V(manage) the agent of this collection prepares claims, and no kubelet may do so too.
      - With V(observe) a kubelet prepares claims and the agent looks on.
      - With V(none) a kubelet prepares claims and there is no agent.
    type: str
    choices: [manage, observe, none]
    default: manage
  target_version:
    description:
      - The Kubernetes release that the node shall run next, such as V(1.35). Gates are judged for it too.
      - When it is absent, only the present release counts.
    type: str
  runtime:
    description:
      - The container runtime whose containers get the devices.
      - When it is absent, the one that the kubelet uses, and with O(mode=manage) the only one that there is. With
        several, nothing is said about CDI then.
    type: str
    choices: [containerd, cri-o, podman]
  state_directory:
    description:
      - The directory where the manager of this collection keeps its files, or shall keep them. With O(mode=none) only
        the claims in it are counted.
    type: path
    default: /var/lib/nodeops-dra
  cdi_directories:
    description:
      - The CDI spec directories that the other modules and the agent are told. Those that the container runtime does
        not read are findings.
      - When it is absent, only the directories of the runtime count.
    type: list
    elements: path
  accept:
    description:
      - Codes of findings that are known and no reason to stop. They are told and are no blockers.
    type: list
    elements: str
    default: []
seealso:
  - module: nodeops.dra.driver_info
  - module: nodeops.dra.claim_info
  - module: nodeops.dra.checkpoint_info
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Look at the node
  nodeops.dra.node_info:
    mode: observe
  register: node

- name: Stop where something is missing
  ansible.builtin.assert:
    that: node.ready
    fail_msg: "{{ node.blockers | map(attribute='text') | join(' ') }}"

- name: Look at the gates before an upgrade
  nodeops.dra.node_info:
    mode: observe
    target_version: "1.35"
  register: node
  failed_when: node is failed or 'gate_refused' in node.blockers | map(attribute='code')

- name: Use another directory and podman, and leave the device plugin where it is
  nodeops.dra.node_info:
    mode: manage
    runtime: podman
    state_directory: /data/nodeops-dra
    accept:
      - device_plugin_overlap
"""

RETURN = r"""
ready:
  description: Whether there are no blockers.
  returned: success
  type: bool
  sample: false
blockers:
  description: The findings for which the node is not ready, each as in RV(findings).
  returned: success
  type: list
  elements: dict
  sample:
    - code: cdi_off
      severity: error
      place: /etc/containerd/config.toml
      text: "CDI is off in containerd 1.7.24: claims are prepared, and their devices do not reach the containers."
      remedy: Set enable_cdi = true in the table of the CRI plugin in /etc/containerd/config.toml and restart it.
      facts:
        runtime: containerd
findings:
  description: Everything that was found, errors first, then by code and place.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: The stable name of this kind of finding.
      returned: always
      type: str
      sample: cgroup_v1
    severity:
      description: V(error), V(warning) or V(info).
      returned: always
      type: str
      sample: warning
    place:
      description: The file, directory or part of the node.
      returned: always
      type: str
      sample: /sys/fs/cgroup
    text:
      description: What is wrong, in one sentence.
      returned: always
      type: str
      sample: The node uses cgroup v1, which kubelets from 1.35 on refuse unless failCgroupV1 is false.
    remedy:
      description: What to do next.
      returned: always
      type: str
      sample: Boot with systemd.unified_cgroup_hierarchy=1 before that upgrade.
    facts:
      description: Details for programs.
      returned: always
      type: dict
      sample: {}
mode:
  description: What the node shall do, as given.
  returned: success
  type: str
  sample: observe
target_version:
  description: The release for which gates were judged too, null without one.
  returned: success
  type: str
  sample: null
kubelet:
  description: The kubelet of the node.
  returned: success
  type: dict
  contains:
    root:
      description: Its root directory, null if several are possible.
      returned: always
      type: str
      sample: /var/lib/kubelet
    root_source:
      description: >-
        Where that is from - V(option), V(process), V(configuration), V(found) (a place that holds a state file) or
        V(default).
      returned: always
      type: str
      sample: process
    root_reason:
      description: The same in words.
      returned: always
      type: str
      sample: command line of pid 812
    running:
      description: Whether it runs.
      returned: always
      type: bool
      sample: true
    version:
      description: Its version, null if it cannot be asked.
      returned: always
      type: str
      sample: 1.34.2
    distribution:
      description: V(kubelet), V(k3s), V(rke2), V(k0s) or V(microk8s), null if it does not run.
      returned: always
      type: str
      sample: kubelet
    pid:
      description: Its process number, null if it does not run.
      returned: always
      type: int
      sample: 812
    unit:
      description: Its systemd unit, null if it has none.
      returned: always
      type: str
      sample: kubelet.service
    started_at:
      description: When it was started, in UTC. Null if it does not run.
      returned: always
      type: str
      sample: "2026-07-24T08:00:00Z"
    in_container:
      description: Whether it runs in a container, null if it does not run or that is hidden.
      returned: always
      type: bool
      sample: false
    configuration_files:
      description: The files that were read, later ones win.
      returned: always
      type: list
      elements: str
      sample: [/var/lib/kubelet/config.yaml]
    runtime_endpoint:
      description: The socket of the container runtime that it is told, null if it is told none.
      returned: always
      type: str
      sample: unix:///run/containerd/containerd.sock
    prepares_claims:
      description: Whether it runs and prepares claims, null if that is unknown.
      returned: always
      type: bool
      sample: true
    gates:
      description: The gates of DRA that the release knows or that are set, by name.
      returned: always
      type: list
      elements: dict
      contains:
        name:
          description: The name of the gate.
          returned: always
          type: str
          sample: DynamicResourceAllocation
        set:
          description: What it is set to, null if it is not set.
          returned: always
          type: bool
          sample: null
        stage:
          description: >-
            What it is in this release - V(alpha), V(beta), V(beta, off by default), V(ga), V(locked) or V(removed).
            Null if the release does not know it, or is unknown.
          returned: always
          type: str
          sample: ga
        "on":
          description: Whether it is on, null if that is unknown.
          returned: always
          type: bool
          sample: true
        on_in_target:
          description: Whether it would be on in O(target_version). Null without one, and if that is unknown.
          returned: always
          type: bool
          sample: null
runtimes:
  description: The container runtimes that run or are installed, the kubelet's first.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: V(containerd), V(cri-o) or V(podman).
      returned: always
      type: str
      sample: containerd
    version:
      description: Its version, null if it cannot be asked.
      returned: always
      type: str
      sample: 2.1.4
    running:
      description: Whether it runs. podman has no daemon.
      returned: always
      type: bool
      sample: true
    pid:
      description: Its process number, null if it does not run.
      returned: always
      type: int
      sample: 640
    started_at:
      description: When it was started, in UTC. Null if it does not run.
      returned: always
      type: str
      sample: "2026-07-24T08:00:00Z"
    distribution:
      description: The Kubernetes distribution that brought it, empty if none did.
      returned: always
      type: str
      sample: ""
    used_by_kubelet:
      description: Whether the kubelet uses it, null if that is unknown.
      returned: always
      type: bool
      sample: true
    configuration_files:
      description: The files that were read.
      returned: always
      type: list
      elements: str
      sample: [/etc/containerd/config.toml]
    cdi:
      description: Whether it injects CDI devices, null if that is unknown.
      returned: always
      type: bool
      sample: true
    cdi_directories:
      description: The spec directories that it reads, later ones win. Null if they are unknown.
      returned: always
      type: list
      elements: str
      sample: [/etc/cdi, /var/run/cdi]
cdi:
  description: CDI as it matters to containers of this node.
  returned: success
  type: dict
  contains:
    enabled:
      description: Whether devices reach containers, as far as settings tell. Null if that is unknown.
      returned: always
      type: bool
      sample: true
    runtime:
      description: The runtime of which that was told, null if it is not known which one matters.
      returned: always
      type: str
      sample: containerd
    directories:
      description: >-
        The spec directories in rising priority - the runtime's, else those of O(cdi_directories), else the usual ones.
        Each as in RV(directories), with the number of C(specs).
      returned: always
      type: list
      elements: dict
      sample:
        - place: /var/run/cdi
          exists: true
          owner: root
          group: 0
          mode: "0755"
          writable: true
          free_bytes: 401408000
          real_path: /run/cdi
          problem: null
          specs: 2
drivers:
  description: The drivers that files of the node know, by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name of the driver.
      returned: always
      type: str
      sample: gpu.example.com
    is_dra:
      description: >-
        V(true) for a DRA driver, null where only a registration socket is known, which may be another plugin's.
      returned: always
      type: bool
      sample: true
    registration_sockets:
      description: Its registration sockets. Whether anybody answers was not tried.
      returned: always
      type: list
      elements: str
      sample: [/var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock]
    service_sockets:
      description: The sockets of its service.
      returned: always
      type: list
      elements: str
      sample: [/var/lib/kubelet/plugins/gpu.example.com/dra.sock]
    claims:
      description: How many claims the kubelet or the manager of this collection holds for it.
      returned: always
      type: int
      sample: 2
    spec_directories:
      description: The directories in which it has CDI specs.
      returned: always
      type: list
      elements: str
      sample: [/var/run/cdi]
device_plugins:
  description: The resources of device plugins that the kubelet has recorded, by name.
  returned: success
  type: list
  elements: dict
  contains:
    resource:
      description: The name of the extended resource.
      returned: always
      type: str
      sample: example.com/gpu
    devices:
      description: How many devices are registered.
      returned: always
      type: int
      sample: 4
    pods:
      description: How many pods hold some.
      returned: always
      type: int
      sample: 1
longest_driver_name:
  description: How many bytes the name of a driver may have for its sockets to fit, null if the root is not known.
  returned: success
  type: dict
  contains:
    plain:
      description: Of a driver with one socket.
      returned: always
      type: int
      sample: 64
    rolling:
      description: Of a driver that makes a socket for each of its pods, for rolling updates.
      returned: always
      type: int
      sample: 27
directories:
  description: >-
    The kubelet's root directory, those of its plugins, and O(state_directory).
  returned: success
  type: list
  elements: dict
  contains:
    place:
      description: The directory.
      returned: always
      type: str
      sample: /var/lib/kubelet/plugins_registry
    exists:
      description: Whether it is a directory.
      returned: always
      type: bool
      sample: true
    owner:
      description: The user it belongs to, null without a directory.
      returned: always
      type: str
      sample: root
    group:
      description: The number of its group, null without a directory.
      returned: always
      type: int
      sample: 0
    mode:
      description: Its permissions, null without a directory.
      returned: always
      type: str
      sample: "0750"
    writable:
      description: Whether the user of the task may write, null without a directory.
      returned: always
      type: bool
      sample: true
    free_bytes:
      description: Room on its file system, 0 without free inodes, null without a directory.
      returned: always
      type: int
      sample: 53687091200
    real_path:
      description: Its path without symbolic links, null without a directory.
      returned: always
      type: str
      sample: /var/lib/kubelet/plugins_registry
    problem:
      description: Why it could not be looked at, null if it could or is not there.
      returned: always
      type: str
      sample: null
selinux:
  description: V(enforcing), V(permissive), V(disabled) or V(unknown).
  returned: success
  type: str
  sample: disabled
machine:
  description: The machine. Empty if the look at it failed.
  returned: success
  type: dict
  contains:
    boot_id:
      description: The kernel's ID of this boot, null if that is unknown.
      returned: always
      type: str
      sample: 443a5ce9-2c4c-4436-a853-c24423fb7ad3
    booted_at:
      description: When the machine was started, in UTC. Null if that is unknown.
      returned: always
      type: str
      sample: "2026-07-24T07:58:00Z"
    seconds_since_boot:
      description: How long that is ago, null if that is unknown.
      returned: always
      type: float
      sample: 7200.5
    time:
      description: What its clock says, in UTC.
      returned: always
      type: str
      sample: "2026-07-24T09:58:00Z"
    clock_synchronised:
      description: Whether the kernel takes its clock for synchronised, null if that is unknown.
      returned: always
      type: bool
      sample: true
    run_filesystem:
      description: The type of file system of C(/run), null if that is unknown.
      returned: always
      type: str
      sample: tmpfs
    var_run_is_run:
      description: Whether C(/var/run) is C(/run), null if that is unknown.
      returned: always
      type: bool
      sample: true
    swap_bytes:
      description: The size of all swap, null if that is unknown.
      returned: always
      type: int
      sample: 0
    systemd:
      description: Whether systemd is C(running), and its C(version).
      returned: always
      type: dict
      sample:
        running: true
        version: 252
    cgroup_version:
      description: V(1) or V(2), null if that is unknown.
      returned: always
      type: int
      sample: 2
pythons:
  description: The Pythons in the usual places and beside the one that runs the module, newest first.
  returned: success
  type: list
  elements: dict
  contains:
    program:
      description: The interpreter.
      returned: always
      type: str
      sample: /usr/bin/python3
    version:
      description: Its version.
      returned: always
      type: str
      sample: 3.11.2
    venv:
      description: Whether it can make virtual environments with pip.
      returned: always
      type: bool
      sample: true
agent_python:
  description: The one of RV(pythons) that the agent would be installed with, null if none is new enough.
  returned: success
  type: dict
  sample:
    program: /usr/bin/python3
    version: 3.11.2
    venv: true
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.look import Question, preflight
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.kubelet import kubelet_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.outcome import run


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            **kubelet_spec(),
            "mode": {"type": "str", "choices": ["manage", "observe", "none"], "default": "manage"},
            "target_version": {"type": "str"},
            "runtime": {"type": "str", "choices": ["containerd", "cri-o", "podman"]},
            "state_directory": {"type": "path", "default": "/var/lib/nodeops-dra"},
            "cdi_directories": {"type": "list", "elements": "path"},
            "accept": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    run(module, lambda: preflight(Question(**module.params)))


if __name__ == "__main__":
    main()
