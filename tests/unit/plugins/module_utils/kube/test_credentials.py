# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Proving who we are: tokens that change under our hands, and programs that give credentials."""

from __future__ import annotations

import asyncio
import json
import pathlib
import typing as t

import pytest
from aiohttp import web
from ansible_collections.nodeops.dra.plugins.module_utils.kube import cluster, errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import in_cluster, resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions

from .connections import PODS, authorization, kubeconfig
from .stub_api import failure, running

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
