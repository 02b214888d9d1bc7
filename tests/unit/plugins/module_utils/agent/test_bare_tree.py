# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Both daemons run from the tree that roles push, without ansible-core; certificates are renewed meanwhile.

``hack/node_trial.py`` runs this for the interpreter of a node, which NODEOPS_DRA_NODE_PYTHON names.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pathlib
import ssl
import sys
import tarfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.plugin_utils.node_archive import pack
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import agent_process
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import Node
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.kube.certificates import Authority
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim

NODE_PYTHON = os.environ.get("NODEOPS_DRA_NODE_PYTHON", sys.executable)
CONTROLLER = "ansible_collections.nodeops.dra.plugins.module_utils.controller"
WITHOUT_ANSIBLE = """
import importlib.abc, runpy, sys

class Nowhere(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ansible":
            raise ModuleNotFoundError(f"No module named {name!r}: this is a node without ansible-core", name=name)

sys.meta_path.insert(0, Nowhere())
module = sys.argv[1]
sys.argv = [module, *sys.argv[2:]]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """What a node gets, and nothing of this checkout."""
    with tarfile.open(fileobj=io.BytesIO(pack().content)) as packed:
        packed.extractall(tmp_path / "tree", filter="data")
    return tmp_path / "tree"


@pytest.mark.report("F116")
@pytest.mark.asyncio
async def test_the_agent_works_without_ansible(node: Node, tree: pathlib.Path) -> None:
    async with node.driver(), agent_process(node, python=(NODE_PYTHON, "-c", WITHOUT_ANSIBLE), path=str(tree)) as agent:
        await agent.until("ready daemon=nodeops-dra-agent")
        async with agent.client() as client:
            assert (await client.change(node.request("prepared", claim(), holder="unit")))["changed"]
        assert await agent.end() == 0


@pytest.mark.asyncio
async def test_the_controller_works_without_ansible(node: Node, tree: pathlib.Path) -> None:
    async with cluster() as api:
        kubeconfig, config = node.root / "kubeconfig", node.root / "controller.yml"
        api.server.write_kubeconfig(kubeconfig)
        config.write_text(
            f"cluster: {{kubeconfig: {kubeconfig}}}\nhttp: {{port: 0}}\nlife: {{run_directory: {node.root / 'run'}}}\n",
            encoding="utf-8",
        )
        child = await asyncio.create_subprocess_exec(
            *(NODE_PYTHON, "-c", WITHOUT_ANSIBLE, CONTROLLER, "--config", str(config)),
            env={**os.environ, "PYTHONPATH": str(tree)},
            stderr=asyncio.subprocess.PIPE,
        )
        assert child.stderr is not None
        lines: list[str] = []
        try:
            while "ready daemon=nodeops-dra-controller" not in (lines or [""])[-1]:
                line = await child.stderr.readline()
                assert line, lines
                lines.append(line.decode())
        finally:
            child.terminate()
            await child.communicate()
    assert child.returncode == 0


@pytest.mark.asyncio
async def test_a_running_agent_serves_a_renewed_certificate(node: Node, tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path / "pki")
    files = {"certificate_file": tmp_path / "tls.crt", "key_file": tmp_path / "tls.key"}

    def install(pair: tuple[pathlib.Path, pathlib.Path]) -> str:
        for target, source in zip(files.values(), pair):
            fresh = target.with_suffix(".new")
            fresh.write_bytes(source.read_bytes())
            fresh.replace(target)
        return pair[0].read_text(encoding="ascii")

    first, second = authority.issue("first"), authority.issue("second")
    installed = install(first)
    async with agent_process(node, http={"tls": {name: str(path) for name, path in files.items()}}) as agent:
        await agent.until("ready daemon=")
        assert body(await served(agent.url)) == body(installed)
        installed = install(second)
        assert body(await served(agent.url)) == body(installed)
        files["key_file"].write_bytes(first[1].read_bytes())  # does not fit: the former pair stays in use
        assert body(await served(agent.url)) == body(installed)
        assert await agent.end() == 0
    told = [line for line in agent.lines if "certificate" in line]
    assert any("certificate loaded again" in line for line in told), told
    assert any("new certificate is not used" in line for line in told), told


async def served(url: str) -> str:
    """The certificate that a server shows."""
    host, port = url.removeprefix("https://").rsplit(":", 1)
    with contextlib.suppress(ConnectionError):
        return await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))
    return ""


def body(pem: str) -> t.Sequence[str]:
    """The first certificate of a PEM file, whatever stands around it."""
    return pem.partition("-----BEGIN CERTIFICATE-----")[2].partition("-----END")[0].split()
