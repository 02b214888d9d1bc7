# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m ansible_collections.nodeops.dra.plugins.module_utils.sandbox <command>``: a simulated cluster."""

from __future__ import annotations

import argparse
import importlib
import sys

from ..checkpoint.errors import DraError

# command -> (module beside this one, function that adds the arguments, function that runs it, one line of help)
COMMANDS = {
    "driver": ("driver_command", "add_driver_arguments", "run_driver", "run a simulated DRA driver"),
    "apiserver": ("apiserver.command", "add_server_arguments", "run_server", "run an API server that lives in memory"),
    "apiserver-control": ("apiserver.command", "add_control_arguments", "run_control", "talk to a running API server"),
    "controller-account": ("controller_account", "add_arguments", "run", "make the ResourceClaim controller's account"),
    "timeline": ("timeline", "add_arguments", "run", "print who did what in which millisecond"),
    "control": ("driver_command", "add_control_arguments", "run_control", "talk to a running simulated driver"),
}


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="sandbox", description="Parts of a simulated cluster.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (module_name, add_arguments, _run, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if arguments[:1] == [name]:  # only the chosen part is imported
            getattr(importlib.import_module(f".{module_name}", __package__), add_arguments)(command)
    options = parser.parse_args(arguments)
    module_name, _add_arguments, run, _summary = COMMANDS[options.command]
    try:
        return int(getattr(importlib.import_module(f".{module_name}", __package__), run)(options))
    except DraError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
