# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kubelet is meant; the spec is in module_utils/bridge/kubelet.py."""

from __future__ import annotations


class ModuleDocFragment:
    """The kubelet root directory."""

    DOCUMENTATION = r"""
options:
  kubelet_root:
    description:
      - The root directory of the kubelet (its C(--root-dir)).
      - When it is absent, it is taken from the command line or the configuration of the kubelet of this node, running
        or not, and C(/var/lib/kubelet) is the last resort.
    type: path
"""
