# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Ways to break a state file, each made from a seed and a number, so that every finding can be made again."""

from __future__ import annotations

import functools
import json
import pathlib
import random
import typing as t
import zlib

FIXTURES = pathlib.Path(__file__).parents[1] / "unit" / "fixtures" / "checkpoint"
_NUMBERS = (b"0", b"-1", b"1e999", b"18446744073709551616", b"9" * 400, b"0.1", b"-0", b"1E+2", b"00")
_TOKENS = (
    b"null", b"true", b"{}", b"[]", b'""', b'"x"', b"[null]", b'{"":null}', b",", b":", b"{", b"}", b"[", b"]", b'"',
    b"\\", b"\\u", b"\\ud800", b"\xff", b"\xe2\x82", b"\xef\xbb\xbf", b"\x00", b"\n", b"\t", b"NaN", b"Infinity",
)  # fmt: skip
_KEYS = (
    b"ClaimUID", b"ClaimName", b"Namespace", b"PodUIDs", b"DriverState", b"Devices", b"PoolName", b"ShareID", b"Data",
    b"Checksum", b"checksum", b"entries", b"version", b"ClaimInfoStateList", b"CDIDevices", b"ResourceHandles", b"kind",
)  # fmt: skip


@functools.lru_cache(maxsize=1)
def originals() -> list[tuple[str, bytes]]:
    """All golden files that are small enough to be broken by the thousand."""
    files = sorted(
        path for path in FIXTURES.rglob("*.json") if path.name not in ("expected.json", "reader_matrix.json")
    )
    found = [(path.relative_to(FIXTURES).as_posix(), path.read_bytes()) for path in files]
    return [(name, data) for name, data in found if len(data) < 6000]


def _flip(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _drop(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(1, 60) :]


def _zero(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    length = min(rng.randrange(1, 200), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def _insert(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + rng.choice(_TOKENS + _NUMBERS) + data[start:]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    end = start + rng.randrange(1, 300)
    return data[:end] + data[start:end] + data[end:]


def _splice(rng: random.Random, data: bytes) -> bytes:
    other = rng.choice(originals())[1] or b"{}"
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def _rename(rng: random.Random, data: bytes) -> bytes:
    return data.replace(rng.choice(_KEYS), rng.choice(_KEYS), rng.randrange(1, 3))


def _respell(rng: random.Random, data: bytes) -> bytes:
    key = rng.choice(_KEYS)
    return data.replace(key, key.swapcase() if rng.random() < 0.5 else key.replace(b"s", b"\xc5\xbf"), 1)


def _revalue(rng: random.Random, data: bytes) -> bytes:
    places = [place for place in range(len(data) - 1) if data[place : place + 1] == b":"]
    if not places:
        return data
    start = rng.choice(places) + 1
    end = start + 1
    while end < len(data) and data[end : end + 1] not in b",}]":
        end += 1
    return data[:start] + rng.choice(_TOKENS + _NUMBERS) + data[end:]


_MUTATIONS: tuple[t.Callable[[random.Random, bytes], bytes], ...] = (
    _flip, _cut, _drop, _zero, _insert, _repeat, _splice, _rename, _respell, _revalue,
)  # fmt: skip


def mutant(seed: int, number: int) -> tuple[str, bytes]:
    """One broken file and how it was made."""
    rng = random.Random(seed * 1_000_003 + number)
    name, data = rng.choice(originals())
    made = [name]
    for _unused in range(rng.choice((1, 1, 1, 2, 3))):
        mutate = rng.choice(_MUTATIONS)
        made.append(mutate.__name__.strip("_"))
        data = mutate(rng, data or b"{}")
    return " ".join(made), data


def _times(unit: bytes) -> t.Callable[[int], bytes]:
    return lambda size: unit * (size // len(unit))


def _claims(size: int) -> bytes:
    """A file of 1.35 and later with as many claims as fit."""
    template = (FIXTURES / "1.35-1.36" / "one_claim_one_device.json").read_bytes()
    data = json.loads(template)["Data"]
    start, end = data.index("[") + 1, data.rindex("]")
    count = max(size // (len(template) - 100), 1)
    claim = data[start:end]
    claims = ",".join(
        claim.replace("000000000001", f"{number:012}").replace('"claim-1"', f'"claim-{number}"')
        for number in range(count)
    )
    text = f"{data[:start]}{claims}{data[end:]}"
    return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}, separators=(",", ":")).encode()


EXTREMES: dict[str, t.Callable[[int], bytes]] = {
    "garbage": lambda size: random.Random(7).randbytes(size),
    "zeros": bytes,
    "opening brackets": _times(b"["),
    "claims that never end": _times(b'{"ClaimUID":'),
    "claims in claims that never end": _times(b'{"DriverName":{"ClaimUID":"'),
    "one digit after another": lambda size: b'{"Data":"x","Checksum":' + b"9" * size + b"}",
    "backslashes": lambda size: b'{"Data":"' + b"\\" * size,
    "quotes": _times(b'"'),
    "escaped quotes": lambda size: b'{"Data":"' + b'\\"' * (size // 2) + b'","Checksum":1}',
    "text in quotes": lambda size: b'{"Data":"' + b"a" * size + b'","Checksum":1}',
    "numbers in a list": lambda size: b'{"entries":[' + b"1," * (size // 2) + b"1]}",
    "nested to the limit": lambda _unused: b'{"x":' + b"[" * 9998 + b"]" * 9998 + b',"Checksum":1,"Data":"{}"}',
}
"""Files of a given size that are hard to read in linear time or bounded memory."""

FULL: dict[str, t.Callable[[int], bytes]] = {
    "a sound file": _claims,
    "a sound file that is cut": lambda size: _claims(size)[:-100],
}
"""Files of a given size that are full of claims: each of them is looked at, repaired and reported."""
