# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The command ``controller-account``: an account for the ResourceClaim controller in an embedded API server.

It has exactly the rights that the controller says it needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
import secrets
import sys
import typing as t

from ..checkpoint.file_errors import from_os_error
from ..controller.daemon_settings import SCHEMA, candidacy
from ..controller.rights import account_rights, roles
from ..controller.target import Target, find_target
from ..daemon.settings import default_settings
from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.options import ConnectionOptions
from .apiserver.command import control
from .apiserver.kubeconfig import write_private


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Make the ResourceClaim controller's account in an embedded API server."
    parser.add_argument("--kubeconfig", type=pathlib.Path, required=True, help="file that the API server wrote")
    parser.add_argument(
        "--write-kubeconfig", type=pathlib.Path, required=True, metavar="FILE", help="the account's own kubeconfig"
    )


def run(options: argparse.Namespace) -> int:
    """Make the account and write its kubeconfig. DraError when the server cannot be reached."""
    token = secrets.token_hex(16)
    account = {"token": token, "name": "controller", "rules": asyncio.run(_rules(options.kubeconfig))}
    control(options.kubeconfig, "post", "rights", json.dumps(account))
    document = json.loads(options.kubeconfig.read_text(encoding="utf-8"))
    document["users"][0]["user"] = {"token": token}
    try:
        write_private(options.write_kubeconfig, document)
    except OSError as error:
        raise from_os_error(error, str(options.write_kubeconfig), "could not be written as kubeconfig") from error
    sys.stdout.write(f"made account=controller kubeconfig={options.write_kubeconfig}\n")
    return 0


async def _rules(kubeconfig: pathlib.Path) -> list[dict[str, t.Any]]:
    """The rules for this server."""
    access = resolve(ConnectionOptions(kubeconfig=str(kubeconfig)), {})
    async with KubeClient.connect(access) as client:
        return account_rules(await find_target(client))


def account_rules(target: Target) -> list[dict[str, t.Any]]:
    """What a ClusterRole and Roles would say, for a controller with default settings; Roles have ``namespaces``."""
    lease = candidacy(default_settings(SCHEMA))
    found = roles(account_rights([target], (lease.namespace, lease.name)))
    return [
        {**rule, "namespaces": [namespace] if namespace else []} for namespace, rules in found.items() for rule in rules
    ]
