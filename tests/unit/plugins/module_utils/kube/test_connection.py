# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Finding the API server: options, kubeconfig, and what is told when something is wrong with them."""

from __future__ import annotations

import base64
import pathlib
import textwrap
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.access import Pem
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions, options_from

from .connections import PODS, authorization, kubeconfig
from .stub_api import answers, failure, running

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
