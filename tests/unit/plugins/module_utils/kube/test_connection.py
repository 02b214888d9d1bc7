# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Finding the API server and proving who we are: options, kubeconfig, pods, TLS, tokens that change, proxies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import pathlib
import textwrap
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import cluster, errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import ClusterAccess, Pem
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import in_cluster, resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions, options_from
from ansible_collections.nodeops.dra.plugins.module_utils.kube.proxies import bypasses_proxy
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of

from .certificates import Authority
from .stub_api import StubApi, answers, failure, running

PODS = resource_of("Pod")


async def authorization(access: ClusterAccess) -> str:
    """The header that this access sends."""
    return await access.credential.header()


def kubeconfig(server: str = "https://192.0.2.1:6443", **user: t.Any) -> dict[str, t.Any]:
    """A kubeconfig with one context."""
    return {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


async def who_am_i(api: StubApi, access: ClusterAccess) -> str:
    """The Authorization header that arrives at a stub."""

    async def route(request: web.Request) -> web.StreamResponse:
        return web.json_response({"metadata": {}})

    api.otherwise = route
    async with KubeClient.connect(access, tries=1) as client:
        await client.get(PODS, "p1", "team-a")
    return api.headers[-1].get("Authorization", "")


# Options


@pytest.mark.asyncio
async def test_host_and_token_need_no_file() -> None:
    access = resolve(ConnectionOptions(host="https://h:6443/", api_key="Bearer tok-1234\n"), {})
    assert access.server == "https://h:6443"
    assert await authorization(access) == "Bearer tok-1234"


def test_options_come_from_the_environment_and_from_older_names() -> None:
    environ = {"K8S_AUTH_HOST": "https://env:1", "K8S_AUTH_API_KEY": "tok-env", "K8S_AUTH_VERIFY_SSL": "no"}
    options = options_from({"host": None, "ssl_ca_cert": "/ca.pem", "state": "present", "api_key": ""}, environ)
    assert (options.host, options.api_key, options.validate_certs, options.ca_cert) == (
        "https://env:1",
        "tok-env",
        False,
        "/ca.pem",
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        pytest.param({"client_cert": "/c.pem"}, "client_cert is given without client_key", id="half-a-pair"),
        pytest.param({"password": "p"}, "password is given without username", id="password-alone"),
        pytest.param({"host": "h:6443"}, "is no URL", id="no-scheme"),
        pytest.param({"host": "https://h", "validate_certs": "maybe"}, "expected true or false", id="no-boolean"),
        pytest.param({"host": "https://h", "api_key": "a\nb"}, "cannot be part of a token", id="two-lines"),
    ],
)
def test_options_that_contradict_each_other_are_refused(values: dict[str, t.Any], text: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=text):
        options_from(values, {})


@pytest.mark.parametrize("url", ["https://user:secret@h", "https://h/?a=b", "ftp://h", "https://", "https://h:99999"])
def test_addresses_that_are_no_plain_url_are_refused(url: str) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        resolve(ConnectionOptions(kubeconfig=kubeconfig(url)), {})
    assert "secret" not in str(caught.value)


def test_nothing_given_says_where_it_looked(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"\.kube/config does not exist") as caught:
        resolve(None, {"HOME": str(tmp_path)})
    assert "KUBECONFIG" in caught.value.hint


@pytest.mark.asyncio
async def test_options_override_the_kubeconfig() -> None:
    options = ConnectionOptions(
        kubeconfig=kubeconfig(token="tok-file"),
        host="https://other:1",
        username="me",
        password="pass-1234",
        ca_cert="/ca.pem",
        validate_certs=False,
        impersonate_user="ci",
        impersonate_groups=["g1", "g2"],
        proxy_headers={"user_agent": "x"},
    )
    access = resolve(options, {})
    assert access.server == "https://other:1"
    assert await authorization(access) == "Basic " + base64.b64encode(b"me:pass-1234").decode()
    assert access.ca == Pem("/ca.pem")
    assert not access.verify
    assert access.headers == (
        ("User-Agent", "x"),
        ("Impersonate-User", "ci"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
    )


# Kubeconfig


@pytest.mark.asyncio
async def test_files_are_merged_as_kubectl_does(tmp_path: pathlib.Path) -> None:
    first, second = tmp_path / "a" / "config", tmp_path / "b" / "config"
    first.parent.mkdir()
    second.parent.mkdir()
    (second.parent / "token").write_text("tok-second\n")
    first.write_text(
        textwrap.dedent(
            """\
            current-context: one
            contexts: [{name: one, context: {cluster: c, user: u}}]
            clusters: [{name: c, cluster: {server: "https://first:1"}}]
            """
        )
    )
    second.write_text(
        textwrap.dedent(
            """\
            current-context: two
            clusters: [{name: c, cluster: {server: "https://second:1"}}]
            users: [{name: u, user: {tokenFile: token}}]
            """
        )
    )
    access = resolve(None, {"KUBECONFIG": f"{first}:{second}:{tmp_path}/none"})
    assert access.server == "https://first:1"
    assert await authorization(access) == "Bearer tok-second"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"current-context": "three"}, 'has no context "three"', id="context"),
        pytest.param({"current-context": ""}, "no current-context", id="no-context"),
        pytest.param({"clusters": []}, 'has no cluster "c", which context "one" names', id="cluster"),
        pytest.param({"clusters": [{"name": "c", "cluster": {}}]}, "has no server", id="server"),
        pytest.param({"users": {}}, None, id="users-empty"),
        pytest.param({"users": "x"}, "users is not a list", id="users-text"),
        pytest.param({"users": [{"user": {}}]}, r"users\[0\] is not a mapping", id="user-without-name"),
        pytest.param(
            {"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, 'auth-provider "gcp"', id="gcp"
        ),
        pytest.param(
            {"users": [{"name": "u", "user": {"client-certificate-data": "&&&"}}]}, "is no base64", id="base64"
        ),
        pytest.param(
            {"users": [{"name": "u", "user": {"client-key": "/none.key"}}]}, "names /none.key, which does", id="key"
        ),
    ],
)
def test_faults_of_a_kubeconfig_are_told(change: dict[str, t.Any], text: str | None) -> None:
    with pytest.raises(errors.ConfigurationError, match=text or 'has no user "u"'):
        resolve(ConnectionOptions(kubeconfig={**kubeconfig(), **change}), {})


@pytest.mark.asyncio
async def test_a_context_without_a_user_is_anonymous() -> None:
    config = kubeconfig()
    del config["contexts"][0]["context"]["user"]
    assert await authorization(resolve(ConnectionOptions(kubeconfig=config), {})) == ""


@pytest.mark.report("F082")
def test_a_broken_file_is_told_by_its_place_not_by_its_content(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    path.write_text("users:\n- name: u\n  user: {token: tok-SYNTH-1\n- x: [\n")
    with pytest.raises(errors.ConfigurationError, match=r"is no YAML at line \d+, column \d+") as caught:
        resolve(ConnectionOptions(kubeconfig=str(path)), {})
    shown = f"{caught.value} {caught.value.facts} {caught.value.__cause__!r}"
    assert "tok-SYNTH-1" not in shown


@pytest.mark.report("F082")
@pytest.mark.asyncio
async def test_no_secret_in_any_text(tmp_path: pathlib.Path) -> None:
    options = ConnectionOptions(
        kubeconfig=kubeconfig("http://127.0.0.1:1", token="tok-SYNTH-1"), password="pw-SYNTH-2", username="me"
    )
    texts = [repr(options), repr(resolve(options, {}))]
    for given in (options, ConnectionOptions(kubeconfig=kubeconfig("http://127.0.0.1:1", token="tok-SYNTH-1"))):
        async with KubeClient.connect(resolve(given, {}), tries=1) as client:
            with pytest.raises(errors.UnreachableError) as caught:
                await client.get(PODS, "p1", "team-a")
        texts.append(f"{caught.value} {caught.value.facts}")
    async with running() as api:
        api.otherwise = answers(failure(401, "Unauthorized", "token tok-SYNTH-1 has expired"))[0]
        options = ConnectionOptions(host=api.url, api_key="tok-SYNTH-1")
        async with KubeClient.connect(resolve(options, {}), tries=1) as client:
            with pytest.raises(errors.UnauthorizedError) as refused:
                await client.get(PODS, "p1", "team-a")
        texts.append(f"{refused.value} {refused.value.facts}")
    assert "SYNTH" not in " ".join(texts)
    assert "token ******** has expired" in texts[-1]
    assert "renew it" in refused.value.hint


# Tokens that change


@pytest.mark.asyncio
async def test_a_pod_uses_its_service_account_and_reads_a_new_token(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").write_text("x")
    (tmp_path / "namespace").write_text("team-a")
    (tmp_path / "token").write_text("tok-1111")
    monkeypatch.setattr(cluster, "SERVICE_ACCOUNT", tmp_path)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": "/none"}
    access = resolve(None, environ)
    assert access.server == "https://[fd00::1]:443"
    assert access.namespace == "team-a"
    assert await authorization(access) == "Bearer tok-1111"
    (tmp_path / "token").write_text("tok-22222")
    assert await authorization(access) == "Bearer tok-1111"  # looked at every ten seconds
    assert await access.credential.renew()
    assert await authorization(access) == "Bearer tok-22222"
    (tmp_path / "token").unlink()
    assert not await access.credential.renew()
    assert await authorization(access) == "Bearer tok-22222"


@pytest.mark.looptime
@pytest.mark.asyncio
async def test_a_token_file_is_read_again_after_a_while(tmp_path: pathlib.Path) -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.kube.credentials import TokenFile
    from ansible_collections.nodeops.dra.plugins.module_utils.kube.secrets import Secrets

    path, secrets = tmp_path / "token", Secrets()
    path.write_text("tok-1111")
    credential = TokenFile(str(path), secrets, asyncio.get_running_loop().time)
    assert await credential.header() == "Bearer tok-1111"
    path.write_text("tok-22222")
    await asyncio.sleep(11)
    assert await credential.header() == "Bearer tok-22222"
    assert secrets.scrub("tok-1111 tok-22222") == "******** ********"


@pytest.mark.parametrize("content", [None, "", "\n"])
@pytest.mark.asyncio
async def test_a_token_file_without_a_token_is_told(tmp_path: pathlib.Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    access = resolve(ConnectionOptions(kubeconfig=kubeconfig(tokenFile=str(path))), {})
    with pytest.raises(errors.CredentialError, match=str(path)):
        await authorization(access)


def test_a_pod_without_its_files_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"ca\.crt"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "h"}, tmp_path)


@pytest.mark.asyncio
async def test_a_401_is_answered_with_a_new_token_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "token"
    path.write_text("tok-1111")

    async def route(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer tok-22222":
            return web.json_response({"metadata": {"name": "p1"}})
        path.write_text("tok-22222")
        return failure(401, "Unauthorized")

    async with running() as api:
        api.otherwise = route
        access = resolve(ConnectionOptions(kubeconfig=kubeconfig(api.url, tokenFile=str(path))), {})
        async with KubeClient.connect(access) as client:
            await client.create(PODS, {}, "team-a")
    assert [headers["Authorization"] for headers in api.headers] == ["Bearer tok-1111", "Bearer tok-22222"]


# Exec plugins

PLUGIN = """#!/bin/sh
echo run >> {log}
test "$1" = "--please" || exit 3
test "$EXTRA" = yes || exit 4
case "$KUBERNETES_EXEC_INFO" in *192.0.2.1*) ;; *) exit 5 ;; esac
cat <<END
{answer}
END
"""


def plugin(folder: pathlib.Path, status: t.Mapping[str, t.Any], text: str = PLUGIN) -> dict[str, t.Any]:
    """A credential program and the exec entry for it."""
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    path = folder / "login"
    path.write_text(text.format(log=folder / "log", answer=json.dumps(answer)))
    path.chmod(0o755)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(path),
        "args": ["--please"],
        "env": [{"name": "EXTRA", "value": "yes"}],
        "provideClusterInfo": True,
        "installHint": "Install login 2.",
    }


def runs(folder: pathlib.Path) -> int:
    """How often the program ran."""
    return len((folder / "log").read_text().splitlines()) if (folder / "log").exists() else 0


@pytest.mark.asyncio
async def test_an_exec_plugin_runs_once_for_many_and_again_when_its_token_ends(tmp_path: pathlib.Path) -> None:
    entry = plugin(tmp_path, {"token": "tok-exec-1", "expirationTimestamp": "2099-01-01T00:00:00Z"})
    access = resolve(ConnectionOptions(kubeconfig=kubeconfig(exec=entry)), {"PATH": "/usr/bin:/bin"})
    assert set(await asyncio.gather(*(authorization(access) for _unused in range(8)))) == {"Bearer tok-exec-1"}
    assert runs(tmp_path) == 1
    plugin(tmp_path, {"token": "tok-exec-2", "expirationTimestamp": "2001-01-01T00:00:00Z"})
    assert await access.credential.renew()
    assert await authorization(access) == "Bearer tok-exec-2"
    assert runs(tmp_path) == 3


@pytest.mark.report("F082")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("#!/bin/sh\necho tok-SYNTH-1; echo no >&2; exit 7\n", "ended with status 7: no", id="status"),
        pytest.param("#!/bin/sh\necho tok-SYNTH-1\n", "is no JSON", id="no-json"),
        pytest.param('#!/bin/sh\necho \'{{"kind":"x"}}\'\n', "is no ExecCredential", id="wrong-kind"),
    ],
)
@pytest.mark.asyncio
async def test_an_exec_plugin_that_fails_is_an_error_not_anonymity(
    tmp_path: pathlib.Path, text: str, expected: str
) -> None:
    entry = plugin(tmp_path, {}, text)
    access = resolve(ConnectionOptions(kubeconfig=kubeconfig(exec=entry)), {"PATH": "/usr/bin:/bin"})
    with pytest.raises(errors.CredentialError, match=expected) as caught:
        await authorization(access)
    assert "SYNTH" not in str(caught.value)
    assert "Install login 2." in str(caught.value)


@pytest.mark.asyncio
async def test_an_exec_plugin_that_hangs_is_killed_with_its_children(tmp_path: pathlib.Path) -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.kube.exec_plugin import ExecPlugin
    from ansible_collections.nodeops.dra.plugins.module_utils.kube.secrets import Secrets

    entry = plugin(tmp_path, {}, "#!/bin/sh\nsleep 600 & sleep 600\n")
    credential = ExecPlugin(entry, {}, Secrets(), "a test", environ={"PATH": "/usr/bin:/bin"}, timeout=0.3)
    with pytest.raises(errors.CredentialError, match=r"did not end within 0\.3 s and was killed"):
        await credential.header()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        pytest.param({"apiVersion": "client.authentication.k8s.io/v1"}, "without a command", id="no-command"),
        pytest.param({"command": "x", "apiVersion": "v1alpha1"}, 'has apiVersion "v1alpha1"', id="old-version"),
    ],
)
def test_an_exec_entry_that_cannot_work_is_refused(entry: dict[str, t.Any], text: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=text):
        resolve(ConnectionOptions(kubeconfig=kubeconfig(exec=entry)), {})


@pytest.mark.asyncio
async def test_a_program_that_is_not_there_is_told() -> None:
    entry = {"command": "/none/login", "apiVersion": "client.authentication.k8s.io/v1"}
    access = resolve(ConnectionOptions(kubeconfig=kubeconfig(exec=entry)), {})
    with pytest.raises(errors.CredentialError, match="could not be started: No such file"):
        await authorization(access)


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
