# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``ctl resources``: what a container needs, as a table, or as the text of the files for systemd and quadlets."""

from __future__ import annotations

import argparse
import typing as t

from ..checkpoint.errors import DraError
from ..resource.view import JsonObject
from . import ctl_tables
from .container_file_texts import Subject, claim_subjects, stem_of, text_of
from .local_client import LocalClient

Json = dict[str, t.Any]

FORMATS = ("table", "env", "quadlet")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options beside those that name a pod."""
    parser.add_argument("--container", default="", metavar="NAME", help="only this container")
    parser.add_argument("--claim", metavar="NAMESPACE/NAME", help="a prepared claim instead of a pod")
    parser.add_argument("--request", metavar="NAME", help="only this request of the claim")
    parser.add_argument("--holder", metavar="NAME", help="what a unit or the like holds, instead of a pod")
    parser.add_argument(
        "--format", choices=FORMATS, default="table", help="table, variables for systemd, or lines for a quadlet"
    )


async def resources(client: LocalClient, pod: JsonObject | None, options: argparse.Namespace) -> tuple[Json, str]:
    """What was asked for: as JSON, and as the text that ``--format`` says. Raises DraError."""
    if (pod is not None) + (options.claim is not None) + (options.holder is not None) != 1:
        what = "No pod was given." if pod is None and not (options.claim or options.holder) else "Too much was given."
        raise DraError(what, "Name one pod with --pod, or give its manifest with --file; or --claim, or --holder.")
    if pod is not None:
        containers = await client.resources(pod, options.container)
        if options.format == "table":
            return {"containers": containers}, ctl_tables.resources_text(containers)
        return {"containers": containers}, _text(_container(pod, containers), options.format)
    found = await _subject(client, options)
    value = {"cdi_devices": list(found.devices), "device_arguments": [f"--device={name}" for name in found.devices]}
    if options.format == "table":
        name = options.claim if options.claim is not None else options.holder
        return value, ctl_tables.table(["FOR", "CDI DEVICES"], [[name, ",".join(found.devices)]], "")
    return value, _text(found, options.format)


async def _subject(client: LocalClient, options: argparse.Namespace) -> Subject:
    if options.claim is not None:
        namespace, _slash, name = options.claim.partition("/")
        wanted = stem_of("claim", namespace, name, *([options.request] if options.request else []))
        what = f"ResourceClaim {options.claim}" + (f", request {options.request}," if options.request else "")
    else:
        wanted, what = stem_of("holder", options.holder), f"What holder {options.holder} holds"
    for subject in claim_subjects(await client.claims()):
        if subject.stem == wanted:
            return subject
    raise DraError(
        f"{what} is not prepared on this node.", "See ctl claims; a claim is prepared with ctl prepare.", wanted=wanted
    )


def _container(pod: JsonObject, containers: t.Mapping[str, t.Sequence[str]]) -> Subject:
    if len(containers) != 1:
        raise DraError(
            f"The pod has {len(containers)} containers: {', '.join(containers)}.",
            "Name one with --container: each gets its own devices.",
        )
    meta = pod.get("metadata") or {}
    ((name, devices),) = containers.items()
    return Subject(stem_of("pod", str(meta.get("namespace", "")), str(meta.get("name", "")), name), tuple(devices))


def _text(subject: Subject, form: str) -> str:
    if subject.refused:
        raise DraError(
            f"A driver answered with what is no CDI name: {subject.refused[0][:80]!r}.",
            "Mend the driver; a container could not get this device either.",
        )
    return text_of(subject, form)
