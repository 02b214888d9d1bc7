# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Set feature gates in a KubeletConfiguration and leave every other letter of the file alone."""

from __future__ import annotations

import re
import typing as t

from ...checkpoint.file_errors import shown
from ..preflight.kubelet_files import document
from ..preflight.node import UnreadableError
from .marked_lines import MarkedText
from .toml_edit import NotEditableError

_KIND: t.Final = re.compile(r"""^kind:[ \t]+(['"]?)KubeletConfiguration\1[ \t]*(?:#.*)?\r?$""", re.MULTILINE)
_GATES: t.Final = re.compile(r"featureGates:(?:[ \t]+(.*?))?[ \t]*(?:#.*)?")
_GATE: t.Final = re.compile(r"""([ ]+)(['"]?)([A-Za-z]\w*)\2[ ]*:[ \t].*""")
_OTHER_DOCUMENT: t.Final = re.compile(r"^(?:---|\.\.\.)(?:[ \t].*)?\r?$", re.MULTILINE)
_EMPTY: t.Final = re.compile(r"\{.*\}|~|null|")
_BY_HAND: t.Final = "Nothing was changed. Set the gates in featureGates by hand."


def gates_in(text: str, path: str) -> dict[str, bool]:
    """The gates that the file sets. Raises UnreadableError or NotEditableError."""
    if text.lstrip()[:1] == "{":
        raise NotEditableError("is JSON, which is not edited here.", _BY_HAND)
    if not _KIND.search(text):
        raise NotEditableError("is no KubeletConfiguration.", "Name the file that the kubelet gets with --config.")
    if len(_OTHER_DOCUMENT.findall(text.strip())) > (1 if text.lstrip().startswith("---") else 0):
        raise NotEditableError("holds more than one document.", _BY_HAND)
    gates = document(text, path).get("featureGates") or {}
    if not isinstance(gates, dict) or not all(isinstance(value, bool) for value in gates.values()):
        raise UnreadableError(f"{shown(path)} has featureGates that are no map of true and false.")
    return dict(gates)


def with_gates(text: str, path: str, wanted: t.Mapping[str, bool]) -> str:
    """The text with these gates set.

    The result is read again: without the gates it says what it said, or NotEditableError is raised. UnreadableError
    where the text itself cannot be understood. Without PyYAML on the node only settings of the usual style are.
    """
    present = gates_in(text, path)
    new = {name: value for name, value in sorted(wanted.items()) if present.get(name) is not value}
    if not new:
        return text
    marked = MarkedText(text)
    place = next((number for number, line in enumerate(marked.lines) if line.startswith("featureGates:")), None)
    if place is None:
        marked.insert(len(marked.lines), ["featureGates:", *_rendered("  ", new)])
    else:
        _put(marked, place, present, new)
    result = marked.result()
    _verify(text, result, path, {**present, **new})
    return result


def _put(marked: MarkedText, place: int, present: t.Mapping[str, bool], new: t.Mapping[str, bool]) -> None:
    header = _GATES.fullmatch(marked.lines[place].rstrip("\r\n"))
    value = (header[1] or "") if header is not None else "?"
    if not _EMPTY.fullmatch(value):
        raise NotEditableError("has featureGates in a form that is not edited here.", _BY_HAND)
    if value:  # in one line: {}, {A: true} or nothing
        marked.replace(place, place, ["featureGates:", *_rendered("  ", {**present, **new})])
        return
    lines = list(_block(marked.lines, place + 1))
    indent = lines[0][1][1] if lines else "  "
    there = {found[3]: (number, found) for number, found in lines}
    for name, on in new.items():
        if name in there:
            number, found = there[name]
            marked.replace(number, number, [f"{found[1]}{found[2]}{name}{found[2]}: {str(on).lower()}"])
    marked.insert(place + 1, _rendered(indent, {name: on for name, on in new.items() if name not in there}))


def _block(lines: t.Sequence[str], start: int) -> t.Iterator[tuple[int, re.Match[str]]]:
    """The lines of gates below the header."""
    for number in range(start, len(lines)):
        line = lines[number].rstrip("\r\n")
        if line.strip() and not line.startswith((" ", "#")):
            return
        found = _GATE.fullmatch(line)
        if found is not None and not line.lstrip().startswith("#"):
            yield number, found


def _rendered(indent: str, gates: t.Mapping[str, bool]) -> list[str]:
    return [f"{indent}{name}: {str(on).lower()}" for name, on in gates.items()]


def _verify(before: str, result: str, path: str, gates: t.Mapping[str, bool]) -> None:
    try:
        same = document(result, path) == {**document(before, path), "featureGates": dict(gates)}
    except UnreadableError:
        same = False
    if not same:
        raise NotEditableError("has featureGates in a form that is not edited here.", _BY_HAND)
