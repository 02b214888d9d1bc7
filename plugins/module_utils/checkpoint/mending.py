# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The repairs that a diagnosis proposes, each as one small change of a claim's text."""

from __future__ import annotations

import re
import typing as t

from . import gojson, startup
from .claim_checks import repeated_devices, repeated_items
from .diagnosis import Diagnosis
from .draft import Draft
from .entries import Edit, Entry, object_without, splice, with_field, without_items
from .faults import Fault
from .formats import DATA_API_VERSION, DATA_KIND, FNV, RICHEST
from .gojson import Node
from .gotypes import TypeFault, members_named

_INDEX = re.compile(r"(?:Data\.)?(?:ClaimInfoStateList|entries)\[([0-9]+)\]")
_FIELD = re.compile(r"\.?([^.\[\]]+)")
_ITEM = re.compile(r"\[([0-9]+)\]")
_DIGITS = re.compile("([0-9]+)")
_POINTERS = ("ShareID", "structuredData", "namedResources")
"""Members that may be null: Go's decoder leaves an empty value behind where one of them is of the wrong type."""
_DEFAULTS = {"version": '"v1"', "kind": f'"{DATA_KIND}"', "apiVersion": f'"{DATA_API_VERSION}"'}

Mender = t.Callable[[Entry, Fault], t.Optional[Entry]]


def mend(diagnosis: Diagnosis, family: str) -> Draft:
    """The file with every repair done that the diagnosis proposes, and nothing else.

    ``family`` is what is written where neither the file nor anything found in it tells.
    """
    if diagnosis.found is None:
        return _rebuild(diagnosis, family)
    draft = Draft(diagnosis.found.family, list(diagnosis.found.entries), diagnosis.found, diagnosis.base)
    by_entry: dict[int, list[Fault]] = {}
    for item in diagnosis.faults:
        index = _INDEX.match(item.place)
        if index is not None and item.repair:
            by_entry.setdefault(int(index.group(1)), []).append(item)
        elif item.repair:
            _mend_file(draft, item)
    if by_entry and diagnosis.found.list_node is None:
        draft.source = None  # the list is given twice: what counts of it has no text of its own to be mended in
    entries: list[Entry] = []
    for number, entry in enumerate(draft.entries):
        mended: Entry | None = entry
        for item in by_entry.get(number, ()):
            if mended is not None:
                mended = _MENDERS[item.repair](mended, item)
                _did(draft, item)
        if mended is not None:
            entries.append(mended)
    for number in sorted(by_entry):
        if number >= len(draft.entries):  # of a list that is given twice, in the part that does not count
            for item in by_entry[number]:
                _did(draft, item)
    draft.entries = entries
    return draft


def _did(draft: Draft, item: Fault) -> None:
    """Note the repair of a fault; a conversion notes itself what it loses."""
    draft.did(item.repair, item.place, item.text, "" if item.repair == "convert" else item.loses)


def _mend_file(draft: Draft, item: Fault) -> None:
    name = item.place.rpartition(".")[2]
    if item.code == "wrong_type" and name in _DEFAULTS:
        draft.resets[name] = _DEFAULTS[name]
    if item.repair == "recompute_checksum" and draft.family == FNV:
        # the text that is hashed holds the version, and kubelets disagree on what a foreign one means for it
        draft.resets["version"] = _DEFAULTS["version"]
    _did(draft, item)


def _rebuild(diagnosis: Diagnosis, family: str) -> Draft:
    """A new file around the claims that were found whole."""
    saved = diagnosis.saved.saved if diagnosis.saved is not None else ()
    draft = Draft(saved[0].entry.family if saved else diagnosis.family or family, [])
    for item in diagnosis.faults:
        if item.repair:
            _did(draft, item)
    for item_saved in saved:
        entry = item_saved.entry
        if item_saved.faults:
            names = ", ".join(sorted({item.path for item in item_saved.faults}))
            entry = _reset(entry, item_saved.faults)
            draft.did("reset_field", entry.label, f"Claim {entry.label} had values of the wrong type.", f"{names}")
        if entry.fields["PodUIDs"] is None:
            entry = with_field(entry, "PodUIDs", "{}")
        draft.entries.append(entry)
    _drop_same(draft)
    return draft


def _drop_same(draft: Draft) -> None:
    """Of claims with one name the last stays, as in a kubelet: the file may hold parts of an older one."""
    last = {entry.name: index for index, entry in enumerate(draft.entries)}
    for index, entry in enumerate(draft.entries):
        if last[entry.name] != index:
            keeper = draft.entries[last[entry.name]]
            loses = "" if keeper.fields == entry.fields else f"what only the entry with UID {entry.uid} holds"
            draft.did("drop_claim", entry.label, f"Claim {entry.label} was found more than once.", loses)
    draft.entries = [entry for index, entry in enumerate(draft.entries) if last[entry.name] == index]


def _reset(entry: Entry, faults: t.Iterable[TypeFault]) -> Entry:
    """The claim with its ill-typed values emptied; ill-typed items of lists are left out."""
    struct = RICHEST[entry.family].claim
    root = gojson.parse(entry.text)
    fields = entry.fields
    for path in sorted({item.path for item in faults}, key=_place_order, reverse=True):
        _drop_item(fields, path)
    for name in sorted({_FIELD.match(item.path).group(1) for item in faults}):  # type: ignore[union-attr]
        if name == "PodUIDs" and fields[name] is None:
            fields[name] = {uid: {} for uid in _listed_pods(root)}
        entry = with_field(entry, name, struct.field(name).type.encode(fields[name]))
    return entry


def _place_order(path: str) -> list[tuple[int, str]]:
    """Sorts paths so that numbers in them count: of a list's items the last one has to be left out first."""
    return [(len(part), part) if part.isdigit() else (0, part) for part in _DIGITS.split(path)]


def _drop_item(fields: t.Any, path: str) -> None:
    """Leave out the list item that a path ends in, make null what may be null; the decoder has emptied all else."""
    value = fields
    while True:
        key, rest = _first_step(value, path)
        if key is None:
            return
        if not rest:
            break
        value, path = value[key], rest
    if isinstance(value, list):
        del value[key]
    elif path.lstrip(".") in _POINTERS:
        value[key] = None


def _first_step(value: t.Any, path: str) -> tuple[t.Any, str]:
    """The index or key that a path begins with, and what of the path is left; None where the value has no such item.

    A key of a map stands in the path as it is, with all dots and brackets that are in it.
    """
    if isinstance(value, list):
        item = _ITEM.match(path)
        known = item is not None and int(item.group(1)) < len(value)
        return (int(item.group(1)), path[item.end() :]) if item is not None and known else (None, "")
    if not isinstance(value, dict):
        return None, ""
    if path.startswith("["):
        fitting = [key for key in value if path.startswith(f"[{key}]")]
        key = max(fitting, key=len) if fitting else None
        return key, path[len(key) + 2 :] if key is not None else ""
    field = _FIELD.match(path)
    return (field.group(1), path[field.end() :]) if field is not None and field.group(1) in value else (None, "")


def _listed_pods(root: Node) -> list[str]:
    """Pod UIDs that somebody wrote as a list instead of a set."""
    nodes = [node for member in members_named(root, "PodUIDs") if member.kind == "array" for node in member.value]
    return [node.value for node in nodes if node.kind == "string"]


def _reset_field(entry: Entry, _unused: Fault) -> Entry:
    fresh, faults = Entry.from_text(entry.family, entry.text)
    return _reset(fresh, faults) if faults else entry


def _drop_claim(_unused: Entry, __: Fault) -> None:
    return None


def _set_empty(entry: Entry, _unused: Fault) -> Entry:
    return with_field(entry, "PodUIDs", "{}")


def _drop_pod_reference(entry: Entry, _unused: Fault) -> Entry:
    return _edit_members(entry, "PodUIDs", lambda text, node: object_without(text, node, [""]))


def _drop_driver(entry: Entry, _unused: Fault) -> Entry:
    return _edit_members(entry, "DriverState", lambda text, node: object_without(text, node, [""]))


def _drop_repeats(entry: Entry, item: Fault) -> Entry:
    driver = item.facts["driver"]
    if entry.family == FNV:
        return _edit_members(entry, "CDIDevices", lambda text, node: _edit_key(text, node, driver, _unique_items))
    return _edit_members(entry, "DriverState", lambda text, node: _edit_key(text, node, driver, _unique_devices))


def _drop_cdi_device(entry: Entry, item: Fault) -> Entry:
    driver = item.facts["driver"]
    if item.code == "cdi_annotation_too_long":
        return _edit_members(entry, "CDIDevices", lambda text, node: object_without(text, node, [driver]))
    return _edit_members(entry, "CDIDevices", lambda text, node: _edit_key(text, node, driver, _good_devices))


_MENDERS: t.Mapping[str, Mender] = {
    "reset_field": _reset_field,
    "drop_claim": _drop_claim,
    "set_empty": _set_empty,
    "drop_pod_reference": _drop_pod_reference,
    "drop_driver": _drop_driver,
    "drop_repeats": _drop_repeats,
    "drop_cdi_device": _drop_cdi_device,
}

Rewrite = t.Callable[[str, Node], str]


def _edit_members(entry: Entry, name: str, rewrite: Rewrite) -> Entry:
    """The claim with one of its members rewritten from its node."""
    nodes = [node for node in members_named(gojson.parse(entry.text), name) if node.kind == "object"]
    text = splice(entry.text, [Edit(node.start, node.end, rewrite(entry.text, node)) for node in nodes])
    return Entry.from_text(entry.family, text)[0]


def _edit_key(text: str, node: Node, key: str, rewrite: Rewrite) -> str:
    members = [
        f"{gojson.quote(name)}:{rewrite(text, value) if name == key else text[value.start : value.end]}"
        for name, value in node.members()
    ]
    return f"{{{','.join(members)}}}"


def _unique_items(text: str, node: Node) -> str:
    if node.kind != "array":
        return text[node.start : node.end]
    return without_items(text, node, frozenset(repeated_items(node)))


def _unique_devices(text: str, node: Node) -> str:
    """The ``Devices`` of one driver without repeats."""
    edits = [
        Edit(member.start, member.end, without_items(text, member, frozenset(repeated_devices(text, member))))
        for member in members_named(node, "Devices")
        if member.kind == "array"
    ]
    return splice(text, edits, node.start, node.end)


def _good_devices(text: str, node: Node) -> str:
    if node.kind != "array":
        return text[node.start : node.end]
    names = [item.value if item.kind == "string" else "" for item in node.value]  # null is an empty name to Go
    bad = [index for index, name in enumerate(names) if startup.cdi_problem(name)[0] != startup.STARTS]
    return without_items(text, node, frozenset(bad))
