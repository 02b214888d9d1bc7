# Copyright (c) 2026 nodeops.dra contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options to reach the API server; their specs are in module_utils/bridge/cluster.py."""

from __future__ import annotations


class ModuleDocFragment:
    """How to reach the API server."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - The path of a kubeconfig file, or its content as a dict.
      - When it is absent, the environment variable E(K8S_AUTH_KUBECONFIG) counts, then the usual places.
    type: raw
  context:
    description:
      - The context of the kubeconfig to use. When it is absent, the current one.
    type: str
  host:
    description:
      - The URL of the API server, for use with O(api_key) and without a kubeconfig.
    type: str
  api_key:
    description:
      - A bearer token.
    type: str
  ca_cert:
    description:
      - The path of a file with the certificates that the API server's own is checked against.
    type: path
  validate_certs:
    description:
      - Whether to check the certificate of the API server. When it is absent, it is checked.
    type: bool
"""
