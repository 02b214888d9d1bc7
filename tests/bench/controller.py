# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How many claims the controller makes and releases, and what that costs it; how it starts where there are many.

The embedded API server runs in a process of its own, and so does each controller: CPU seconds and memory are those of
the controller alone, the server's are told beside them. Requests are those of the
controller without lists, watches and reviews of rights. On two cores the server is what limits the rate. With
NODEOPS_DRA_BENCH_KUBECONFIG set the same is measured against that cluster, which should have no other controller of
claims (NODEOPS_DRA_BENCH_PODS says how many pods, 2000 by default).
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing as t

HERE = pathlib.Path(__file__).resolve()
Json = dict[str, t.Any]
SIZES = (2_000, 20_000)
KUBECONFIG, PODS = "NODEOPS_DRA_BENCH_KUBECONFIG", "NODEOPS_DRA_BENCH_PODS"


class Process:
    """A Python program that answers each line with a line."""

    def __init__(self, script: str, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2] / ".build")}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE.with_name(script)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def read(self) -> t.Any:
        """The next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended with {self._process.wait()}")
        return json.loads(line)

    def send(self, *words: object) -> None:
        """A command; ``read`` gets its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def ask(self, *words: object) -> t.Any:
        """A command and its answer."""
        self.send(*words)
        return self.read()

    def end(self) -> None:
        """Let it end by itself when there is nothing more to read for it, else kill it."""
        try:
            self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@contextlib.contextmanager
def running(script: str, *arguments: str) -> t.Iterator[Process]:
    """A process for the length of a block."""
    process = Process(script, *arguments)
    try:
        yield process
    finally:
        process.end()


class Measurement:
    """A cluster and one controller after the other."""

    def __init__(self, cluster: Process, kubeconfig: str) -> None:
        self._cluster, self._kubeconfig = cluster, kubeconfig

    def phase(self, controller: Process, action: t.Sequence[object], state: t.Sequence[object]) -> Json:
        """Let something happen, wait until the controller has dealt with it, and say what that took."""
        before, server = controller.ask("ready"), self._cluster.ask("usage")
        started = time.monotonic()
        self._cluster.send(*action)
        after = controller.ask(*state)
        seconds = after["clock"] - started
        self._cluster.read()
        return {
            "seconds": seconds,
            "cpu": after["cpu"] - before["cpu"],
            "server_cpu": self._cluster.ask("usage") - server,
            "peak_mb": after["peak_mb"],
            "requests": after["requests"] - before["requests"],
        }

    def life(self, count: int) -> t.Iterator[tuple[str, Json]]:
        """Claims made, allocated, released; and in between a second controller that finds them all there."""
        self._cluster.ask("setup")
        with running("controller_process.py", self._kubeconfig) as controller:
            yield "empty", controller.ask("ready")
            yield "made", self.phase(controller, ("make", count), ("named", count))
            yield "allocated", self.phase(controller, ("allocate",), ("reserved", count))
        started = time.monotonic()
        with running("controller_process.py", self._kubeconfig) as controller:
            full, ready = controller.ask("full"), controller.ask("ready")
            yield "start", {**ready, "full": full["clock"] - started, "seconds": ready["clock"] - started}
            yield "released", self.phase(controller, ("finish",), ("gone",))


def lines(count: int, cluster: Process, kubeconfig: str) -> t.Iterator[str]:
    """The table of one size."""
    yield f"{count} pods, one claim each"
    yield f"  {'':<22}{'a second':>9}{'s':>8}{'CPU s':>8}{'peak MB':>9}{'requests a claim':>18}{'server CPU s':>14}"
    names = {"made": "claims made", "allocated": "allocations seen", "released": "claims released"}
    for phase, found in Measurement(cluster, kubeconfig).life(count):
        if phase in names:
            each = found["requests"] / count
            yield (
                f"  {names[phase]:<22}{count / found['seconds']:>9.0f}{found['seconds']:>8.1f}{found['cpu']:>8.2f}"
                f"{found['peak_mb']:>9.1f}{each:>18.2f}{found['server_cpu']:>14.1f}"
            )
        elif phase == "start":
            yield (
                f"  {'start with all there':<22}{'':>9}{found['seconds']:>8.1f}{found['cpu']:>8.2f}"
                f"{found['peak_mb']:>9.1f}{found['requests']:>11} in all; caches full after {found['full']:.1f} s"
            )
        else:
            yield f"  {'with nothing there':<22}{'':>25}{found['peak_mb']:>9.1f}"


def run() -> t.Iterator[str]:
    """The lines of the tables."""
    given = os.environ.get(KUBECONFIG)
    if given:
        with running("controller_cluster.py", given) as cluster:
            cluster.read()
            yield from lines(int(os.environ.get(PODS, "2000")), cluster, given)
        return
    with tempfile.TemporaryDirectory() as folder:
        for count in SIZES:
            with running("controller_server.py") as server:
                path = pathlib.Path(folder) / "kubeconfig"
                path.write_text(json.dumps(server.read()), encoding="utf-8")
                yield from lines(count, server, str(path))
    yield f"against a cluster: set {KUBECONFIG}, and {PODS} for the number of pods"


if __name__ == "__main__":
    for text in run():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
