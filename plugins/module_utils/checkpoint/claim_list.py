# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims as places in a text: each is decoded when somebody looks at it, and what was decoded is not kept.

The decoded claims of a file take many times the memory of its text, so nothing holds more than a few of them at once.
"""

from __future__ import annotations

import contextlib
import json
import typing as t

from . import canonical
from .canonical import Spans
from .formats import CRC, RICHEST, Format
from .gojson import Node
from .gotypes import Decoding, TooManyFaultsError, TypeFault
from .lazyjson import LazyNode

Claim = dict[str, t.Any]
"""A decoded claim: one item for each field that the richest format of its family has (see `formats`)."""

_decode_at = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def decode_claim(text: str, start: int, family: str, well_formed: bool) -> Claim:
    """The claim at a place of a text, ``well_formed`` where `canonical` knows it; values of a wrong type are empty."""
    if not well_formed:
        return _decode_exactly(text, start, family, RICHEST[family].claim.zero())
    claim: Claim = _decode_at(text, start)[0]
    _add_left_out(claim, family)
    return claim


def _decode_exactly(text: str, start: int, family: str, over: Claim) -> Claim:
    """The claim at a place of a checked text, read over an earlier value as Go does."""
    with contextlib.suppress(TooManyFaultsError):
        return t.cast(Claim, RICHEST[family].claim.decode(_node_at(text, start), over, "", Decoding(text)))
    return over


def type_faults(node: Node, text: str, family: str) -> list[TypeFault]:
    """The type errors that a kubelet would meet in the claim at ``node`` of ``text``."""
    into = Decoding(text)
    struct = RICHEST[family].claim
    with contextlib.suppress(TooManyFaultsError):
        struct.decode(node, struct.zero(), "", into)
    return into.faults


def _node_at(text: str, start: int) -> Node:
    return t.cast(Node, LazyNode(text, start))


def _add_left_out(claim: Claim, family: str) -> None:
    """Give a canonical claim the fields that releases before the newest do not write."""
    if family == CRC:
        for state in (claim["DriverState"] or {}).values():
            for device in state["Devices"] or ():
                device.setdefault("ShareID", None)
    else:
        for handle in claim.setdefault("ResourceHandles", None) or ():
            handle.setdefault("driverName", "")
            handle.setdefault("data", "")
            handle["structuredData"] = None


def _spans_of(node: Node, text: str, family: str) -> Spans:
    """The items of an array."""
    spans = Spans()
    for item in node.value:
        end = canonical.claim_end(text, item.start, family)
        if end is None:
            spans.odd.append(len(spans))
        else:
            item.end = end  # spares a lazy node the search for it
        spans.add(item.start, item.end)
    return spans


class ClaimList(t.Sequence[Claim]):
    """The claims of one list, in file order.

    ``earlier`` is the list that the same document gave before under the same name: Go decodes the claims of a repeated
    list over those of the list before it, so that fields which the repeat leaves out keep their earlier value.
    """

    def __init__(self, family: str, text: str, spans: Spans, earlier: ClaimList | None = None) -> None:
        self.family = family
        self.text = text
        self.spans = spans
        self._odd = frozenset(spans.odd)
        self._earlier = earlier if earlier is not None and earlier._memory else None
        self._memory: int = max(len(spans), self._earlier._memory if self._earlier is not None else 0)

    def __len__(self) -> int:
        return len(self.spans)

    @t.overload
    def __getitem__(self, index: int) -> Claim: ...

    @t.overload
    def __getitem__(self, index: slice) -> list[Claim]: ...

    def __getitem__(self, index: int | slice) -> Claim | list[Claim]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        start = self.spans.starts[index]
        if self._earlier is None:
            return decode_claim(self.text, start, self.family, index not in self._odd)
        return self._over_earlier(index)

    def __iter__(self) -> t.Iterator[Claim]:
        return map(self.__getitem__, range(len(self)))

    @property
    def repeated(self) -> bool:
        """Whether claims have their values from more than one list."""
        return self._earlier is not None

    def text_at(self, index: int) -> str:
        """The JSON text of a claim, with what no kubelet knows."""
        return self.text[self.spans.starts[index] : self.spans.ends[index]]

    def is_well_formed(self, index: int) -> bool:
        """Whether a claim is exactly as a kubelet writes it."""
        return index not in self._odd

    def _over_earlier(self, index: int) -> Claim:
        lists: list[ClaimList] = []
        one: ClaimList | None = self
        while one is not None and index < one._memory:
            if index < len(one):
                lists.append(one)
            one = one._earlier
        claim = RICHEST[self.family].claim.zero()
        for one in reversed(lists):
            claim = _decode_exactly(one.text, one.spans.starts[index], self.family, claim)
        return claim


class ListReader:
    """Reads the lists of claims of one text, once for all formats of its family."""

    def __init__(self, family: str, text: str) -> None:
        self._family = family
        self._text = text
        self._lists: dict[int, ClaimList] = {}

    def read(self, node: Node, old: ClaimList | None, form: Format, into: Decoding) -> ClaimList | None:
        """What Go makes of the list at ``node``, over ``old``; type faults as kubelets of ``form`` meet them."""
        if node.kind == "null":
            return None
        if node.kind != "array":
            into.mismatch(form.list_key, "list", node)
            return old
        claims = self._lists.get(node.start)
        if claims is None:
            spans = _spans_of(node, self._text, self._family)
            claims = self._lists[node.start] = ClaimList(self._family, self._text, spans, old if len(spans) else None)
        for index in claims.spans.odd:
            item = _node_at(self._text, claims.spans.starts[index])
            form.claim.decode(item, form.claim.zero(), f"{form.list_key}[{index}]", into)
        return claims


NO_CLAIMS: t.Mapping[str, ClaimList] = {family: ClaimList(family, "", Spans()) for family in RICHEST}
"""An empty list for each family."""
