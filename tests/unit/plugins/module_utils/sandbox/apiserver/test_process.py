# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The API server as a process, its remote control, TLS, and kubectl as a client."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import typing as t

import pytest

# Processes start slowly on a machine that is busy.
pytestmark = pytest.mark.timeout(300)
MODULE = "ansible_collections.nodeops.dra.plugins.module_utils.sandbox"
KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
MANIFEST = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.test.example}}]
---
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: web}}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]
  containers: [{name: c, image: busybox, resources: {claims: [{name: gpu}]}}]
"""


def environment() -> dict[str, str]:
    collections = next(path for path in map(pathlib.Path, sys.path) if (path / "ansible_collections/nodeops").is_dir())
    return {**os.environ, "PYTHONPATH": str(collections)}


@contextlib.contextmanager
def running(folder: pathlib.Path, *options: str) -> t.Iterator[tuple[subprocess.Popen[str], pathlib.Path, str]]:
    """The server as a process: it, its kubeconfig and its ready line. Ended with SIGTERM, which must work."""
    config = folder / "kubeconfig"
    command = [sys.executable, "-m", MODULE, "apiserver", "--write-kubeconfig", str(config), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("ready "), line + process.stderr.read()
            yield process, config, line
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
            assert process.stderr.read() == ""


def control(config: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", MODULE, "apiserver-control", "--kubeconfig", str(config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)


def test_start_control_stop(tmp_path: pathlib.Path) -> None:
    with running(tmp_path, "--versions", "v1beta1,v1", "--fault", "error:verb=list,times=1") as (
        _process,
        config,
        line,
    ):
        assert f"kubeconfig={config} versions=v1,v1beta1" in line
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        assert json.loads(config.read_text())["current-context"] == "nodeops-dra-sandbox"
        answer = control(config, "get", "faults")
        assert json.loads(answer.stdout)["faults"] == [{"kind": "error", "verb": "list", "times": 1}]
        assert control(config, "post", "faults", "throttle:seconds=2").returncode == 0
        assert json.loads(control(config, "get", "state").stdout)["objects"]["namespaces."] == 2
        refused = control(config, "post", "faults", "melt")
        assert refused.returncode == 1
        assert "status 400: The fault melt cannot be read" in refused.stderr
        assert "Traceback" not in refused.stderr
    gone = control(config, "get", "faults")
    assert gone.returncode == 1
    assert "cannot be reached" in gone.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(["--versions", "v7"], "The versions v7 of resource.k8s.io cannot be served.", id="version"),
        pytest.param(["--release", "one"], "The release 'one' cannot be read.", id="release"),
        pytest.param(["--users", "/none.json"], "The users in /none.json cannot be read", id="users"),
        pytest.param(["--fault", "melt"], "The fault melt cannot be read", id="fault"),
        pytest.param(["--write-kubeconfig", "/none/x"], "The kubeconfig /none/x cannot be written", id="kubeconfig"),
    ],
)
def test_options_that_cannot_be(options: list[str], text: str) -> None:
    command = [sys.executable, "-m", MODULE, "apiserver", *options]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=120)
    assert ended.returncode == 1
    assert text in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", MODULE, "apiserver", "--port", port]
        ended = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=120)
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}: it is in use." in ended.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl command to make a certificate with")
def test_tls_and_users(tmp_path: pathlib.Path) -> None:
    users = tmp_path / "users.json"
    users.write_text(json.dumps([{"token": "v", "name": "viewer", "rules": [{"verbs": ["get"]}]}]))
    with running(tmp_path, "--tls", "--users", str(users)) as (_process, config, line):
        assert "url=https://127.0.0.1:" in line
        assert json.loads(control(config, "get", "state").stdout)["resourceVersion"] == "1002"
        document = json.loads(config.read_text())
        document["users"][0]["user"]["token"] = "v"
        config.write_text(json.dumps(document))
        assert "status 403" in control(config, "get", "state").stderr


class Kubectl:
    """kubectl with a kubeconfig."""

    def __init__(self, config: pathlib.Path) -> None:
        self.env = {**os.environ, "KUBECONFIG": str(config), "HOME": str(config.parent)}

    def __call__(self, *arguments: str, text: str = "", code: int = 0) -> str:
        command = [str(KUBECTL), *arguments]
        ended = subprocess.run(
            command, input=text, capture_output=True, text=True, env=self.env, check=False, timeout=120
        )
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen([str(KUBECTL), *arguments], stdout=subprocess.PIPE, text=True, env=self.env)


@pytest.mark.skipif(KUBECTL is None, reason="no kubectl on this machine (KUBECTL=path names one)")
@pytest.mark.slow
@pytest.mark.parametrize("options", [["--tls"], []], ids=["tls", "plain"])
def test_kubectl(tmp_path: pathlib.Path, options: list[str]) -> None:
    if options and shutil.which("openssl") is None:
        pytest.skip("no openssl command to make a certificate with")
    with running(tmp_path, *options) as (_process, config, _line):
        kubectl = Kubectl(config)
        assert "template.resource.k8s.io/t created" in kubectl("apply", "-f", "-", text=MANIFEST)
        assert "pod/p1 unchanged" in kubectl("apply", "-f", "-", text=MANIFEST)
        assert "pod/p1 configured" in kubectl("apply", "-f", "-", text=MANIFEST.replace("web", "db"))
        applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=MANIFEST)
        assert "pod/p1 serverside-applied" in applied
        listed = kubectl("get", "pods,resourceclaimtemplates", "-o", "wide")
        assert "pod/p1" in listed
        assert "<none>" in listed
        assert kubectl("get", "pod", "p1", "-o", "jsonpath={.metadata.labels.app}") == "web"
        described = kubectl("describe", "pod", "p1")
        assert "BestEffort" in described
        assert "gpu.test.example" in kubectl("describe", "resourceclaimtemplate", "t")
        with kubectl.start("get", "pods", "--watch", "--output-watch-events") as watch:
            try:
                assert watch.stdout is not None
                assert watch.stdout.readline().startswith("EVENT")
                assert watch.stdout.readline().split()[:2] == ["ADDED", "p1"]
                kubectl("label", "pod", "p1", "z=1")
                assert watch.stdout.readline().split()[:2] == ["MODIFIED", "p1"]
            finally:
                watch.terminate()
        unknown = MANIFEST.replace("kind: Pod", "kind: Pod\nfuture: 1")
        assert 'unknown field "future"' in kubectl("apply", "-f", "-", text=unknown, code=1)
        kubectl("create", "namespace", "team-a")
        kubectl("create", "configmap", "m", "--from-literal=a=b", "-n", "team-a")
        assert kubectl("get", "configmap", "m", "-n", "team-a", "-o", "jsonpath={.data.a}") == "b"
        assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
        kubectl("delete", "namespace", "team-a")
        assert 'pod "p1"' in kubectl("delete", "-f", "-", text=MANIFEST)
        assert "No resources found" in kubectl("get", "pods")
