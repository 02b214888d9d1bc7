# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What containerd is told about CDI: its file, of whatever version, and the files that it imports.

Of two files that have the same plugin's table, older releases take the later table whole and newer ones merge the two.
Where these differ in what matters here, nothing is known.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import os
import typing as t

from ...cdi.directories import DEFAULT_DIRECTORIES
from ...checkpoint.file_errors import shown
from .node import Node, UnreadableError
from .toml_text import NoTomlError, Table, read_toml

_TABLES: t.Final = {1: "cri", 2: "io.containerd.grpc.v1.cri"}
_NEW_TABLE: t.Final = "io.containerd.cri.v1.runtime"
_MAX_FILES: t.Final = 100

DEFAULT_FILE: t.Final = "/etc/containerd/config.toml"


@dataclasses.dataclass
class CdiSettings:
    """``cdi``: whether devices are injected, ``directories`` in rising priority; None is unknown.

    ``serves_kubelets`` is False where that part of the runtime is switched off. ``problems`` are files and sentences.
    """

    cdi: bool | None = None
    directories: list[str] | None = None
    serves_kubelets: bool = True
    files: list[str] = dataclasses.field(default_factory=list)
    problems: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def toml_file(node: Node, path: str) -> Table | None:
    """A TOML file, None where there is none. Raises UnreadableError."""
    text = node.text(path)
    try:
        return None if text is None else read_toml(text)
    except NoTomlError as error:
        raise UnreadableError(f"{shown(path)} {error.message}.") from None


def texts(value: t.Any) -> list[str] | None:
    """A list of texts, None for anything else."""
    is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return list(value) if is_list else None


def containerd_settings(node: Node, path: str, version: tuple[int, int] | None) -> CdiSettings:
    """Read the configuration. ``version`` is the release, None where it is not known."""
    settings = CdiSettings()
    documents = _load(node, path, settings)
    readings = [documents]
    if not documents and path == DEFAULT_FILE:
        readings.append(_default_imports(node, settings))
    if settings.problems:
        return settings
    answers = [
        _answer(
            merge([table for one in reading if (table := cri_table_of(one)) is not None]), version, _newest(reading)
        )
        for reading in readings
        for merge in (_last, _merged)
    ]
    settings.serves_kubelets = not any(_is_disabled(document, version) for document in documents)
    settings.cdi = answers[0][0] if all(one[0] == answers[0][0] for one in answers) else None
    settings.directories = answers[0][1] if all(one[1] == answers[0][1] for one in answers) else None
    return settings


def _default_imports(node: Node, settings: CdiSettings) -> list[Table]:
    """What some releases import where there is no main file, and others do not."""
    try:
        found = [toml_file(node, path) for path in _imports(node, DEFAULT_FILE, ["conf.d/*.toml"])]
    except UnreadableError as error:
        settings.problems.append((DEFAULT_FILE, error.message))
        return []
    return [document for document in found if document is not None]


def _newest(documents: t.Sequence[Table]) -> int:
    return max((version_of(document) for document in documents), default=0)


def _load(node: Node, path: str, settings: CdiSettings) -> list[Table]:
    documents: list[Table] = []
    pending = [path]
    seen: set[str] = set()
    while pending:
        current = pending.pop(0)
        if current in seen:
            continue
        seen.add(current)
        try:
            if len(seen) > _MAX_FILES:
                raise UnreadableError(f"{shown(path)} imports more than {_MAX_FILES} files.")
            found = toml_file(node, current)
            if found is None:
                if current != path:
                    raise UnreadableError(f"{shown(current)}, which {shown(path)} imports, does not exist.")
                continue  # containerd starts without a file, with its defaults
            settings.files.append(current)
            documents.append(found)
            pending += _imports(node, current, texts(found.get("imports", [])) or [])
        except UnreadableError as error:
            settings.problems.append((current, error.message))
            break
    return documents


def _imports(node: Node, parent: str, patterns: t.Sequence[str]) -> list[str]:
    found = []
    for pattern in patterns:
        path = os.path.normpath(os.path.join(os.path.dirname(parent), pattern))
        directory, name = os.path.split(path)
        if "*" in directory:
            raise UnreadableError(f"{shown(parent)} imports {shown(pattern)}, which is not followed here.")
        if "*" in name:
            found += [
                os.path.join(directory, one) for one in node.names_in(directory) if fnmatch.fnmatchcase(one, name)
            ]
        else:
            found.append(path)
    return found


def version_of(document: Table) -> int:
    """The version of the format that a file says it has."""
    version = document.get("version", 1)
    return version if isinstance(version, int) else 1


def cri_table_name(version: int) -> str:
    """The plugin whose table has the CDI settings, in a file of that version."""
    return _TABLES.get(max(version, 1), _NEW_TABLE)


def cri_table_of(document: Table) -> Table | None:
    """The table with the CDI settings, None where the file has not even a part of it."""
    plugins = document.get("plugins")
    table = plugins.get(cri_table_name(version_of(document))) if isinstance(plugins, dict) else None
    return table if isinstance(table, dict) else None


def drop_in_directory(path: str, document: Table) -> str | None:
    """The directory from which the main file imports every ``*.toml``, None if there is no such."""
    for pattern in texts(document.get("imports", [])) or []:
        directory, name = os.path.split(os.path.normpath(os.path.join(os.path.dirname(path), pattern)))
        if name == "*.toml" and "*" not in directory:
            return directory
    return None


def _is_disabled(document: Table, version: tuple[int, int] | None) -> bool:
    names = {"cri", _TABLES[2]} | ({_NEW_TABLE} if version is None or version >= (2, 0) else set())
    return bool(names & set(texts(document.get("disabled_plugins", [])) or []))


def _last(tables: t.Sequence[Table]) -> Table:
    return tables[-1] if tables else {}


def _merged(tables: t.Sequence[Table]) -> Table:
    result: Table = {}
    for table in tables:
        for key, value in table.items():
            both = isinstance(value, list) and isinstance(result.get(key), list)
            result[key] = result[key] + [one for one in value if one not in result[key]] if both else value
    return result


def _answer(table: Table, version: tuple[int, int] | None, newest: int) -> tuple[bool | None, list[str] | None]:
    given = table.get("enable_cdi")
    directories = texts(table.get("cdi_spec_dirs", list(DEFAULT_DIRECTORIES)))
    # Before 2.0 it was off unless switched on, and before 1.7 it did not exist. A file of version 3 needs 2.0.
    is_new = version >= (2, 0) if version is not None else (True if newest >= 3 else None)
    if version is not None and version < (1, 7):
        return False, directories
    if isinstance(given, bool):
        obeyed = version is None or version < (2, 4) or given
        return (given if obeyed else None), directories
    return (is_new if given is None else None), directories
