# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""``checkpoint.json`` of the NVIDIA GPU and compute-domain plugins: what is in it, and which version accepts it.

Two questions are answered apart. Is the file intact? Its checksums are compared with its own members, whatever they
are. Does a certain version load it? That version's decoding and writing is repeated (see `nvidia_layouts`), since it is
what it wrote again that the plugin hashes.

Symbols followed: ``Checkpoint.UnmarshalCheckpoint``, ``VerifyChecksumV1``, ``VerifyChecksumV2``, ``ToLatestVersion``.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import nvidia_findings
from .bytedump import ChecksumCache
from .driver_files import (
    CORRUPTED,
    MISMATCH,
    OK,
    WRONG_TYPE,
    ChecksumPair,
    DriverClaim,
    DriverDevice,
    ReaderVerdict,
    strings,
)
from .errors import DraError
from .findings import Finding
from .godecode import Decoded, decode, same_error
from .gojson import GoSyntaxError, Node, decode_bytes, quote
from .gotypes import fold
from .jsontext import normal
from .lazyjson import read_root
from .nvidia_layouts import (
    COMPUTE_DOMAIN,
    DECODER,
    DRIVERS,
    GPU,
    LAYOUTS,
    MAIN,
    RELEASE_CANDIDATE,
    V0_4,
    V25_3,
    V25_8,
    V25_12,
    VERSIONS,
    Layout,
)

COMPLETED = "PrepareCompleted"
UNPARSABLE = "unparsable"
"""The compute-domain plugin tries an older layout second and then tells only that neither fitted."""

_UNPARSABLE_MESSAGE = "unable to unmarshal as main.Checkpoint or main.Checkpoint2503RC2"
_OLD_CORRUPTED = f"error verifying checksum for main.Checkpoint2503RC2: {CORRUPTED}"
_RELEASES = {(25, 3): V25_3, (25, 8): V25_8, (25, 12): V25_12, (0, 4): V0_4}


@dataclasses.dataclass
class NvidiaReading:
    """A checkpoint of an NVIDIA plugin.

    ``layout`` is ``v1`` (25.3), ``v1+v2`` (25.8 and later), ``v1-2503rc2``, or empty where the file cannot be read.
    ``written_by`` are the versions that could have written the file. ``v1`` and ``v2`` compare the file's checksums
    with its own members; ``verdicts`` holds what each version makes of it. ``claims`` are those of the part that
    counts. ``written_in_this_boot`` is None where either boot ID is not known.
    """

    driver: str
    layout: str = ""
    written_by: tuple[str, ...] = ()
    v1: ChecksumPair = dataclasses.field(default_factory=ChecksumPair)
    v2: ChecksumPair = dataclasses.field(default_factory=ChecksumPair)
    verdicts: dict[str, ReaderVerdict] = dataclasses.field(default_factory=dict)
    boot_id: str = ""
    written_in_this_boot: bool | None = None
    claims: list[DriverClaim] = dataclasses.field(default_factory=list)
    findings: list[Finding] = dataclasses.field(default_factory=list)

    @property
    def readable_by(self) -> tuple[str, ...]:
        """The versions that load the file, oldest first."""
        return tuple(version for version in VERSIONS if self.verdicts[version].ok)


def version_for(plugin_version: str) -> str:
    """The version of the table that stands for ``25.8.1``, ``v0.4.0`` and so on; later ones count as the newest known.

    Raises `DraError` for what is no version of the driver.
    """
    if plugin_version in VERSIONS:
        return plugin_version
    match = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", plugin_version.strip())
    if match is None:
        known = ", ".join(VERSIONS)
        raise DraError(
            f"'{plugin_version}' is not a version of the NVIDIA DRA driver.",
            f"Give a release such as 25.8.0 or v0.4.1, or one of {known}.",
            found=plugin_version,
        )
    return _RELEASES.get((int(match.group(1)), int(match.group(2))), MAIN)


def read_nvidia(data: bytes, driver: str = "", boot_id: str = "", plugin_version: str = "") -> NvidiaReading:
    """Read and verify a checkpoint of an NVIDIA plugin.

    ``driver`` is the plugin's driver name, guessed from the content when empty. With ``boot_id``, the kernel's present
    one, the reading tells whether the file is from before a reboot. With ``plugin_version``, a version that refuses the
    file is an error and not a remark. Raises `DraError` for an unknown driver or version, never for any content.
    """
    text = decode_bytes(data)
    if driver and driver not in DRIVERS:
        raise DraError(
            f"'{driver}' is not a driver of NVIDIA's plugins.", f"Give one of {', '.join(DRIVERS)}.", found=driver
        )
    reading = NvidiaReading(driver or guess_driver(text))
    installed = version_for(plugin_version) if plugin_version else ""
    try:
        root = read_root(text)
    except GoSyntaxError as error:
        verdict = ReaderVerdict(error.kind, error.go_message)
        if reading.driver == COMPUTE_DOMAIN:
            verdict = ReaderVerdict(UNPARSABLE, _UNPARSABLE_MESSAGE)
        reading.verdicts = dict.fromkeys(VERSIONS, verdict)
        reading.findings = [nvidia_findings.unreadable(reading.driver, error)]
        return reading
    part = _read_document(reading, root, text)
    if boot_id and reading.boot_id:
        reading.written_in_this_boot = boot_id.strip() == reading.boot_id
    reading.findings = nvidia_findings.diagnose(reading, part, text, boot_id, installed)
    return reading


def guess_driver(text: str) -> str:
    """The driver whose file this looks like; the GPU plugin where nothing speaks for the other one."""
    return COMPUTE_DOMAIN if COMPUTE_DOMAIN in text or '"ComputeDomain"' in text else GPU


def _read_document(reading: NvidiaReading, root: Node, text: str) -> nvidia_findings.Part:
    """Fill the reading; the part that the claims were read from."""
    cache = ChecksumCache()
    form = DECODER[reading.driver]
    decoded = decode(form, root, text, form.zero())
    reading.v1, reading.v2 = _own_checksums(root, text, cache)
    old = _read_release_candidate(root, text, cache) if decoded.faults and reading.driver == COMPUTE_DOMAIN else None
    for layout in LAYOUTS[reading.driver]:
        mine = _decoded_for(layout, root, text, decoded)
        if mine.go_message:
            reading.verdicts[layout.version] = _refusal(reading.driver, mine, old)
        else:
            reading.verdicts[layout.version] = _load(layout, mine.value, cache)
    if old is not None and old.value is not None:
        reading.layout = "v1-2503rc2"
        reading.claims = _claims(old.value, COMPLETED)
        return "v1", None
    v1, v2 = decoded.value["v1"], decoded.value["v2"]
    if v1 is not None or v2 is not None:
        reading.layout = "v1" if v2 is None else "v1+v2"
    reading.boot_id = v2["nodeBootID"] if v2 is not None else ""
    reading.claims = _claims(v2, "") if v2 is not None else _claims(v1, COMPLETED)
    reading.written_by = tuple(
        version
        for version in reading.readable_by
        if (version == V25_3) == (v2 is None) and (v1 is not None or v2 is not None)
    )
    return ("v1", v1) if v2 is None else ("v2", v2)


def _decoded_for(layout: Layout, root: Node, text: str, every: Decoded) -> Decoded:
    """What a version decodes, taken from what a type with the fields of ``every`` version decoded where that is it."""
    # main.newCheckpoint: 25.3 decodes into a checkpoint that has a v1 already, the later ones into an empty one
    preset = layout.version == V25_3 and every.value["v1"] is None
    if not every.go_message and not preset:
        return every
    error = same_error(layout.document, root, text, every)
    if error is not None:
        return Decoded(every.value, error)
    value = layout.document.zero()
    if layout.version == V25_3:
        value["v1"] = {"preparedClaims": {}}
    return decode(layout.document, root, text, value)


def _load(layout: Layout, value: t.Mapping[str, t.Any], cache: ChecksumCache) -> ReaderVerdict:
    """What a version makes of a document that it decoded without an error."""
    again = layout.document.encode({"checksum": 0, "v1": value["v1"]})
    if cache.fnv(again) != value["checksum"]:
        return ReaderVerdict(MISMATCH, CORRUPTED)
    v2 = value.get("v2")
    if layout.v2 is not None and v2 is not None:
        if cache.fnv(layout.v2.encode({**v2, "checksum": 0})) != v2["checksum"]:
            return ReaderVerdict(MISMATCH, CORRUPTED)
        return ReaderVerdict(OK, claims=len(v2["preparedClaims"] or {}))
    v1 = value["v1"]
    return ReaderVerdict(OK, claims=0 if v1 is None else len(v1["preparedClaims"] or {}))


class _OldFile(t.NamedTuple):
    """The outcome of the second try of the compute-domain plugin; ``value`` is the old ``v1`` where the layout fits."""

    verdict: ReaderVerdict
    value: t.Mapping[str, t.Any] | None


def _read_release_candidate(root: Node, text: str, cache: ChecksumCache) -> _OldFile:
    decoded = decode(RELEASE_CANDIDATE, root, text, RELEASE_CANDIDATE.zero())
    v1 = decoded.value["v1"]
    # A file with a v2 cannot be that old; what the plugin would make of such a mixture was not tried.
    if decoded.go_message or v1 is None or root.get("v2") is not None:
        return _OldFile(ReaderVerdict(UNPARSABLE, _UNPARSABLE_MESSAGE), None)
    again = RELEASE_CANDIDATE.encode({"checksum": 0, "v1": v1})
    if cache.fnv(again) != decoded.value["checksum"]:
        return _OldFile(ReaderVerdict(MISMATCH, _OLD_CORRUPTED), v1)
    return _OldFile(ReaderVerdict(OK, claims=len(v1["preparedClaims"] or {})), v1)


def _refusal(driver: str, decoded: Decoded, old: _OldFile | None) -> ReaderVerdict:
    if driver == GPU:
        return ReaderVerdict(WRONG_TYPE, decoded.go_message)
    return old.verdict if old is not None else ReaderVerdict(UNPARSABLE, _UNPARSABLE_MESSAGE)


def _own_checksums(root: Node, text: str, cache: ChecksumCache) -> tuple[ChecksumPair, ChecksumPair]:
    """The two checksums against the members they stand beside, in the order and with the names of the file."""
    if root.kind != "object":
        return ChecksumPair(), ChecksumPair()
    document = LAYOUTS[GPU][-1].document
    found: dict[str, Node] = {}
    for key, node in root.members():
        field = document.field_for(key)
        if field is not None:
            found[field.name] = node
    v1 = found.get("v1")
    member = f',"v1":{normal(text[v1.start : v1.end])}' if v1 is not None and v1.kind != "null" else ""
    first = ChecksumPair(_stored(found.get("checksum")), cache.fnv(f'{{"checksum":0{member}}}'))
    v2 = found.get("v2")
    if v2 is None or v2.kind != "object":
        return first, ChecksumPair()
    stored: Node | None = None
    members = ['{"checksum":0']
    for key, node in v2.members():
        if fold(key) == "checksum":
            stored = node
        else:
            members.append(f"{quote(key)}:{normal(text[node.start : node.end])}")
    return first, ChecksumPair(_stored(stored), cache.fnv(",".join(members) + "}"))


def _stored(node: Node | None) -> int | None:
    if node is None or node.kind == "null":
        return 0
    spelled = node.value if node.kind == "number" else ""
    return int(spelled) if spelled.isdigit() and len(spelled) <= 20 else None


def _claims(part: t.Mapping[str, t.Any] | None, state: str) -> list[DriverClaim]:
    """The claims of a decoded ``v1`` or ``v2``, by UID; those of a ``v1`` are all complete and carry no names."""
    claims = []
    for uid, claim in sorted(((part or {}).get("preparedClaims") or {}).items()):
        fields = claim if isinstance(claim, dict) else {"preparedDevices": claim}
        status = fields.get("status") or {}
        claims.append(
            DriverClaim(
                uid,
                fields.get("name", ""),
                fields.get("namespace", ""),
                fields.get("checkpointState", state),
                tuple(_devices(fields["preparedDevices"])),
                tuple((consumer["name"], consumer["uid"]) for consumer in status.get("reservedFor") or ()),
            )
        )
    return claims


def _devices(groups: t.Sequence[t.Any] | None) -> t.Iterator[DriverDevice]:
    for group in groups or ():
        for prepared in (group or {}).get("devices") or ():
            for kind, entry in prepared.items():
                if entry is not None and entry["device"] is not None:
                    yield _device(kind, entry)


def _device(kind: str, entry: t.Mapping[str, t.Any]) -> DriverDevice:
    device = entry["device"]
    info = entry.get("info") or {}
    concrete = entry.get("concrete") or {}
    return DriverDevice(
        kind,
        device.get("PoolName", device.get("pool_name", "")),
        device.get("DeviceName", device.get("device_name", "")),
        strings(device.get("Requests", device.get("request_names"))),
        strings(device.get("CDIDeviceIDs", device.get("cdi_device_ids"))),
        device.get("ShareID"),
        concrete.get("migUUID") or info.get("uuid", ""),
    )
