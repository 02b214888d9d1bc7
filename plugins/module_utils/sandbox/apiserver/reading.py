# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""GET: single objects, and lists with selectors, pages and versions."""

from __future__ import annotations

import base64
import binascii
import bisect
import dataclasses
import json
import typing as t

from . import selectors
from .cluster import Cluster
from .failures import ApiError, bad_request, expired, too_new
from .json_text import Json, to_bytes
from .kind_table import Served
from .request import ApiRequest
from .store import Record

Selection = t.Callable[[Record], bool]
_MATCHES = ("NotOlderThan", "Exact")


def get(cluster: Cluster, request: ApiRequest) -> Record:
    """The object of a request. ApiError 404, or 504 for a version that is still to come."""
    version = asked_version(request)
    if version is not None and version > cluster.store.version:
        raise too_new(version, cluster.store.version)
    return cluster.get(request.served.kind, request.key)


def selection_of(cluster: Cluster, request: ApiRequest) -> Selection:
    """A function that tells whether a record is asked for. ApiError 400 for selectors that cannot be understood."""
    labels = selectors.label_selector(request.query.get("labelSelector", ""))
    fields = selectors.field_selector(request.query.get("fieldSelector", ""))
    kind = request.served.kind
    for term in fields:
        if term.field not in kind.selectable:
            raise bad_request(_field_fault(request, term.field))
    if not labels and not fields:
        return lambda _record: True

    def chosen(record: Record) -> bool:
        if not all(requirement.matches(record.labels) for requirement in labels):
            return False
        for term in fields:
            if term.field == "metadata.name":
                if (record.name == term.value) != term.equal:
                    return False
            elif term.field == "metadata.namespace":
                if (record.namespace == term.value) != term.equal:
                    return False
            elif not term.matches(record.fields):
                return False
        return True

    return chosen


def _field_fault(request: ApiRequest, field: str) -> str:
    kind = request.served.kind
    if kind.field_fault:
        return kind.field_fault.format(field)
    known = ", ".join(f'"{name}"' for name in kind.selectable)
    return f'"{field}" is not a known field selector: only {known}'


def asked_version(request: ApiRequest) -> int | None:
    """The resourceVersion parameter as a number, None when it is absent. ApiError 400 for other text."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    if not text.isdigit():
        raise bad_request(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


@dataclasses.dataclass(frozen=True)
class Page:
    """A list or a part of it. ``rest`` counts what is left, None when that is not told."""

    version: int
    records: list[Record]
    following: str = ""
    rest: int | None = None

    def metadata(self) -> Json:
        made: Json = {"resourceVersion": str(self.version)}
        if self.following:
            made["continue"] = self.following
            if self.rest is not None:
                made["remainingItemCount"] = self.rest
        return made


def list_objects(cluster: Cluster, request: ApiRequest, stale_version: int | None = None) -> Page:
    """A list as the query asks for it. ``stale_version`` answers with an older state than there is."""
    chosen = selection_of(cluster, request)
    collection = cluster.collection(request.served.kind)
    match = request.query.get("resourceVersionMatch", "")
    version, start, exact = _where(cluster, request, match)
    if stale_version is not None and version is None:
        version = max(stale_version, collection.floor)
    current = cluster.store.version
    if version is None:
        keys, records = collection.keys, collection.records
    else:
        try:
            keys, records = collection.at(version)
        except ApiError as error:
            if error.code != 410 or not start:
                raise
            raise _too_old_page(request, current, start) from None
    first, last = collection.span(keys, request.namespace)
    if start:
        first = max(first, bisect.bisect_left(keys, start, first, last))
    shown_version = version if version is not None and (exact or start or stale_version is not None) else current
    return _page(request, chosen, [records[key] for key in keys[first:last]], shown_version)


def _where(cluster: Cluster, request: ApiRequest, match: str) -> tuple[int | None, str, bool]:
    """The version to list at (None: now), the key to start from, and whether the version must be met exactly."""
    version = asked_version(request)
    token = request.query.get("continue", "")
    if match and match not in _MATCHES:
        raise bad_request(
            f'resourceVersionMatch: Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"'
        )
    if match and (version is None or token):
        raise bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if token:
        if version:
            raise bad_request("specifying resource version is not allowed when using continue")
        at, start = _read_token(token, request.namespace)
        return at, start, True
    if version is None:
        return None, "", False
    if match == "Exact":
        if version == 0:
            raise bad_request('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
        return version, "", True
    if version > cluster.store.version:
        cluster.collection(request.served.kind).at(version)  # raises
    # Without a match a limit makes the version exact, as in Kubernetes.
    if version and request.number("limit") and not match:
        return version, "", True
    return None, "", False


def _page(request: ApiRequest, chosen: Selection, records: list[Record], version: int) -> Page:
    limit = request.number("limit") or 0
    if limit <= 0:
        return Page(version, [record for record in records if chosen(record)])
    found: list[Record] = []
    for index, record in enumerate(records):
        if len(found) == limit:
            selective = request.query.get("labelSelector") or request.query.get("fieldSelector")
            if selective and not any(chosen(other) for other in records[index:]):
                break
            token = _token(version, found[-1].key, request.namespace)
            return Page(version, found, token, None if selective else len(records) - index)
        if chosen(record):
            found.append(record)
    return Page(version, found)


def _token(version: int, last_key: str, namespace: str) -> str:
    """Where to go on: just behind the last key, relative to the namespace."""
    start = last_key[len(namespace) :] if namespace else last_key
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start + "\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str, namespace: str) -> tuple[int | None, str]:
    prefix = "invalid continue token: continue key is not valid: "
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raise bad_request(f"{prefix}illegal base64 data at input byte {max(len(token) - 1, 0)}") from None
    try:
        value = json.loads(text)
        start, version = value["start"], value["rv"]
        if value.get("v") != "meta.k8s.io/v1" or not isinstance(start, str) or not isinstance(version, int):
            raise ValueError("other content")
    except (ValueError, KeyError, TypeError):
        first = repr(text[:1])[2:-1] or "end"
        raise bad_request(f"{prefix}invalid character '{first}' looking for beginning of value") from None
    return (version if version > 0 else None), (f"{namespace}{start}" if namespace else start)


def _too_old_page(request: ApiRequest, current: int, start: str) -> ApiError:
    """410 with a token that goes on anyway, at the price of a list that is not of one moment."""
    error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    relative = start[len(request.namespace) :] if request.namespace else start
    token = _token(-1, relative.rstrip("\0"), "")
    error.metadata = {"continue": token, "resourceVersion": str(current)}
    return error


def list_text(served: Served, metadata: bytes, tails: list[bytes]) -> bytes:
    """A list as JSON, from encoded parts."""
    body = b"{" + b",{".join(tails) if tails else b""
    return b"".join((served.list_head, metadata, b',"items":[', body, b"]}"))


def page_text(cluster: Cluster, served: Served, page: Page) -> bytes:
    """A page as JSON."""
    return list_text(served, to_bytes(page.metadata()), [cluster.tail(record, served) for record in page.records])
