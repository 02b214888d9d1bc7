# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The client of the agent for a node's console: ``python -m ...agent ctl COMMAND``.

Exit status: 0 done (or nothing was to be done), 1 ``findings`` has an error to tell, 2 the agent did not do it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import json
import os
import sys
import typing as t

from ..checkpoint.console import visible
from ..checkpoint.errors import DraError
from ..checkpoint.store import read_file
from . import container_file_ctl, ctl_tables
from .claim_request import FORGOTTEN, PREPARED, UNPREPARED, ClaimRequest
from .local_client import LocalClient, connected
from .local_socket import DEFAULT_SOCKET

Json = dict[str, t.Any]

EXIT_FINE, EXIT_FINDINGS, EXIT_FAILED = 0, 1, 2
_EXIT_INTERRUPTED, _EXIT_PIPE_CLOSED = 130, 141  # as a shell tells it of SIGINT and SIGPIPE
_STATES = {"prepare": PREPARED, "unprepare": UNPREPARED, "forget": FORGOTTEN}


def main(argv: t.Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit status."""
    options = _parser().parse_args(argv)
    try:
        status = asyncio.run(_run(options))
        sys.stdout.flush()
        return status
    except DraError as error:
        if options.output == "json":
            _write_json(error.to_dict())
        else:
            sys.stderr.write(f"{visible(str(error))}\n")
        return EXIT_FAILED
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # Python flushes once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_PIPE_CLOSED
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED


async def _run(options: argparse.Namespace) -> int:
    async with connected(options.socket) as client:
        if options.command == "watch":
            return await _watch(client, options)
        if options.command in _STATES:
            return await _change(client, options)
        if options.command == "resources":
            return _show(options, *await container_file_ctl.resources(client, _pod(options), options))
        if options.command == "claims":
            claims = await client.claims(options.namespace)
            await _tell_if_degraded(client)
            return _show(options, {"claims": claims}, ctl_tables.claims_text(claims))
        if options.command == "drivers":
            drivers = await client.drivers()
            return _show(options, drivers, ctl_tables.drivers_text(drivers))
        if options.command == "version":
            version = await client.version()
            return _show(options, version, ctl_tables.version_text(version))
        findings = await client.findings()
        _show(options, {"findings": findings}, ctl_tables.findings_text(findings))
        return EXIT_FINDINGS if any(one["severity"] == "error" for one in findings) else EXIT_FINE


async def _tell_if_degraded(client: LocalClient) -> None:
    """An empty list means something else when the agent cannot read what is recorded."""
    degraded = (await client.version())["degraded"]
    if degraded:
        sys.stderr.write(f"{visible(degraded)}\n")


async def _watch(client: LocalClient, options: argparse.Namespace) -> int:
    async for event in client.watch(options.after, only_new=options.new):
        if options.output == "json":
            sys.stdout.write(json.dumps(event, sort_keys=True) + "\n")
        else:
            sys.stdout.write(ctl_tables.event_text(event))
        sys.stdout.flush()
    return EXIT_FINE


async def _change(client: LocalClient, options: argparse.Namespace) -> int:
    claims = [_claim(text) for text in options.claim] + _of_kind(options.objects, "ResourceClaim")
    request = ClaimRequest(
        _STATES[options.command],
        _pod(options),
        claims,
        holder=getattr(options, "holder", None),
        force=getattr(options, "force", False),
        timeout=options.timeout,
        reason=getattr(options, "reason", ""),
        by=_who(),
    )
    result = await client.change(request, check=options.check)
    text = ctl_tables.change_text(result, options.check)
    diff = {"before": result.pop("before"), "after": result.pop("after")}
    del result["conformance"]
    return _show(options, {**result, "diff": diff}, text)


def _show(options: argparse.Namespace, value: Json, text: str) -> int:
    if options.output == "json":
        _write_json(value)
    else:
        sys.stdout.write(text)
    return EXIT_FINE


def _write_json(value: t.Mapping[str, t.Any]) -> None:
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True) + "\n")


def _who() -> str:
    """The user who sits at the console, for the audit log; behind sudo it is not the one that connects."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return ""


# What is meant


def _claim(text: str) -> Json:
    """``NAMESPACE/NAME`` or a UID as the metadata of a claim."""
    namespace, slash, name = text.partition("/")
    return {"metadata": {"namespace": namespace, "name": name} if slash else {"uid": text}}


def _pod(options: argparse.Namespace) -> Json | None:
    pods = _of_kind(options.objects, "Pod")
    if options.pod:
        pods.append(_claim(options.pod))
    if len(pods) > 1:
        raise DraError(f"{len(pods)} pods were given, expected one.", "Call once for each pod.")
    return pods[0] if pods else None


def _of_kind(objects: t.Iterable[Json], kind: str) -> list[Json]:
    return [one for one in objects if one.get("kind") == kind]


def _objects_in(path: str) -> list[Json]:
    """Pods and ResourceClaims of a JSON file as ``kubectl get -o json`` prints it; ``-`` is the standard input."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else read_file(path, follow=True).data
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DraError(f"{path} is no JSON: {error}.", "Give objects as kubectl get -o json prints them.") from error
    items = found.get("items", [found]) if isinstance(found, dict) else found
    objects = items if isinstance(items, list) else []
    wrong = [one for one in objects if not isinstance(one, dict) or one.get("kind") not in ("Pod", "ResourceClaim")]
    if wrong or not objects:
        kinds = ", ".join(sorted({str(one.get("kind")) if isinstance(one, dict) else "no object" for one in wrong}))
        raise DraError(
            f"{path} holds {kinds or 'nothing'}, expected a Pod, ResourceClaims, or both.",
            "Give objects with their kind, as kubectl get -o json prints them.",
        )
    return objects


# Command line


class _Objects(argparse.Action):
    """``--file`` may be given several times."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *rest: t.Any) -> None:
        try:
            namespace.objects = [*namespace.objects, *_objects_in(rest[0])]
        except DraError as error:
            parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nodeops-dra-agent ctl", description="Ask the node agent, or tell it what to do."
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--socket", default=DEFAULT_SOCKET, metavar="PATH", help="the agent's socket [%(default)s]")
    common.add_argument("--output", choices=["text", "json"], default="text", help="tables for people, or JSON")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[common], help=text, description=text)

    claims = command("claims", "List the claims that are recorded on this node.")
    claims.add_argument("--namespace", default="", metavar="NAME", help="only those of this namespace")
    command("drivers", "List drivers and their sockets.")
    command("findings", "Tell what is not as it should be.")
    command("version", "Tell who answers, and for which directories.")
    resources = command("resources", "Tell the CDI names that containers get.")
    _add_pod(resources)
    container_file_ctl.add_options(resources)
    prepare = command("prepare", "Have the drivers prepare claims.")
    unprepare = command("unprepare", "Have the drivers take claims back.")
    forget = command("forget", "Drop claims without telling their drivers, which may then leak devices.")
    for one in (prepare, unprepare, forget):
        _add_pod(one)
        one.add_argument(
            "--claim",
            action="append",
            default=[],
            metavar="CLAIM",
            help="a claim, NAMESPACE/NAME or UID; may be repeated",
        )
        one.add_argument("--check", action="store_true", help="only tell what would be done")
        one.add_argument(
            "--timeout",
            type=float,
            default=ClaimRequest.timeout,
            metavar="SECONDS",
            help="for all drivers [%(default)g]",
        )
    for one in (prepare, unprepare):
        one.add_argument("--holder", metavar="NAME", help="who holds claims without a pod, such as a unit")
        one.add_argument(
            "--force",
            action="store_true",
            help="although the kubelet has recorded the claim or its devices, or a pod that may still run holds it",
        )
    forget.add_argument("--reason", required=True, metavar="TEXT", help="why; it goes to the audit log")
    watch = command("watch", "Show what happens, as it happens.")
    watch.add_argument("--after", type=int, default=0, metavar="NUMBER", help="only events after this one")
    watch.add_argument("--new", action="store_true", help="only events from now on")
    return parser


def _add_pod(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pod", metavar="POD", help="a pod, NAMESPACE/NAME or UID")
    parser.add_argument(
        "--file",
        action=_Objects,
        metavar="FILE",
        help="JSON with the pod and claims that are meant; - for standard input",
    )
    parser.set_defaults(objects=[])
