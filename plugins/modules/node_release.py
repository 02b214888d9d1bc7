#!/usr/bin/python
# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put this collection's code on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_release
short_description: Put this collection's code on a node
version_added: 0.1.0
description:
  - Packs the code of the collection as it is on the control node, and unpacks it on the node to a folder of its own,
    named after the version and the content. The daemons of the collection run from there without ansible-core.
  - The same content is never transferred twice. A folder whose files were changed since is made anew.
  - Which release is used, and what else it needs, such as a virtual environment, is the business of the roles.
extends_documentation_fragment:
  - nodeops.dra.attributes
options:
  directory:
    description:
      - The directory on the node that holds releases. It is made when missing.
    type: path
    required: true
  collection:
    description:
      - The root of the collection on the control node. When it is absent, the one that this module comes from.
    type: path
  release:
    description:
      - Name of the folder below O(directory). Set by the action plugin.
    type: str
  manifest_sum:
    description:
      - The SHA-256 of the archive's manifest. Set by the action plugin.
    type: str
  archive:
    description:
      - The archive on the node. Set by the action plugin when the release is to be unpacked.
    type: path
attributes:
  check_mode:
    description: Can run in C(check_mode) and tell what would be changed.
    support: full
  diff_mode:
    description: Can return what changed. The name of the release says it all.
    support: none
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run changes nothing.
    support: full
author:
  - nodeops.dra contributors (@nodeops)
"""

EXAMPLES = r"""
- name: Put the code on the node
  nodeops.dra.node_release:
    directory: /opt/nodeops-dra/releases
  register: code

- name: Tell what would run
  ansible.builtin.debug:
    msg: "{{ code.path }} has version {{ code.version }}"
"""

RETURN = r"""
path:
  description: The folder of the release.
  returned: success
  type: str
  sample: /opt/nodeops-dra/releases/0.1.0-5d41402abc4b
release:
  description: The name of that folder.
  returned: success
  type: str
  sample: 0.1.0-5d41402abc4b
version:
  description: The version of the collection.
  returned: success
  type: str
  sample: 0.1.0
faults:
  description: Why the folder was, or would be, made anew. Empty when it is as it should be.
  returned: success
  type: list
  elements: str
  sample: ["manifest.json: No such file or directory"]
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.release import faults, release_spec, unpack
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError


def main() -> None:
    """Entry point."""
    module = AnsibleModule(argument_spec=release_spec(), supports_check_mode=True)
    options = module.params
    if not (options["release"] and options["manifest_sum"]):
        module.fail_json(msg="release and manifest_sum are missing. Call the module as a task: its action sets them.")
    path = os.path.join(options["directory"], options["release"])
    found = faults(path, options["manifest_sum"])
    if found and options["archive"] and not module.check_mode:
        try:
            unpack(options["archive"], path, options["manifest_sum"])
        except DraError as error:
            module.fail_json(msg=str(error), **error.facts)
    module.exit_json(changed=bool(found), path=path, release=options["release"], faults=found)


if __name__ == "__main__":
    main()
