# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``apiserver`` and ``apiserver-control``: an API server as a process, and its remote control."""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import pathlib
import signal
import ssl
import sys
import typing as t
import urllib.error
import urllib.request

from ...checkpoint.errors import DraError
from .control import OPERATIONS
from .faults import KINDS
from .rights import ADMIN, user_from
from .server import ApiServer
from .settings import VERSIONS, ServerSettings


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run an API server that holds everything in memory, until SIGTERM."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "faults (kind:key=value,...; filters verb, resource, path, agent; times, skip):\n"
        + "\n".join(f"  {kind:12} {what}" for kind, what in KINDS.items())
        + "\n\nremote control (see the command apiserver-control):\n"
        + "\n".join(f"  {operation:26} {what}" for operation, what in OPERATIONS.items())
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one (default)")
    parser.add_argument("--write-kubeconfig", type=pathlib.Path, metavar="FILE", help="written when the server listens")
    parser.add_argument("--versions", default="v1", help=f"of resource.k8s.io, from {','.join(VERSIONS)}")
    parser.add_argument("--release", help="Kubernetes release to play, such as 1.36.2 (default: fits the versions)")
    parser.add_argument("--tls", action="store_true", help="serve HTTPS, with a certificate made for this run")
    parser.add_argument("--tls-certificate", type=pathlib.Path, metavar="FILE", help="PEM file to use instead")
    parser.add_argument("--tls-key", type=pathlib.Path, metavar="FILE", help="its private key")
    parser.add_argument("--token", default="sandbox-admin", help="bearer token of the administrator")
    parser.add_argument(
        "--require-token",
        action="store_true",
        help="refuse requests without a token over plain HTTP too; kubectl sends none there, so they are let in as "
        "administrator by default",
    )
    parser.add_argument("--users", type=pathlib.Path, metavar="FILE", help="JSON list of further users with rules")
    parser.add_argument("--allocator", action="store_true", help="play the scheduler")
    parser.add_argument(
        "--no-garbage-collection", action="store_true", help="leave dependents of deleted objects alone"
    )
    parser.add_argument("--auto-namespaces", action="store_true", help="make namespaces on first use")
    parser.add_argument("--keep-unknown-fields", action="store_true", help="play a server newer than its clients")
    parser.add_argument("--history", type=int, default=10_000, help="changes to remember for each kind")
    parser.add_argument("--fault", action="append", default=[], help="fault that is set from the start; see below")


def settings_from(options: argparse.Namespace) -> ServerSettings:
    """Settings from the command line. DraError for what makes no sense."""
    tokens = {options.token: ADMIN}
    if options.users:
        try:
            users = json.loads(options.users.read_text(encoding="utf-8"))
            tokens.update({str(user["token"]): user_from(user) for user in users})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DraError(
                f"The users in {options.users} cannot be read: {error!r}.",
                'Write a JSON list of {"token": ..., "name": ..., "rules": [...]}.',
                path=str(options.users),
            ) from error
    encrypted = options.tls or options.tls_certificate is not None
    return ServerSettings(
        host=options.host,
        port=options.port,
        versions=tuple(filter(None, options.versions.split(","))),
        release=_release(options.release),
        tokens=tokens,
        anonymous=None if encrypted or options.require_token else ADMIN,
        tls=encrypted,
        certificate=options.tls_certificate,
        private_key=options.tls_key,
        allocator=options.allocator,
        garbage_collection=not options.no_garbage_collection,
        auto_namespaces=options.auto_namespaces,
        keep_unknown_fields=options.keep_unknown_fields,
        history_limit=options.history,
    )


def _release(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.lstrip("v").split(".")
    if not 2 <= len(parts) <= 3 or not all(part.isdigit() for part in parts):
        raise DraError(f"The release {text!r} cannot be read.", "Write it as 1.36.2.")
    major, minor, patch = (int(part) for part in (*parts, "0")[:3])
    return major, minor, patch


def run_server(options: argparse.Namespace) -> int:
    return asyncio.run(_serve_until_signal(options))


async def _serve_until_signal(options: argparse.Namespace) -> int:
    server = ApiServer(settings_from(options))
    for text in options.fault:
        server.add_fault(text)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with server:
        if options.write_kubeconfig:
            try:
                server.write_kubeconfig(options.write_kubeconfig)
            except OSError as error:
                raise DraError(
                    f"The kubeconfig {options.write_kubeconfig} cannot be written: {error.strerror}.",
                    "Name a file in a directory that exists and can be written.",
                    path=str(options.write_kubeconfig),
                ) from error
        where = f" kubeconfig={options.write_kubeconfig}" if options.write_kubeconfig else ""
        sys.stdout.write(f"ready url={server.url}{where} versions={','.join(server.settings.versions)}\n")
        sys.stdout.flush()
        await ended.wait()
    return 0


def add_control_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ask a running embedded API server something, or tell it to misbehave. Prints JSON."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "operations:\n" + "\n".join(
        f"  {operation.replace('/sandbox/', '').lower():16} {what}" for operation, what in OPERATIONS.items()
    )
    parser.add_argument("--kubeconfig", type=pathlib.Path, required=True, help="file that the server wrote")
    parser.add_argument("method", choices=("get", "post", "delete"))
    parser.add_argument("what", choices=("faults", "requests", "journal", "compact", "rights", "state"))
    parser.add_argument("value", nargs="?", default="", help="JSON, or a fault as text")


def run_control(options: argparse.Namespace) -> int:
    """Do one operation and print the answer. DraError when the server refuses or cannot be reached."""
    answer = control(options.kubeconfig, options.method, options.what, options.value)
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 0


def control(kubeconfig: pathlib.Path, method: str, what: str, value: str = "") -> t.Any:
    """One operation of the remote control at the server that wrote the kubeconfig. DraError as above."""
    try:
        config = json.loads(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        url, token = str(cluster["server"]), str(user["token"])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DraError(
            f"The kubeconfig {kubeconfig} cannot be used: {error!r}.",
            "Name the file that `apiserver --write-kubeconfig` wrote.",
            path=str(kubeconfig),
        ) from error
    context = None
    if "certificate-authority-data" in cluster:
        trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=trusted)
    request = urllib.request.Request(  # noqa: S310
        f"{url}/sandbox/{what}",
        data=value.encode() or None,
        method=method.upper(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    return _asked(request, context)


def _asked(request: urllib.request.Request, context: ssl.SSLContext | None) -> t.Any:
    try:
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=10) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode("utf-8", "replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["message"]
        raise DraError(
            f"The API server refused {request.get_method()} {request.full_url} with status {error.code}: {text}.",
            "See `apiserver-control --help` for what is possible.",
        ) from error
    except OSError as error:
        raise DraError(
            f"The API server at {request.full_url} cannot be reached: {error}.", "Is it still running?"
        ) from error
