# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Telling systemd how the daemon fares: the datagram protocol of sd_notify, without its library.

Without ``NOTIFY_SOCKET`` nothing is sent. What cannot be sent is logged and otherwise ignored: a daemon must not fail
because nobody listens.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import typing as t

log = logging.getLogger(__name__)

_MICROSECONDS = 1_000_000
#: Longest status text; systemd takes more, but people read one line.
MAX_STATUS = 200


class Notifier:
    """Sends notes to the service manager."""

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        """``address``: path of a socket, or ``@name`` of an abstract one. ``watchdog``: seconds, 0 for none."""
        self.watchdog = watchdog
        self._address = address
        self._last_status = ""

    @classmethod
    def from_environment(cls, environ: t.MutableMapping[str, str], pid: int | None = None) -> Notifier:
        """As systemd set it up. The variables are taken out, so that child processes do not speak for the daemon."""
        address = environ.pop("NOTIFY_SOCKET", "")
        period, for_pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        if address and address[0] not in "/@":
            log.warning("notify socket of an unknown sort is not used address=%s", address)
            address = ""
        is_ours = for_pid in ("", str(os.getpid() if pid is None else pid))
        watchdog = int(period) / _MICROSECONDS if period.isdigit() and is_ours else 0.0
        return cls(address, watchdog if address else 0.0)

    @property
    def is_heard(self) -> bool:
        """Whether there is somebody to tell."""
        return bool(self._address)

    def ready(self, status: str) -> None:
        """The start, or a reload, is over."""
        self._send(f"READY=1\n{self._status(status)}")

    def reloading(self) -> None:
        """A reload has begun; ``ready`` ends it."""
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={now}\n{self._status('reloading')}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send(f"STOPPING=1\n{self._status('stopping')}")

    def status(self, text: str) -> None:
        """One line for people in ``systemctl status``; sent when it differs from the last one."""
        if text != self._last_status:
            self._send(self._status(text))

    def alive(self) -> None:
        """The watchdog need not act."""
        self._send("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        """Start or stop goes on; have patience for so many seconds from now."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * _MICROSECONDS)}")

    def _status(self, text: str) -> str:
        self._last_status = text
        line = " ".join(text.split())
        return f"STATUS={line if len(line) <= MAX_STATUS else line[: MAX_STATUS - 3] + '...'}"

    def _send(self, message: str) -> None:
        if not self._address:
            return
        target = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender:
                sender.sendto(message.encode("utf-8", "replace"), target)
        except OSError as error:
            log.warning("service manager could not be told socket=%s error=%s", self._address, error)
