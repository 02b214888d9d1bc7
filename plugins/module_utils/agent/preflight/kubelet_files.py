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

_TOP_LEVEL: t.Final = re.compile(r"([A-Za-z]\w*):(?:[ \t]+(.*))?")
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
        for pair in (option(words, "feature-gates") or "").split(","):
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
    """``featureGates`` and ``containerRuntimeEndpoint`` of YAML in block style, None for other styles."""
    settings: dict[str, t.Any] = {}
    nested: list[str] = []
    key = ""
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw).rstrip()
        if not line or (line == "---" and not settings):
            continue
        if line.startswith((" ", "- ")) and key:
            nested.append(line)
            continue
        found = _TOP_LEVEL.fullmatch(line)
        if found is None or found[1] in settings:
            return None
        if not _finish(settings, key, nested):
            return None
        key, nested = found[1], []
        settings[key] = found[2]
    return settings if _finish(settings, key, nested) else None


def _finish(settings: dict[str, t.Any], key: str, nested: t.Sequence[str]) -> bool:
    """Turn the text of a key that is needed into its value; False where its style is not known here."""
    value = settings.get(key)
    if key == "featureGates":
        lines = [_GATE_LINE.fullmatch(line) for line in nested]
        if value not in (None, "", "{}") or (value == "{}" and lines) or len({line and line[1] for line in lines}) > 1:
            return False
        gates = {line[3]: line[4] == "true" for line in lines if line is not None}
        settings[key] = gates
        return len(gates) == len(lines)
    if key == "containerRuntimeEndpoint":
        found = _PLAIN_VALUE.fullmatch(value or "")
        settings[key] = next((part for part in found.groups() if part is not None), "") if found else None
        return found is not None or not (value or nested)
    return True


def words_in(text: str) -> list[str]:
    """The options in a file of arguments, such as that of microk8s: several to a line or one, comments left out."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return [word for line in text.splitlines() if not line.lstrip().startswith("#") for word in line.split()]
