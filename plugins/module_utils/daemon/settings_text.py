# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From the text of a settings file to plain values, each with the line that it stands on.

Stricter than YAML: a key that is there twice, a value of a type that no setting has (dates, bytes, language objects)
and text that would be read as a number in base 60 are told, not guessed.
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing as t

from .problems import Problem
from .schema import KeyPath, dotted

if t.TYPE_CHECKING:
    import yaml

MAX_BYTES = 1024 * 1024
#: Values in one file, those that an alias repeats counted each time: a page of aliases can stand for billions.
MAX_VALUES = 20_000

_TAG = "tag:yaml.org,2002:"
_PLAIN = frozenset({"null", "bool", "int", "float", "str"})
# In the words of PyYAML what stands in quotes may come from the file, and may be a secret.
_QUOTED = re.compile(r"'[^']{2,}'|\"[^\"]{2,}\"")


@dataclasses.dataclass
class Document:
    """What a file holds. ``lines`` has the line of each key and list item, the top included."""

    values: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    lines: dict[KeyPath, int] = dataclasses.field(default_factory=dict)
    problems: list[Problem] = dataclasses.field(default_factory=list)


def read_document(text: str, file: str) -> Document:
    """Every value of a YAML text and every problem of its form; ``file`` is the name for messages."""
    import yaml

    reader = _Reader(file)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            values = reader.value(node, ())
            if isinstance(values, dict):
                reader.document.values = values
            elif values is not None and not reader.document.problems:
                reader.problem(node, (), _shape(node), "key: value lines")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        text = _QUOTED.sub("...", f"{error.context or ''} {error.problem or 'is wrong'}".strip())
        where = f"{file} line {mark.line + 1}" if mark else file
        reader.document.problems.append(Problem(where, "", f"no valid YAML ({text})", "YAML"))
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        reader.document.problems.append(Problem(f"{file} line {line}", "", "a character that YAML forbids", "YAML"))
    except RecursionError:
        reader.document.problems.append(Problem(file, "", "values nested too deeply", "a settings file"))
    except _TooManyValuesError:
        reader.document.problems.append(
            Problem(file, "", f"more than {MAX_VALUES} values", "a settings file", "Look for aliases (*name).")
        )
    return reader.document


class _TooManyValuesError(Exception):
    pass


class _Reader:
    def __init__(self, file: str) -> None:
        import yaml

        self.document = Document()
        self._file = file
        self._count = 0
        self._yaml = yaml
        self._constructor = yaml.SafeLoader("")

    def problem(self, node: yaml.Node, path: KeyPath, found: str, expected: str, hint: str = "") -> None:
        where = f"{self._file} line {node.start_mark.line + 1}"
        self.document.problems.append(Problem(where, dotted(path), found, expected, hint))

    def value(self, node: yaml.Node, path: KeyPath) -> t.Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise _TooManyValuesError
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, self._yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {}
        for key, inner in node.value:
            if not isinstance(key, self._yaml.ScalarNode):
                self.problem(key, path, f"{_shape(key)} as a key", "text as a key")
                continue
            name = key.value
            if name in found:
                first = self.document.lines[(*path, name)]
                self.problem(key, (*path, name), "the key a second time", "each key once", f"It is on line {first}.")
                continue
            self.document.lines[(*path, name)] = key.start_mark.line + 1
            found[name] = self.value(inner, (*path, name))
        return found

    def _scalar(self, node: yaml.Node, path: KeyPath) -> t.Any:
        kind = node.tag[len(_TAG) :] if node.tag.startswith(_TAG) else ""
        if kind == "timestamp" or (kind in ("int", "float") and ":" in node.value):
            return node.value
        if kind not in _PLAIN:
            self.problem(node, path, "a value with a tag", "a value without a tag (!...)")
            return None
        try:
            found = self._constructor.construct_object(node)
        except (LookupError, ValueError, self._yaml.YAMLError):  # "!!bool maybe", "!!float" of nothing
            found = math.nan
        if isinstance(found, float) and not math.isfinite(found):
            self.problem(node, path, f"a value that is no {kind}", f"a valid {kind}")
            return None
        return found


def _shape(node: yaml.Node) -> str:
    kind = type(node).__name__
    return {"MappingNode": "a mapping", "SequenceNode": "a list"}.get(kind, "a single value")
