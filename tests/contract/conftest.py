# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the contract is tested: the embedded API server, or any cluster that a kubeconfig names.

    pytest tests/contract                       the embedded API server, as a process of its own
    pytest tests/contract --kubeconfig FILE     a real one; CONTRACT_KUBECONFIG=FILE does the same

The variable KUBECONFIG alone is ignored on purpose: nobody should test against a cluster because of a shell setting.
Everything happens in one namespace that is made for the run and deleted at its end, with names that no controller
acts on. The rights of an administrator are needed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import pathlib
import secrets
import signal
import ssl
import subprocess
import sys
import tempfile
import typing as t

import aiohttp
import pytest
import pytest_asyncio

Json = t.Any
SANDBOX = "ansible_collections.nodeops.dra.plugins.module_utils.sandbox"
PLURALS = (
    "apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "api/v1/namespaces/{}/pods",
    "api/v1/namespaces/{}/configmaps",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kubeconfig", default=os.environ.get("CONTRACT_KUBECONFIG", ""), help="cluster to test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A cluster may be slow, and the first test waits for the server to start."""
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


class Target:
    """How to reach an API server, read from a kubeconfig."""

    def __init__(self, path: pathlib.Path) -> None:
        import yaml

        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        by_name = {item["name"]: item["context"] for item in document["contexts"]}
        context = by_name[document["current-context"]]
        cluster = next(item["cluster"] for item in document["clusters"] if item["name"] == context["cluster"])
        user = next(item["user"] for item in document["users"] if item["name"] == context["user"])
        self.folder = path.parent
        self.url = str(cluster["server"]).rstrip("/")
        self.headers = {"User-Agent": "nodeops-dra-contract/1"}
        token = user.get("token") or self._file(user, "tokenFile")
        if token:
            self.headers["Authorization"] = f"Bearer {token.strip()}"
        self.ssl = self._context(cluster, user) if self.url.startswith("https") else None
        if not token and not any(key.startswith("client-certificate") for key in user):
            pytest.exit(f"{path}: only tokens and client certificates are understood here", 2)

    def _file(self, part: Json, name: str) -> str:
        return (self.folder / part[name]).read_text(encoding="utf-8") if part.get(name) else ""

    def _pem(self, part: Json, name: str) -> str:
        if part.get(f"{name}-data"):
            return base64.b64decode(part[f"{name}-data"]).decode()
        return self._file(part, name)

    def _context(self, cluster: Json, user: Json) -> ssl.SSLContext:
        authority = self._pem(cluster, "certificate-authority")
        context = ssl.create_default_context(cadata=authority or None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = self._pem(user, "client-certificate"), self._pem(user, "client-key")
        if certificate:
            with tempfile.TemporaryDirectory() as folder:
                both = pathlib.Path(folder) / "client.pem"
                both.touch(0o600)
                both.write_text(f"{certificate}\n{key}", encoding="utf-8")
                context.load_cert_chain(both)
        return context


@contextlib.contextmanager
def embedded(folder: pathlib.Path) -> t.Iterator[Target]:
    """The embedded API server as a process."""
    collections = next(
        (path for path in map(pathlib.Path, sys.path) if (path / "ansible_collections/nodeops").is_dir()),
        pathlib.Path(),
    )
    config = folder / "kubeconfig"
    command = [sys.executable, "-m", SANDBOX, "apiserver", "--write-kubeconfig", str(config), "--require-token"]
    command += ["--versions", "v1,v1beta2,v1beta1"]
    environment = {**os.environ, "PYTHONPATH": str(collections)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        try:
            yield Target(config)
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Target]:
    """The API server under test."""
    path = request.config.getoption("--kubeconfig")
    if path:
        yield Target(pathlib.Path(path).expanduser().resolve())
        return
    with embedded(tmp_path_factory.mktemp("contract")) as made:
        yield made


class Api:
    """Plain HTTP in one namespace: status codes are for the test to judge, nothing is retried."""

    def __init__(self, target: Target, session: aiohttp.ClientSession, namespace: str) -> None:
        self.target = target
        self.session = session
        self.namespace = namespace
        self.claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
        self.templates = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.maps = f"/api/v1/namespaces/{namespace}/configmaps"
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.events = f"/api/v1/namespaces/{namespace}/events"

    async def raw(
        self, method: str, path: str, body: Json = None, kind: str = "application/json", **headers: str
    ) -> tuple[int, bytes, t.Mapping[str, str]]:
        """Status, body and headers of one request."""
        sent = {**self.target.headers, **headers, **({"Content-Type": kind} if body is not None else {})}
        data = None if body is None else json.dumps(body).encode()
        url = self.target.url + path
        async with self.session.request(method, url, data=data, headers=sent, ssl=self.target.ssl or True) as answer:
            return answer.status, await answer.read(), answer.headers

    async def ask(self, method: str, path: str, body: Json = None, kind: str = "application/json") -> tuple[int, Json]:
        """Status and JSON."""
        status, data, _headers = await self.raw(method, path, body, kind)
        return status, json.loads(data)

    async def must(self, method: str, path: str, body: Json = None, kind: str = "application/json") -> Json:
        """JSON of a request that has to succeed."""
        status, value = await self.ask(method, path, body, kind)
        assert status < 300, value
        return value

    async def merge(self, path: str, change: Json) -> Json:
        return await self.must("PATCH", path, change, "application/merge-patch+json")

    async def watch(self, path: str, wanted: int = 10_000) -> list[Json]:
        """Events of a watch until it ends or there are as many as wanted."""
        events: list[Json] = []
        url = self.target.url + path
        async with self.session.get(url, headers=self.target.headers, ssl=self.target.ssl or True) as answer:
            assert answer.status == 200, await answer.text()
            async for line in answer.content:
                events.append(json.loads(line))
                if len(events) >= wanted:
                    break
        return events

    async def version(self) -> str:
        """The server's version counter now."""
        return str((await self.must("GET", f"{self.claims}?limit=1"))["metadata"]["resourceVersion"])

    async def serves(self, path: str) -> bool:
        return (await self.raw("GET", path))[0] == 200

    async def pod(self, name: str, **spec: Json) -> Json:
        """Create a pod that no scheduler takes. Makes the service account that some clusters insist on."""
        body = {
            "metadata": {"name": name},
            "spec": {
                "schedulerName": "contract.test.example",
                "automountServiceAccountToken": False,
                "containers": [{"name": "c", "image": "x"}],
                **spec,
            },
        }
        status, value = await self.ask("POST", self.pods, body)
        if status == 403 and "serviceaccount" in value["message"]:
            accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
            await self.ask("POST", accounts, {"metadata": {"name": "default"}})
            status, value = await self.ask("POST", self.pods, body)
        assert status == 201, value
        return value

    async def claim(self, name: str, **metadata: Json) -> Json:
        return await self.must("POST", self.claims, claim(name, **metadata))

    async def allocated(self, name: str, **metadata: Json) -> Json:
        """Create a claim and allocate it."""
        await self.claim(name, **metadata)
        return await self.merge(f"{self.claims}/{name}/status", {"status": {"allocation": ALLOCATION}})


def claim(name: str, **metadata: Json) -> Json:
    """A claim for one device of a class that does not exist."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "contract.test.example"}}
    return {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": [request]}}}


RESULT = {"request": "gpu", "driver": "contract.test.example", "pool": "pool-0", "device": "dev-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}


@contextlib.asynccontextmanager
async def connected(target: Target, namespace: str) -> t.AsyncIterator[Api]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield Api(target, session, namespace)


async def _make(target: Target, namespace: str) -> None:
    async with connected(target, namespace) as api:
        await api.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})


async def _remove(target: Target, namespace: str) -> None:
    """Delete everything, without the help of controllers that may not be there."""
    async with connected(target, namespace) as api:
        for plural in PLURALS:
            path = "/" + plural.format(namespace)
            for item in (await api.must("GET", path))["items"]:
                one = f"{path}/{item['metadata']['name']}"
                if item["metadata"].get("finalizers"):
                    await api.ask("PATCH", one, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
                await api.ask("DELETE", one, {"gracePeriodSeconds": 0})
        await api.ask("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture(scope="session")
def namespace(target: Target) -> t.Iterator[str]:
    """A namespace for this run."""
    name = f"nodeops-dra-contract-{secrets.token_hex(4)}"
    asyncio.run(_make(target, name))
    yield name
    asyncio.run(_remove(target, name))


@pytest_asyncio.fixture
async def api(target: Target, namespace: str) -> t.AsyncIterator[Api]:
    """The API server, from inside the namespace of this run."""
    async with connected(target, namespace) as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    plain = "".join(letter if letter.isalnum() else "-" for letter in request.node.name.lower())
    return f"{plain.removeprefix('test-')[:40].strip('-')}-{secrets.token_hex(2)}"
