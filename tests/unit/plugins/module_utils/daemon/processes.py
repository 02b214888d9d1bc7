# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Running the small daemon: its process, its log, what it tells systemd, and its HTTP server."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import typing as t
import urllib.error
import urllib.request

import yaml

from ..kube.certificates import Authority

SCRIPT = pathlib.Path(__file__).with_name("small_daemon.py")
#: Above anything a loaded machine needs; only a failing test waits so long.
PATIENCE = 40.0


class NotifySocket:
    """The service manager's end: every datagram as a mapping."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE)
        self.seen: list[dict[str, str]] = []

    def next(self) -> dict[str, str]:
        """The next note."""
        text = self._socket.recv(8192).decode()
        note = dict(line.partition("=")[::2] for line in text.splitlines())
        self.seen.append(note)
        return note

    def until(self, key: str, value: str = "") -> dict[str, str]:
        """The next note with this key, and this text in its value."""
        while True:
            note = self.next()
            if key in note and value in note[key]:
                return note

    def waiting(self) -> list[dict[str, str]]:
        """All notes that have come already."""
        self._socket.setblocking(False)
        found = []
        try:
            while True:
                found.append(self.next())
        except BlockingIOError:
            return found
        finally:
            self._socket.settimeout(PATIENCE)

    def close(self) -> None:
        """End."""
        self._socket.close()


class Process:
    """The small daemon as a child process."""

    def __init__(
        self, folder: pathlib.Path, arguments: t.Sequence[str], environment: t.Mapping[str, str], under_journal: bool
    ) -> None:
        self.folder = folder
        self.config = folder / "small.yml"
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("NODEOPS_", "PYTHON"))}
        environ.update(environment, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
        read, write = os.pipe()
        if under_journal:  # systemd names the pipe or socket that it gives its child
            status = os.fstat(write)
            environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
        self._child = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--config", str(self.config), *arguments],
            env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=write, text=True,
        )  # fmt: skip
        os.close(write)
        self._log = open(read, encoding="utf-8")  # noqa: SIM115
        self.pid = self._child.pid
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._log:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def until(self, text: str) -> str:
        """Read the log up to a line with ``text``."""
        while True:
            line = self._queue.get(timeout=PATIENCE)
            if line is None:
                raise AssertionError("the daemon ended without saying " + text + "\n" + "\n".join(self.lines))
            self.lines.append(line)
            if text in line:
                return line

    def url(self) -> str:
        """Where it listens."""
        return re.search(r"url=(\S+)", self.until("listening"))[1]  # type: ignore[index]

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._child.send_signal(number)

    def ended(self) -> int:
        """Wait for the end; the exit status."""
        code = self._child.wait(PATIENCE)
        self._reader.join()
        while (line := self._queue.get_nowait()) is not None:
            self.lines.append(line)
        return code

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.send(number)
        return self.ended()

    @property
    def output(self) -> str:
        """What it wrote to standard output, after its end."""
        return t.cast("t.IO[str]", self._child.stdout).read()

    def order(self, what: str, on: bool = True) -> None:
        """Give or take back an order."""
        path = self.folder / what
        path.touch() if on else path.unlink()

    def close(self) -> None:
        """Kill it if it still runs."""
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait(PATIENCE)
        self._reader.join()
        self._log.close()
        t.cast("t.IO[str]", self._child.stdout).close()


class World:
    """Starts small daemons in a folder and cleans up."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._closing: list[t.Callable[[], None]] = []

    def write(self, **sections: t.Any) -> None:
        """Write the settings file, with what every test needs."""
        sections.setdefault("small", {}).setdefault("folder", str(self.folder))
        sections.setdefault("life", {}).setdefault("run_directory", str(self.folder / "run"))
        (self.folder / "small.yml").write_text(yaml.safe_dump(sections))

    def start(
        self,
        *arguments: str,
        environment: t.Mapping[str, str] | None = None,
        under_journal: bool = False,
        **sections: t.Any,
    ) -> Process:
        """Write the settings and start."""
        self.write(**sections)
        return self.again(*arguments, environment=environment, under_journal=under_journal)

    def again(
        self, *arguments: str, environment: t.Mapping[str, str] | None = None, under_journal: bool = False
    ) -> Process:
        """Start with the settings file as it is."""
        process = Process(self.folder, arguments, environment or {}, under_journal)
        self._closing.append(process.close)
        return process

    def notify(self, address: str = "") -> NotifySocket:
        """A notify socket."""
        made = NotifySocket(address or str(self.folder / "n.sock"))
        self._closing.append(made.close)
        return made

    def close(self) -> None:
        """End everything."""
        for close in reversed(self._closing):
            close()


def get(
    url: str, *, token: str = "", tls: ssl.SSLContext | None = None, method: str = "GET"
) -> tuple[int, str, t.Mapping[str, str]]:
    """Status, body and headers of a request, past any proxy of this machine."""
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"} if token else {})
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def trusting(authority: Authority) -> ssl.SSLContext:
    """A client's TLS. The authority is a plain one, without the extensions that Python 3.13 insists on."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def fields(line: str) -> dict[str, t.Any]:
    """A JSON line."""
    return t.cast("dict[str, t.Any]", json.loads(line))
