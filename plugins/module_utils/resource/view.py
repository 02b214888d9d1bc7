# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading fields of an API object that may be malformed.

The objects are plain dicts as the API server sent them, or as a person typed them into a task. Every other file of this
layer reads them through ``ObjectView``, so that a wrong type anywhere becomes one sentence with the object's name and
the path of the field, and never a ``TypeError`` somewhere deeper. Nothing here changes the object.

JSON ``null`` counts as absent, as it does for the Go clients.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..checkpoint.errors import DraError

JsonObject = t.Mapping[str, t.Any]
PathStep = t.Union[str, int]
Path = tuple[PathStep, ...]

#: What may become part of a path on disk or of a key ``namespace/name``: no slash, no blank, no leading dot.
SAFE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")

_PLURALS = {
    "Pod": "pods",
    "PodGroup": "podgroups",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "PodSchedulingContext": "podschedulingcontexts",
}


class MalformedObjectError(DraError):
    """An API object does not have the shape that its kind promises.

    Facts: ``kind``, ``namespace``, ``name``, ``path`` (JSON path of the field), ``expected``, ``found``.
    """


@dataclass(frozen=True)
class Identity:
    """Namespace, name and UID of an object, all present and safe to use in keys and paths."""

    namespace: str
    name: str
    uid: str


class ObjectView:
    """A read-only look at one decoded API object of a known kind."""

    __slots__ = ("data", "kind")

    def __init__(self, kind: str, data: object) -> None:
        """Take ``data`` as an object of ``kind``; raise ``MalformedObjectError`` when it is something else.

        List items come without ``kind``, so it is only compared when it is there.
        """
        self.kind = kind
        self.data: JsonObject = {}
        if not _is_object(data):
            raise self.malformed((), "a JSON object", data)
        self.data = t.cast(JsonObject, data)
        found_kind = self.data.get("kind")
        if found_kind is not None and found_kind != kind:
            raise self.malformed(("kind",), kind, found_kind)

    # Fields

    def get(self, *path: PathStep) -> t.Any:
        """The value at ``path``, None when it or anything above it is absent."""
        node: t.Any = self.data
        # Nearly always everything is there and plain; this runs for each field of each object of a cluster.
        for step in path:
            if isinstance(node, dict) and isinstance(step, str):
                node = node.get(step)
            elif isinstance(node, list) and isinstance(step, int):
                node = node[step]
            elif node is None:
                return None
            else:
                return self._get_with_care(path)
        return node

    def _get_with_care(self, path: Path) -> t.Any:
        node: t.Any = self.data
        for depth, step in enumerate(path):
            if node is None:
                return None
            if isinstance(step, str):
                if not _is_object(node):
                    raise self.malformed(path[:depth], "a JSON object", node)
                node = node.get(step)
            else:
                if not _is_list(node):
                    raise self.malformed(path[:depth], "a list", node)
                node = node[step]
        return node

    def text(self, *path: PathStep) -> str:
        """The string at ``path``, empty when absent."""
        value = self.get(*path)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.malformed(path, "a string", value)
        return value

    def required_text(self, *path: PathStep) -> str:
        """The string at ``path``, which must be there and not be empty."""
        value = self.text(*path)
        if not value:
            raise self.malformed(path, "a string that is not empty", self.get(*path))
        return value

    def flag(self, *path: PathStep) -> bool:
        """The boolean at ``path``, False when absent."""
        value = self.get(*path)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.malformed(path, "true or false", value)
        return value

    def mapping(self, *path: PathStep) -> JsonObject:
        """The object at ``path``, empty when absent."""
        value = self.get(*path)
        if value is None:
            return {}
        if not _is_object(value):
            raise self.malformed(path, "a JSON object", value)
        return t.cast(JsonObject, value)

    def text_map(self, *path: PathStep) -> dict[str, str]:
        """A new dict of the strings at ``path`` (labels, annotations), empty when absent."""
        result = {}
        for key, value in self.mapping(*path).items():
            if not isinstance(value, str):
                raise self.malformed((*path, key), "a string", value)
            result[key] = value
        return result

    def entries(self, *path: PathStep) -> t.Sequence[JsonObject]:
        """The list of objects at ``path``, empty when absent."""
        value = self._sequence(*path)
        for index, entry in enumerate(value):
            if not _is_object(entry):
                raise self.malformed((*path, index), "a JSON object", entry)
        return value

    def texts(self, *path: PathStep) -> tuple[str, ...]:
        """The list of strings at ``path``, empty when absent."""
        value = self._sequence(*path)
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                raise self.malformed((*path, index), "a string", entry)
        return tuple(value)

    def _sequence(self, *path: PathStep) -> t.Sequence[t.Any]:
        value = self.get(*path)
        if value is None:
            return ()
        if not _is_list(value):
            raise self.malformed(path, "a list", value)
        return t.cast("t.Sequence[t.Any]", value)

    # Metadata

    @property
    def name(self) -> str:
        """``metadata.name``, empty when absent (an object that is only about to be created)."""
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        """``metadata.namespace``, empty when absent."""
        return self.text("metadata", "namespace")

    @property
    def uid(self) -> str:
        """``metadata.uid``, empty when absent."""
        return self.text("metadata", "uid")

    @property
    def is_deleted(self) -> bool:
        """Whether ``metadata.deletionTimestamp`` is set."""
        return bool(self.text("metadata", "deletionTimestamp"))

    @property
    def full_name(self) -> str:
        """``namespace/name`` for messages."""
        return f"{self.namespace}/{self.name}"

    def identity(self) -> Identity:
        """Namespace, name and UID; raise ``MalformedObjectError`` when one is missing or not safe in a path."""
        found = []
        for field in ("namespace", "name", "uid"):
            value = self.required_text("metadata", field)
            if not SAFE_NAME.fullmatch(value):
                raise self.malformed(("metadata", field), "letters, digits, '-', '_' and '.' only", value)
            found.append(value)
        return Identity(*found)

    # Errors

    def malformed(self, path: t.Sequence[PathStep], expected: str, found: object) -> MalformedObjectError:
        """The error that says what is at ``path`` and what should be there."""
        namespace, name = self._plain("namespace"), self._plain("name")
        where = json_path(path)
        what = f"{self.kind} {namespace}/{name}" if name else f"{self.kind} without a name"
        described = describe(found)
        plural = _PLURALS.get(self.kind, self.kind.lower())
        if name:
            scope = f" -n {namespace}" if namespace else ""
            hint = (
                f"Compare it with `kubectl get {plural} {name}{scope} -o yaml` and pass the object on as it was read."
            )
        else:
            hint = f"Pass a whole {self.kind} object with metadata and spec."
        return MalformedObjectError(
            f"{what} is malformed: {where or 'the object itself'} is {described}, expected {expected}.",
            hint,
            kind=self.kind,
            namespace=namespace,
            name=name,
            path=where,
            expected=expected,
            found=described,
        )

    def _plain(self, field: str) -> str:
        metadata = self.data.get("metadata")
        value = metadata.get(field) if isinstance(metadata, Mapping) else None
        return value if isinstance(value, str) else ""


def json_path(path: t.Iterable[PathStep]) -> str:
    """``spec.resourceClaims[0].name`` for its steps; keys that are no plain words are quoted in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"\w+", step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step)}]"
    return text


def describe(value: object) -> str:
    """A few words for a JSON value, short and printable whatever it holds."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        # A number can have thousands of digits, and turning such a one into text is refused by newer Pythons.
        return f"the number {value}" if abs(value) < 1e20 else "a huge number"
    if isinstance(value, str):
        shown = json.dumps(value if len(value) <= 60 else value[:57] + "...")
        return f"the text {shown}"
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if _is_list(value):
        return f"a list of {len(t.cast('t.Sequence[t.Any]', value))}"
    return f"a {type(value).__name__}"


# What was decoded from JSON is of the plain types, and the look at those is many times quicker than the general one.


def _is_object(value: object) -> bool:
    return isinstance(value, (dict, Mapping))


def _is_list(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)))
