# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The embedded API server answers like the real one: 54 recorded exchanges, sent again in order.

Whole answers are compared, field owners included. What every run has of its own (names that were made up, UIDs,
versions, times) is put into relation: the first time it is seen it is learnt, from then on it must fit.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[6]
FIXTURE = ROOT / "tests" / "unit" / "fixtures" / "api" / "exchanges.json"
SHARED = ROOT.parent / "shared" / "vectors" / "api" / "exchanges.json"
EXCHANGES = json.loads(FIXTURE.read_text(encoding="utf-8"))
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
_OWN = ("uid", "resourceVersion", "continue")
# What a server tells about its own build and address.
_ABOUT_ITSELF = ("goVersion", "compiler", "platform", "gitVersion", "serverAddress")


def test_fixture_is_the_shared_recording() -> None:
    if not SHARED.exists():
        pytest.skip("no shared recordings beside this checkout")
    assert FIXTURE.read_bytes() == SHARED.read_bytes()


class Replay:
    """What the recording called a thing, and what this run calls it."""

    def __init__(self, client: t.Any) -> None:
        self.client = client
        self.ours: dict[str, str] = {}

    def translated(self, text: str) -> str:
        for theirs in sorted(self.ours, key=len, reverse=True):
            text = text.replace(theirs, self.ours[theirs])
        return text

    def learn(self, theirs: t.Any, ours: t.Any) -> None:
        """Walk two answers side by side and note what is called differently."""
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for name in theirs.keys() & ours.keys():
                if name in (*_OWN, "name") and isinstance(theirs[name], str) and isinstance(ours[name], str):
                    if theirs[name] != ours[name]:
                        self.ours[theirs[name]] = ours[name]
                else:
                    self.learn(theirs[name], ours[name])
        elif isinstance(theirs, list) and isinstance(ours, list):
            for left, right in zip(theirs, ours):
                self.learn(left, right)

    def normal(self, value: t.Any, name: str = "") -> t.Any:
        """A recorded answer in the words of this run, and any answer without times and versions."""
        if isinstance(value, dict):
            return {self.translated(key): self.normal(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [self.normal(part) for part in value]
        if not isinstance(value, str):
            return value
        if name in _ABOUT_ITSELF:
            return f"<{name}>"
        if name in ("resourceVersion", "continue"):
            return f"<{name}>"
        if _TIME.match(value):
            return "<time>"
        value = self.translated(value)
        return re.sub(r"(resource version: \d+ \()\d+|(current: )\d+", r"\1\2N", value)


def differences(ours: t.Any, theirs: t.Any, path: str = "") -> t.Iterator[str]:
    """Where two answers differ, one line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            if name not in ours:
                yield f"{path}.{name}: missing, recorded {theirs[name]!r}"
            elif name not in theirs:
                yield f"{path}.{name}: {ours[name]!r}, not recorded"
            else:
                yield from differences(ours[name], theirs[name], f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (left, right) in enumerate(zip(ours, theirs)):
            yield from differences(left, right, f"{path}[{index}]")
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield f"{path}: {ours!r}, recorded {theirs!r}"


def body_of(exchange: t.Any) -> t.Any:
    body = exchange["request"].get("body")
    if body == "257 entries":
        entries = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(257)]
        return {"status": {"reservedFor": entries}}
    return body


# Requests of the recording that it does not show, by the note of the exchange that they come before.
async def unrecorded(replay: Replay, note: str) -> None:
    client = replay.client
    if note == "list, first page of three":
        for number in range(5):
            body = {
                "metadata": {"name": f"l{number}", "labels": {"k": str(number % 2)}},
                "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "g"}}]}},
            }
            if number in (3, 4):
                body["metadata"]["labels"]["k"] = {3: "1", 4: "0"}[number]
            await client.must("POST", CLAIMS, body)


async def during(replay: Replay, note: str) -> None:
    """What happens while a watch of the recording runs."""
    client = replay.client
    if note.startswith("watch from a version: modify"):
        change = {"metadata": {"labels": {"k": "0"}, "annotations": {"note": "äöü €"}}}
        await client.must("PATCH", f"{CLAIMS}/l1", change, "application/merge-patch+json")
        await client.must("DELETE", f"{CLAIMS}/l2")


async def send(replay: Replay, exchange: t.Any) -> t.Any:
    request, note = exchange["request"], exchange["note"]
    client = replay.client
    path = replay.translated(request["path"])
    if "events" in exchange["response"]:
        path = path if "resourceVersion=125672" not in path else path.replace("125672", replay.now())
        watching = asyncio.ensure_future(client.watch(path))
        await asyncio.sleep(0)
        await during(replay, note)
        return {"status": 200, "events": await watching}
    body = body_of(exchange)
    if body is not None:
        body = json.loads(replay.translated(json.dumps(body)))
    client.token = "" if note == "no token" else client.server.token
    status, answer = await client.ask(request["method"], path, body, request["content_type"] or "application/json")
    client.token = client.server.token
    return {"status": status, "body": answer}


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_recorded_exchanges(serve: t.Any) -> None:
    settings = {"versions": ("v1", "v1beta2", "v1beta1", "v1alpha3"), "namespaces": ("team-a",), "host": "127.0.0.1"}
    async with serve(**settings) as client:
        client.headers["User-Agent"] = "Python-urllib/3.11"
        replay = Replay(client)
        replay.now = lambda: str(client.server.cluster.store.version)  # type: ignore[attr-defined]
        found = []
        for number, exchange in enumerate(EXCHANGES):
            await unrecorded(replay, exchange["note"])
            answer = await send(replay, exchange)
            replay.learn(exchange["response"].get("body"), answer.get("body"))
            for fault in differences(replay.normal(answer), replay.normal(exchange["response"])):
                found.append(f"{number} ({exchange['note']}) {fault}")
    assert not found, "\n" + "\n".join(found)
