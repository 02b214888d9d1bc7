# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The kubelet's configuration: gates and a few settings from its command line, its file and drop-ins.

(kubelet: the command line wins over the files, and a dropped-in file over the main one, gate by gate.)
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import typing as t

from ...cdi.decoding import NoYamlError, UndecodableError, decode
from ...checkpoint.file_errors import shown
from ...checkpoint.kubelet_command import option
from .node import Node, UnreadableError

_TOP_LEVEL: t.Final = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?")
_FLOW: t.Final = re.compile(r"\{([^{}]*)\}")
_ITEM: t.Final = re.compile(r" *- +(.*)")
_GATE_LINE: t.Final = re.compile(r"( +)(['\"]?)([A-Za-z]\w*)\2:[ \t]+(true|false)")
_PLAIN_VALUE: t.Final = re.compile(r"([A-Za-z0-9/][^\s#'\"{}\[\],&*!|>%@`]*)|'([^'\\]*)'|\"([^\"\\]*)\"")
_COMMENT: t.Final = re.compile(r"(?:^|[ \t]+)#.*$")


@dataclasses.dataclass
class KubeletSettings:
    """What was found. ``complete``: there is no place left that may say otherwise.

    ``gates`` are those that are set, ``endpoint`` is the socket of the container runtime, ``files`` were read,
    ``problems`` are sentences about files that could not be.
    """

    gates: dict[str, bool] = dataclasses.field(default_factory=dict)
    endpoint: str | None = None
    files: list[str] = dataclasses.field(default_factory=list)
    problems: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    complete: bool = True

    def read(self, node: Node, path: str, *, must_exist: bool = False) -> None:
        """Add a configuration file; what it sets wins over what is known already."""
        try:
            text = node.text(path)
            if text is None:
                if must_exist:
                    raise UnreadableError(f"{shown(path)} does not exist.")
                return
            found = document(text, path)
        except UnreadableError as error:
            self.problems.append((path, error.message))
            self.complete = False
            return
        self.files.append(path)
        self._add(path, found)

    def read_directory(self, node: Node, directory: str) -> None:
        """Add the files of a drop-in directory. (kubelet: --config-dir, names that end in .conf)"""
        try:
            names = node.names_in(directory)
        except UnreadableError as error:
            self.problems.append((directory, error.message))
            self.complete = False
            return
        for name in names:
            if name.endswith(".conf"):
                self.read(node, f"{directory.rstrip('/')}/{name}")

    def add_words(self, words: t.Sequence[str]) -> None:
        """Add the options of a command line, which win over files."""
        for pair in (pair for text in _every(words, "feature-gates") for pair in text.split(",")):
            name, equals, value = pair.strip().partition("=")
            if equals and value.strip().lower() in ("true", "false", "t", "f", "1", "0"):
                self.gates[name.strip()] = value.strip().lower() in ("true", "t", "1")
        self.endpoint = option(words, "container-runtime-endpoint") or self.endpoint

    def _add(self, path: str, found: t.Mapping[str, t.Any]) -> None:
        gates = found.get("featureGates") or {}
        if not isinstance(gates, dict) or not all(isinstance(value, bool) for value in gates.values()):
            self.problems.append((path, f"{shown(path)} has featureGates that are no map of true and false."))
            self.complete = False
        else:
            self.gates.update(gates)
        endpoint = found.get("containerRuntimeEndpoint")
        if isinstance(endpoint, str) and endpoint:
            self.endpoint = endpoint


def _every(words: t.Sequence[str], name: str) -> list[str]:
    """Every value of an option that adds up, in the order of the command line."""
    places = [place for place, word in enumerate(words) if word.partition("=")[0].replace("_", "-") == f"--{name}"]
    return [option(words[place : place + (1 if "=" in words[place] else 2)], name) or "" for place in places]


def document(text: str, path: str) -> dict[str, t.Any]:
    """A YAML or JSON file as a map. Without PyYAML a strict reader takes the few settings that are needed here.

    Raises UnreadableError.
    """
    try:
        found = decode(text)
    except NoYamlError:
        found = plain_settings(text)
        if found is None:
            raise UnreadableError(f"{shown(path)} needs PyYAML to be understood, which this Python has not.") from None
    except UndecodableError as error:
        raise UnreadableError(f"{shown(path)} cannot be understood: {error.message}.") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UnreadableError(f"{shown(path)} is no map of settings.")
    return found


def plain_settings(text: str) -> dict[str, t.Any] | None:
    """The settings of ``_READERS`` in a YAML file of the usual style; None where that reader does not understand it."""
    settings: dict[str, t.Any] = {}
    seen: set[str] = set()
    for key, value, nested in _top_level(text):
        if not key or key in seen:
            return None
        seen.add(key)
        if key in _READERS:
            try:
                settings[key] = _READERS[key](value, nested)
            except _OtherStyleError:
                return None
    return settings


def _top_level(text: str) -> t.Iterator[tuple[str, str, list[str]]]:
    """Each key with the text behind it and the lines below it; an empty key for a line that is none."""
    key, value = "", ""
    nested: list[str] = []
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw).rstrip()
        if not line or (line == "---" and not key):
            continue
        if line.startswith((" ", "- ")) and key:
            nested.append(line)
            continue
        if key:
            yield key, value, nested
        found = _TOP_LEVEL.fullmatch(line)
        key, value, nested = (found[1], found[2] or "", []) if found is not None else ("", "", [])
        if not key:
            yield "", line, []
            return
    if key:
        yield key, value, nested


class _OtherStyleError(Exception):
    """A value is written in a style that is not read here."""


def _gates(value: str, nested: t.Sequence[str]) -> dict[str, bool]:
    flow = _FLOW.fullmatch(value)
    lines = [f" {part.strip()}" for part in flow[1].split(",") if part.strip()] if flow is not None else nested
    if (value and flow is None) or (value and nested):
        raise _OtherStyleError
    found = [_GATE_LINE.fullmatch(line) for line in lines]
    gates = {line[3]: line[4] == "true" for line in found if line is not None}
    if len(gates) != len(lines) or len({line[1] for line in found if line is not None}) > 1:
        raise _OtherStyleError
    return gates


def _text(value: str, nested: t.Sequence[str]) -> str:
    found = _PLAIN_VALUE.fullmatch(value)
    if nested or (value and found is None):
        raise _OtherStyleError
    return next((part for part in found.groups() if part is not None), "") if found is not None else ""


def _texts(value: str, nested: t.Sequence[str]) -> list[str]:
    if value:
        return [_text(value, nested)]
    found = [_ITEM.fullmatch(line) for line in nested]
    return [_text(line[1] if line is not None else "|", ()) for line in found]


_READERS: t.Final[t.Mapping[str, t.Callable[[str, t.Sequence[str]], t.Any]]] = {
    "featureGates": _gates,
    "containerRuntimeEndpoint": _text,
    "kubelet-arg": _texts,
}


def words_in(text: str) -> list[str]:
    """The options in a file of arguments, such as that of microk8s: several to a line or one, comments left out."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return [word for line in text.splitlines() if not line.lstrip().startswith("#") for word in line.split()]
