# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""No content makes a reader raise, hang or swell: cuts, flipped bits, depth, long numbers, much garbage."""

from __future__ import annotations

import random
import time
import tracemalloc
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import example_driver, health, kinds, nvidia
from hypothesis import given
from hypothesis import strategies as st

from . import vectors

READERS: dict[str, t.Callable[[bytes], t.Any]] = {
    "health": lambda data: health.read_health(data, now=1.8e9),
    "nvidia": lambda data: nvidia.read_nvidia(data, boot_id="b"),
    "compute-domain": lambda data: nvidia.read_nvidia(data, driver=nvidia.COMPUTE_DOMAIN),
    "example-driver": example_driver.read_example_driver,
}
SMALL = {
    "health": ("health/1.36/health_full.json", "health/damaged/driver_null.json"),
    "nvidia": ("nvidia/gpu.nvidia.com/v0.4.1/prepare_started_only.json",),
    "compute-domain": ("nvidia/compute-domain.nvidia.com/v0.4.1/prepare_started_only.json",),
    "example-driver": (
        "dra-example-driver/v0.1-v0.2/one_claim.json",
        "dra-example-driver/v0.3-v0.4/empty_uid_and_duplicate.json",
    ),
}


def look(kind: str, data: bytes) -> t.Any:
    """Read a file as ``kind``, and do with the outcome what a module does."""
    reading = READERS[kind](data)
    for finding in reading.findings:
        finding.to_dict()
    for entry in reading.devices if kind == "health" else reading.claims:
        entry.to_dict()
    kinds.detect(data, "")
    return reading


@pytest.mark.parametrize("kind", READERS)
def test_a_file_cut_at_every_byte_is_never_sound(kind: str) -> None:
    for name in SMALL[kind]:
        whole = vectors.read(name)
        for length in range(len(whole)):
            reading = look(kind, whole[:length])
            if kind == "health":
                assert not any(verdict.loads_without_error for verdict in reading.verdicts.values())
            elif kind != "example-driver":
                assert reading.readable_by == ()
            elif length:  # nothing at all counts as an empty list for this driver
                assert not any(verdict.ok for verdict in reading.verdicts.values())
            assert reading.findings


@pytest.mark.parametrize("kind", READERS)
def test_flipped_bits(kind: str) -> None:
    rng = random.Random(kind)
    originals = [vectors.read(name) for name in SMALL[kind]]
    for _unused in range(700):
        data = bytearray(rng.choice(originals))
        for _unused in range(rng.choice([1, 1, 1, 2, 8])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        look(kind, bytes(data))


def test_a_flipped_bit_in_what_the_checksums_cover_is_found() -> None:
    rng = random.Random(11)
    original = vectors.read("nvidia/gpu.nvidia.com/v0.4.1/one_claim.json")
    before = nvidia.read_nvidia(original)
    for _unused in range(700):
        data = bytearray(original)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        reading = nvidia.read_nvidia(bytes(data))
        if reading.verdicts["v0.4.1"].ok:
            # an unknown key beside the checksummed ones, or a key in other case: decoded all the same
            assert reading.claims == before.claims
            assert reading.boot_id == before.boot_id


@pytest.mark.parametrize("kind", READERS)
def test_vectors_of_every_other_kind(kind: str) -> None:
    for path in sorted(vectors.FOLDER.rglob("*.json")):
        if path.stat().st_size < 4000:
            look(kind, path.read_bytes())


@given(st.sampled_from(sorted(READERS)), st.binary())
def test_any_bytes(kind: str, data: bytes) -> None:
    look(kind, data)


KEYS = [
    *("checksum", "v1", "v2", "preparedClaims", "preparedDevices", "status", "allocation", "allocationTimestamp"),
    *("devices", "gpu", "mig", "channel", "device", "info", "concrete", "Requests", "CDIDeviceIDs", "configState"),
    *("results", "config", "opaque", "parameters", "consumedCapacity", "checkpointState", "abortedAt", "nodeBootID"),
    *("kind", "apiVersion", "uid", "ContainerEdits", "deviceNodes", "Devices", "LastUpdated", "HealthCheckTimeout"),
]
ANY_JSON = st.recursive(
    st.sampled_from(["null", "true", "0", "-1", "1e3", "99999999999999999999", '""', '"a"', '"\\ud800"', "[]", "{}"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=4).map(
            lambda members: f"{{{','.join(f'{chr(34)}{key}{chr(34)}:{value}' for key, value in members)}}}"
        ),
    ),
    max_leaves=25,
)


@given(st.sampled_from(sorted(READERS)), ANY_JSON)
def test_any_document_of_the_known_keys(kind: str, text: str) -> None:
    look(kind, text.encode())


N = 20000
HEAPS = {
    "zeros": b"\0" * 4 * N,
    "blanks": b" " * 4 * N,
    "random": random.Random(5).randbytes(4 * N) if hasattr(random.Random, "randbytes") else b"\x9f\x0c\xfe" * N,
    "nested lists": b"[" * 100000,
    "nested objects": b'{"v1":' * 100000 + b"1" + b"}" * 100000,
    "digits": b'{"checksum":' + b"7" * 1000000 + b"}",
    "digits in a duration": b'{"d":{"Devices":{"p/a":{"HealthCheckTimeout":' + b"7" * 1000000 + b"}}}}",
    "a long string": b'{"kind":"' + b"x" * 4 * N + b'"}',
    "a long time": b'{"d":{"Devices":{"p/a":{"LastUpdated":"' + b"2" * 4 * N + b'"}}}}',
    "many numbers": b"[" + b"0," * N + b"0]",
    "many objects": b'{"x":[' + b"{}," * N + b"{}]}",
    "many wrong types": b'{"v1":{"preparedClaims":{"u":{"preparedDevices":[' + b"0," * N + b"0]}}}}",
    "many strings": b'{"v1":{"preparedClaims":{"u":{"status":{"reservedFor":[{"name":"' + b"a\\u00e9" * N + b'"}]}}}}}',
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("heap", HEAPS)
def test_heaps_take_little_memory(kind: str, heap: str) -> None:
    data = HEAPS[heap]
    tracemalloc.start()
    try:
        look(kind, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 9 * len(data) + 500000


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("unit", [b'{"a":"b\\n","c":[1.5e3,null]},', b'"\\u00e9",', b"\x80\xff\xc3", b"[[["])
def test_time_grows_with_the_size(kind: str, unit: bytes) -> None:
    def seconds(count: int) -> float:
        started = time.process_time()
        look(kind, b'{"x":[' + unit * count)
        return time.process_time() - started

    small = min(seconds(4000) for _unused in range(3))
    assert seconds(32000) < 24 * max(small, 0.004)
