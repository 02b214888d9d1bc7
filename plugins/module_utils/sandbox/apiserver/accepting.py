# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""In which form a client wants its answer: plain JSON, a table for kubectl, or metadata only."""

from __future__ import annotations

import datetime
import typing as t

from .cluster import Cluster
from .failures import not_acceptable
from .json_text import Json, from_bytes, to_bytes
from .kind_table import Served
from .reading import Page
from .store import Record

PLAIN, TABLE, METADATA = "", "Table", "PartialObjectMetadata"
_META = "meta.k8s.io/v1"
_ACCEPTED = "application/json"


def form_of(accept: str) -> str:
    """The first form in an Accept header that we have. ApiError 406 when there is none."""
    if not accept:
        return PLAIN
    for part in accept.split(","):
        media, *parameters = [piece.strip() for piece in part.split(";")]
        if media not in ("application/json", "*/*", "application/*"):
            continue
        values = dict(piece.partition("=")[::2] for piece in parameters)
        wanted = values.get("as", "").removesuffix("List")
        if not wanted:
            return PLAIN
        if wanted in (TABLE, METADATA) and values.get("g") == "meta.k8s.io" and values.get("v") == "v1":
            return wanted
    raise not_acceptable(_ACCEPTED)


def _age(body: Json, now: datetime.datetime) -> str:
    created = body["metadata"].get("creationTimestamp")
    if not created:
        return "<unknown>"
    seconds = int((now - datetime.datetime.fromisoformat(created.replace("Z", "+00:00"))).total_seconds())
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "m"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{max(seconds, 0) // unit}{name}"
    return f"{seconds // 86400}d"


def _columns(served: Served) -> list[Json]:
    made: list[Json] = [{"name": "Name", "type": "string", "format": "name", "description": "Name", "priority": 0}]
    for column in served.kind.columns:
        priority = 1 if column.wide else 0
        made.append(
            {"name": column.title, "type": column.type, "format": "", "description": column.title, "priority": priority}
        )
    made.append({"name": "Age", "type": "string", "format": "", "description": "Age", "priority": 0})
    return made


def _metadata_object(stored: Json) -> Json:
    return {"kind": METADATA, "apiVersion": _META, "metadata": stored["metadata"]}


def _row(cluster: Cluster, served: Served, record: Record, include: str) -> Json:
    stored = record.object()
    cells = [record.name, *(column.cell(stored) for column in served.kind.columns)]
    row: Json = {"cells": [*cells, _age(stored, cluster.settings.clock())]}
    if include == "Object":
        row["object"] = from_bytes(served.head + cluster.tail(record, served))
    elif include != "None":
        row["object"] = _metadata_object(stored)
    return row


def table_text(
    cluster: Cluster, served: Served, metadata: Json, records: t.Iterable[Record], include: str, head: bool = True
) -> bytes:
    """A table as JSON. ``include``: Metadata (default), Object or None, what each row carries along."""
    table: Json = {"kind": TABLE, "apiVersion": _META, "metadata": metadata}
    table["columnDefinitions"] = _columns(served) if head else None
    table["rows"] = [_row(cluster, served, record, include) for record in records]
    return to_bytes(table)


def object_text(cluster: Cluster, served: Served, record: Record, form: str, include: str = "") -> bytes:
    """One object in the form that the client wants."""
    if form == TABLE:
        return table_text(cluster, served, {"resourceVersion": str(record.version)}, [record], include)
    if form == METADATA:
        return to_bytes(_metadata_object(record.object()))
    return served.head + cluster.tail(record, served)


def page_in_form(cluster: Cluster, served: Served, page: Page, form: str, include: str = "") -> bytes:
    """A list as table or as metadata."""
    if form == TABLE:
        return table_text(cluster, served, page.metadata(), page.records, include)
    items = [_metadata_object(record.object()) for record in page.records]
    return to_bytes({"kind": f"{METADATA}List", "apiVersion": _META, "metadata": page.metadata(), "items": items})


def event_body(cluster: Cluster, served: Served, body: bytes, form: str, include: str, first: bool) -> bytes:
    """The object of a watch event in the form that the client wants."""
    stored = from_bytes(body)
    if form == METADATA:
        return to_bytes(_metadata_object(stored))
    stored.pop("kind", None)
    stored.pop("apiVersion", None)
    version = stored["metadata"].get("resourceVersion", "0")
    if "uid" not in stored["metadata"]:  # a bookmark
        return to_bytes(
            {"kind": TABLE, "apiVersion": _META, "metadata": stored["metadata"], "columnDefinitions": None, "rows": []}
        )
    record = Record("", int(version), served.form.write(stored, None), {})
    metadata = {"resourceVersion": version}
    return table_text(cluster, served, metadata, [record], include, first)
