# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The node agent as a process: start, work, health, metrics, end, and what it does with files that it cannot use."""

from __future__ import annotations

import base64
import pathlib
import re
import stat

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.agent_metrics import AGENT_METRICS
from ansible_collections.nodeops.dra.plugins.module_utils.agent.settings import (
    NAME,
    SCHEMA,
    ClaimSettings,
    NodeSettings,
    kubernetes_settings,
)
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_settings import SCHEMA as CONTROLLER_SCHEMA
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import ExitCode
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.schema import schema_faults
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import default_settings, load_settings
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.agent_process import agent_process
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.node import GPU, Node, recorded
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.agent.test_with_api import cluster
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.manager.objects import claim


def test_the_settings_are_described_and_fit_their_types() -> None:
    assert schema_faults(SCHEMA) == []
    settings = default_settings(SCHEMA)
    for kind, name in ((NodeSettings, "node"), (ClaimSettings, "claims")):
        settings.section(kind, name)
    kubernetes = kubernetes_settings(settings)
    assert (kubernetes.enabled, kubernetes.node_events, kubernetes.publish_health) == (True, False, False)
    assert kubernetes.connection == ConnectionOptions()


def test_the_api_is_reached_as_by_the_controller(tmp_path: pathlib.Path) -> None:
    section, theirs = SCHEMA["properties"]["kubernetes"], CONTROLLER_SCHEMA["properties"]["cluster"]
    assert set(section["properties"]) - set(theirs["properties"]) == {"enabled", "node_events", "publish_health"}
    assert {name: section["properties"][name] for name in theirs["properties"]} == theirs["properties"]
    assert section["dependentRequired"] == theirs["dependentRequired"]
    file = tmp_path / "agent.yml"
    file.write_text("kubernetes: {host: 'https://192.0.2.1', client_cert: /c, client_key: /k, impersonate_groups: [a]}")
    variables = {"NODEOPS_DRA_AGENT_KUBERNETES_API_KEY": "a-token", "K8S_AUTH_HOST": "https://192.0.2.9"}
    made = kubernetes_settings(load_settings(SCHEMA, NAME, str(file), variables)).connection
    assert (made.host, made.client_key, made.api_key) == ("https://192.0.2.1", "/k", "a-token")
    assert list(made.impersonate_groups or ()) == ["a"]


@pytest.mark.asyncio
async def test_a_file_that_the_way_to_the_api_needs_is_missed_by_the_check(node: Node) -> None:
    kubernetes = {"enabled": True, "kubeconfig": str(node.root / "none.conf"), "ca_cert": str(node.root)}
    async with agent_process(node, more=("--check-config",), kubernetes=kubernetes) as agent:
        assert await agent.ended() == ExitCode.SETTINGS
    told = "\n".join(agent.lines)
    assert f"kubernetes.kubeconfig: found {node.root}/none.conf, which does not exist, expected a file" in told
    assert f"kubernetes.ca_cert: found {node.root}, which is no file, expected a file" in told


@pytest.mark.asyncio
async def test_the_api_is_reached_without_a_kubeconfig(node: Node) -> None:
    async with ApiServer(ServerSettings(tls=True)) as server:
        authority = server.kubeconfig()["clusters"][0]["cluster"]["certificate-authority-data"]
        (node.root / "ca.crt").write_bytes(base64.b64decode(authority))
        way = {"host": server.url, "api_key": server.token, "ca_cert": str(node.root / "ca.crt")}
        async with agent_process(node, kubernetes={"enabled": True, **way}) as agent:
            await agent.until("ready daemon=")
            await agent.get_until("/readyz?verbose", 200, "[+]kubernetes ok")
            assert await agent.end() == 0


@pytest.mark.asyncio
async def test_a_token_that_cannot_be_one_ends_the_start_and_is_not_told(node: Node) -> None:
    kubernetes = {"enabled": True, "host": "https://192.0.2.1", "api_key": "tok-SYNTH-1\nb"}
    async with agent_process(node, kubernetes=kubernetes) as agent:
        assert await agent.ended() == ExitCode.SETTINGS
    told = "\n".join(agent.lines)
    assert "api_key holds characters that cannot be part of a token" in told
    assert "SYNTH" not in told
    assert "Traceback" not in told


def test_metrics_have_a_name_of_their_own() -> None:
    names = [metric.name for metric in (*AGENT_METRICS, *COMMON_METRICS)]
    assert len(names) == len(set(names))


@pytest.mark.report("F107")
@pytest.mark.asyncio
async def test_a_life_without_a_cluster(node: Node) -> None:
    async with node.driver(), agent_process(node) as agent:
        await agent.until("ready daemon=nodeops-dra-agent")
        async with agent.client() as client:
            done = await client.change(node.request("prepared", claim(), holder="unit"))
            version = await client.version()
        ready = await agent.get_until("/readyz?verbose", 200)
        health = await agent.get_until("/healthz", 200)
        _status, metrics = await agent.get("/metrics")
        (node.root / "run" / "agent.sock").unlink()  # nobody can reach it any more
        dead = await agent.get_until("/healthz?verbose", 503)
        status = await agent.end()

    assert (done["via"], done["changed"]) == ("agent", True)
    assert (version["mode"], version["node_name"], version["degraded"]) == ("manage", "", "")
    assert health == "ok\n"
    for line in ("[+]local_api ok: version", "[+]state ok", "drivers "):
        assert line in ready
    assert f'dra_resource_claims_in_use{{driver_name="{GPU}"}} 1.0' in metrics
    assert 'dra_operations_duration_seconds_count{is_error="false",operation_name="PrepareResources"} 1.0' in metrics
    declared = {metric.name for metric in (*AGENT_METRICS, *COMMON_METRICS)}
    assert set(re.findall(r"^# TYPE (\S+)", metrics, re.MULTILINE)) <= declared
    assert "[-]local_api failed" in dead
    assert status == 0, agent.lines


@pytest.mark.asyncio
async def test_pods_of_a_cluster_are_served(node: Node) -> None:
    async with cluster() as api, node.driver():
        path = node.root / "kubeconfig"
        api.server.write_kubeconfig(path)
        uid = await api.pod("p", "c")
        claim_uid = await api.claim("c", uid)
        async with agent_process(node, kubernetes={"enabled": True, "kubeconfig": str(path)}) as agent:
            await agent.until("pod prepared pod=default/p")
            async with agent.client() as client:
                found = await client.resources({"metadata": {"namespace": "default", "name": "p", "uid": uid}})
            ready = await agent.get_until("/readyz?verbose", 200)
            _status, metrics = await agent.get("/metrics")
            status = await agent.end()
    assert found == {"main": [f"k8s.{GPU}/claim={claim_uid}-dev-0"]}
    assert "[+]kubernetes ok: 1 pods with claims" in ready
    assert 'nodeops_dra_pods{state="prepared"} 1.0' in metrics
    assert status == 0, agent.lines


@pytest.mark.asyncio
async def test_an_api_server_that_is_away_keeps_nothing_else_from_working(node: Node) -> None:
    wanted = {"enabled": True, "kubeconfig": str(node.root / "nowhere")}
    async with node.driver(), agent_process(node, kubernetes=wanted) as agent:
        await agent.until("ready daemon=")
        async with agent.client() as client:
            done = await client.change(node.request("prepared", claim(), holder="unit"))
            codes = [one["code"] for one in await client.findings()]
        ready, health = await agent.get("/readyz?verbose"), await agent.get("/healthz")
    assert done["changed"]
    assert codes == ["api_not_followed"]
    assert (ready[0], health[0]) == (503, 200)
    assert "[-]kubernetes failed" in ready[1]


@pytest.mark.report("F048")
@pytest.mark.asyncio
async def test_an_unreadable_state_file_is_never_written_over(node: Node) -> None:
    path = node.manager_has(recorded())
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()
    async with node.driver() as driver, agent_process(node) as agent:
        told = await agent.until("degraded, nothing is prepared or unprepared")
        await agent.until("ready daemon=")
        async with agent.client() as client:
            version = await client.version()
            codes = [one["code"] for one in await client.findings()]
        ready, health = await agent.get("/readyz?verbose"), await agent.get("/healthz")
        _status, metrics = await agent.get("/metrics")
        status = await agent.end()
    for text in (told, version["degraded"], ready[1]):
        assert "nodeops.dra.checkpoint (state=repaired" in text
    assert (ready[0], health[0], status, codes) == (503, 200, 0, ["state_damaged"])
    assert "nodeops_dra_degraded 1.0" in metrics
    assert path.read_bytes() == before
    assert [call for call in driver.calls if call.method.endswith("prepare")] == []


@pytest.mark.asyncio
async def test_after_a_kill_everything_is_there_again(node: Node) -> None:
    async with node.driver():
        async with agent_process(node) as agent:
            await agent.until("ready daemon=")
            async with agent.client() as client:
                await client.change(node.request("prepared", claim(), holder="unit"))
            await agent.end(kill=True)
        assert stat.S_ISSOCK((node.root / "run" / "agent.sock").stat().st_mode)
        async with agent_process(node) as agent:
            await agent.until("ready daemon=")
            async with agent.client() as client:
                assert [one["name"] for one in await client.claims()] == ["c1"]
                gone = await client.change(node.request("unprepared", claim()))
            assert gone["released"] == ["u-1"]
            assert await agent.end() == 0


@pytest.mark.asyncio
async def test_a_socket_that_is_no_socket_has_an_exit_status_of_its_own(node: Node) -> None:
    (node.root / "run").mkdir()
    (node.root / "run" / "agent.sock").write_text("precious", encoding="utf-8")
    async with agent_process(node) as agent:
        status = await agent.ended()
    assert status == 69
    assert any("is there already and is no socket" in line for line in agent.lines)
    assert (node.root / "run" / "agent.sock").read_text(encoding="utf-8") == "precious"


@pytest.mark.asyncio
async def test_settings_that_cannot_be_meant(node: Node) -> None:
    async with agent_process(node, claims={"timeout": 0}, node={"mode": "watch"}) as agent:
        status = await agent.ended()
    told = "\n".join(agent.lines)
    assert status == 78
    assert "claims.timeout: found 0, expected more than 0 seconds" in told
    assert "node.mode" in told
