# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether nodes are ready for another release of Kubernetes: state file, drivers, gates, version of the API."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.resource.release import Release, parse_release
from ansible_collections.nodeops.dra.plugins.plugin_utils.node_answers import Json, is_unreachable, no_answer
from ansible_collections.nodeops.dra.plugins.plugin_utils.text_tables import counted, table, wrapped

_HEAD = ("NODE", "READY", "NOW", "FILE", "DRIVERS", "API", "PROBLEMS")


class Trouble(t.NamedTuple):
    """What stands against the upgrade (``blocks``), or is worth knowing."""

    blocks: bool
    code: str
    text: str


def upgrade_report(answers: t.Mapping[str, Json], target: str) -> dict[str, t.Any]:
    """``nodes`` with the lines for each node, ``summary`` with those for all, ``problems`` with what stands against it.

    ``answers`` maps nodes to results of ``node_info`` (``node``), ``checkpoint_info`` (``file``) and ``driver_info``
    (``drivers``), which may have failed. ``target`` is the release to go to.
    """
    release = parse_release(target)
    names = sorted(answers)
    found = {name: _troubles(answers[name], release) for name in names}
    return {
        "nodes": {name: _node(name, found[name], target) for name in names},
        "summary": [
            *table(_HEAD, [_row(name, answers[name], found[name], release) for name in names]),
            "",
            *wrapped(
                f"{counted(len(names), 'node')} for Kubernetes {target}: "
                f"{sum(not _blocking(found[name]) for name in names)} ready. Codes in capitals are blockers."
            ),
        ],
        "problems": [f"{name}: {one.text}" for name in names for one in _blocking(found[name])],
    }


# What kubelets of a release speak


def accepts(release: Release, advertised: str) -> bool | None:
    """Whether a kubelet of the release can use what a driver advertises. None where that does not tell: "1.0.0" stands
    for three generations up to 1.31 (kubelet: validateVersions of the plugin manager)."""
    if advertised == "v1.DRAPlugin":
        return release >= (1, 34)
    if advertised == "v1beta1.DRAPlugin":
        return release >= (1, 32)
    if advertised == "v1alpha3.NodeService":
        return (1, 32) <= release < (1, 34)
    if re.fullmatch(r"v?1\.\d+\.\d+", advertised):
        return None if release < (1, 34) else False
    return False


def api_of_kubelet(release: Release) -> str:
    """The version of resource.k8s.io in which a kubelet reads claims, which the API server has to serve."""
    for since, version in (((1, 34), "v1"), ((1, 32), "v1beta1"), ((1, 31), "v1alpha3"), ((1, 27), "v1alpha2")):
        if release >= since:
            return version
    return "v1alpha1"


# One node


def _troubles(answer: Json, release: Release) -> list[Trouble]:
    node = answer["node"]
    missing = no_answer(node, "ready")
    if missing:
        return [Trouble(True, "unreachable" if is_unreachable(node) else "look_failed", missing)]
    found = [Trouble(True, one["code"], f"{one['text']} {one['remedy']}".strip()) for one in node["blockers"]]
    return [*found, *_of_file(answer["file"], release), *_of_drivers(answer, release), *_of_api(node, release)]


def _of_file(file: Json, release: Release) -> t.Iterator[Trouble]:
    missing = no_answer(file, "status")
    if missing:
        yield Trouble(True, "file_unknown", f"Its state file could not be looked at. {missing}")
    elif file["status"] == "refused":
        first = next((one["text"] for one in file["faults"] if one["severity"] == "error"), "No release reads it.")
        to = f"{release.major}.{release.minor}"
        yield Trouble(
            True,
            "file_refused",
            f"The kubelet of {to} does not start with {file['file']}: {first} Drain the node or stop its kubelet, then "
            f"run nodeops.dra.checkpoint with state=converted and target_version={to} before the new one starts.",
        )
    elif file["status"] == "faulty":
        yield Trouble(False, "file_faulty", f"{file['file']} has faults that the kubelet of the release minds later.")


def _of_drivers(answer: Json, release: Release) -> t.Iterator[Trouble]:
    drivers = answer["drivers"]
    missing = no_answer(drivers, "drivers")
    if missing:
        if answer["node"]["drivers"]:
            yield Trouble(False, "drivers_unknown", f"Its drivers could not be asked what they speak. {missing}")
        return
    for driver in drivers["drivers"]:
        spoken = sorted({text for one in driver["instances"] for text in one["advertised"]})
        verdicts = [accepts(release, text) for text in spoken]
        said = f"Driver {driver['name']} speaks {', '.join(spoken) or 'nothing'}"
        if True in verdicts:
            continue
        if None in verdicts:
            yield Trouble(False, "driver_version_unclear", f"{said}, which does not tell the version of its interface.")
        else:
            yield Trouble(
                True,
                "driver_too_old" if release >= (1, 32) else "driver_too_new",
                f"{said}, and a kubelet of {release.major}.{release.minor} none of that. Update the driver first.",
            )


def _of_api(node: Json, release: Release) -> t.Iterator[Trouble]:
    now = _now(node)
    used, wanted = (None if now is None else api_of_kubelet(now)), api_of_kubelet(release)
    if used not in (None, wanted):
        yield Trouble(
            False,
            "api_version",
            f"The kubelet reads claims in {used} now and in {wanted} then: the API server must serve that before.",
        )


def _now(node: Json) -> Release | None:
    version = node["kubelet"]["version"]
    return parse_release(version) if version else None


def _blocking(found: t.Iterable[Trouble]) -> list[Trouble]:
    return [one for one in found if one.blocks]


def _node(name: str, found: t.Sequence[Trouble], target: str) -> list[str]:
    verdict = "is NOT ready" if _blocking(found) else "is ready"
    rows = [["BLOCKER" if one.blocks else "note", one.code, one.text] for one in found]
    return [f"{name} {verdict} for Kubernetes {target}", *(["", *table(("", "CODE", "WHAT"), rows)] if rows else [])]


def _row(name: str, answer: Json, found: t.Sequence[Trouble], release: Release) -> list[t.Any]:
    codes = [one.code.upper() if one.blocks else one.code for one in found]
    node, file, drivers = answer["node"], answer["file"], answer["drivers"]
    if no_answer(node, "ready"):
        return [name, None, None, None, None, None, codes]
    return [
        name,
        "NO" if _blocking(found) else "yes",
        node["kubelet"]["version"],
        "none" if not file.get("exists", True) else file.get("format"),
        len(drivers["drivers"]) if "drivers" in drivers else None,
        api_of_kubelet(release),
        codes,
    ]
