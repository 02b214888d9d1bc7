# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The HTTP server over real sockets: paths, methods, token, TLS that is renewed, and clients that misbehave."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import logging
import os
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.common_settings import HttpSettings, TlsSettings
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.endpoints import endpoints
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.health import Check, Health, Outcome, Report, State
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.http_server import HttpServer
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metrics import Metrics

from ..kube.certificates import Authority
from .processes import get, trusting

pytestmark = pytest.mark.asyncio

NO_TLS = TlsSettings(None, None)
SETTINGS = HttpSettings(True, "127.0.0.1", 0, NO_TLS, None, 32, 15.0)


async def nothing() -> None:
    """A probe."""


CHECK = Check("drivers", nothing, "For a test.")


class Served:
    """A server whose health can be set; ``told`` has what it told of its answers."""

    def __init__(self, settings: HttpSettings) -> None:
        self.state = State.OK
        self.bug = False
        self.told: collections.Counter[tuple[str, int]] = collections.Counter()
        health = Health(5.0)
        health.use([CHECK])
        paths = endpoints(Metrics(COMMON_METRICS), health.look, self._ready)
        self.server = HttpServer(settings, paths, lambda path, status: self.told.update([(path, status)]))

    async def _ready(self) -> Report:
        if self.bug:
            raise KeyError("k")
        return Report((Outcome(CHECK, self.state, "driver a", 0.1),))

    async def get(self, path: str, **options: t.Any) -> tuple[int, str, t.Mapping[str, str]]:
        """A request from another thread."""
        return await asyncio.to_thread(get, self.server.url + path, **options)

    async def raw(self, text: bytes) -> bytes:
        """What comes back until the server hangs up."""
        port = int(self.server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def __aenter__(self) -> Served:
        await self.server.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.server.stop()


async def test_the_three_paths_and_nothing_else() -> None:
    async with Served(SETTINGS) as served:
        status, body, headers = await served.get("/metrics")
        assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert "# HELP process_open_fds" in body
        assert (await served.get("/healthz"))[:2] == (200, "ok\n")
        assert (await served.get("/readyz"))[:2] == (200, "ok\n")
        assert (await served.get("/readyz?verbose"))[1] == "[+]drivers ok: driver a\nreadyz check passed\n"
        served.state = State.FAILED
        assert (await served.get("/readyz"))[:2] == (503, "readyz failed\n")
        assert (await served.get("/readyz?verbose"))[1] == "[-]drivers failed: driver a\nreadyz check failed\n"
        status, body, headers = await served.get("/etc/passwd")
        assert (status, body) == (404, "not found; there is /metrics, /healthz, /readyz\n")
        assert (headers["Connection"], headers["Server"]) == ("close", "nodeops-dra")
        assert served.told == {
            ("/metrics", 200): 1, ("/healthz", 200): 1, ("/readyz", 200): 2, ("/readyz", 503): 2, ("other", 404): 1,
        }  # fmt: skip


async def test_only_get_and_head() -> None:
    async with Served(SETTINGS) as served:
        status, body, headers = await served.get("/readyz", method="HEAD")
        assert (status, body, headers["Content-Length"]) == (200, "", "3")
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            status, _body, headers = await served.get("/readyz", method=method)
            assert (status, headers["Allow"]) == (405, "GET, HEAD")


async def test_a_bug_behind_a_path_is_logged_and_shows_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    async with Served(SETTINGS) as served:
        served.bug = True
        assert (await served.get("/readyz"))[:2] == (500, "ended by a bug, see the log\n")
    assert "request ended by a bug path=/readyz" in caplog.text


async def test_nonsense_gets_an_answer_and_no_trace_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with Served(SETTINGS) as served:
        assert b" 400 " in await served.raw(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert b" 400 " in await served.raw(b"GET / HTTP/1.1\r\nA: " + b"x" * 20000 + b"\r\n\r\n")
        assert (await served.get("/readyz"))[0] == 200
    assert [entry.message for entry in caplog.records if entry.levelno > logging.INFO] == []


# Clients that misbehave


async def test_silent_and_slow_clients_are_cut_off() -> None:
    async with Served(dataclasses.replace(SETTINGS, request_timeout=0.2)) as served:
        assert await served.raw(b"") == b""
        assert await served.raw(b"GET /readyz HTTP/1.1\r\nHost:") == b""
        assert (await served.get("/readyz"))[0] == 200


async def test_connections_are_bounded() -> None:
    async with Served(dataclasses.replace(SETTINGS, max_connections=2)) as served:
        port = int(served.server.url.rpartition(":")[2])
        writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _number in range(2)]
        assert (await served.raw(b"")).startswith(b"HTTP/1.1 503 ")
        for writer in writers:
            writer.close()
            await writer.wait_closed()
        while (await served.get("/readyz"))[0] != 200:
            pass


async def test_stopping_does_not_wait_for_clients() -> None:
    served = Served(SETTINGS)
    await served.server.start()
    port = int(served.server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /readyz HTTP/1.1\r\n")
    await served.server.stop()
    try:
        assert await reader.read() == b""
    except ConnectionError:
        pass
    finally:
        writer.close()
    await served.server.stop()


async def test_an_address_that_cannot_be_had() -> None:
    async with Served(SETTINGS) as served:
        port = int(served.server.url.rpartition(":")[2])
        with pytest.raises(DraError) as caught:
            await Served(dataclasses.replace(SETTINGS, port=port)).server.start()
    assert f"127.0.0.1 port {port} could not be listened on for HTTP: Address already in use" in caught.value.message
    assert caught.value.facts == {"errno": "EADDRINUSE"}
    with pytest.raises(DraError, match=r"192\.0\.2\.1 port 0 could not be listened on"):
        await Served(dataclasses.replace(SETTINGS, address="192.0.2.1")).server.start()


# Token


async def test_the_token_guards_metrics_and_details(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "token"
    path.write_text("tok-SYNTH-1\n")
    async with Served(dataclasses.replace(SETTINGS, token_file=str(path))) as served:
        for guarded in ("/metrics", "/readyz?verbose", "/healthz?verbose=1"):
            status, body, headers = await served.get(guarded)
            assert (status, body, headers["WWW-Authenticate"]) == (401, "needs the bearer token\n", "Bearer")
            assert (await served.get(guarded, token="wrong"))[0] == 401
            assert (await served.get(guarded, token="tok-SYNTH-1"))[0] == 200
        assert (await served.get("/readyz"))[:2] == (200, "ok\n")


@pytest.mark.report("F082")
async def test_a_token_is_renewed_and_never_logged(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "token"
    path.write_text("tok-SYNTH-1")
    async with Served(dataclasses.replace(SETTINGS, token_file=str(path))) as served:
        (tmp_path / "new").write_text("tok-SYNTH-22")
        os.replace(tmp_path / "new", path)
        assert (await served.get("/metrics", token="tok-SYNTH-1"))[0] == 401
        assert (await served.get("/metrics", token="tok-SYNTH-22"))[0] == 200
        path.unlink()
        assert (await served.get("/metrics", token="tok-SYNTH-22"))[0] == 401
    assert "token cannot be read, nobody is let in" in caplog.text
    assert "SYNTH" not in caplog.text


async def test_an_empty_token_file_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(DraError, match="is empty, expected a token"):
        await Served(dataclasses.replace(SETTINGS, token_file=str(tmp_path / "token"))).server.start()


async def test_a_token_in_the_open_is_warned_about(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "token").write_text("tok-SYNTH-1")
    async with Served(dataclasses.replace(SETTINGS, address="0.0.0.0", token_file=str(tmp_path / "token"))):
        pass
    assert "the token can be read on its way" in caplog.text


# TLS


@pytest.fixture
def authority(tmp_path: pathlib.Path) -> Authority:
    return Authority(tmp_path / "pki")


def with_tls(folder: pathlib.Path, certificate: pathlib.Path, key: pathlib.Path) -> HttpSettings:
    """Settings with links to a pair of files, as certificate managers make them."""
    for name, path in (("tls.crt", certificate), ("tls.key", key)):
        (folder / "next").symlink_to(path)
        os.replace(folder / "next", folder / name)
    return dataclasses.replace(SETTINGS, tls=TlsSettings(str(folder / "tls.crt"), str(folder / "tls.key")))


async def subject(served: Served, authority: Authority) -> str:
    """The name in the certificate that a client gets."""
    port = int(served.server.url.rpartition(":")[2])
    _reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(authority))
    found = writer.get_extra_info("peercert")["subject"][0][0][1]
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return t.cast(str, found)


async def test_tls_with_certificates_that_are_renewed(
    authority: Authority, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = authority.issue("first"), authority.issue("second")
    async with Served(with_tls(tmp_path, *first)) as served:
        assert served.server.url.startswith("https://")
        assert (await served.get("/readyz", tls=trusting(authority)))[0] == 200
        assert await subject(served, authority) == "first"
        with_tls(tmp_path, *second)
        assert await subject(served, authority) == "second"
        with_tls(tmp_path, first[0], second[1])
        assert await subject(served, authority) == "second"
        assert "new certificate is not used, keeping the former one" in caplog.text
        with_tls(tmp_path, *first)
        assert await subject(served, authority) == "first"


async def test_plain_http_to_a_tls_port_and_broken_handshakes_do_no_harm(
    authority: Authority, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Served(with_tls(tmp_path, *authority.issue("a"))) as served:
        await served.raw(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await served.get("/readyz", tls=trusting(authority)))[0] == 200
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("kind", ["mismatch", "no-pem", "missing", "encrypted"])
async def test_files_that_cannot_be_used_are_named(authority: Authority, tmp_path: pathlib.Path, kind: str) -> None:
    (certificate, key), other = authority.issue("a"), authority.issue("b")
    if kind == "mismatch":
        key = other[1]
    if kind == "no-pem":
        certificate.write_text("x")
    if kind == "missing":
        key.unlink()
    if kind == "encrypted":
        authority._run("ec", "-in", str(key), "-aes256", "-passout", "pass:x", "-out", str(key) + ".e")
        key = key.with_name(key.name + ".e")
    settings = dataclasses.replace(SETTINGS, tls=TlsSettings(str(certificate), str(key)))
    with pytest.raises(DraError, match=str(key if kind == "missing" else certificate)):
        await Served(settings).server.start()
