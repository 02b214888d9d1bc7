# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How many claims a kubelet of a release loads from a file, written down as plainly as possible.

The fuzzer's second opinion: it shares no code with the layer that it judges, reads one character at a time, and takes
no short cut. A unit test compares it with what ten releases made of the golden files.

Kubernetes symbols: ``state.DRAManagerCheckpoint``, ``state.Checkpoint``; Go: ``encoding/json``.
"""

from __future__ import annotations

import re
import typing as t
import zlib

ALIKE = {"1.27": (), "1.28": ("1.29",), "1.30": (), "1.31": ("1.32", "1.33", "1.34"), "1.35": ("1.36",)}
"""The first release of each format, and those that read the same."""
RELEASES = tuple(release for first, others in ALIKE.items() for release in (first, *others))
CLASSIC = ("1.27", "1.28", "1.30")
EMPTY = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":null}'


class RefusedError(Exception):
    """A kubelet does not load the file."""


# JSON, with the place of every value: Go keeps the bytes of some values as they are


class Value(t.NamedTuple):
    """A JSON value: None, a bool, a str, a `Number`, a list of values, or `Members`."""

    what: t.Any
    source: str


class Number(str):
    """A number as it is spelt."""

    __slots__ = ()


class Members(list):  # type: ignore[type-arg]
    """The members of an object, in order, repeats included."""


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_ESCAPE = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\(.)")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"null": None, "true": True, "false": False}


class Reader:
    """Reads one document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Value:
        """All of the text as one value."""
        value = self.value()
        self.blanks()
        if self.at != len(self.text):
            raise RefusedError
        return value

    def blanks(self) -> str:
        """Skip blanks; the character behind them, empty at the end."""
        while self.text[self.at : self.at + 1] in (" ", "\t", "\r", "\n"):
            self.at += 1
        return self.text[self.at : self.at + 1]

    def token(self, wanted: str) -> bool:
        """Take one character behind blanks if it is the one that is wanted."""
        if self.blanks() != wanted:
            return False
        self.at += 1
        return True

    def value(self) -> Value:
        """The value that begins here."""
        first = self.blanks()
        start = self.at
        what: t.Any
        if first == "{":
            what = self.members()
        elif first == "[":
            what = self.items()
        elif first == '"':
            what = self.string()
        else:
            what = self.scalar()
        return Value(what, self.text[start : self.at])

    def members(self) -> Members:
        self.at += 1
        found = Members()
        if self.token("}"):
            return found
        while True:
            if self.blanks() != '"':
                raise RefusedError
            key = self.string()
            if not self.token(":"):
                raise RefusedError
            found.append((key, self.value()))
            if self.token("}"):
                return found
            if not self.token(","):
                raise RefusedError

    def items(self) -> list[Value]:
        self.at += 1
        found: list[Value] = []
        if self.token("]"):
            return found
        while True:
            found.append(self.value())
            if self.token("]"):
                return found
            if not self.token(","):
                raise RefusedError

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise RefusedError
        self.at = match.end()
        text = _ESCAPE.sub(_unescaped, match.group(1))
        return re.sub("[\ud800-\udfff]", "\ufffd", text)  # bytes that are not UTF-8, and halves of pairs

    def scalar(self) -> t.Any:
        for word, what in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return what
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise RefusedError
        self.at = match.end()
        return Number(match.group())


def _unescaped(match: t.Match[str]) -> str:
    high, low, code, short = match.groups()
    if high:
        return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)
    return chr(int(code, 16)) if code else _SHORT.get(short, short)


# Go's decoding into structs, as far as these files need it

STRING, RAW = "string", "raw"
Kind = t.Any
"""``string``, ``raw``, ``("uint", bits)``, ``("list"|"map"|"pointer", kind)`` or ``("struct", {field: kind})``."""


class Slice(list):  # type: ignore[type-arg]
    """A Go slice: ``behind`` are elements of a longer list that stood here before, which come back when it grows."""

    behind: t.Sequence[t.Any] = ()


def zero(kind: Kind) -> t.Any:
    """The value of a Go variable that nothing was read into."""
    if kind == STRING:
        return ""
    if kind == RAW or kind[0] in ("list", "map", "pointer"):
        return None
    return 0 if kind[0] == "uint" else {name: zero(field) for name, field in kind[1].items()}


def decode(kind: Kind, value: Value, old: t.Any) -> t.Any:
    """A value read into a variable that holds ``old``."""
    what = value.what
    if kind == RAW:
        return old if what is None else value.source.encode("utf-8", "surrogateescape")
    if what is None:
        return None if kind[0] in ("list", "map", "pointer") else old
    if kind == STRING:
        return _of_type(what, str)
    name, inner = kind
    if name == "uint":
        number = _of_type(what, Number)
        if not number.isdigit() or int(number) >= 1 << inner:
            raise RefusedError
        return int(number)
    if name == "pointer":
        return decode(inner, value, zero(inner) if old is None else old)
    if name == "list":
        return _decode_list(inner, _of_type(what, list), old)
    if name == "map":
        read = {key: decode(inner, item, zero(inner)) for key, item in _of_type(what, Members)}
        return {**(old or {}), **read}
    struct = dict(old)
    for key, item in _of_type(what, Members):
        field = key if key in inner else next((one for one in inner if folded(one) == folded(key)), None)
        if field is not None:
            struct[field] = decode(inner[field], item, struct[field])
    return struct


def _of_type(what: t.Any, kind: type) -> t.Any:
    if type(what) is not kind:  # pylint: disable=unidiomatic-typecheck  # true is no number here
        raise RefusedError
    return what


def _decode_list(kind: Kind, items: list[Value], old: Slice | None) -> Slice:
    before = [] if old is None else [*old, *old.behind]
    bases = before[: len(items)] + [zero(kind)] * (len(items) - len(before))
    found = Slice(decode(kind, item, base) for item, base in zip(items, bases))
    found.behind = before[len(items) :] if items else ()
    return found


def folded(key: str) -> str:
    """What two keys have in common that Go takes for the same field."""
    return "".join(char.lower() if char.isascii() else {"\u017f": "s", "\u212a": "k"}.get(char, char) for char in key)


def struct(**fields: Kind) -> Kind:
    return ("struct", fields)


STRINGS = ("list", STRING)
PODS = ("map", struct())
RESULT = struct(vendorRequestParameters=RAW, namedResources=("pointer", struct(name=STRING)))
STRUCTURED = struct(vendorClassParameters=RAW, vendorClaimParameters=RAW, nodeName=STRING, results=("list", RESULT))
HANDLES = {
    "1.28": ("list", struct(driverName=STRING, data=STRING)),
    "1.30": ("list", struct(driverName=STRING, data=STRING, structuredData=("pointer", STRUCTURED))),
}
NAMES = {"DriverName": STRING, "ClassName": STRING, "ClaimUID": STRING, "ClaimName": STRING, "Namespace": STRING}


def classic(release: str) -> Kind:
    """``DRAManagerCheckpoint`` of 1.27 to 1.30."""
    handles = {"ResourceHandles": HANDLES[release]} if release in HANDLES else {}
    claim = struct(**NAMES, PodUIDs=PODS, **handles, CDIDevices=("map", STRINGS))
    return struct(version=STRING, entries=("list", claim), checksum=("uint", 64))


OUTER = struct(Data=STRING, Checksum=("uint", 32))


def modern(release: str) -> Kind:
    """``CheckpointData`` of 1.31 and later."""
    share = {"ShareID": ("pointer", STRING)} if release == "1.35" else {}
    device = struct(PoolName=STRING, DeviceName=STRING, **share, RequestNames=STRINGS, CDIDeviceIDs=STRINGS)
    driver = struct(Devices=("list", device))
    claim = struct(ClaimUID=STRING, ClaimName=STRING, Namespace=STRING, PodUIDs=PODS, DriverState=("map", driver))
    return struct(kind=STRING, apiVersion=STRING, ClaimInfoStateList=("list", claim))


# The text that old kubelets hash


def hashed(version: str, entries: Slice | None, release: str) -> int:
    """FNV-1a of the dump of a checkpoint whose checksum is 0."""
    dump = f"(*state.DRAManagerCheckpoint){{Version:(string){version} Entries:(state.ClaimInfoStateList)"
    dump += _list(entries, lambda claim: _claim(claim, release)) + " Checksum:(checksum.Checksum)0}"
    number = 2166136261
    for byte in dump.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return number


def _claim(claim: dict[str, t.Any], release: str) -> str:
    text = f"{{DriverName:(string){claim['DriverName']} ClassName:(string){claim['ClassName']}"
    text += f" ClaimUID:(types.UID){claim['ClaimUID']} ClaimName:(string){claim['ClaimName']}"
    text += f" Namespace:(string){claim['Namespace']} PodUIDs:(sets.Set[string])"
    text += _map(claim["PodUIDs"], lambda _unused: "{}")
    if release != "1.27":
        text += " ResourceHandles:([]v1alpha2.ResourceHandle)"
        text += _list(claim["ResourceHandles"], lambda handle: _handle(handle, release))
    return text + f" CDIDevices:(map[string][]string){_map(claim['CDIDevices'], lambda names: _list(names, str))}}}"


def _handle(handle: dict[str, t.Any], release: str) -> str:
    text = f"{{DriverName:(string){handle['driverName']} Data:(string){handle['data']}"
    if release == "1.30":
        text += " StructuredData:(*v1alpha2.StructuredResourceHandle)"
        text += "<nil>" if handle["structuredData"] is None else _structured(handle["structuredData"])
    return text + "}"


def _structured(data: dict[str, t.Any]) -> str:
    text = f"{{VendorClassParameters:(runtime.RawExtension){_raw(data['vendorClassParameters'])}"
    text += f" VendorClaimParameters:(runtime.RawExtension){_raw(data['vendorClaimParameters'])}"
    text += f" NodeName:(string){data['nodeName']} Results:([]v1alpha2.DriverAllocationResult)"
    return text + _list(data["results"], _result) + "}"


def _result(result: dict[str, t.Any]) -> str:
    named = result["namedResources"]
    model = "<nil>" if named is None else f"{{Name:(string){named['name']}}}"
    text = f"{{VendorRequestParameters:(runtime.RawExtension){_raw(result['vendorRequestParameters'])}"
    text += " AllocationResultModel:(v1alpha2.AllocationResultModel)"
    return text + f"{{NamedResources:(*v1alpha2.NamedResourcesAllocationResult){model}}}}}"


def _raw(raw: bytes | None) -> str:
    shown = "<nil>" if raw is None else f"[{' '.join(map(str, raw))}]"
    return f"{{Raw:([]uint8){shown} Object:(runtime.Object)<nil>}}"


def _list(items: t.Sequence[t.Any] | None, show: t.Callable[[t.Any], str]) -> str:
    return "<nil>" if items is None else f"[{' '.join(map(show, items))}]"


def _map(items: t.Mapping[str, t.Any] | None, show: t.Callable[[t.Any], str]) -> str:
    if items is None:
        return "<nil>"
    return f"map[{' '.join(f'{key}:{show(items[key])}' for key in sorted(items))}]"


# A kubelet


def claims_loaded(data: bytes) -> dict[str, int | None]:
    """Release to the number of claims that its kubelet loads, None where it refuses the file.

    Raises RecursionError for what is nested too deep for this reader, though not for Go.
    """
    try:
        document = Reader(data.decode("utf-8", "surrogateescape")).document()
    except RefusedError:
        return dict.fromkeys(RELEASES)
    loaded: dict[str, int | None] = {}
    for release, others in ALIKE.items():
        load = _load_classic if release in CLASSIC else _load_modern
        try:
            count: int | None = load(document, release)
        except RefusedError:
            count = None
        loaded.update(dict.fromkeys((release, *others), count))
    return loaded


def _load_classic(document: Value, release: str) -> int:
    kind = classic(release)
    found = decode(kind, document, {**zero(kind), "version": "v1", "entries": Slice()})
    entries: Slice | None = found["entries"]
    sums = {hashed(found["version"], entries, release)}
    if release != "1.27":
        sums.add(hashed("v1", entries if entries is not None else Slice(), "1.27"))
    if found["checksum"] not in sums:
        raise RefusedError
    return len(entries or ())


def _load_modern(document: Value, release: str) -> int:
    outer = decode(OUTER, document, {"Data": EMPTY, "Checksum": zlib.crc32(EMPTY.encode())})
    if zlib.crc32(outer["Data"].encode()) != outer["Checksum"]:
        raise RefusedError
    kind = modern(release)
    inner = decode(kind, Reader(outer["Data"]).document(), zero(kind))
    return len(inner["ClaimInfoStateList"] or ())
