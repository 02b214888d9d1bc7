# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The sockets of the agent's own APIs: who connects is known before a byte of his is read.

gRPC's server for Python tells nobody who is at the other end of a unix socket, and binds its socket with whatever mode
the umask leaves. So the agent listens here itself. Each connection is looked at with SO_PEERCRED, and only those of
root and of the agent's own user go on, to a gRPC server whose socket lies in a directory that nobody else may enter.
The name of our end of that second connection is the peer's user and process: gRPC gives it to each call as its peer.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import logging
import os
import shutil
import socket
import stat
import struct
import typing as t

from ..checkpoint.errors import DraError
from ..checkpoint.file_errors import from_os_error
from ..checkpoint.procfs import read_process
from ..driver.endpoint import check_length

log = logging.getLogger(__name__)

DEFAULT_SOCKET = "/run/nodeops-dra/agent.sock"
_CREDENTIALS = struct.Struct("3i")
_CHUNK = 64 * 1024


class Peer(t.NamedTuple):
    """A process at the other end of a connection, as the kernel knew it when it connected."""

    uid: int
    pid: int

    @classmethod
    def of(cls, connection: socket.socket) -> Peer:
        """The peer of a connected unix socket."""
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _gid = _CREDENTIALS.unpack(found)
        return cls(uid, pid)

    @classmethod
    def named(cls, grpc_peer: str) -> Peer:
        """The peer of a call, from what gRPC tells about it: ``unix:/.../UID.PID.NUMBER``."""
        uid, pid, _number = grpc_peer.rpartition("/")[2].split(".")
        return cls(int(uid), int(pid))

    def __str__(self) -> str:
        return f"user {self.uid}, process {self.pid}"


class Gate:
    """Listens on ``path`` and hands connections of ``users`` on to a server on ``inner``.

    ``what`` is what is served there, for messages. ``users`` are root and the agent's own user unless given.
    """

    def __init__(self, path: str, what: str, users: t.Collection[int] | None = None) -> None:
        self.path = path
        self.what = what
        self.refused = 0
        self._users = {0, os.geteuid()} if users is None else set(users)
        self._folder = path + ".d"
        self._numbers = itertools.count(1)
        self._listener: socket.socket | None = None
        self._own: os.stat_result | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._relays: set[asyncio.Task[None]] = set()

    @property
    def inner(self) -> str:
        """Where the server behind the gate has to listen."""
        return os.path.join(self._folder, "s")

    def prepare(self) -> None:
        """Make the directories, the private one empty, and make way for the socket. Raises DraError."""
        check_length(self.path)
        check_length(os.path.join(self._folder, f"{2**32}.{2**22}.{10**6}"))
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o755, exist_ok=True)
            _clear_way(self.path)  # before anything of another agent is touched
            with contextlib.suppress(FileNotFoundError):
                # What an agent left that was killed. A link is not followed: rmtree refuses it.
                shutil.rmtree(self._folder)
            os.mkdir(self._folder, mode=0o700)
        except OSError as error:
            raise from_os_error(error, self._folder, f"could not be made for the {self.what}") from error

    def open(self) -> None:
        """Listen. The socket has mode 0600 before anybody can connect. Raises DraError."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            listener.bind(self.path)
            # Until it listens, every attempt to connect is refused.
            os.chmod(self.path, 0o600)
            self._own = os.lstat(self.path)
            listener.listen(64)
        except OSError as error:
            listener.close()
            raise from_os_error(error, self.path, f"could not be made as the socket of the {self.what}") from error
        self._listener = listener
        self._accepting = asyncio.get_running_loop().create_task(self._accept(listener), name=self.what)

    async def close(self) -> None:
        """Listen no more, cut what is connected, and leave nothing behind."""
        listener, self._listener = self._listener, None
        tasks = [task for task in (self._accepting, *self._relays) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if listener is not None:
            self._remove_own()  # first: as long as it is open, no other socket gets its inode
            listener.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    def _remove_own(self) -> None:
        """Remove the socket, unless somebody has put another one in its place meanwhile."""
        with contextlib.suppress(FileNotFoundError):
            if self._own is not None and os.path.samestat(os.lstat(self.path), self._own):
                os.unlink(self.path)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _address = await loop.sock_accept(listener)
            except OSError as error:  # out of descriptors, for example: it passes
                log.warning("%s cannot accept a connection error=%s", self.what, error)
                await asyncio.sleep(1.0)
                continue
            peer = Peer.of(connection)
            if peer.uid not in self._users:
                self.refused += 1
                log.warning("%s refused a user uid=%d pid=%d", self.what, peer.uid, peer.pid)
                connection.close()
                continue
            task = loop.create_task(self._relay(connection, peer), name=f"{self.what} for {peer}")
            self._relays.add(task)
            task.add_done_callback(self._relays.discard)

    async def _relay(self, connection: socket.socket, peer: Peer) -> None:
        name = os.path.join(self._folder, f"{peer.uid}.{peer.pid}.{next(self._numbers)}")
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            inner.bind(name)
            await asyncio.get_running_loop().sock_connect(inner, self.inner)
            ways = [
                asyncio.create_task(_copy(connection, inner)),
                asyncio.create_task(_copy(inner, connection)),
            ]
            try:
                # gRPC has no use for half a connection: when one side ends, so does the other.
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError as error:
            log.warning("%s cannot serve uid=%d pid=%d error=%s", self.what, peer.uid, peer.pid, error)
        finally:
            inner.close()
            connection.close()
            with contextlib.suppress(OSError):
                os.unlink(name)


async def _copy(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionError):  # either end may go at any time
        while data := await loop.sock_recv(source, _CHUNK):
            await loop.sock_sendall(target, data)


def _clear_way(path: str) -> None:
    """Remove the socket that an agent left which was killed; raise DraError for anything else that is in the way."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise DraError(
            f"{path} is there already and is no socket.",
            "Look what it is and move it away, or set another socket.",
            path=path,
            errno="EADDRINUSE",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(path)
            listener = _described(Peer.of(probe).pid)
        except (ConnectionRefusedError, FileNotFoundError):
            os.unlink(path)
            return
        except OSError as error:
            if error.errno != errno.EAGAIN and not isinstance(error, TimeoutError):
                raise
            listener = "it does not say which"
    raise DraError(
        f"Another process listens on {path}: {listener}.",
        "Stop it, or set another socket.",
        path=path,
        errno="EADDRINUSE",
    )


def _described(pid: int) -> str:
    process = read_process(pid)
    return f"pid {pid}" if process is None else f"pid {pid} ({process.name})"
