# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings from environment variables: ``NODEOPS_DRA_AGENT_HTTP_PORT`` goes before ``http.port`` of the file."""

from __future__ import annotations

import dataclasses
import difflib
import typing as t

from .problems import Problem
from .schema import KeyPath, Schema, Setting, is_service_link, settings_of
from .settings_text import read_document


@dataclasses.dataclass
class Overrides:
    """What the environment sets. ``variables`` has the variable of each path."""

    values: dict[KeyPath, t.Any] = dataclasses.field(default_factory=dict)
    variables: dict[KeyPath, str] = dataclasses.field(default_factory=dict)
    problems: list[Problem] = dataclasses.field(default_factory=list)

    def apply(self, values: dict[str, t.Any]) -> None:
        """Put them over the values of the file. Where the file has no mapping for a section, it stays as it is."""
        for path, value in self.values.items():
            section: t.Any = values
            for part in path[:-1]:
                if section.get(part) is None:
                    section[part] = {}
                section = section[part]
                if not isinstance(section, dict):
                    break
            else:
                section[path[-1]] = value


def variable_prefix(name: str) -> str:
    """What the variables of the daemon ``nodeops-dra-agent`` begin with: ``NODEOPS_DRA_AGENT_``."""
    return name.replace("-", "_").upper() + "_"


def read_overrides(schema: Schema, name: str, environ: t.Mapping[str, str]) -> Overrides:
    """Every variable of the daemon ``name``. One that belongs to no setting is a problem: it would be overlooked."""
    prefix = variable_prefix(name)
    known = {setting.variable: setting for setting in settings_of(schema)}
    found = Overrides()
    for variable in sorted(environ):
        rest = variable[len(prefix) :]
        if not variable.startswith(prefix) or (rest not in known and is_service_link(rest)):
            continue
        where = f"environment variable {variable}"
        setting = known.get(rest)
        if setting is None:
            close = difflib.get_close_matches(rest, list(known), n=1)
            hint = f"Did you mean {prefix}{close[0]}?" if close else "Remove it."
            found.problems.append(Problem(where, "", "a variable of no setting", "a variable that is known", hint))
            continue
        found.variables[setting.path] = variable
        found.values[setting.path] = _value(setting, environ[variable], where, found.problems)
    return found


def _value(setting: Setting, text: str, where: str, problems: list[Problem]) -> t.Any:
    """The text as the setting's type wants it; when it does not fit the schema will say so."""
    types = set(setting.types)
    if "null" in types and text == "":
        return None
    if not types or "string" in types:
        return text
    if "array" in types and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    # JSON is YAML too: lists and mappings as one line, numbers and true or false as they are.
    document = read_document(f"value: {text}\n", where)
    if document.problems or set(document.values) != {"value"}:
        problems.append(Problem(where, setting.key, "text that is no YAML value", "a value on one line"))
        return setting.schema.get("default")
    return document.values["value"]
