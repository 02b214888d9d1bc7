# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The state file tool for a node's console, without Ansible and without any library.

Exit status: 0 the file is sound (or the change is made, or nothing was to be done), 1 faults were found, 2 the file
could not be looked at or was not changed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import typing as t

from . import console, statefile, store
from .diagnosis import SOUND
from .errors import DraError
from .selection import Selection, Selector

EXIT_SOUND, EXIT_FAULTS, EXIT_FAILED = 0, 1, 2
_EXIT_INTERRUPTED, _EXIT_PIPE_CLOSED = 130, 141  # as a shell tells it of SIGINT and SIGPIPE
_STATES = {"repair": "repaired", "convert": "converted", "restore": "restored"}


def main(argv: t.Sequence[str] | None = None) -> int:
    """Run the tool; the return value is the exit status."""
    options = _parser().parse_args(argv)
    try:
        return _inspect(options) if options.command == "inspect" else _change(options)
    except DraError as error:
        if options.output == "json":
            _write_json(error.to_dict())
        else:
            sys.stderr.write(f"{console.visible(str(error))}\n")
        return EXIT_FAILED


def run() -> int:
    """`main` for a terminal: names that it cannot show, a pager that is closed early and Ctrl-C make no stack trace."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # Python flushes once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_PIPE_CLOSED
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED


def _inspect(options: argparse.Namespace) -> int:
    report = statefile.inspect(_location(options), target=options.target, known_pods=options.known_pod)
    if options.output == "json":
        _write_json({"changed": False, **report})
    else:
        sys.stdout.write(console.inspection(report, options.all))
    return EXIT_SOUND if report["status"] == SOUND else EXIT_FAULTS


def _change(options: argparse.Namespace) -> int:
    request = statefile.Request(
        state=_STATES[options.command],
        target=options.target,
        selection=_selection(options),
        known_pods=getattr(options, "known_pod", None),
        backup=getattr(options, "source", None),
        ring=getattr(options, "ring", None),
        force=options.force,
    )
    result = statefile.change(_location(options), request, check=options.check)
    if options.output == "json":
        diff = {"before": result.pop("before"), "after": result.pop("after")}
        _write_json({**result, "diff": diff})
    else:
        sys.stdout.write(console.change(result, options.check))
    return EXIT_SOUND


def _selection(options: argparse.Namespace) -> Selection:
    if options.command == "restore":
        return Selection()
    drop = [Selector.parse(text) for text in options.drop]
    keep = [Selector.parse(text) for text in options.keep]
    return Selection(drop=drop, keep=keep, add=[claim for path in options.add for claim in _claims_in(path)])


def _claims_in(path: str) -> list[dict[str, t.Any]]:
    """The claims of a JSON file: a list of them, or what ``inspect --output json`` printed."""
    data = store.read_file(path, follow=True).data
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DraError(f"{path} is not JSON: {error}.", "Give a file as inspect --output json prints it.") from error
    claims = found.get("claims") if isinstance(found, dict) else found
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise DraError(
            f"{path} holds no list of claims.", "Give a list of claims, or a file as inspect --output json prints it."
        )
    return claims


def _location(options: argparse.Namespace) -> statefile.Location:
    return statefile.locate(options.file, options.kubelet_root)


def _write_json(value: t.Mapping[str, t.Any]) -> None:
    sys.stdout.writelines(json.JSONEncoder(indent=2, sort_keys=True).iterencode(value))  # never whole in memory
    sys.stdout.write("\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dra-checkpoint",
        description="Look at, repair, convert or restore a kubelet's dra_manager_state.",
        epilog="Exit status: 0 sound or done, 1 faults found, 2 could not look or not changed.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    inspect = _command(commands, "inspect", "say what the file is, who can read it, and every fault")
    inspect.add_argument("--all", action="store_true", help="list every claim and fault")
    inspect.add_argument("--known-pod", action="append", metavar="UID", help=_KNOWN_POD)
    repair = _command(commands, "repair", "mend every fault that has a repair, keep every claim that is whole")
    _add_change(repair, select=True)
    repair.add_argument("--known-pod", action="append", metavar="UID", help=_KNOWN_POD)
    convert = _command(commands, "convert", "carry the file to another release", kubelet=False)
    to = "a release (1.31), a format, or universal"
    convert.add_argument("--to", dest="target", required=True, metavar="VERSION", help=to)
    _add_change(convert, select=True)
    restore = _command(commands, "restore", "go back to the newest good copy")
    restore.add_argument("--from", dest="source", metavar="COPY", help="this copy instead of the newest good one")
    restore.add_argument("--ring", metavar="DIRECTORY", help="look for copies in this directory too")
    _add_change(restore, select=False)
    return parser


_KNOWN_POD = "a pod that exists (repeat for each); other pods in the file are then named as unknown"


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, *, kubelet: bool = True
) -> argparse.ArgumentParser:
    description = text[0].upper() + text[1:] + "."
    parser = commands.add_parser(name, help=text, description=description, allow_abbrev=False)
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: the state file of this node's kubelet")
    parser.add_argument("--kubelet-root", metavar="DIRECTORY", help="the kubelet's --root-dir, found if not given")
    if kubelet:
        what = "the Kubernetes release that the node runs, such as 1.36"
        parser.add_argument("--kubelet", dest="target", metavar="VERSION", help=what)
    parser.add_argument("--output", choices=("text", "json"), default="text", help="default: text")
    return parser


def _add_change(parser: argparse.ArgumentParser, *, select: bool) -> None:
    parser.add_argument("--check", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--force", action="store_true", help="also while a kubelet runs or a process holds the file")
    if select:
        what = "UID, NAMESPACE/NAME or NAMESPACE/"
        parser.add_argument("--drop", action="append", default=[], metavar="CLAIM", help=f"leave claims out: {what}")
        parser.add_argument("--keep", action="append", default=[], metavar="CLAIM", help=f"keep only these: {what}")
        parser.add_argument("--add", action="append", default=[], metavar="JSON", help="add the claims in this file")


if __name__ == "__main__":
    raise SystemExit(run())
