# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all modules promise alike."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of every module; ``INFO`` has those of modules that only read."""

    DOCUMENTATION = r"""
options: {}
attributes:
  platform:
    description: Target operating systems.
    platforms: linux
    support: full
  action_group:
    description: Use C(group/nodeops.dra.dra) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - nodeops.dra.dra
"""

    INFO = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the same as without it.
    support: full
  diff_mode:
    description: Can return what changed. This module changes nothing.
    support: none
  idempotent:
    description: When run twice in a row outside C(check_mode), with the same options, the second run returns the same.
    support: full
"""
