# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Our .proto files against bytes that the official message types wrote.

fixtures/wire/messages.json was encoded by the Go protobuf library from the message types of Kubernetes 1.36: full
message name, bytes in base64, content as protobuf JSON with the original field names.
"""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.wire import messages
from google.protobuf import json_format
from google.protobuf.message import DecodeError

ROOT = pathlib.Path(__file__).resolve().parents[5]
FIXTURE = ROOT / "tests/unit/fixtures/wire/messages.json"
VECTORS = json.loads(FIXTURE.read_text())
# Longest package first: "v1" is the start of no other one here, but two APIs share "v1" and "v1alpha1".
APIS = [name for name in messages.names() if name not in ("dra/v1alpha2", "dra/v1alpha3", "dra/v1alpha4")]


def message_class(full_name: str) -> t.Any:
    package, _dot, short = full_name.rpartition(".")
    for name in APIS:
        if messages.api(name).package == package:
            try:
                return messages.api(name).message(short)
            except KeyError:
                continue
    raise AssertionError(f"no API has the message {full_name}")


def vector_params() -> list[t.Any]:
    return [pytest.param(vector, id=f"{vector['message']}: {vector['case']}") for vector in VECTORS]


@pytest.mark.parametrize("vector", vector_params())
def test_bytes_of_the_official_types_decode_to_their_content(vector: dict[str, t.Any]) -> None:
    message = message_class(vector["message"]).FromString(base64.b64decode(vector["bytes_base64"]))
    assert json_format.MessageToDict(message, preserving_proto_field_name=True) == vector["content"]


@pytest.mark.parametrize("vector", vector_params())
def test_content_encodes_to_the_bytes_of_the_official_types(vector: dict[str, t.Any]) -> None:
    message = json_format.ParseDict(vector["content"], message_class(vector["message"])())
    assert message.SerializeToString(deterministic=True) == base64.b64decode(vector["bytes_base64"])


@pytest.mark.parametrize("vector", vector_params())
def test_damaged_bytes_decode_or_are_refused_but_never_crash(vector: dict[str, t.Any]) -> None:
    data = base64.b64decode(vector["bytes_base64"])
    cls = message_class(vector["message"])
    chance = random.Random(vector["bytes_base64"])
    damaged = [data[:end] for end in range(len(data))]
    for _unused in range(200 if data else 0):
        copy = bytearray(data)
        copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(copy))
    for sample in damaged:
        with contextlib.suppress(DecodeError):
            cls.FromString(sample).SerializeToString()


def test_the_copied_vectors_are_those_of_the_shared_folder() -> None:
    shared = ROOT.parent / "shared" / "vectors" / "wire" / "messages.json"
    if not shared.exists():
        pytest.skip("no shared vectors beside this checkout")
    assert FIXTURE.read_bytes() == shared.read_bytes()


PATHS = {
    "dra/v1alpha2": ("/v1alpha2.Node/", {"NodePrepareResource", "NodeUnprepareResource"}),
    "dra/v1alpha3": (
        "/v1alpha3.Node/",
        {"NodePrepareResources", "NodeUnprepareResources", "NodeListAndWatchResources"},
    ),
    "dra/v1alpha4": ("/v1alpha3.Node/", {"NodePrepareResources", "NodeUnprepareResources"}),
    "dra/v1beta1": (
        "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/",
        {"NodePrepareResources", "NodeUnprepareResources"},
    ),
    "dra/v1": ("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/", {"NodePrepareResources", "NodeUnprepareResources"}),
    "registration/v1": ("/pluginregistration.Registration/", {"GetInfo", "NotifyRegistrationStatus"}),
    "health/v1alpha1": ("/v1alpha1.DRAResourceHealth/", {"NodeWatchResources"}),
    "health/v1": ("/v1.DRAResourceHealth/", {"NodeWatchResources"}),
    "podresources/v1alpha1": ("/v1alpha1.PodResourcesLister/", {"List"}),
    "podresources/v1": ("/v1.PodResourcesLister/", {"List", "Get", "GetAllocatableResources"}),
}


@pytest.mark.parametrize("name", sorted(PATHS))
def test_method_paths_are_those_that_drivers_serve(name: str) -> None:
    prefix, methods = PATHS[name]
    service = messages.api(name).service()
    assert {method.path for method in service.values()} == {prefix + method for method in methods}
    assert messages.api(name).service_name() == prefix.strip("/")


def test_only_watch_methods_stream() -> None:
    streaming = {m.path for name in PATHS for m in messages.api(name).service().values() if m.server_streaming}
    assert streaming == {
        "/v1alpha3.Node/NodeListAndWatchResources",
        "/v1alpha1.DRAResourceHealth/NodeWatchResources",
        "/v1.DRAResourceHealth/NodeWatchResources",
    }


def test_two_generations_with_one_package_name_keep_their_own_shapes() -> None:
    old = t.cast("t.Any", messages.api("dra/v1alpha3").message("NodePrepareResourceResponse"))
    new = t.cast("t.Any", messages.api("dra/v1alpha4").message("NodePrepareResourceResponse"))
    assert old.DESCRIPTOR.full_name == new.DESCRIPTOR.full_name
    assert old(cdi_devices=["a.b/c=d"]).SerializeToString() == b"\x0a\x07a.b/c=d"
    assert new(devices=[{"device_name": "d"}]).SerializeToString() == b"\x0a\x03\x1a\x01d"


def test_structured_handle_of_1_30_has_the_numbers_of_the_released_api() -> None:
    claim = t.cast("t.Any", messages.api("dra/v1alpha3").message("Claim"))()
    handle = claim.structured_resource_handle.add(nodeName="n")
    handle.vendorClassParameters.raw = b"{}"
    handle.results.add().allocationResultModel.namedResources.name = "g"
    assert claim.SerializeToString() == bytes.fromhex("2a12 0a040a027b7d 22016e 2a07 1205 0a03 0a0167".replace(" ", ""))


def test_share_id_unset_and_empty_are_different() -> None:
    device = t.cast("t.Any", messages.api("dra/v1").message("Device"))
    assert device().SerializeToString() == b""
    assert device(share_id="").SerializeToString() == b"\x2a\x00"
    assert not device.FromString(b"").HasField("share_id")


def test_unknown_message_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="no message Nonsense"):
        messages.api("dra/v1").message("Nonsense")


def test_missing_protobuf_library_is_told_with_a_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    messages.api.cache_clear()
    try:
        with pytest.raises(DraError, match="protobuf") as caught:
            messages.api("dra/v1")
        assert "Install protobuf" in caught.value.hint
    finally:
        messages.api.cache_clear()


def test_generated_files_are_what_the_proto_files_give() -> None:
    pytest.importorskip("grpc_tools")
    done = subprocess.run(
        [sys.executable, str(ROOT / "hack/gen_proto.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
