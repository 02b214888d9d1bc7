# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules for state files share; their specs are in module_utils/bridge/state_file.py."""

from __future__ import annotations


class ModuleDocFragment:
    """Where the state file is."""

    DOCUMENTATION = r"""
options:
  path:
    description:
      - The state file.
      - When it is absent, the file C(dra_manager_state) below O(kubelet_root) is meant.
    type: path
  known_pods:
    description:
      - The UIDs of all pods that exist on this node.
      - References to other pods are then reported as V(unknown_pod). When it is absent, pods are not judged.
    type: list
    elements: str
"""
