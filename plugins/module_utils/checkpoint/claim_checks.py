# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the claims of a file that parses: each claim by itself, then all of them together."""

from __future__ import annotations

import json
import re
import typing as t

from . import gojson, startup
from .canonical import Identity
from .claim_list import Claim
from .entries import Entry, EntryList
from .faults import Fault, fault
from .formats import CRC, DEVICE, FNV, FORMATS, RICHEST
from .gojson import Node
from .gotypes import Decoding, GoType, Map, Pointer, Slice, Struct, fold, members_named

Place = str


def check_claims(found: EntryList, known_pods: t.Collection[str] | None = None) -> list[Fault]:
    """Every fault of the claims of one part, in file order. ``known_pods`` are the UIDs of the pods that exist.

    What is empty only because its type is wrong has been told already: that is not told again.
    """
    list_key = list_place(found.family)
    ill_typed = {f"{_PREFIXES[found.family]}{item.path}" for item in found.faults}
    doubtful = {path[: cut.start()] for path in ill_typed for cut in _CUT.finditer(path)} | ill_typed
    faults: list[Fault] = []
    seen = _Seen()
    without_handles = 0
    for index, entry in enumerate(found.entries):
        place = f"{list_key}[{index}]"
        fields = entry.fields
        who = Identity(fields["ClaimUID"], fields["ClaimName"], fields["Namespace"])
        seen.add(found.family, who)
        if place not in ill_typed:
            faults += _identity(place, who, ill_typed)
            if f"{place}.PodUIDs" not in ill_typed:
                faults += _pods(place, who, fields["PodUIDs"], known_pods)
        if found.family == CRC:
            faults += _crc_drivers(place, who, fields, entry, doubtful)
        else:
            faults += _fnv_devices(place, who, fields, doubtful)
            without_handles += not fields["ResourceHandles"]
        if not entry.well_formed:
            faults += spelling(place, entry)
    if without_handles:
        faults.append(_without_handles(list_key, without_handles, len(found.entries)))
    return faults + _together(list_key, found) if seen.again else faults


class _Seen:
    """Whether anything comes again that should be a claim's own.

    Only hashes are kept, of a large file the rest would be too much: where two are equal it is worth a closer look.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self.again = False

    def add(self, family: str, who: Identity) -> None:
        """One more claim."""
        glued = startup.cache_key(FNV, who.namespace, who.name) if family == FNV else ""
        for own in (who.key, ("UID", who.uid) if who.uid else "", glued):
            count = len(self._hashes)
            if own:
                self._hashes.add(hash(own))
                self.again = self.again or len(self._hashes) == count


_PREFIXES: t.Mapping[str, str] = {FNV: "", CRC: "Data."}


_CUT = re.compile(r"[.\[]")


def list_place(family: str) -> Place:
    """Where the list of claims is in a file of a family."""
    return _PREFIXES[family] + RICHEST[family].list_key


def _without_handles(list_key: str, bare: int, claims: int) -> Fault:
    """One word for all claims of a file of 1.27: its kubelet knows no handles, so each of them is like this."""
    have = "claim has" if bare == claims == 1 else "claims have"
    text = f"{bare} of {claims} {have} no resource handles, as in files of 1.27."
    return fault("no_resource_handles", list_key, text, {"claims": bare})


def _identity(place: Place, who: Identity, ill_typed: t.Container[Place]) -> list[Fault]:
    faults = []
    for name, code, what, value in (
        ("ClaimUID", "no_claim_uid", "UID", who.uid),
        ("ClaimName", "no_claim_name", "name", who.name),
        ("Namespace", "no_claim_name", "namespace", who.namespace),
    ):
        if not value and f"{place}.{name}" not in ill_typed:
            faults.append(fault(code, f"{place}.{name}", f"Claim {who.label} has no {what}."))
    return faults


def _pods(
    place: Place, who: Identity, pods: t.Collection[str] | None, known_pods: t.Collection[str] | None
) -> list[Fault]:
    place = f"{place}.PodUIDs"
    if pods is None:
        return [fault("pods_null", place, f"The pods of claim {who.label} are null instead of an empty set.")]
    faults = []
    if not pods:
        faults.append(fault("no_pods", place, f"No pod holds claim {who.label}."))
    if "" in pods:
        faults.append(fault("empty_pod_uid", place, f"Claim {who.label} is held by a pod without a UID."))
    if known_pods is not None:
        for uid in sorted(set(pods) - set(known_pods) - {""}):
            text = f"Claim {who.label} is held by pod {uid}, which does not exist."
            faults.append(fault("unknown_pod", place, text, {"pod_uid": uid, "claim_uid": who.uid}))
    return faults


def repeats(items: t.Sequence[t.Any] | None) -> list[int]:
    """The places of a list's items that stand in it before already, to the last detail."""
    if not items or len(items) < 2:
        return []
    seen: set[str] = set()
    places = []
    for index, item in enumerate(items):
        key = json.dumps(item, sort_keys=True)
        if key in seen:
            places.append(index)
        seen.add(key)
    return places


def repeated_items(node: Node) -> list[int]:
    """The places of repeats in a list of strings, however they are spelt."""
    return repeats([item.value if item.kind == "string" else "" for item in node.value])


def repeated_devices(text: str, node: Node) -> list[int]:
    """The places of repeats in a list of devices. Devices that differ in a field unknown to us are no repeats."""
    return repeats([_device_key(text, item) for item in node.value])


def _device_key(text: str, node: Node) -> t.Any:
    unknown = [(key, text[item.start : item.end]) for key, item in node.members() if DEVICE.field_for(key) is None]
    return [DEVICE.decode(node, DEVICE.zero(), "", Decoding(text)), unknown]


def _count_repeats(entry: Entry, driver: str, devices: list[t.Any] | None) -> int:
    """How many devices of a driver are listed again; the text is looked at only where the decoded devices are equal."""
    if not repeats(devices):
        return 0
    root = gojson.parse(entry.text)
    lists = [
        member
        for state in members_named(root, "DriverState")
        for name, node in state.members()
        if name == driver
        for member in members_named(node, "Devices")
    ]
    return len(repeated_devices(entry.text, lists[-1])) if lists else 0


def _crc_drivers(place: Place, who: Identity, fields: Claim, entry: Entry, doubtful: t.Container[Place]) -> list[Fault]:
    faults = []
    for driver, state in (fields["DriverState"] or {}).items():
        devices = state["Devices"]
        at = f"{place}.DriverState[{driver}]"
        if not driver:
            faults.append(fault("no_driver_name", at, f"Claim {who.label} has a driver without a name."))
        if at in doubtful:
            continue
        if driver and devices is None:
            faults.append(fault("devices_pending", at, f"Driver {driver} had not answered yet for claim {who.label}."))
        count = _count_repeats(entry, driver, devices)
        if count:
            text = f"Claim {who.label} lists {count} of {len(devices)} devices of driver {driver} again."
            faults.append(fault("doubled_devices", f"{at}.Devices", text, {"driver": driver, "repeats": count}))
    return faults


def _fnv_devices(place: Place, who: Identity, fields: Claim, doubtful: t.Container[Place]) -> list[Fault]:
    faults = []
    for driver, devices in (fields["CDIDevices"] or {}).items():
        at = f"{place}.CDIDevices[{driver}]"
        problem = startup.annotation_problem(fields)
        if problem:
            text = f"The CDI devices of claim {who.label} cannot be annotated: {problem}."
            faults.append(fault("cdi_annotation_too_long", at, text, {"driver": driver}))
        if at in doubtful:
            continue
        count = len(repeats(devices))
        if count:
            text = f"Claim {who.label} lists {count} of {len(devices)} CDI devices of driver {driver} again."
            faults.append(fault("doubled_devices", at, text, {"driver": driver, "repeats": count}))
        faults += _cdi_names(at, who, driver, devices or ())
    return faults


def _cdi_names(at: Place, who: Identity, driver: str, devices: t.Iterable[str]) -> t.Iterator[Fault]:
    for device in dict.fromkeys(devices):
        outcome, why = startup.cdi_problem(device)
        if outcome != startup.STARTS:
            code = "cdi_class_too_short" if outcome == startup.PANICS else "cdi_name_refused"
            text = f"CDI device '{device}' of claim {who.label} is refused: {why}."
            yield fault(code, at, text, {"driver": driver, "device": device})


def _together(list_key: str, found: EntryList) -> list[Fault]:
    """Claims that get in each other's way. The last of equal keys is the one that a kubelet keeps."""
    identities = [entry.identity for entry in found.entries]
    places = [f"{list_key}[{index}]" for index in range(len(identities))]
    faults: list[Fault] = []
    by_key: dict[tuple[str, ...], int] = {}
    by_name: dict[str, int] = {}
    by_uid: dict[str, int] = {}
    for index in range(len(identities) - 1, -1, -1):
        who = identities[index]
        place = places[index]
        last = by_name.setdefault(who.key, index)
        if last != index:
            same = found.entries[index].fields == found.entries[last].fields
            faults.append(_repeated(place, places[last], who, identities[last].uid, same))
            continue
        # from 1.31 on the key is the name
        key = startup.cache_key(FNV, who.namespace, who.name) if found.family == FNV else None
        glued = by_key.setdefault(key, index) if key is not None else index
        if glued != index:
            other = identities[glued]
            text = f"Kubelets up to 1.30 cannot tell claim {who.label} from {other.label}."
            faults.append(fault("colliding_claim_key", place, text, {"claim_uid": who.uid, "other_uid": other.uid}))
        twin = by_uid.setdefault(who.uid, index) if who.uid else index
        if twin != index:
            text = f"Claims {who.key} and {identities[twin].key} have the same UID {who.uid}."
            faults.append(fault("duplicate_claim_uid", place, text, {"claim_uid": who.uid}))
    return faults[::-1]


def _repeated(place: Place, last: Place, who: Identity, kept_uid: str, same: bool) -> Fault:
    facts = {"claim_uid": who.uid, "kept_uid": kept_uid, "kept": last}
    if same:
        return fault("duplicate_claim", place, f"Claim {who.label} is listed again at {last}.", facts)
    text = f"Claim {who.label} is listed again at {last} with other content (UID {kept_uid})."
    return fault("conflicting_claim", place, text, facts)


_KNOWN: t.Mapping[str, frozenset[str]] = {
    FNV: frozenset(fold(name) for form in FORMATS if form.family == CRC for name in form.claim.names),
    CRC: frozenset(fold(name) for form in FORMATS if form.family == FNV for name in form.claim.names),
}


def spelling(place: Place, entry: Entry) -> list[Fault]:
    """Keys of one claim that are repeated, oddly spelt, or unknown."""
    faults: list[Fault] = []
    _walk(gojson.parse(entry.text), RICHEST[entry.family].claim, place, _KNOWN[entry.family], faults)
    return faults


def _walk(node: Node, kind: GoType, place: Place, foreign: frozenset[str], faults: list[Fault]) -> None:
    if isinstance(kind, Pointer):
        _walk(node, kind.item, place, foreign, faults)
    elif isinstance(kind, Slice) and node.kind == "array":
        for index, item in enumerate(node.value):
            _walk(item, kind.item, f"{place}[{index}]", foreign, faults)
    elif isinstance(kind, Map) and node.kind == "object":
        for key, item in node.value:
            _walk(item, kind.item, f"{place}[{key}]", foreign, faults)
    elif isinstance(kind, Struct) and kind.fields and node.kind == "object":
        faults += key_faults(node, kind, place, foreign)
        for key, item in node.value:
            field = kind.field_for(key)
            if field is not None:
                _walk(item, field.type, f"{place}.{field.name}", foreign, faults)


def key_faults(node: Node, struct: Struct, place: Place, foreign: t.Container[str] = ()) -> list[Fault]:
    """Keys of one object that are repeated, spelt otherwise than the kubelet spells them, or unknown to it."""
    faults = []
    seen: set[str] = set()
    for key, _unused in node.members():
        field = struct.field_for(key)
        at = f"{place}.{key}" if place else key
        if field is None:
            code = "foreign_field" if fold(key) in foreign else "unknown_field"
            what = "belongs to files of another release" if code == "foreign_field" else "is unknown to every release"
            faults.append(fault(code, at, f"Field '{key}' {what}."))
            continue
        if field.name in seen:
            faults.append(fault("duplicate_key", at, f"Field '{field.name}' is given more than once."))
        seen.add(field.name)
        if key != field.name:
            faults.append(fault("key_spelling", at, f"Field '{field.name}' is spelt '{key}'."))
    return faults
