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
  username:
    description:
      - A user for basic authentication, with O(password). Kubernetes itself knows none; proxies in front of it may.
    type: str
  password:
    description:
      - The password of O(username).
    type: str
  client_cert:
    description:
      - The path of a client certificate in PEM format, with O(client_key).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - The path of the key of O(client_cert).
    type: path
    aliases: [key_file]
  ca_cert:
    description:
      - The path of a file with the certificates that the API server's own is checked against.
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description:
      - Whether to check the certificate of the API server. When it is absent, it is checked.
    type: bool
    aliases: [verify_ssl]
  tls_server_name:
    description:
      - The name that the API server's certificate must carry, where it is not the one in its URL.
    type: str
  proxy:
    description:
      - The URL of a proxy on the way to the API server. When it is absent, the environment of the task counts.
    type: str
  no_proxy:
    description:
      - Hosts that are reached without O(proxy), separated by commas.
    type: str
  impersonate_user:
    description:
      - The user as whom to act.
    type: str
  impersonate_groups:
    description:
      - The groups of O(impersonate_user).
    type: list
    elements: str
"""
