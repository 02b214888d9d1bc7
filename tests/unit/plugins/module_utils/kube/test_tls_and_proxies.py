# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""TLS with authorities and client certificates, and proxies on the way."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import pathlib
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions, options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.proxies import bypasses_proxy

from .certificates import Authority
from .connections import PODS, kubeconfig, who_am_i
from .stub_api import failure, running

# TLS


@pytest.mark.asyncio
async def test_tls_with_authority_and_client_certificate_from_data(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("client")
    async with running(authority.server_context(ask_client=True)) as api:
        config = kubeconfig(
            api.url,
            **{
                "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
                "client-key-data": base64.b64encode(key.read_bytes()).decode(),
            },
        )
        data = base64.b64encode(authority.certificate.read_bytes()).decode()
        config["clusters"][0]["cluster"]["certificate-authority-data"] = data
        assert await who_am_i(api, resolve(ConnectionOptions(kubeconfig=config), {})) == ""
        config["clusters"][0]["cluster"].pop("certificate-authority-data")
        with pytest.raises(errors.TlsError, match="certificate is not trusted") as caught:
            await who_am_i(api, resolve(ConnectionOptions(kubeconfig=config), {}))
        assert "ca_cert" in caught.value.hint


@pytest.mark.asyncio
async def test_a_certificate_of_another_name(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path / "ca")
    ca = str(authority.certificate)
    async with running(authority.server_context("DNS:api.test.example")) as api:
        with pytest.raises(errors.TlsError, match="certificate is not trusted") as caught:
            await who_am_i(api, resolve(ConnectionOptions(host=api.url, ca_cert=ca), {}))
        assert "tls_server_name" in caught.value.hint
        named = ConnectionOptions(host=api.url, ca_cert=ca, tls_server_name="api.test.example", api_key="tok-1234")
        assert await who_am_i(api, resolve(named, {})) == "Bearer tok-1234"
        unchecked = ConnectionOptions(host=api.url, validate_certs=False)
        assert await who_am_i(api, resolve(unchecked, {})) == ""


@pytest.mark.asyncio
async def test_http_spoken_to_an_https_address() -> None:
    async with running() as api:
        with pytest.raises(errors.TlsError, match="TLS failed") as caught:
            await who_am_i(api, resolve(ConnectionOptions(host=api.url.replace("http", "https")), {}))
        assert "port and scheme" in caught.value.hint or "API server's port" in caught.value.hint


@pytest.mark.asyncio
async def test_a_client_certificate_that_was_renewed_on_disk_is_used(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("client")
    used, ca = tmp_path / "client.crt", str(authority.certificate)
    used.write_bytes(certificate.read_bytes())
    seen: list[str] = []

    async def route(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peer = request.transport.get_extra_info("ssl_object").getpeercert()
        seen.append(peer["serialNumber"])
        return failure(401, "Unauthorized") if len(seen) == 1 else web.json_response({})

    async with running(authority.server_context(ask_client=True)) as api:
        api.otherwise = route
        options = ConnectionOptions(host=api.url, ca_cert=ca, client_cert=str(used), client_key=str(key))
        async with KubeClient.connect(resolve(options, {})) as client:
            await client.transport.send(_request(client))  # opens the pool; answered with 401
            del seen[:]
            renewed, new_key = authority.issue("client")
            used.write_bytes(renewed.read_bytes())
            pathlib.Path(key).write_bytes(new_key.read_bytes())
            await client.get(PODS, "p1", "team-a")
    assert len(set(seen)) == 2


def _request(client: KubeClient) -> t.Any:
    from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import path_call
    from ansible_collections.nodeops.dra.plugins.module_utils.kube.transport import Request

    return Request(path_call("/version"), client.deadline_in(5))


@pytest.mark.parametrize("which", ["ca_cert", "client_cert"])
@pytest.mark.asyncio
async def test_files_that_are_no_certificates(tmp_path: pathlib.Path, which: str) -> None:
    path = tmp_path / "x.pem"
    path.write_text("no certificate")
    options = options_from(
        {"host": "https://h", which: str(path), "client_key": str(path)}
        | ({} if which == "client_cert" else {"client_key": None}),
        {},
    )
    async with KubeClient.connect(resolve(options, {})) as client:
        with pytest.raises(errors.ConfigurationError, match="cannot be used") as caught:
            await client.get(PODS, "p1", "team-a")
    assert str(path) in caught.value.message


# Proxies


@pytest.mark.asyncio
async def test_a_configured_proxy_is_used_with_its_credential() -> None:
    async with running() as proxy:

        async def route(request: web.Request) -> web.StreamResponse:
            return web.json_response({})

        proxy.otherwise = route
        options = ConnectionOptions(
            host="http://api.test.example", proxy=proxy.url, proxy_headers={"proxy_basic_auth": "me:pw-SYNTH-1"}
        )
        # What the environment says does not count then.
        async with KubeClient.connect(resolve(options, {"NO_PROXY": "*"})) as client:
            await client.get(PODS, "p1", "team-a")
    assert proxy.headers[0]["Host"] == "api.test.example"
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic " + base64.b64encode(b"me:pw-SYNTH-1").decode()


@pytest.mark.asyncio
async def test_the_environment_names_the_proxy_unless_no_proxy_says_otherwise() -> None:
    environ = {"HTTP_PROXY": "http://me:pw-SYNTH-1@127.0.0.1:1"}
    async with running() as api:
        with pytest.raises(errors.UnreachableError, match="the proxy cannot be reached") as caught:
            await who_am_i(api, resolve(ConnectionOptions(host=api.url), environ))
        assert "HTTPS_PROXY" in caught.value.hint
        assert "SYNTH" not in f"{caught.value} {caught.value.facts}"
        direct = ConnectionOptions(host=api.url, no_proxy="127.0.0.0/8", api_key="tok-1234")
        assert await who_am_i(api, resolve(direct, environ)) == "Bearer tok-1234"
        named = {**environ, "NO_PROXY": "localhost,127.0.0.1"}
        assert await who_am_i(api, resolve(ConnectionOptions(host=api.url), named)) == ""


@pytest.mark.asyncio
async def test_the_connect_request_of_tls_carries_the_proxy_credential(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path / "ca")
    seen: list[bytes] = []
    async with running(authority.server_context()) as api:

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

            async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                with contextlib.suppress(ConnectionError):
                    while chunk := await source.read(65536):
                        target.write(chunk)
                target.close()

            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        async with proxy:
            config = kubeconfig(api.url, token="tok-1234")
            config["clusters"][0]["cluster"].update(
                {
                    "certificate-authority": str(authority.certificate),
                    "proxy-url": f"http://me:pw@127.0.0.1:{proxy.sockets[0].getsockname()[1]}",
                }
            )
            assert await who_am_i(api, resolve(ConnectionOptions(kubeconfig=config), {})) == "Bearer tok-1234"
    assert seen[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:pw") in seen[0]
    assert b"tok-1234" not in seen[0]


@pytest.mark.parametrize(
    ("url", "no_proxy", "expected"),
    [
        ("https://api.test.example:6443", "test.example", True),
        ("https://api.test.example", ".test.example", True),
        ("https://api.test.example", "test.exam", False),
        ("https://xtest.example", "test.example", False),
        ("https://10.1.2.3", "192.0.2.0/24, 10.0.0.0/8", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://h", "*", True),
        ("https://h", "", False),
        ("https://h", None, False),
    ],
)
def test_no_proxy(url: str, no_proxy: str | None, expected: bool) -> None:
    assert bypasses_proxy(url, no_proxy) is expected
