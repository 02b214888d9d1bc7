# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The repairs that a diagnosis proposes, each as one small change of a claim's text."""

from __future__ import annotations

import re
import typing as t

from . import gojson, startup
from .claim_checks import repeats
from .diagnosis import Diagnosis
from .draft import Draft
from .entries import RICHEST, Edit, Entry, members_named, object_without, splice, with_field, without_items
from .faults import Fault
from .formats import DATA_API_VERSION, DATA_KIND, FNV
from .gojson import Node
from .gotypes import TypeFault

_INDEX = re.compile(r"(?:Data\.)?(?:ClaimInfoStateList|entries)\[([0-9]+)\]")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")
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
    entries: list[Entry] = []
    for number, entry in enumerate(draft.entries):
        mended: Entry | None = entry
        for item in by_entry.get(number, ()):
            if mended is not None:
                mended = _MENDERS[item.repair](mended, item)
                draft.did(item.repair, item.place, item.text, item.loses)
        if mended is not None:
            entries.append(mended)
    draft.entries = entries
    return draft


def _mend_file(draft: Draft, item: Fault) -> None:
    name = item.place.rpartition(".")[2]
    if item.code == "wrong_type" and name in _DEFAULTS:
        draft.resets[name] = _DEFAULTS[name]
    if item.repair == "recompute_checksum" and draft.family == FNV:
        # the text that is hashed holds the version, and kubelets disagree on what a foreign one means for it
        draft.resets["version"] = _DEFAULTS["version"]
    draft.did(item.repair, item.place, item.text, item.loses)


def _rebuild(diagnosis: Diagnosis, family: str) -> Draft:
    """A new file around the claims that were found whole."""
    saved = diagnosis.saved.saved if diagnosis.saved is not None else ()
    draft = Draft(saved[0].entry.family if saved else diagnosis.family or family, [])
    for item in diagnosis.faults:
        if item.repair:
            draft.did(item.repair, item.place, item.text, item.loses)
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
    for item in sorted(faults, key=lambda one: one.path, reverse=True):
        _drop_item(fields, item.path)
    for name in sorted({_STEP.findall(item.path)[0][0] for item in faults}):
        if name == "PodUIDs" and fields[name] is None:
            fields[name] = {uid: {} for uid in _listed_pods(root)}
        entry = with_field(entry, name, struct.field(name).type.encode(fields[name]))
    return entry


def _drop_item(fields: t.Any, path: str) -> None:
    """Leave out the list item that a path ends in; a path that ends otherwise was emptied by the decoder."""
    steps = _STEP.findall(path)
    value = fields
    for name, index in steps[:-1]:
        value = value[int(index)] if index else value.get(name) if isinstance(value, dict) else None
        if value is None:
            return
    name, index = steps[-1]
    if index and isinstance(value, list) and int(index) < len(value):
        del value[int(index)]


def _listed_pods(root: Node) -> list[str]:
    """Pod UIDs that somebody wrote as a list instead of a set."""
    nodes = [node for member in members_named(root, "PodUIDs") if member.kind == "array" for node in member.value]
    return [node.value for node in nodes if node.kind == "string"]


def _reset_field(entry: Entry, _: Fault) -> Entry:
    fresh, faults = Entry.from_text(entry.family, entry.text)
    return _reset(fresh, faults) if faults else entry


def _drop_claim(_: Entry, __: Fault) -> None:
    return None


def _set_empty(entry: Entry, _: Fault) -> Entry:
    return with_field(entry, "PodUIDs", "{}")


def _drop_pod_reference(entry: Entry, _: Fault) -> Entry:
    return _edit_members(entry, "PodUIDs", lambda text, node: object_without(text, node, [""]))


def _drop_driver(entry: Entry, _: Fault) -> Entry:
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
    values = [item.value if item.kind == "string" else text[item.start : item.end] for item in node.value]
    return without_items(text, node, frozenset(repeats(values)))


def _unique_devices(text: str, node: Node) -> str:
    """The ``Devices`` of one driver without repeats. Devices that differ in a field unknown to us are no repeats."""
    edits = []
    for member in members_named(node, "Devices"):
        if member.kind == "array":
            spelt = [text[item.start : item.end] for item in member.value]
            decoded = [_canonical_device(item) for item in spelt]
            edits.append(Edit(member.start, member.end, without_items(text, member, frozenset(repeats(decoded)))))
    return splice(text, edits, within=node)


def _canonical_device(text: str) -> list[tuple[str, str]]:
    root = gojson.parse(text)
    return sorted((name.lower(), text[node.start : node.end]) for name, node in root.members())


def _good_devices(text: str, node: Node) -> str:
    if node.kind != "array":
        return text[node.start : node.end]
    bad = [
        index
        for index, item in enumerate(node.value)
        if item.kind == "string" and startup.cdi_problem(item.value)[0] != startup.STARTS
    ]
    return without_items(text, node, frozenset(bad))
