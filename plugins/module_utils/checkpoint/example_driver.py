# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``checkpoint.json`` of dra-example-driver: the layout of 0.1 and 0.2 with a checksum, that of 0.3 and 0.4 without.

Each version reads the other's file: the older ones call it corrupted, the newer ones find no claims in it and say
nothing, which is how an upgrade forgets what is prepared.

Symbols followed: ``Checkpoint`` of cmd/dra-example-kubeletplugin up to 0.2; from 0.3 ``readCheckpoint`` with the
universal decoder of k8s.io/apimachinery, whose JSON keys are case-sensitive and which takes YAML for all that does not
begin with a brace.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import example_findings
from .bytedump import ChecksumCache
from .claim_status import STRING, STRINGS
from .driver_files import CORRUPTED, MISMATCH, OK, WRONG_TYPE, ChecksumPair, DriverClaim, DriverDevice, ReaderVerdict
from .driver_files import strings as listed
from .findings import Finding
from .godecode import decode
from .gofields import UINT32, ApiList, ApiStr, ApiStruct, Bool, Int
from .gojson import GoSyntaxError, Node, decode_bytes
from .gotypes import Field, Map, Pointer, Struct, Uint
from .jsontext import normal
from .lazyjson import read_root
from .nvidia_layouts import DRA_V1BETA1_DEVICE

OLD = "v0.1-v0.2"
NEW = "v0.3-v0.4"
VERSIONS = (OLD, NEW)

GROUP = "checkpoint.internal.example.com"
KIND = "Checkpoint"
_INTERNAL = "__internal"
UNREGISTERED = "no_kind"
_FILE = "unmarshal JSON from FILE: "
# Longer than the words that YAML has a type of its own for (true, null, off ...).
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./]{5,250}\n?")

_DEVICE_NODE = ApiStruct(
    "specs.DeviceNode",
    [
        Field("path", STRING),
        Field("hostPath", STRING, omit_empty=True),
        Field("type", STRING, omit_empty=True),
        Field("major", Int("int64"), omit_empty=True),
        Field("minor", Int("int64"), omit_empty=True),
        Field("fileMode", Pointer(Int("os.FileMode", 0, (1 << 32) - 1)), omit_empty=True),
        Field("permissions", STRING, omit_empty=True),
        Field("uid", Pointer(UINT32), omit_empty=True),
        Field("gid", Pointer(UINT32), omit_empty=True),
    ],
)
_HOOK = ApiStruct(
    "specs.Hook",
    [
        Field("hookName", STRING),
        Field("path", STRING),
        Field("args", STRINGS, omit_empty=True),
        Field("env", STRINGS, omit_empty=True),
        Field("timeout", Pointer(Int()), omit_empty=True),
    ],
)
_MOUNT = ApiStruct(
    "specs.Mount",
    [
        Field("hostPath", STRING),
        Field("containerPath", STRING),
        Field("options", STRINGS, omit_empty=True),
        Field("type", STRING, omit_empty=True),
    ],
)
_INTEL_RDT = ApiStruct(
    "specs.IntelRdt",
    [
        Field("closID", STRING, omit_empty=True),
        Field("l3CacheSchema", STRING, omit_empty=True),
        Field("memBwSchema", STRING, omit_empty=True),
        Field("enableCMT", Bool(), omit_empty=True),
        Field("enableMBM", Bool(), omit_empty=True),
    ],
)
_EDITS = ApiStruct(
    "specs.ContainerEdits",
    [
        Field("env", STRINGS, omit_empty=True),
        Field("deviceNodes", ApiList("[]*specs.DeviceNode", Pointer(_DEVICE_NODE)), omit_empty=True),
        Field("hooks", ApiList("[]*specs.Hook", Pointer(_HOOK)), omit_empty=True),
        Field("mounts", ApiList("[]*specs.Mount", Pointer(_MOUNT)), omit_empty=True),
        Field("intelRdt", Pointer(_INTEL_RDT), omit_empty=True),
        Field("additionalGids", ApiList("[]uint32", UINT32), omit_empty=True),
    ],
)
_PREPARED_DEVICE = ApiStruct("main.PreparedDevice", [*DRA_V1BETA1_DEVICE, Field("ContainerEdits", Pointer(_EDITS))])
_OLD_CLAIMS = Map("main.PreparedClaims", ApiList("main.PreparedDevices", Pointer(_PREPARED_DEVICE)))
_OLD_DOCUMENT = ApiStruct(
    "main.Checkpoint",
    [
        Field("checksum", Uint("checksum.Checksum", 64)),
        Field(
            "v1",
            Pointer(ApiStruct("main.CheckpointV1", [Field("preparedClaims", _OLD_CLAIMS, omit_empty=True)])),
            omit_empty=True,
        ),
    ],
)


class _ExactStruct(Struct):
    """A struct as sigs.k8s.io/json fills it: keys have to be spelled exactly."""

    def field_for(self, key: str) -> Field | None:
        return next((field for field in self.fields if field.name == key), None)


_UID = ApiStr("types.UID")
_TYPE_META = [Field("kind", STRING), Field("apiVersion", STRING)]
_NEW_DOCUMENT = _ExactStruct(
    "v1.Checkpoint",
    [
        *_TYPE_META,
        Field("preparedClaims", ApiList("[]v1.PreparedClaim", _ExactStruct("v1.PreparedClaim", [Field("uid", _UID)]))),
    ],
)
_INTERNAL_DOCUMENT = _ExactStruct(
    "checkpoint.Checkpoint",
    [
        *_TYPE_META,
        Field(
            "PreparedClaims",
            ApiList("[]checkpoint.PreparedClaim", _ExactStruct("checkpoint.PreparedClaim", [Field("UID", _UID)])),
        ),
    ],
)
# The decoder first asks the standard library, which does not mind the case of keys, for the kind.
_FIND_KIND = Struct(
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    [Field("apiVersion", STRING), Field("kind", STRING)],
)


@dataclasses.dataclass
class ExampleReading:
    """A checkpoint of dra-example-driver.

    ``layout`` is one of `VERSIONS`, or empty where the file shows neither. ``checksum`` compares the number of the old
    layout with the file's own members. ``verdicts`` has what each of `VERSIONS` makes of the file. ``claims`` are those
    that stand in the file, whether or not anybody would load them. ``misspelt`` are keys that only differ in case from
    the one that the newer versions look for, so that they do not see what it holds.
    """

    layout: str = ""
    checksum: ChecksumPair = dataclasses.field(default_factory=ChecksumPair)
    verdicts: dict[str, ReaderVerdict] = dataclasses.field(default_factory=dict)
    claims: list[DriverClaim] = dataclasses.field(default_factory=list)
    misspelt: tuple[str, ...] = ()
    findings: list[Finding] = dataclasses.field(default_factory=list)


def read_example_driver(data: bytes) -> ExampleReading:
    """Read and verify a checkpoint of dra-example-driver. Raises nothing for any content."""
    text = decode_bytes(data)
    reading = ExampleReading()
    root: Node | None = None
    error: GoSyntaxError | None = None
    try:
        root = read_root(text)
    except GoSyntaxError as caught:
        error = caught
    reading.verdicts[OLD] = _read_old(root, error, text, reading)
    reading.verdicts[NEW] = _read_new(root, error, text)
    if root is not None and reading.layout != OLD:
        _list_claims(reading, root, text)
    reading.findings = example_findings.diagnose(reading, error)
    return reading


def _read_old(root: Node | None, error: GoSyntaxError | None, text: str, reading: ExampleReading) -> ReaderVerdict:
    if root is None:
        return ReaderVerdict(error.kind, error.go_message) if error is not None else ReaderVerdict(None)
    cache = ChecksumCache()
    reading.checksum = _own_checksum(root, text, cache)
    # main.newCheckpoint: the driver decodes into a checkpoint that has an empty v1
    decoded = decode(_OLD_DOCUMENT, root, text, {"checksum": 0, "v1": {"preparedClaims": {}}})
    document = decoded.value
    if any(key.lower() == "v1" and node.kind == "object" for key, node in root.members()):
        reading.layout = OLD
        reading.claims = _old_claims(document["v1"])
    if decoded.go_message:
        return ReaderVerdict(WRONG_TYPE, decoded.go_message)
    if cache.fnv(_OLD_DOCUMENT.encode({**document, "checksum": 0})) != document["checksum"]:
        return ReaderVerdict(MISMATCH, CORRUPTED)
    v1 = document["v1"]
    return ReaderVerdict(OK, claims=0 if v1 is None else len(v1["preparedClaims"] or {}))


def _own_checksum(root: Node, text: str, cache: ChecksumCache) -> ChecksumPair:
    if root.kind != "object":
        return ChecksumPair()
    found: dict[str, Node] = {}
    for key, node in root.members():
        field = _OLD_DOCUMENT.field_for(key)
        if field is not None:
            found[field.name] = node
    v1 = found.get("v1")
    member = f',"v1":{normal(text[v1.start : v1.end])}' if v1 is not None and v1.kind != "null" else ""
    stored = found.get("checksum")
    number: int | None = 0
    if stored is not None and stored.kind != "null":
        spelled = stored.value if stored.kind == "number" else ""
        number = int(spelled) if spelled.isdigit() and len(spelled) <= 20 else None
    return ChecksumPair(number, cache.fnv(f'{{"checksum":0{member}}}'))


def _read_new(root: Node | None, error: GoSyntaxError | None, text: str) -> ReaderVerdict:
    if not text.lstrip().startswith("{"):
        return _read_as_yaml(root, text)
    if error is not None or root is None:
        # This reader is built with a newer Go, which has its own words for one error.
        message = error.go_message.replace("in string literal", "in string") if error is not None else ""
        kind = error.kind if error is not None else None
        return ReaderVerdict(kind, f"{_FILE}couldn't get version/kind; json parse error: {message}")
    kind_of = decode(_FIND_KIND, root, text, _FIND_KIND.zero())
    if kind_of.go_message:
        return ReaderVerdict(WRONG_TYPE, f"{_FILE}couldn't get version/kind; json parse error: {kind_of.go_message}")
    version = kind_of.value["apiVersion"]
    if version.count("/") > 1:
        return ReaderVerdict(UNREGISTERED, f"{_FILE}unexpected GroupVersion string: {version[:80]}")
    kind, group, number = _with_defaults(kind_of.value["kind"], version)
    if kind != KIND or group != GROUP or number not in ("v1", _INTERNAL):
        where = f'version "{group}/{number}"' if group else f'version "{number}"'
        if number == _INTERNAL:
            where = f'the internal version of group "{group}"'
        return ReaderVerdict(UNREGISTERED, f'{_FILE}no kind "{kind[:80]}" is registered for {where[:160]}')
    document = _NEW_DOCUMENT if number == "v1" else _INTERNAL_DOCUMENT
    decoded = decode(document, root, text, document.zero())
    if decoded.go_message:
        return ReaderVerdict(WRONG_TYPE, _FILE + decoded.go_message)
    return ReaderVerdict(OK, claims=len(decoded.value[document.names[-1]] or ()))


def _with_defaults(kind: str, api_version: str) -> tuple[str, str, str]:
    """Kind, group and version after ``gvkWithDefaults`` with the driver's internal type."""
    group, slash, number = api_version.rpartition("/")
    if api_version == "/":
        group, number = "", ""
    elif not slash:
        group, number = "", api_version
    if not group and not number:
        group = GROUP
    if not number and group == GROUP:
        number = _INTERNAL
    return kind or KIND, group, number


def _read_as_yaml(root: Node | None, text: str) -> ReaderVerdict:
    """What does not begin with a brace is YAML to this reader; told here only where that is beyond doubt."""
    prefix = f"{_FILE}couldn't get version/kind; json parse error: json: cannot unmarshal"
    target = f"into Go value of type {_FIND_KIND.label}"
    if not text.strip(" \n") or (root is not None and root.kind == "null"):
        return ReaderVerdict(OK, claims=0)
    if any(char < " " and char not in "\t\n\r" for char in text[: 1 << 16]):
        return ReaderVerdict("syntax", f"{_FILE}yaml: control characters are not allowed")
    if root is not None:
        return ReaderVerdict(WRONG_TYPE, f"{prefix} {root.kind} {target}")
    if _WORD.fullmatch(text):
        return ReaderVerdict(WRONG_TYPE, f"{prefix} string {target}")
    return ReaderVerdict(None, "not JSON; the driver tries to read it as YAML")


def _old_claims(v1: t.Mapping[str, t.Any]) -> list[DriverClaim]:
    claims = []
    for uid, devices in sorted((v1["preparedClaims"] or {}).items()):
        prepared = tuple(_device(device) for device in devices or () if device is not None)
        claims.append(DriverClaim(uid, "", "", "", prepared, ()))
    return claims


def _list_claims(reading: ExampleReading, root: Node, text: str) -> None:
    """The claims of the new layout as they stand in the file, whether or not the reader gets as far as that."""
    new = decode(_NEW_DOCUMENT, root, text, _NEW_DOCUMENT.zero()).value
    if new["kind"] or new["apiVersion"] or new["preparedClaims"] is not None:
        reading.layout = NEW
    wanted = "preparedClaims"
    reading.misspelt = tuple(
        sorted({key for key, _unused in root.members() if key != wanted and key.lower() == wanted.lower()})
    )
    reading.claims = [DriverClaim(claim["uid"], "", "", "", (), ()) for claim in new["preparedClaims"] or ()]


def _device(device: t.Mapping[str, t.Any]) -> DriverDevice:
    return DriverDevice(
        "",
        device["pool_name"],
        device["device_name"],
        listed(device["request_names"]),
        listed(device["cdi_device_ids"]),
        None,
        "",
    )
