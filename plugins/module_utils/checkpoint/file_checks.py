# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a file as a whole: its bytes, its outermost members, its checksum."""

from __future__ import annotations

import re
import typing as t

from . import gojson, salvage
from .claim_checks import key_faults
from .document import MISMATCH, Document, Part
from .faults import ALL_THAT_IS_CUT, Fault, counted, fault, releases_text
from .formats import CRC, CRC_DOCUMENT, DATA_API_VERSION, DATA_KIND, FNV, FORMATS, RICHEST, Format
from .gojson import GoSyntaxError
from .gotypes import TypeFault, fold

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\n\r"
_EXCERPT = 24
_IDENTITY = re.compile(r"(?:ClaimInfoStateList|entries)\[[0-9]+\](?:\.(?:ClaimUID|ClaimName|Namespace))?")
"""The paths of what makes a claim a claim: with one of these of the wrong type nobody can say which claim it is."""


def check_bytes(document: Document) -> list[Fault]:
    """Why a file is no JSON document; nothing when it is one."""
    data = document.data
    error = document.error
    if error is None:
        return _invalid_utf8(document)
    if not data:
        return [fault("empty_file", "", "The file is empty.")]
    if not data.strip(_BLANK):
        return [fault("blank_file", "", f"The file holds {len(data)} blanks and nothing else.")]
    if not data.strip(b"\0"):
        return [fault("zero_filled", "", f"The file holds {len(data)} zero bytes and nothing else.")]
    if utf16_text(data) is not None:
        return [fault("utf16", "byte 0", "The file is UTF-16 text; kubelets read UTF-8 only.")]
    if data.startswith(BYTE_ORDER_MARK):
        return [fault("byte_order_mark", "byte 0", "The file begins with a byte order mark.")]
    return [_syntax_fault(document, error), *_zero_bytes(data, error), *_invalid_utf8(document)]


def utf16_text(data: bytes) -> str | None:
    """The text of a file that some editor saved as UTF-16, else None."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if len(data) > 8 and data[1:8:2] == b"\0\0\0\0" and data[0] != 0:
        return data.decode("utf-16-le", "replace")
    if len(data) > 8 and data[0:8:2] == b"\0\0\0\0" and data[1] != 0:
        return data.decode("utf-16-be", "replace")
    return None


def _syntax_fault(document: Document, error: GoSyntaxError) -> Fault:
    place = f"byte {len(gojson.encode_text(document.text[: error.offset]))}"
    facts = {"go_message": error.go_message, "line": document.text.count("\n", 0, error.offset) + 1}
    if error.cut:
        return fault("truncated", place, f"The file ends in the middle of the document ({error.go_message}).", facts)
    if error.kind == "trailing_data":
        rest = document.text[error.offset :]
        found = _claims_in(rest)
        alone = found - _claims_in(document.text[: error.offset]) if found else found
        facts.update(claims_in_rest=len(found), claims_only_in_rest=len(alone))
        text = f"{_describe_rest(rest)} after the end of the document ({error.go_message})."
        loses = f"{counted(len(alone), 'claim')} after the document that {'is' if len(alone) == 1 else 'are'} not in it"
        loses = loses if alone else ""
        return fault("trailing_data", place, text, facts, loses=loses)
    if error.go_message.endswith(gojson.TOO_DEEP):
        text = f"The document nests deeper than {gojson.MAX_DEPTH} levels."
        return fault("too_deep", place, text, facts)
    excerpt = document.text[error.offset : error.offset + _EXCERPT]
    text = f"The file is not JSON: {error.go_message}, at {gojson.quote(excerpt)}."
    return fault("not_json", place, text, facts)


def _claims_in(text: str) -> set[str]:
    return {item.entry.uid for item in salvage.search(text).saved}


def _describe_rest(rest: str) -> str:
    stand = "stands" if len(rest) == 1 else "stand"
    if not rest.strip("\0"):
        return f"{counted(len(rest), 'zero byte')} {stand}"
    try:
        gojson.parse(rest)
        return "A second document stands"
    except GoSyntaxError:
        return f"{counted(len(rest), 'character')} {stand}"


def _zero_bytes(data: bytes, error: GoSyntaxError) -> list[Fault]:
    """Zeros inside the document: a block that never reached the disk before the power went."""
    if error.kind != "syntax" or b"\0" not in data:
        return []
    start = data.index(b"\0")
    end = start + len(data) - start - len(data[start:].lstrip(b"\0"))
    stand = "stands" if end - start == 1 else "stand"
    text = f"{counted(end - start, 'zero byte')} {stand} in the document, as after a power loss."
    return [fault("zero_bytes", f"byte {start}", text, {"zeros": end - start})]


def _invalid_utf8(document: Document) -> list[Fault]:
    if document.data.isascii():
        return []
    count = sum(1 for char in document.text if "\udc80" <= char <= "\udcff")
    if not count:
        return []
    are = "is" if count == 1 else "are"
    return [fault("invalid_utf8", "", f"{counted(count, 'byte')} {are} not UTF-8.", {"bytes": count})]


def check_members(document: Document, family: str) -> list[Fault]:
    """Oddities of the outermost members: of the file, and for the ``crc`` family of the text inside ``Data``."""
    root = document.outer.root
    if document.error is not None or document.outer.canonical:
        return []
    faults = key_faults(root, CRC_DOCUMENT if family == CRC else RICHEST[FNV].document, "")
    other = {fold(name) for name in (RICHEST[FNV].document if family == CRC else CRC_DOCUMENT).names}
    if {"entries", "version"} & {fold(key) for key, _unused in root.members()} and family == CRC:
        # a file for both families: the members of the other one, and the one spelling that serves both, are on purpose
        faults = [item for item in faults if fold(item.place) not in other]
    if family == FNV:
        return faults + _unknown_version(document)
    inner = document.inner
    if inner.error is None and not inner.canonical:
        faults += [
            item for item in key_faults(inner.root, RICHEST[CRC].document, "Data") if item.place != "Data.Entries"
        ]
        faults += _inner_members(inner)
    return faults


def _unknown_version(document: Document) -> list[Fault]:
    decoded, _unused = document.outer.decode(RICHEST[FNV])
    version = decoded["version"]
    if version == "v1":
        return []
    text = f"The file says version '{version}', kubelets write 'v1'."
    return [fault("unknown_version", "version", text, {"found": version, "expected": "v1"})]


def _inner_members(inner: Part) -> list[Fault]:
    faults = []
    decoded, _unused = inner.decode(RICHEST[CRC])
    for key, expected in (("kind", DATA_KIND), ("apiVersion", DATA_API_VERSION)):
        found = decoded[key]
        if found != expected:
            text = f"The data says {key} '{found}', kubelets write '{expected}'."
            faults.append(fault("unknown_version", f"Data.{key}", text, {"found": found, "expected": expected}))
    keys = {fold(key) for key, _unused in inner.root.members()}
    if "entries" in keys and fold("ClaimInfoStateList") not in keys:
        node = [node for key, node in inner.root.members() if fold(key) == "entries"][-1]
        count = sum(1 for _unused in node.value) if node.kind == "array" else 0
        text = f"The list of {counted(count, 'claim')} has the name 'Entries', which only a pre-release read."
        faults.append(fault("prerelease_list_key", "Data.Entries", text, {"claims": count}))
    return faults


def check_inner_text(document: Document) -> list[Fault]:
    """Why the text inside ``Data`` is no JSON document, for a file whose outside is one."""
    error = document.inner.error
    if error is None:
        return []
    facts = {"go_message": error.go_message}
    place = f"Data, character {error.offset}"
    if not document.inner.text.strip():
        return [fault("empty_file", "Data", "The data text is empty.", facts)]
    if error.cut:
        return [fault("truncated", place, f"The data text ends in the middle ({error.go_message}).", facts)]
    if error.kind == "trailing_data":
        what = _describe_rest(document.inner.text[error.offset :])
        return [fault("trailing_data", place, f"{what} after the end of the data ({error.go_message}).", facts)]
    if error.go_message.endswith(gojson.TOO_DEEP):
        return [fault("too_deep", place, f"The data text nests deeper than {gojson.MAX_DEPTH} levels.", facts)]
    return [fault("not_json", place, f"The data text is not JSON: {error.go_message}.", facts)]


def check_types(document: Document, family: str) -> list[Fault]:
    """Values of the wrong JSON type, each with the releases that refuse the file for it."""
    seen: dict[TypeFault, list[str]] = {}
    for form in FORMATS:
        if form.family == family:
            for item in _type_faults(document, form):
                seen.setdefault(item, []).extend(form.releases)
    prefix = "Data" if family == CRC and not document.outer_faults else ""
    return [_type_fault(item, releases, prefix) for item, releases in seen.items()]


def _type_faults(document: Document, form: Format) -> list[TypeFault]:
    if form.family == FNV:
        return document.outer.decode(form)[1] if document.error is None else []
    if document.outer_faults:
        return document.outer_faults
    return document.inner.decode(form)[1] if document.inner.error is None else []


def _type_fault(item: TypeFault, releases: t.Sequence[str], prefix: str) -> Fault:
    place = ".".join(part for part in (prefix, item.path) if part) or "document"
    text = f"{place} is {_with_article(item.found)} where {_with_article(item.expected)} belongs."
    whole = item.path in ("", "Data", "ClaimInfoStateList", "entries")
    return fault(
        "impossible_claim" if _IDENTITY.fullmatch(item.path) else "wrong_type",
        place,
        text,
        {"expected": item.expected, "found": item.found},
        effects={releases_text(releases): "does not start"},
        repair="rebuild" if whole else None,
        loses=ALL_THAT_IS_CUT if whole else None,
    )


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" and not noun.startswith("uni") else f"a {noun}"


def check_checksum(document: Document, family: str) -> list[Fault]:
    """A checksum that no release of the file's family computes."""
    readings = [document.read_as(form) for form in FORMATS if form.family == family]
    if not readings or any(reading.error_class != MISMATCH for reading in readings):
        return []
    reading = readings[-1]
    names = ", ".join(f"{item.computed} ({releases_text(item.format.releases)})" for item in readings)
    expected = str(reading.computed) if family == CRC else names
    text = f"The checksum is {reading.stored}, the data gives {expected}."
    facts = {"stored": reading.stored, "computed": {item.format.name: item.computed for item in readings}}
    return [fault("checksum_mismatch", "Checksum" if family == CRC else "checksum", text, facts)]
