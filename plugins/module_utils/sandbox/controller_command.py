# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The command ``controller``: the ResourceClaim controller beside an embedded API server, with an account of its own.

The account is made in the server, with exactly the rights that the controller says it needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import pathlib
import secrets
import signal
import sys

from ..controller.controller import Controller
from ..controller.requests import rbac_rules
from ..controller.settings import ControllerSettings
from ..controller.target import find_target
from ..kube.client import KubeClient
from ..kube.cluster import resolve
from ..kube.options import ConnectionOptions
from .apiserver.command import control


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run the ResourceClaim controller beside an embedded API server, until SIGTERM."
    parser.add_argument("--kubeconfig", type=pathlib.Path, required=True, help="file that the API server wrote")
    parser.add_argument("--workers", type=int, default=ControllerSettings.workers, help="(default: %(default)s)")
    parser.add_argument("--ready-file", type=pathlib.Path, help="is written when all caches are full")


def run(options: argparse.Namespace) -> int:
    """Work until SIGTERM. DraError when the server cannot be reached."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    return asyncio.run(_work_until_signal(options))


async def _work_until_signal(options: argparse.Namespace) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    token = await _account(options.kubeconfig)
    access = resolve(ConnectionOptions(kubeconfig=str(options.kubeconfig), api_key=token), {})
    settings = ControllerSettings(workers=options.workers)
    async with KubeClient.connect(access) as client, Controller(client, settings) as controller:
        await controller.wait_ready()
        stats = controller.stats()
        line = f"ready version={stats.version} release={stats.release} pid={os.getpid()}\n"
        if options.ready_file:
            options.ready_file.write_text(line, encoding="utf-8")
        sys.stdout.write(line)
        sys.stdout.flush()
        await ended.wait()
    return 0


async def _account(kubeconfig: pathlib.Path) -> str:
    """Make the controller's account and return its token."""
    access = resolve(ConnectionOptions(kubeconfig=str(kubeconfig)), {})
    async with KubeClient.connect(access) as client:
        rules = rbac_rules([await find_target(client)])
    token = secrets.token_hex(16)
    account = {"token": token, "name": "controller", "rules": rules}
    await asyncio.to_thread(control, kubeconfig, "post", "rights", json.dumps(account))
    return token
