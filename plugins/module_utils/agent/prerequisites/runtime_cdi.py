# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Let containerd or CRI-O inject CDI devices, by the smallest change of their configuration.

containerd up to 1.7 takes the table of a plugin whole from the last file that has it, 2.0 and later merge tables. So
the table is changed where it is, in the last file that has it. Only where no file has it, a file of ours is dropped in,
if the main one imports a directory, or the table goes to the end of the main one.
"""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ...cdi.directories import normalised
from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import shown
from ..preflight.containerd import (
    CdiSettings,
    containerd_settings,
    cri_table_name,
    cri_table_of,
    drop_in_directory,
    toml_file,
    version_of,
)
from ..preflight.node import Node, UnreadableError, is_trusted, release
from ..preflight.other_runtimes import CRIO_SINCE, crio_settings
from ..preflight.runtime_look import CONTAINERD_SINCE, EDIT, distribution_of
from ..preflight.toml_text import NoTomlError
from .containerd_judge import ContainerdJudge
from .marked_lines import is_ours, made_directory, new_file
from .settings_file import Change, PlannedNode, SettingsFile, apply_all
from .toml_edit import NotEditableError, Value, rendered, with_values

_NAME: t.Final = "99-nodeops-dra"
# containerd from 2.2 on, in the configuration that it has without a file.
_DEFAULT_IMPORTS: t.Final = "/etc/containerd/conf.d/*.toml"
_CRIO_TABLE: t.Final = ("crio", "runtime")


@dataclasses.dataclass(frozen=True)
class Request:
    """``runtime`` is containerd or cri-o, ``version`` its release (needed to set anything), ``configuration`` its file.

    ``directories`` are the spec directories in rising priority; none leaves those that the runtime has. ``program`` is
    containerd, to check a file before it is used; None checks nothing. ``drop_ins`` is the directory of CRI-O.
    """

    runtime: str
    version: str | None
    configuration: str
    drop_ins: str
    directories: t.Sequence[str]
    program: str | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """The changes, and what holds after them."""

    changes: tuple[Change, ...]
    after: CdiSettings


def set_cdi(request: Request, *, check: bool) -> dict[str, t.Any]:
    """Switch CDI on. ``check`` only tells what would be done. Raises DraError with everything as it was."""
    return _finish(request, _plan_present(request), check)


def take_back_cdi(request: Request, *, check: bool) -> dict[str, t.Any]:
    """Take back every line and file of ours, and nothing else."""
    node = Node()
    files = [_read(path) for path in _known_files(node, request)]
    changes = tuple(one for file in files if (one := Change(file, file.plain)).is_needed)
    planned = _planned({one.file.path: one.after for one in changes})
    return _finish(request, Plan(changes, _settings(planned, request)), check)


def _finish(request: Request, plan: Plan, check: bool) -> dict[str, t.Any]:
    program = request.program if request.runtime == "containerd" else None
    validated = bool(plan.changes) and not check and program is not None and is_trusted(program)
    if validated and program is not None:
        judge = ContainerdJudge(program)
        is_on = plan.after.cdi is True
        apply_all(plan.changes, judge.accepts, (lambda: judge.has_cdi(request.configuration)) if is_on else None)
    elif plan.changes and not check:
        apply_all(plan.changes)
    return {
        "changed": bool(plan.changes),
        "files": [one.to_dict() for one in plan.changes],
        "cdi": plan.after.cdi,
        "cdi_directories": plan.after.directories,
        "validated": validated,
        "before": {one.file.path: one.file.text or "" for one in plan.changes},
        "after": {one.file.path: one.after or "" for one in plan.changes},
    }


def _plan_present(request: Request) -> Plan:
    _refuse_generated(request.configuration)
    version = release(request.version)
    since = CONTAINERD_SINCE if request.runtime == "containerd" else CRIO_SINCE
    if version is None:
        raise DraError(
            f"The version of {request.runtime} is not known: {request.version or 'its program was not found'}.",
            "Give it in the option version, such as 1.7.24.",
        )
    if version < since:
        raise DraError(
            f"{request.runtime} {request.version} does not know CDI, which is there from {since[0]}.{since[1]} on.",
            "Upgrade it first.",
        )
    plain = Node()
    files = [_read(path) for path in _known_files(plain, request)]
    base = {file.path: file.plain for file in files}
    edits = _edits(_planned(base), request)
    texts = {**base, **edits}
    for path in edits:
        if path not in base:
            files.append(_read(path))
    changes = tuple(one for file in files if (one := Change(file, texts[file.path])).after != file.text)
    after = _settings(_planned(texts), request)
    wanted = [normalised(one) for one in request.directories] or after.directories
    if after.cdi is not True or after.directories != wanted:
        raise DraError(
            f"CDI would still be {_state_of(after)} after the change of {shown(request.configuration)}.",
            "Nothing was changed. Another file, or an option of the running program, decides: set it there.",
            expected_directories=wanted,
        )
    return Plan(changes, after)


def _edits(node: PlannedNode, request: Request) -> dict[str, str]:
    """What to set, in which file, on the node as it would be without us."""
    settings = _settings(node, request)
    wanted = [normalised(one) for one in request.directories]
    values: dict[str, Value] = {}
    if settings.cdi is not True and request.runtime == "containerd":
        values["enable_cdi"] = True
    if wanted and settings.directories != wanted:
        values["cdi_spec_dirs"] = wanted
    elif request.runtime == "cri-o" and settings.cdi is not True:
        raise DraError(
            f"{shown(request.configuration)} gives CRI-O an empty list of CDI directories.",
            "Nothing was changed. Name the directories in the option spec_dirs.",
        )
    if not values:
        return {}
    if request.runtime == "cri-o":
        return _dropped_in(_crio_drop_in(request), rendered(_CRIO_TABLE, values))
    if node.text(request.configuration) is None:
        return {request.configuration: new_file(_new_main(release(request.version), values))}
    return _containerd_edit(node, request.configuration, settings.files, values)


def _containerd_edit(
    node: PlannedNode, main: str, files: t.Sequence[str], values: t.Mapping[str, Value]
) -> dict[str, str]:
    documents = {path: toml_file(node, path) or {} for path in files}
    holding = [path for path, document in documents.items() if cri_table_of(document) is not None]
    path = holding[-1] if holding else main
    version = version_of(documents[main])
    table = ("plugins", cri_table_name(version_of(documents[path])))
    directory = drop_in_directory(main, documents[main])
    if not holding and directory is not None:
        lines = ([f"version = {version}"] if version > 1 else []) + rendered(table, values)
        return _dropped_in(f"{directory}/{_NAME}.toml", lines)
    try:
        return {path: with_values(node.text(path) or "", table, values)}
    except (NotEditableError, NoTomlError) as error:
        raise DraError(f"{shown(path)} {error.message}", error.hint or "Correct the file.", path=path) from None


def _new_main(version: tuple[int, int] | None, values: t.Mapping[str, Value]) -> list[str]:
    """A main file where there was none. What some releases import without one is imported with it too."""
    number = 3 if version is not None and version >= (2, 0) else 2
    imports = [f'imports = ["{_DEFAULT_IMPORTS}"]'] if version is not None and version >= (2, 2) else []
    return [f"version = {number}", *imports, *rendered(("plugins", cri_table_name(number)), values)]


def _dropped_in(path: str, lines: t.Sequence[str]) -> dict[str, str]:
    """The file of ours, which remembers whether its directory was made for it."""
    is_first = not os.path.isdir(os.path.dirname(path))
    return {path: new_file(lines, with_directory=is_first or made_directory(Node().text(path) or ""))}


def _known_files(node: Node, request: Request) -> list[str]:
    """Every file that may have lines of ours, in the order in which the runtime reads them."""
    if request.runtime == "cri-o":
        return [request.configuration, _crio_drop_in(request)]
    return _settings(node, request, must_serve=False).files or [request.configuration]


def _crio_drop_in(request: Request) -> str:
    return f"{request.drop_ins.rstrip('/')}/{_NAME}.conf"


def _read(path: str) -> SettingsFile:
    file = SettingsFile.read(path)
    if os.path.basename(path).startswith(_NAME) and file.text is not None and not is_ours(file.text):
        raise DraError(
            f"{shown(path)} has been changed by somebody else.",
            "Nothing was changed. Move what is not of this collection to another file, then run again.",
        )
    return file


def _planned(texts: t.Mapping[str, str | None]) -> PlannedNode:
    return PlannedNode(planned=dict(texts))


def _settings(node: Node, request: Request, *, must_serve: bool = True) -> CdiSettings:
    version = release(request.version)
    if request.runtime == "cri-o":
        words = ("--config", request.configuration, "--config-dir", request.drop_ins)
        settings = crio_settings(node, words, version)
    else:
        settings = containerd_settings(node, request.configuration, version)
    for path, text in settings.problems:
        raise UnreadableError(f"{text} Nothing was changed. Correct {shown(path)} first.")
    if settings.directories is not None:
        settings.directories = [normalised(one) for one in settings.directories]
    if not settings.serves_kubelets and must_serve:
        raise DraError(
            f"{shown(request.configuration)} switches off the CRI plugin, so no kubelet can use this containerd.",
            "Nothing was changed. Take cri out of disabled_plugins first.",
        )
    return settings


def _refuse_generated(path: str) -> None:
    distribution = distribution_of(path)
    if distribution:
        raise DraError(
            f"{shown(path)} is written by {distribution} at each start, so a change in it would be lost.",
            f"Nothing was changed. {EDIT[distribution].format(shown(path))}.",
            distribution=distribution,
        )


def _state_of(settings: CdiSettings) -> str:
    if settings.cdi is True:
        return f"read from {', '.join(settings.directories or ['unknown directories'])}"
    return "off" if settings.cdi is False else "unknown"
