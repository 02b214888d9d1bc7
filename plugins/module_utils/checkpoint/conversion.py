# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Carrying claims from the format of one release to that of another, and saying what does not fit in there.

A claim of 1.27 to 1.30 is an object that 1.31 no longer serves: after such an upgrade the converted entry serves to
unprepare, which is why every driver that has to be called is kept, even where its devices are no longer known.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import gojson
from .claim_checks import spelling
from .claim_list import Claim
from .draft import Draft
from .entries import Edit, Entry, object_without, splice, with_field
from .file_checks import check_members
from .formats import CRC, CRC_1_35, FNV, FNV_1_27, FNV_1_30, RICHEST, Format
from .gojson import Node
from .gotypes import fold, members_named


@dataclasses.dataclass(frozen=True)
class Loss:
    """What a target format cannot hold of one claim."""

    claim: str
    field: str
    value: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.field} {self.value}"


def convert(draft: Draft, form: Format) -> Draft:
    """The draft's claims for kubelets that read ``form``; every loss becomes a step."""
    same = draft.family == form.family
    result = Draft(form.family, [], steps=draft.steps)
    if same:
        result.source, result.document, result.resets = draft.source, draft.document, draft.resets
    else:
        note_fields_of_the_file(draft)
    for entry in draft.entries:
        converted, losses = _within_family(entry, form) if same else _across(entry, form)
        result.entries.append(converted)
        for loss in losses:
            what = loss.text
            result.did("convert", loss.claim, f"{form.name} does not hold the {what} of claim {loss.claim}.", what)
    return result


def note_fields_of_the_file(draft: Draft) -> None:
    """Make a step of every field around the list of claims that no release knows: a new file does not have it."""
    if draft.document is None:
        return
    for item in check_members(draft.document, draft.family):
        if item.code == "unknown_field":
            draft.did("convert", item.place, f"Field '{item.place}' is unknown to every release.", "the field")


def _within_family(entry: Entry, form: Format) -> tuple[Entry, list[Loss]]:
    if form.family == CRC:
        return _crc_devices(entry, share_id=form is CRC_1_35)
    return _fnv_handles(entry, form)


def _crc_devices(entry: Entry, share_id: bool) -> tuple[Entry, list[Loss]]:
    """With ``ShareID`` in each device as 1.35 writes it, or without, as before."""
    edits: list[Edit] = []
    losses = []
    for device in _devices(gojson.parse(entry.text)):
        shares = members_named(device, "ShareID")
        if share_id and not shares:
            edits.append(_insert_share_id(device))
        elif not share_id and shares:
            keys = frozenset(key for key, _unused in device.members() if fold(key) == "shareid")
            edits.append(Edit(device.start, device.end, object_without(entry.text, device, keys)))
            losses += [Loss(entry.label, "share ID", node.value) for node in shares if node.kind == "string"]
    if not edits:
        return entry, losses
    return Entry.from_text(CRC, splice(entry.text, edits))[0], losses


def _devices(root: Node) -> t.Iterator[Node]:
    for state in members_named(root, "DriverState"):
        for _unused, driver in state.members():
            for devices in members_named(driver, "Devices"):
                if devices.kind == "array":
                    yield from (item for item in devices.value if item.kind == "object")


def _insert_share_id(device: Node) -> Edit:
    before = members_named(device, "DeviceName")
    if before:
        return Edit(before[-1].end, before[-1].end, ',"ShareID":null')
    comma = "," if device.value else ""
    return Edit(device.start + 1, device.start + 1, f'"ShareID":null{comma}')


def _fnv_handles(entry: Entry, form: Format) -> tuple[Entry, list[Loss]]:
    """With the handles that ``form`` knows: none in 1.27, without structured data before 1.30, one at least after."""
    handles = entry.fields.get("ResourceHandles")
    root = gojson.parse(entry.text)
    found = members_named(root, "ResourceHandles")
    if form is FNV_1_27:
        if not found:
            return entry, []
        keys = frozenset(key for key, _unused in root.members() if fold(key) == "resourcehandles")
        text = object_without(entry.text, root, keys)
        return Entry.from_text(FNV, text)[0], _handle_losses(entry, handles, data=True)
    if not handles:
        one = form.claim.field("ResourceHandles").type.encode([_handle(entry.fields["DriverName"])])
        pods = members_named(root, "PodUIDs")
        if found or not pods:
            return with_field(entry, "ResourceHandles", one), []
        text = splice(entry.text, [Edit(pods[-1].end, pods[-1].end, f',"ResourceHandles":{one}')])
        return Entry.from_text(FNV, text)[0], []
    losses = [] if form is FNV_1_30 else _handle_losses(entry, handles, data=False)
    if not losses:
        return entry, []
    edits = [edit for node in found if node.kind == "array" for edit in _structured_edits(entry.text, node)]
    return Entry.from_text(FNV, splice(entry.text, edits))[0], losses


def _structured_edits(text: str, handles: Node) -> t.Iterator[Edit]:
    """What takes the structured data out of some handles."""
    for handle in handles.value:
        keys = frozenset(key for key, _unused in handle.members() if fold(key) == "structureddata")
        if keys:
            yield Edit(handle.start, handle.end, object_without(text, handle, keys))


def _handle(driver: str, data: str = "") -> dict[str, t.Any]:
    return {"driverName": driver, "data": data, "structuredData": None}


def _handle_losses(entry: Entry, handles: t.Sequence[Claim] | None, data: bool) -> list[Loss]:
    losses = []
    for handle in handles or ():
        driver = handle.get("driverName") or entry.fields["DriverName"]
        if data and handle.get("data"):
            losses.append(Loss(entry.label, f"handle data of driver {driver}:", handle["data"]))
        if handle.get("structuredData") is not None:
            losses.append(Loss(entry.label, "structured data of driver", driver))
    return losses


def _across(entry: Entry, form: Format) -> tuple[Entry, list[Loss]]:
    fields, losses = (_to_crc if form.family == CRC else _to_fnv)(entry)
    losses += [Loss(entry.label, "field", name) for name in _unknown_fields(entry)]
    return Entry.from_fields(form.family, fields, form), losses


def _unknown_fields(entry: Entry) -> list[str]:
    """The places inside a claim of fields that no release knows: nobody can say where the other family keeps them."""
    faults = spelling("", entry)
    return [item.place.lstrip(".") for item in faults if item.code in ("unknown_field", "foreign_field")]


def _to_crc(entry: Entry) -> tuple[Claim, list[Loss]]:
    """A classic claim as 1.31 and later hold it: one device a driver, with its CDI names and nothing else."""
    old = entry.fields
    cdi = old["CDIDevices"] or {}
    state = {driver: {"Devices": [_nameless_device(cdi.get(driver))]} for driver in entry.drivers()}
    losses = _handle_losses(entry, old.get("ResourceHandles"), data=True)
    if old["ClassName"]:
        losses.insert(0, Loss(entry.label, "class", old["ClassName"]))
    return {**_identity(old), "DriverState": state}, losses


def _nameless_device(cdi_names: list[str] | None) -> dict[str, t.Any]:
    return {"PoolName": "", "DeviceName": "", "ShareID": None, "RequestNames": None, "CDIDeviceIDs": cdi_names}


def _to_fnv(entry: Entry) -> tuple[Claim, list[Loss]]:
    """A structured claim as 1.27 to 1.30 hold it: a handle and the CDI names for each driver."""
    drivers = entry.drivers()
    cdi: dict[str, list[str]] = {}
    losses = []
    for driver in drivers:
        devices = entry.fields["DriverState"][driver]["Devices"]
        names = [name for device in devices or () for name in device["CDIDeviceIDs"] or ()]
        if devices is not None:
            cdi[driver] = list(dict.fromkeys(names))
        for device in devices or ():
            where = f"{driver}/{device['PoolName']}/{device['DeviceName']}"
            losses.append(Loss(entry.label, "pool, device and request names of", where))
            if device.get("ShareID"):
                losses.append(Loss(entry.label, "share ID", device["ShareID"]))
    fields = {
        "DriverName": drivers[0] if drivers else "",
        "ClassName": "",
        **_identity(entry.fields),
        "ResourceHandles": [_handle(driver) for driver in drivers or [""]],
        "CDIDevices": cdi,
    }
    return fields, losses


def _identity(fields: Claim) -> Claim:
    return {name: fields[name] for name in ("ClaimUID", "ClaimName", "Namespace")} | _pods(fields)


def _pods(fields: Claim) -> Claim:
    return {"PodUIDs": fields["PodUIDs"] if fields["PodUIDs"] is not None else {}}


def other_family(entry: Entry) -> Entry:
    """The same claim as the other family holds it, for a file that both families read."""
    family = FNV if entry.family == CRC else CRC
    fields, _unused = (_to_fnv if family == FNV else _to_crc)(entry)
    return Entry.from_fields(family, fields, RICHEST[family])
