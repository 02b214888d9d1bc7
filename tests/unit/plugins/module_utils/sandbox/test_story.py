# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A whole simulated cluster in processes of its own, and the story of what happened in it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_request import ClaimRequest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import perform
from ansible_collections.nodeops.dra.plugins.module_utils.kube.client import KubeClient
from ansible_collections.nodeops.dra.plugins.module_utils.kube.cluster import resolve
from ansible_collections.nodeops.dra.plugins.module_utils.kube.errors import NotFoundError
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.timeline import Line, table

# Processes start slowly on a machine that is busy.
pytestmark = pytest.mark.timeout(300)
MODULE = "ansible_collections.nodeops.dra.plugins.module_utils.sandbox"
POD, CLAIM = resource_of("Pod"), resource_of("ResourceClaim")


@contextlib.contextmanager
def command(name: str, *options: str) -> t.Iterator[None]:
    """A part of the sandbox as a process that says that it is ready; ended with SIGTERM, which must work."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-m", MODULE, name, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready ")
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0


@contextlib.contextmanager
def controller(root: pathlib.Path) -> t.Iterator[None]:
    """The controller's daemon with an account of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    own = str(root / "controller.conf")
    made = [*(sys.executable, "-m", MODULE, "controller-account"), "--kubeconfig", str(root / "admin.conf")]
    subprocess.run([*made, "--write-kubeconfig", own], env=environment, check=True, stdout=subprocess.DEVNULL)
    settings = {"cluster": {"kubeconfig": own}, "http": {"port": 0}, "life": {"run_directory": str(root / "run")}}
    file = root / "controller.yml"
    file.write_text(json.dumps(settings))
    daemon = MODULE.replace(".sandbox", ".controller")
    with subprocess.Popen([sys.executable, "-m", daemon, "--config", str(file)], env=environment) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0


async def changed(client: KubeClient, name: str, condition: t.Callable[[t.Any], bool]) -> t.Any:
    """The pod once the condition holds for it."""
    while True:
        pod = await client.get(POD, name, "team-a")
        if condition(pod):
            return pod


async def tell_a_story(root: pathlib.Path) -> None:
    """A pod with a claim from a template: prepared on its node, finished, released."""
    config = root / "admin.conf"
    access = resolve(ConnectionOptions(kubeconfig=str(config)), {})
    async with KubeClient.connect(access) as client:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        objects: list[tuple[str, dict[str, t.Any]]] = [
            ("DeviceClass", {"metadata": {"name": "gpu"}, "spec": {}}),
            (
                "ResourceSlice",
                {
                    "metadata": {"name": "node-1-gpu"},
                    "spec": {
                        "driver": "gpu.example.com",
                        "nodeName": "node-1",
                        "pool": {"name": "pool-0", "generation": 1, "resourceSliceCount": 1},
                        "devices": [{"name": "dev-0"}],
                    },
                },
            ),
            (
                "ResourceClaimTemplate",
                {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}},
            ),
            (
                "Pod",
                {
                    "metadata": {"name": "p-1"},
                    "spec": {
                        "containers": [{"name": "main", "image": "x"}],
                        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
                    },
                },
            ),
        ]
        for kind, body in objects:
            namespace = "" if kind in ("DeviceClass", "ResourceSlice") else "team-a"
            await client.create(resource_of(kind), body, namespace)
        pod = await changed(client, "p-1", lambda pod: bool(pod["spec"].get("nodeName")))
        asked = ClaimRequest(
            "prepared",
            pod=pod,
            state_directory=str(root / "manager"),
            kubelet_root=str(root),
            cdi_directories=(str(root / "cdi"),),
        )
        given = {"kubeconfig": str(config)}
        assert (await perform(asked, given, check=False))["changed"]
        await perform(dataclasses.replace(asked, state="unprepared"), given, check=False)
        await client.patch(POD, {"status": {"phase": "Succeeded"}}, "p-1", "team-a", subresource="status")
        name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        with contextlib.suppress(NotFoundError):
            while True:
                await client.get(CLAIM, name, "team-a")


def test_the_timeline_tells_who_did_what() -> None:
    with tempfile.TemporaryDirectory(prefix="dra-") as folder, contextlib.ExitStack() as stack:
        root = pathlib.Path(folder)
        config = str(root / "admin.conf")
        stack.enter_context(
            command("apiserver", "--write-kubeconfig", config, "--auto-namespaces", "--allocator", "--require-token")
        )
        stack.enter_context(controller(root))
        stack.enter_context(command("driver", "--kubelet-root", folder, "--cdi-dir", str(root / "cdi")))
        asyncio.run(tell_a_story(root))
        control = root / "plugins" / "gpu.example.com" / "control.sock"
        done = subprocess.run(
            [
                *(sys.executable, "-m", MODULE, "timeline", "--kubeconfig", config),
                *("--namespace", "team-a", "--driver", str(control)),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["ms", "who", "what"]
    assert [float(line.split()[0]) for line in lines] == sorted(float(line.split()[0]) for line in lines)
    said = [line.split(maxsplit=1)[1] for line in lines]
    wanted = [
        ("sandbox-admin", "Pod team-a/p-1: made"),
        ("controller", "ResourceClaim team-a/p-1-gpu-"),
        ("controller", "Pod team-a/p-1: uses p-1-gpu-"),
        ("scheduler", "allocated pool-0/dev-0, reserved for p-1"),
        ("scheduler", "Pod team-a/p-1: bound to node-1"),
        ("driver", "prepared team-a/p-1-gpu-"),
        ("driver", "unprepared team-a/p-1-gpu-"),
        ("sandbox-admin", "Pod team-a/p-1: Succeeded"),
        ("controller", "not allocated any more, not reserved any more for p-1"),
        ("controller", "not protected any more"),
        ("controller", ": gone"),
    ]
    position = 0
    for who, what in wanted:
        found = [number for number, line in enumerate(said) if number >= position and who in line and what in line]
        assert found, f"{who}: {what} is not in its place in\n{done.stdout}"
        position = found[0] + 1


def test_a_table_of_nothing_says_so() -> None:
    assert table([]) == ["nothing has happened"]
    lines = table([Line(2.0, "b", "second"), Line(1.5, "somebody", "first")])
    assert [line.split() for line in lines[1:]] == [["0.0", "somebody", "first"], ["500.0", "b", "second"]]


def test_the_timeline_of_a_server_that_is_gone(tmp_path: pathlib.Path) -> None:
    config = tmp_path / "admin.conf"
    cluster, user = {"server": "http://127.0.0.1:1"}, {"token": "x"}
    config.write_text(json.dumps({"clusters": [{"cluster": cluster}], "users": [{"user": user}]}))
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "timeline", "--kubeconfig", str(config)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
