# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver as a process of its own: start, control, signals, death."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import grpc
import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox import __main__ as command_line
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_calls import read_calls
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_control import OPERATIONS, ask
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver_store import ClaimStore
from ansible_collections.nodeops.dra.tests.unit.plugins.module_utils.sandbox.raw_client import connect

MODULE = "ansible_collections.nodeops.dra.plugins.module_utils.sandbox"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


class DriverProcess(t.NamedTuple):
    process: asyncio.subprocess.Process
    ready: dict[str, str]


@contextlib.asynccontextmanager
async def driver_process(root: pathlib.Path, *arguments: str) -> t.AsyncIterator[DriverProcess]:
    """The driver in a process, ready to serve; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", MODULE, "driver", "--kubelet-root", str(root), "--cdi-dir", str(root / "cdi")),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        assert line.startswith("ready ")
        yield DriverProcess(process, dict(item.split("=", 1) for item in line.split()[1:]))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


CLAIM = {"namespace": "team-a", "uid": "u-1", "name": "c1"}


@pytest.mark.asyncio
async def test_process_serves_is_controlled_and_ends_cleanly_on_sigterm(root: pathlib.Path) -> None:
    ready_file = root / "ready"
    arguments = ["--devices", "2", "--fault", "claim_error:times=1,text=try again", "--ready-file", str(ready_file)]
    async with driver_process(root, *arguments) as (process, ready):
        assert ready_file.read_text().startswith("ready driver=gpu.example.com ")
        assert ready["pid"] == str(process.pid)
        async with connect(ready["endpoint"]) as client:
            first = await client.call("dra/v1", "NodePrepareResources", claims=[CLAIM])
            second = await client.call("dra/v1", "NodePrepareResources", claims=[CLAIM])
        assert first.claims["u-1"].error == "try again"
        assert second.claims["u-1"].devices[0].device_name == "dev-0"
        calls = (await ask(ready["control"], "calls"))["calls"]
        assert [(call["method"], call["uids"], call["outcome"]) for call in calls] == [
            ("prepare", ["u-1"], "claim_error"),
            ("prepare", ["u-1"], "ok"),
        ]
        assert list((await ask(ready["control"], "prepared"))["claims"]) == ["u-1"]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert not any(os.path.exists(ready[name]) for name in ("endpoint", "registration", "control"))


@pytest.mark.asyncio
async def test_killed_process_leaves_sockets_and_claims_and_a_new_one_goes_on(root: pathlib.Path) -> None:
    calls_file = root / "calls"
    arguments = ["--calls-file", str(calls_file)]
    async with driver_process(root, *arguments, "--fault", "crash_after:method=prepare,times=1") as (process, ready):
        async with connect(ready["endpoint"]) as client:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.call("dra/v1", "NodePrepareResources", claims=[CLAIM])
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        assert await asyncio.wait_for(process.wait(), 10) == -signal.SIGKILL
        assert os.path.exists(ready["endpoint"])
        assert os.path.exists(ready["registration"])
    async with driver_process(root, *arguments) as (_process, ready):
        assert list((await ask(ready["control"], "prepared"))["claims"]) == ["u-1"]
        async with connect(ready["endpoint"]) as client:
            answer = await client.call("dra/v1", "NodePrepareResources", claims=[CLAIM])
        assert answer.claims["u-1"].devices[0].device_name == "dev-0"
    lines = read_calls(calls_file)
    assert [line["event"] for line in lines] == ["start", "start", "end"]  # the first call never ended
    assert len({line["pid"] for line in lines}) == 2


@pytest.mark.asyncio
async def test_control_operations(root: pathlib.Path) -> None:
    async with driver_process(root, "--health", "v1alpha1", "--api", "v1alpha4,v1alpha2") as (process, ready):
        control = ready["control"]
        await ask(control, "fault", kind="slow", seconds="0.5", times="1", uids="u-1;u-2")
        assert (await ask(control, "faults"))["faults"][0]["uids"] == ["u-1", "u-2"]
        await ask(control, "clear")
        assert (await ask(control, "faults"))["faults"] == []
        async with connect(ready["registration"]) as client:
            info = await client.call("registration/v1", "GetInfo")
            assert list(info.supported_versions) == ["v1alpha3.NodeService", "1.0.0", "v1alpha1.DRAResourceHealth"]
            await client.call("registration/v1", "NotifyRegistrationStatus", plugin_registered=True)
        assert (await ask(control, "notifications"))["notifications"] == [{"registered": True, "error": ""}]
        await ask(control, "health", device="dev-0", health="HEALTHY", timeout="5")
        await ask(control, "stop_registration")
        assert not os.path.exists(ready["registration"])
        await ask(control, "start_registration")
        assert os.path.exists(ready["registration"])
        await ask(control, "stop_service")
        await ask(control, "start_service")
        async with connect(ready["endpoint"]) as client:
            stream = client.stream("health/v1alpha1", "NodeWatchResources")
            assert (await stream.__anext__()).devices[0].health_check_timeout_seconds == 5
            await stream.aclose()
        await ask(control, "exit")
        assert await asyncio.wait_for(process.wait(), 10) == 0


@pytest.mark.asyncio
async def test_control_refuses_in_words(root: pathlib.Path) -> None:
    async with driver_process(root) as (_process, ready):
        for operation, values, message in [
            ("explode", {}, "is not known"),
            ("fault", {"kind": "nope"}, "the kind 'nope' is not known"),
            ("health", {"devices": 3}, "cannot be read"),
        ]:
            with pytest.raises(DraError, match=message):
                await ask(ready["control"], operation, **values)
    with pytest.raises(DraError, match="cannot be reached") as caught:
        await ask(str(root / "gone.sock"), "calls")
    assert caught.value.facts == {"socket": str(root / "gone.sock")}


@pytest.mark.asyncio
async def test_two_instances_run_side_by_side(root: pathlib.Path) -> None:
    async with (
        driver_process(root, "--instance", "a") as (_a, ready_a),
        driver_process(root, "--instance", "b") as (_b, ready_b),
    ):
        for ready, uid in [(ready_a, "u-1"), (ready_b, "u-2"), (ready_a, "u-3")]:
            async with connect(ready["endpoint"]) as client:
                answer = await client.call("dra/v1", "NodePrepareResources", claims=[{**CLAIM, "uid": uid}])
                assert answer.claims[uid].error == ""
        claims = (await ask(ready_b["control"], "prepared"))["claims"]
        assert [claim["devices"][0]["device"] for claim in claims.values()] == ["dev-0", "dev-1", "dev-2"]


@pytest.mark.asyncio
async def test_control_command_prints_json(root: pathlib.Path) -> None:
    async def control(*arguments: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", MODULE, "control", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=ENVIRONMENT,
        )
        output, _none = await process.communicate()
        return process.returncode, output.decode()

    async with driver_process(root) as (_process, ready):
        assert await control(ready["control"], "fault", "kind=slow", "times=2") == (0, "{}\n")
        code, output = await control(ready["control"], "faults")
        assert (code, json.loads(output)["faults"][0]["times"]) == (0, 2)
        code, output = await control(ready["control"], "fault", "kind=nope")
        assert code == 1
        assert "the kind 'nope' is not known" in output
        assert "Traceback" not in output


def test_control_command_needs_key_and_value(root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="'slow' is not key=value"):
        command_line.main(["control", str(root / "gone.sock"), "fault", "slow"])
    assert command_line.main(["control", str(root / "gone.sock"), "calls"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_help_lists_faults_and_operations(capsys: pytest.CaptureFixture[str]) -> None:
    for command, word in [("driver", "crash_after"), ("control", "stop_service")]:
        with pytest.raises(SystemExit):
            command_line.main([command, "--help"])
        assert word in capsys.readouterr().out
    assert "calls" in OPERATIONS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--api", "v7"], "'v7' is not known"),
        (["--api", "v1alpha3,v1alpha4"], "cannot be served together"),
        (["--health", "v2"], "'v2' is not known"),
        (["--driver", "../../evil"], "becomes a part of paths"),
        (["--instance", "a/b"], "becomes a part of paths"),
        (["--devices", "0"], "expected 1 or more"),
    ],
)
def test_wrong_arguments_are_told(root: pathlib.Path, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        command_line.main(["driver", "--kubelet-root", str(root), "--cdi-dir", str(root), *arguments])


def test_too_long_socket_paths_are_told(root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = root / ("d" * 80)
    assert command_line.main(["driver", "--kubelet-root", str(deep), "--cdi-dir", str(root)]) == 1
    assert "107 at most" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--kubelet-root", "--ready-file"])
def test_places_that_cannot_be_written_are_told(
    root: pathlib.Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "file").touch()
    wrong = root / "file" / "below"
    arguments = ["driver", "--kubelet-root", str(root), "--cdi-dir", str(root), option, str(wrong)]
    assert command_line.main(arguments) == 1
    said = capsys.readouterr().err
    assert str(wrong) in said
    assert "Not a directory. Give directories that it may write to" in said


@pytest.mark.asyncio
async def test_a_second_driver_takes_no_sockets_away(root: pathlib.Path) -> None:
    async with driver_process(root) as (_process, ready):
        command = [sys.executable, "-m", MODULE, "driver", "--kubelet-root", str(root), "--cdi-dir", str(root)]
        second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=ENVIRONMENT)
        said = (await asyncio.wait_for(second.communicate(), 20))[1].decode()
        assert second.returncode == 1
        assert f"A driver listens on {ready['registration']} already. Stop it, or" in said
        assert await ask(ready["control"], "calls") == {"calls": []}


def test_importing_the_command_line_loads_no_library() -> None:
    code = f"import sys, {MODULE}.__main__; raise SystemExit('grpc' in sys.modules or 'google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=False).returncode == 0


ADD_CLAIMS = f"""
import pathlib, sys
from {MODULE}.driver_store import ClaimStore, PreparedClaim
for number in range(60):
    with ClaimStore(pathlib.Path(sys.argv[1])).transaction() as claims:
        uid = f"{{sys.argv[2]}}-{{number}}"
        claims[uid] = PreparedClaim(uid, "team-a", "c")
"""


def test_instances_that_write_at_once_lose_nothing(root: pathlib.Path) -> None:
    file = root / "state.json"
    writers = [
        subprocess.Popen([sys.executable, "-c", ADD_CLAIMS, str(file), name], env=ENVIRONMENT)
        for name in ("a", "b", "c")
    ]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert len(ClaimStore(file).claims()) == 180
