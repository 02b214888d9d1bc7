# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What CRI-O and podman are told about CDI. Neither has a switch for it: they have it from some release on."""

from __future__ import annotations

import typing as t

from ...cdi.directories import DEFAULT_DIRECTORIES
from ...checkpoint.kubelet_command import option
from .containerd import CdiSettings, texts, toml_file
from .node import Node, UnreadableError

CRIO_SINCE: t.Final = (1, 24)
PODMAN_SINCE: t.Final = (4, 1)

_CRIO_FILE: t.Final = "/etc/crio/crio.conf"
_CRIO_DIRECTORY: t.Final = "/etc/crio/crio.conf.d"
# Later ones win.
_PODMAN_FILES: t.Final = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
_PODMAN_DIRECTORIES: t.Final = ("/usr/share/containers/containers.conf.d", "/etc/containers/containers.conf.d")


def crio_settings(node: Node, words: t.Sequence[str], version: tuple[int, int] | None) -> CdiSettings:
    """The configuration of CRI-O; ``words`` are the options of the running one."""
    directory = option(words, "config-dir") or _CRIO_DIRECTORY
    settings = CdiSettings()
    files = [option(words, "config") or _CRIO_FILE, *_dropped_in(node, directory, settings)]
    given = _last_given(node, files, ("crio", "runtime"), settings)
    by_option = option(words, "cdi-spec-dirs")
    return _finish(settings, by_option.split(",") if by_option else given, version, CRIO_SINCE)


def podman_settings(node: Node, version: tuple[int, int] | None) -> CdiSettings:
    """The configuration of podman as root uses it."""
    settings = CdiSettings()
    files = [
        path
        for main, directory in zip(_PODMAN_FILES, _PODMAN_DIRECTORIES)
        for path in (main, *_dropped_in(node, directory, settings))
    ]
    given = _last_given(node, files, ("engine",), settings)
    return _finish(settings, given, version, PODMAN_SINCE)


def _dropped_in(node: Node, directory: str, settings: CdiSettings) -> list[str]:
    try:
        names = node.names_in(directory)
    except UnreadableError as error:
        settings.problems.append((directory, error.message))
        return []
    return [f"{directory.rstrip('/')}/{name}" for name in names if not name.startswith(".")]


def _last_given(node: Node, files: t.Sequence[str], table: t.Sequence[str], settings: CdiSettings) -> list[str] | None:
    """``cdi_spec_dirs`` of the last file that has it, None where none does."""
    given = None
    for path in files:
        try:
            document: t.Any = toml_file(node, path)
            if document is None:
                continue
            settings.files.append(path)
            for name in table:
                document = document.get(name) if isinstance(document, dict) else None
            if isinstance(document, dict) and "cdi_spec_dirs" in document:
                given = texts(document["cdi_spec_dirs"])
                if given is None:
                    raise UnreadableError(f"{path} has cdi_spec_dirs that are no list of texts.")
        except UnreadableError as error:
            settings.problems.append((path, error.message))
    return given


def _finish(
    settings: CdiSettings, given: list[str] | None, version: tuple[int, int] | None, since: tuple[int, int]
) -> CdiSettings:
    if version is not None and version < since:
        settings.cdi = False
    elif not settings.problems:
        settings.directories = list(DEFAULT_DIRECTORIES) if given is None else given
        # Who sets the directories has a release that knows them, even if it does not say which.
        settings.cdi = bool(settings.directories) if version is not None or given is not None else None
    return settings
