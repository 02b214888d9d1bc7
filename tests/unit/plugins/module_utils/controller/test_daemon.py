# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The controller's daemon as a process: from its start over leading and standing by to its end."""

from __future__ import annotations

import asyncio
import pathlib
import signal
import socket

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import ExitCode
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.rights import Rule, User

from .daemon_process import LEASE, PATIENCE, place
from .world import NS, TOKEN, World, eventually, world

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

#: A lease that a loaded machine can hold, and whose loss can still be waited for.
LASTING = {"duration": 8, "renew_deadline": 6, "retry": 0.5}


async def holder(made: World) -> str:
    """Who holds the lease."""
    lease = await made.client.get(resource_of("Lease"), LEASE, "kube-system")
    return str(lease["spec"].get("holderIdentity") or "")


async def made_claims(made: World) -> dict[str, int]:
    """How many claims each pod owns."""
    counts: dict[str, int] = {}
    for claim in made.stored("ResourceClaim"):
        owner = claim["metadata"]["ownerReferences"][0]["name"]
        counts[owner] = counts.get(owner, 0) + 1
    return counts


async def test_from_start_to_ready_to_the_end(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        await made.template()
        daemon = await here.start()
        lines = await daemon.ready()
        for name in ("queue", "watches", "api", "lease", "caches", "coexistence"):
            assert f"[+]{name} ok" in lines
        assert "claims read at resourceVersion" in lines
        await daemon.until_answer("/readyz?verbose", 200, "version=v1 release=1.36.2")
        assert "[+]lease ok: leading" in (await daemon.get("/readyz?verbose"))[1]
        await made.pod()
        await eventually(lambda: made.names("p-1"), "the claim is made")
        assert await daemon.metric("resourceclaim_controller_creates_total") == 1
        assert await daemon.metric("leader_election_master_status") == 1
        assert await daemon.metric("nodeops_dra_lease_remaining_seconds") > 0
        assert await daemon.metric("rest_client_requests_total") > 5
        assert await holder(made) == "a"
        daemon.send(signal.SIGTERM)
        assert await daemon.ended() == ExitCode.OK
        assert await holder(made) == "", "the lease was given up for the next one"


async def test_no_metric_without_description(tmp_path: pathlib.Path) -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_metrics import CONTROLLER_METRICS
    from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS

    declared = {metric.name for metric in (*COMMON_METRICS, *CONTROLLER_METRICS)}
    for version in ("v1", "v1alpha2"):  # with PodGroups, with PodSchedulingContexts
        folder = tmp_path / version
        folder.mkdir()
        async with place(folder, version) as (made, here):
            await made.template()
            daemon = await here.start()
            await daemon.ready()
            await made.pod()
            await eventually(lambda made=made: made.stored("ResourceClaim"), "the claim is made")
            _status, text = await daemon.get("/metrics")
            exported = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
            assert exported <= declared
            assert "nodeops_dra_cache_lag_seconds" in exported


@pytest.mark.report("F070")
async def test_the_standby_takes_over_from_a_leader_that_was_killed(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        await made.template()
        first = await here.start("a", lease=LASTING, controller={"workers": 2})
        await first.until_answer("/readyz?verbose", 200, "[+]lease ok: leading")
        second = await here.start("b", lease=LASTING)
        await second.until_answer("/readyz?verbose", 200, "[+]lease ok: a holds the lease")
        assert await second.metric("leader_election_master_status") == 0
        pods = [f"p-{number}" for number in range(60)]
        with made.server.fault("latency:resource=resourceclaims,verb=create,seconds=0.05"):
            makers = [asyncio.create_task(made.pod(name)) for name in pods]
            await eventually(lambda: len(made.stored("ResourceClaim")) >= 5, "it is in the middle of its work")
            first.send(signal.SIGKILL)
            await first.ended()
            await asyncio.gather(*makers)
        before = len(made.stored("ResourceClaim"))
        await second.until_answer("/readyz?verbose", 200, "[+]lease ok: leading")
        await eventually(lambda: all(made.names(name) for name in pods), "all pods have their claims")
        assert before < len(pods), "there was something left to take over"
        assert await made_claims(made) == dict.fromkeys(pods, 1)
        created = [seen for seen in made.server.recorder.last if seen.verb == "create" and seen.code == 201]
        assert sum(seen.resource == "resourceclaims" for seen in created) == len(pods)


async def test_a_standby_says_so_and_ends_in_order(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        await (await here.start("a")).until_answer("/readyz?verbose", 200, "leading")
        daemon = await here.start("b")
        await daemon.until_answer("/readyz?verbose", 200, "a holds the lease kube-system/nodeops-dra-controller")
        await daemon.until("standby: a holds the lease")
        assert (await daemon.get("/healthz"))[0] == 200
        daemon.send(signal.SIGTERM)
        assert await daemon.ended() == ExitCode.OK
        assert await holder(made) == "a"


async def test_a_token_that_is_replaced(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        await made.template()
        daemon = await here.start()
        await daemon.until_answer("/readyz?verbose", 200, "leading")
        tokens = made.server.settings.tokens
        here.token_file.write_text("the next token")
        tokens["the next token"] = tokens.pop(TOKEN)
        await made.pod()
        await eventually(lambda: made.names("p-1"), "the claim is made with the new token")
        await daemon.ready()
        assert daemon.process.returncode is None
        assert "the next token" not in daemon.log


@pytest.mark.report("F070")
async def test_a_lost_lease_ends_the_process_with_a_status_of_its_own(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        daemon = await here.start("a")
        await daemon.until_answer("/readyz?verbose", 200, "leading")
        await made.client.patch(resource_of("Lease"), {"spec": {"holderIdentity": "thief"}}, LEASE, "kube-system")
        assert await daemon.ended() == ExitCode.LEASE_LOST
        assert "thief holds it" in daemon.log
        assert await holder(made) == "thief"


@pytest.mark.report("F105")
async def test_an_api_server_that_is_away_at_the_start(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with world(auto_namespaces=True) as model:
        document = model.server.kubeconfig()
    document["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{port}"
    async with place(tmp_path) as (_made, here):
        here.write_kubeconfig(document)
        daemon = await here.start()
        await daemon.until("start failed, trying again")
        assert "starting" in await daemon.until_answer("/readyz?verbose", 503)
        assert (await daemon.get("/healthz"))[0] == 200, "a restart would not bring the API server"
        async with place(tmp_path, port=port):
            await daemon.until_answer("/readyz?verbose", 200, "leading")


@pytest.mark.report("F107")
async def test_an_api_server_that_goes_away_later(tmp_path: pathlib.Path) -> None:
    lease = {"duration": 120, "renew_deadline": 100, "retry": 0.5}
    async with place(tmp_path) as (made, here):
        await made.template()
        leader = await here.start("a", lease=lease)
        await leader.until_answer("/readyz?verbose", 200, "leading")
        standby = await here.start("b", lease=lease)
        await standby.until_answer("/readyz?verbose", 200, "a holds the lease")
        with made.server.fault("close:"):
            for daemon in (leader, standby):
                await daemon.until_answer("/readyz?verbose", 503, "[-]api failed")
                assert (await daemon.get("/healthz"))[0] == 200
        for daemon in (leader, standby):
            await daemon.ready()
        await made.pod()
        await eventually(lambda: made.names("p-1"), "the leader works again")


async def test_a_leader_that_is_cut_off_ends_and_its_next_life_waits(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        daemon = await here.start("a", lease={"duration": 3, "renew_deadline": 2, "retry": 0.3})
        await daemon.until("lease acquired")
        with made.server.fault("close:"):
            assert await daemon.ended() == ExitCode.LEASE_LOST
            again = await here.start("a", lease=LASTING)
            await again.until("start failed, trying again")
        await again.until_answer("/readyz?verbose", 200, "leading")


async def test_work_under_way_may_end_before_the_process_does(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        await made.template()
        daemon = await here.start()
        await daemon.until_answer("/readyz?verbose", 200, "leading")
        held_up = made.server.add_fault("latency:verb=create,resource=resourceclaims,seconds=2,times=1")
        await made.pod()
        await eventually(lambda: held_up.times == 0, "the create is under way")
        daemon.send(signal.SIGTERM)
        assert await daemon.ended() == ExitCode.OK
        assert len(made.stored("ResourceClaim")) == 1
        assert made.names("p-1"), "what belongs to the same turn was done as well"
        assert await holder(made) == ""


async def test_work_that_hangs_is_given_up_at_the_end_of_the_term(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        await made.template()
        daemon = await here.start(life={"drain_timeout": 2})
        await daemon.until_answer("/readyz?verbose", 200, "leading")
        held_up = made.server.add_fault("hang:verb=create,resource=resourceclaims,times=1")
        await made.pod()
        await eventually(lambda: held_up.times == 0, "the create is under way")
        daemon.send(signal.SIGTERM)
        assert await daemon.ended() in (ExitCode.OK, ExitCode.DRAIN_TIMEOUT)
        assert not made.stored("ResourceClaim")


async def test_a_reload_takes_over_what_it_can_and_names_what_it_cannot(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        label = {"metadata": {"name": NS, "labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await made.client.patch(resource_of("Namespace"), label, NS)
        await made.template("t1", adminAccess=True)
        daemon = await here.start(controller={"admin_access": False})
        await daemon.until_answer("/readyz?verbose", 200, "leading")
        await made.pod()
        await eventually(made.events, "it was told that admin access is off")
        assert not made.stored("ResourceClaim")
        here.write(controller={"admin_access": True, "workers": 3})
        daemon.send(signal.SIGHUP)
        assert "controller.admin_access" in await daemon.until("settings reloaded")
        assert "controller.workers" in await daemon.until("takes effect only by a restart")
        await eventually(lambda: made.names("p-1"), "the claim is made")
        here.write(controller={"admin_access": "perhaps"})
        daemon.send(signal.SIGHUP)
        await daemon.until("reload failed, the former settings stay in use")
        await daemon.ready()


async def test_missing_rights_are_named(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        tokens = made.server.settings.tokens
        tokens[TOKEN] = tokens[TOKEN].without("patch", "leases").without("patch", "pods/status")
        daemon = await here.start()
        assert await daemon.ended() == ExitCode.RIGHTS
        assert "patch leases.coordination.k8s.io in kube-system" in daemon.log
        assert "patch pods/status" in daemon.log
        assert not made.server.recorder.count("create", "leases"), "nothing was begun"


async def test_beside_another_controller(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        container = {"name": "kcm", "image": "x", "command": ["kube-controller-manager"]}
        pods = resource_of("Pod")
        await made.client.create(
            pods, {"metadata": {"name": "kcm"}, "spec": {"containers": [container]}}, "kube-system"
        )
        await made.client.patch(pods, {"status": {"phase": "Running"}}, "kcm", "kube-system", subresource="status")
        daemon = await here.start()
        assert await daemon.ended() == ExitCode.REFUSED
        assert "Pod kube-system/kcm: runs kube-controller-manager with its ResourceClaim controller on" in daemon.log
        assert not made.server.recorder.count("create", "leases")
        daemon = await here.start(controller={"allow_coexistence": True})
        lines = await daemon.until_answer("/readyz?verbose", 200, "leading")
        assert "[!]coexistence degraded: Pod kube-system/kcm" in lines
        assert await daemon.metric("nodeops_dra_other_controller_evidence") == 1


async def test_another_of_this_collection_under_another_lease_is_refused(tmp_path: pathlib.Path) -> None:
    async with place(tmp_path) as (made, here):
        made.server.settings.tokens[TOKEN] = User("controller", (Rule(("*",)),))  # Leases of any name
        first = await here.start("a", lease={"name": "first", "retry": 0.2})
        await first.until_answer("/readyz?verbose", 200, "leading")
        second = await here.start("b", lease={"name": "second"})
        assert await second.ended() == ExitCode.REFUSED
        assert "Lease kube-system/first" in second.log
        assert "a controller of this collection that looks after all namespaces" in second.log
        third = await here.start("c", lease={"name": "first", "retry": 0.2})
        await third.until_answer("/readyz?verbose", 200, "a holds the lease")


async def test_a_controller_that_came_while_the_standby_waited(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ansible_collections.nodeops.dra.plugins.module_utils.controller import daemon as module
    from ansible_collections.nodeops.dra.plugins.module_utils.controller.coexistence import AnotherControllerError
    from ansible_collections.nodeops.dra.plugins.module_utils.daemon.daemon_protocol import Context
    from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metrics import Metrics
    from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import load_settings

    monkeypatch.setattr(module, "YOUNG", 0.0)
    async with place(tmp_path) as (made, here):
        daemon = module.ControllerDaemon()
        settings = load_settings(daemon.schema, daemon.name, str(here.write()), {})
        await daemon.start(Context(settings, Metrics(daemon.metrics), lambda text: None))
        await made.template()
        pod = await made.pod()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p-1", "uid": pod["metadata"]["uid"], "controller": True}
        claim = {"metadata": {"name": "x", "ownerReferences": [owner]}, "spec": made.spec()}
        claims = made.target.resource("ResourceClaim")
        await made.client.create(claims, claim, NS, field_manager="kube-controller-manager")
        with pytest.raises(AnotherControllerError, match="team-a/x"):
            await asyncio.wait_for(daemon.work(), PATIENCE)
        await daemon.stop()
        assert await holder(made) == "", "it does not keep others from leading"
