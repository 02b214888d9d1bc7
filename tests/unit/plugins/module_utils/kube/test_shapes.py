# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoding only what is named."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.kube.object_index import codec_for
from ansible_collections.nodeops.dra.plugins.module_utils.kube.shapes import HeadMeta, decoder, struct_of


@dataclasses.dataclass(frozen=True)
class Owner:
    """An owner reference."""

    uid: str
    controller: bool | None = None


@dataclasses.dataclass(frozen=True)
class Meta(HeadMeta):
    """More metadata than the least."""

    owner_references: list[Owner] | None = None
    pod_uids: list[str] = dataclasses.field(default_factory=list, metadata={"json": "podUIDs"})

    @property
    def controllers(self) -> list[str]:
        """UIDs of controlling owners."""
        return [owner.uid for owner in self.owner_references or () if owner.controller]


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim by its metadata."""

    metadata: Meta = dataclasses.field(default_factory=Meta)


class Named(t.TypedDict, total=False):
    """A name."""

    name: str


class Small(t.TypedDict, total=False):
    """An object with a name."""

    metadata: Named


RAW = (
    b'{"kind":"ResourceClaim","metadata":{"name":"c1","resourceVersion":"7","podUIDs":["p"],"future":{"a":[1,{}]},'
    b'"ownerReferences":[{"uid":"p-1","controller":true,"kind":"Pod"},{"uid":"p-2"}]},"spec":{"devices":{}}}'
)


def test_a_dataclass_describes_a_small_struct() -> None:
    found = decoder(Claim)(RAW)
    assert found.metadata.name == "c1"
    assert found.metadata.resource_version == "7"
    assert found.metadata.controllers == ["p-1"]
    assert found.metadata.pod_uids == ["p"]
    assert not hasattr(found, "__dict__")


def test_a_struct_cannot_be_changed() -> None:
    found = decoder(Claim)(RAW)
    with pytest.raises(AttributeError):
        found.metadata.name = "other"  # type: ignore[misc]


def test_what_is_absent_has_its_default() -> None:
    assert decoder(Claim)(b"{}").metadata.pod_uids == []


def test_a_typed_dict_gives_a_plain_dict_of_its_keys() -> None:
    assert decoder(Small)(RAW) == {"metadata": {"name": "c1"}}


def test_a_wrong_type_is_told_with_its_path() -> None:
    with pytest.raises(ValueError, match=r"\$\.metadata\.name"):
        decoder(Claim)(b'{"metadata":{"name":7}}')


def test_the_same_struct_every_time() -> None:
    assert struct_of(Claim) is struct_of(Claim)
    assert struct_of(dict) is dict


def test_a_codec_reads_metadata_of_structs_too() -> None:
    codec = codec_for(Claim, keep=lambda claim: bool(claim.metadata.name))
    found = codec.decode(RAW)
    assert found is not None
    assert codec.meta(found).uid == ""
    assert codec.decode(b"{}") is None
