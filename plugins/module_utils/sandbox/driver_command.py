# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``driver`` and ``control``: the simulated driver as a process of its own, and its remote control."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import signal
import sys
import typing as t

from ..checkpoint.errors import DraError
from ..driver.handshake import connect_problem
from ..resource.view import SAFE_NAME
from .driver import DriverConfig, SimulatedDriver
from .driver_control import OPERATIONS, ControlServer, ask
from .driver_faults import KINDS, parse_fault
from .driver_services import ADVERTISED, HEALTH_ADVERTISED


def add_driver_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a simulated DRA driver until SIGTERM. It registers like a real one, writes real CDI files, keeps its "
        "prepared claims in a file of its own, and misbehaves on request."
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "faults (kind:key=value,...; keys method, uids=a;b, times, seconds, code, text):\n" + "\n".join(
        f"  {kind:12} {what}" for kind, what in KINDS.items()
    )
    parser.add_argument("--driver", default="gpu.example.com", help="driver name (default: %(default)s)")
    parser.add_argument("--kubelet-root", type=pathlib.Path, required=True, help="holds plugins/ and plugins_registry/")
    parser.add_argument("--cdi-dir", type=pathlib.Path, required=True, help="directory for the CDI files")
    parser.add_argument("--devices", type=int, default=8, help="number of devices (default: %(default)s)")
    parser.add_argument("--devices-per-claim", type=int, default=1)
    parser.add_argument("--share-devices", action="store_true", help="one device may serve several claims")
    parser.add_argument("--pool", default="pool-0", help="pool name in the answers (default: %(default)s)")
    parser.add_argument("--api", default="v1,v1beta1", help=f"generations to serve, of {', '.join(ADVERTISED)}")
    parser.add_argument("--health", default="", help=f"health services to serve, of {', '.join(HEALTH_ADVERTISED)}")
    parser.add_argument("--advertise", help="supported_versions to tell instead of the right ones")
    parser.add_argument("--instance", default="", help="part of the socket names, for two instances side by side")
    parser.add_argument("--one-socket", action="store_true", help="serve everything on the registration socket")
    parser.add_argument("--fault", action="append", default=[], help="fault that is set from the start; see below")
    parser.add_argument("--calls-file", type=pathlib.Path, help="append each call as JSON lines")
    parser.add_argument("--control", help="path of the control socket (default: beside the DRA socket)")
    parser.add_argument("--ready-file", type=pathlib.Path, help="is written when both sockets listen")


def config_from(options: argparse.Namespace) -> DriverConfig:
    for option, name in (("--driver", options.driver), ("--instance", options.instance or "any")):
        if not SAFE_NAME.fullmatch(name):
            raise SystemExit(f"{option}: {name!r} becomes a part of paths; expected letters, digits, '-', '_' and '.'")
    if options.devices < 1 or options.devices_per_claim < 1:
        raise SystemExit("--devices and --devices-per-claim: expected 1 or more")
    return DriverConfig(
        name=options.driver,
        kubelet_root=options.kubelet_root.absolute(),
        cdi_dir=options.cdi_dir.absolute(),
        devices=options.devices,
        apis=_names(options.api, "--api", ADVERTISED),
        health=_names(options.health, "--health", HEALTH_ADVERTISED),
        instance=options.instance,
        devices_per_claim=options.devices_per_claim,
        share_devices=options.share_devices,
        pool=options.pool,
        advertise=None if options.advertise is None else tuple(filter(None, options.advertise.split(","))),
        one_socket=options.one_socket,
        calls_file=options.calls_file,
    )


def _names(text: str, option: str, known: t.Container[str]) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    for name in names:
        if name not in known:
            raise SystemExit(f"{option}: {name!r} is not known, see --help")
    if "v1alpha3" in names and "v1alpha4" in names:
        raise SystemExit(f"{option}: v1alpha3 and v1alpha4 have the same service name and cannot be served together")
    return names


def run_driver(options: argparse.Namespace) -> int:
    try:
        return asyncio.run(_serve_until_signal(options))
    except OSError as error:
        raise DraError(
            f"The simulated driver cannot work with {error.filename or 'a file'}: {error.strerror or error}.",
            "Give directories that it may write to with --kubelet-root, --cdi-dir, --calls-file and --ready-file.",
            path=error.filename,
        ) from error


def _refuse_second(config: DriverConfig) -> None:
    """A second driver on the same paths would take the sockets of the first one away."""
    path = str(config.registration_socket)
    if not connect_problem(path):
        raise DraError(
            f"A driver listens on {path} already.",
            "Stop it, or give the new one a name of its own with --instance (or --driver).",
            registration_socket=path,
        )


async def _serve_until_signal(options: argparse.Namespace) -> int:
    config = config_from(options)
    _refuse_second(config)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    faults = [parse_fault(text) for text in options.fault]
    suffix = f"-{config.instance}" if config.instance else ""
    control = options.control or str(config.plugin_dir / f"control{suffix}.sock")
    driver = SimulatedDriver(config, faults, on_crash=lambda: os.kill(os.getpid(), signal.SIGKILL))
    async with ControlServer(driver, control, ended.set), driver:
        line = (
            f"ready driver={config.name} registration={config.registration_socket} "
            f"endpoint={config.socket} control={control} pid={os.getpid()}\n"
        )
        if options.ready_file:
            temporary = options.ready_file.with_name(options.ready_file.name + ".tmp")
            temporary.write_text(line, encoding="utf-8")
            temporary.replace(options.ready_file)
        sys.stdout.write(line)
        sys.stdout.flush()
        await ended.wait()
    return 0


def add_control_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ask a running simulated driver something, or tell it to misbehave. Prints the answer as JSON."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "operations:\n" + "\n".join(f"  {name:18} {what}" for name, what in OPERATIONS.items())
    parser.add_argument("socket", help="path of the driver's control socket")
    parser.add_argument("operation", metavar="operation", choices=sorted(OPERATIONS))
    parser.add_argument("values", nargs="*", metavar="key=value")


def run_control(options: argparse.Namespace) -> int:
    values: dict[str, t.Any] = {}
    for item in options.values:
        key, equals, value = item.partition("=")
        if not equals:
            raise SystemExit(f"{item!r} is not key=value")
        values[key] = value
    answer = asyncio.run(ask(options.socket, options.operation, **values))
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 0
