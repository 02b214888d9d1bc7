# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What is sent to systemd, over a real datagram socket, and the exit statuses."""

from __future__ import annotations

import errno
import pathlib
import time
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.file_errors import StoreError
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.lock import LockHeldError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import (
    MEANINGS,
    ExitCode,
    exit_code_for,
    exit_codes_rst,
    without_restart,
)
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.notify import Notifier

from .processes import NotifySocket


@pytest.fixture
def manager(tmp_path: pathlib.Path) -> t.Iterator[NotifySocket]:
    made = NotifySocket(str(tmp_path / "n.sock"))
    yield made
    made.close()


def test_notes_have_the_form_of_the_protocol(manager: NotifySocket) -> None:
    notifier = Notifier(manager.address)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifier.ready("it\nworks")
    notifier.status("one")
    notifier.status("one")
    notifier.reloading()
    notifier.alive()
    notifier.extend(30.0)
    notifier.status("x" * 500)
    notifier.stopping()
    notes = manager.waiting()
    assert notes[0] == {"READY": "1", "STATUS": "it works"}
    assert notes[1] == {"STATUS": "one"}
    assert before <= int(notes[2].pop("MONOTONIC_USEC")) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert notes[2] == {"RELOADING": "1", "STATUS": "reloading"}
    assert notes[3:5] == [{"WATCHDOG": "1"}, {"EXTEND_TIMEOUT_USEC": "30000000"}]
    assert len(notes[5]["STATUS"]) == 200
    assert notes[6:] == [{"STOPPING": "1", "STATUS": "stopping"}]


def test_the_variables_are_taken_out_of_the_environment(manager: NotifySocket) -> None:
    environ = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7", "HOME": "/"}
    notifier = Notifier.from_environment(environ, pid=7)
    assert (notifier.is_heard, notifier.watchdog, environ) == (True, 30.0, {"HOME": "/"})


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "vsock:2:1"},
        {"WATCHDOG_USEC": "30000000"},
        {"NOTIFY_SOCKET": "/gone/n.sock", "WATCHDOG_USEC": "x"},
        {"NOTIFY_SOCKET": "/gone/n.sock", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"},
    ],
)
def test_without_somebody_to_hear_nothing_happens(environ: dict[str, str]) -> None:
    notifier = Notifier.from_environment(environ)
    notifier.ready("ready")
    notifier.alive()
    assert notifier.watchdog == 0.0


def test_a_full_socket_does_not_hold_the_daemon(manager: NotifySocket, caplog: pytest.LogCaptureFixture) -> None:
    notifier = Notifier(manager.address)
    while "service manager could not be told" not in caplog.text:
        notifier.alive()


# Exit statuses


class OwnError(StoreError):
    """Of a layer above."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DraError("x"), ExitCode.FAILED),
        (StoreError("x", errno="EACCES"), ExitCode.RIGHTS),
        (StoreError("x", errno="ENOSPC"), ExitCode.SYSTEM),
        (DraError("x", errno="EADDRINUSE"), ExitCode.ADDRESS_IN_USE),
        (LockHeldError("x"), ExitCode.LOCK_HELD),
        (OSError(errno.EPERM, "x"), ExitCode.RIGHTS),
        (OSError(errno.EADDRINUSE, "x"), ExitCode.ADDRESS_IN_USE),
        (OSError(errno.EIO, "x"), ExitCode.SYSTEM),
        (ModuleNotFoundError("x", name="grpc"), ExitCode.LIBRARY),
        (ModuleNotFoundError("x", name="ansible_collections.nodeops.dra.x"), ExitCode.BUG),
        (KeyError("x"), ExitCode.BUG),
        (OwnError("x", errno="EACCES"), ExitCode.LEASE_LOST),
    ],
)
def test_the_status_of_an_error(error: BaseException, code: ExitCode) -> None:
    assert exit_code_for(error, {OwnError: ExitCode.LEASE_LOST}) is code


def test_every_status_is_documented_and_free_for_services() -> None:
    assert set(MEANINGS) == set(ExitCode)
    # 79 and up is what systemd leaves to services; it uses 200 to 243 for itself.
    assert all(code in (0, 1) or 64 <= code <= 78 or 79 <= code < 200 for code in ExitCode)
    assert without_restart() == "64 77 78 82 83"
    docutils = pytest.importorskip("docutils.core")
    docutils.publish_string(exit_codes_rst(), settings_overrides={"halt_level": 2, "report_level": 2})
    assert all(f"   * - {code.value}\n" in exit_codes_rst() for code in ExitCode)
