"""A real SFTP server on this machine, in a thread, that can be made to misbehave.

Misbehaving servers are named after what they do wrong; each is a class to pass as `behaviour`, or a function that
makes one.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import asyncssh

from harvester.guards.host_keys import HostKey

HOST = "127.0.0.1"
USERNAME = "partner"
PASSWORD = "correct horse battery staple"


@dataclass(frozen=True)
class AuthAttempt:
    """What a client sent to log in."""

    method: str
    username: str
    secret: str = ""


class WellBehaved(asyncssh.SFTPServer):
    """Serves the files of a directory."""

    server: "SftpServer"

    def __init__(self, chan: asyncssh.SSHServerChannel) -> None:
        super().__init__(chan, chroot=os.fsencode(self.server.root))

    def open(self, path, pflags, attrs):
        file = super().open(path, pflags, attrs)
        self.server.files.append(file)
        return file

    def size_of(self, file_obj) -> int:
        return os.fstat(file_obj.fileno()).st_size

    def drop(self) -> None:
        self.channel.get_connection().abort()


def drops_connection_at(percent: int) -> type[WellBehaved]:
    class DropsConnection(WellBehaved):
        """Breaks off as soon as somebody reads beyond a part of the file."""

        def read(self, file_obj, offset, size):
            cut = self.size_of(file_obj) * percent // 100
            if offset + size > cut:
                self.drop()
                return b""
            return super().read(file_obj, offset, size)

    return DropsConnection


class DropsOnRequest(WellBehaved):
    """Breaks off one session for each part of a file in the server's `drops`, and serves well otherwise."""

    is_dropped = False

    def read(self, file_obj, offset, size):
        drops = self.server.drops
        if self.is_dropped:
            return b""
        if drops and offset + size > self.size_of(file_obj) * drops[0] // 100:
            drops.pop(0)
            self.is_dropped = True
            self.drop()
            return b""
        return super().read(file_obj, offset, size)


def stops_answering_at(percent: int) -> type[WellBehaved]:
    class StopsAnswering(WellBehaved):
        """Never answers a read beyond a part of the file."""

        async def read(self, file_obj, offset, size):
            if offset + size > self.size_of(file_obj) * percent // 100:
                await asyncio.Event().wait()
            return super().read(file_obj, offset, size)

    return StopsAnswering


def changes_file_while_read(change: Callable[[Path], None]) -> type[WellBehaved]:
    class ChangesFile(WellBehaved):
        """Lets somebody change the file after its first block was read."""

        is_changed = False

        def read(self, file_obj, offset, size):
            data = super().read(file_obj, offset, size)
            if not type(self).is_changed:
                type(self).is_changed = True
                change(Path(os.fsdecode(file_obj.name)))
            return data

    return ChangesFile


def lies_about_size(by: int) -> type[WellBehaved]:
    class LiesAboutSize(WellBehaved):
        """Says that a file is larger or smaller than it is."""

        def stat(self, path):
            attributes = asyncssh.SFTPAttrs.from_local(super().stat(path))
            attributes.size += by
            return attributes

    return LiesAboutSize


def reports(**figures: int | None) -> type[WellBehaved]:
    class TellsOnly(WellBehaved):
        """Reports these figures about all files, and no others."""

        def stat(self, path):
            super().stat(path)
            return asyncssh.SFTPAttrs(**figures)

    return TellsOnly


def refuses_stat(error: Exception) -> type[WellBehaved]:
    class RefusesStat(WellBehaved):
        """Serves files and answers every question about them with an error."""

        def stat(self, path):
            raise error

        lstat = fstat = stat

    return RefusesStat


class Drips(WellBehaved):
    """Sends one byte at a time, with a pause before each."""

    async def read(self, file_obj, offset, size):
        await asyncio.sleep(0.02)
        return super().read(file_obj, offset, 1)


class SendsLessThanAsked(WellBehaved):
    """Answers each read with a part of what was asked, as servers may."""

    def read(self, file_obj, offset, size):
        return super().read(file_obj, offset, max(size // 3, 1))


class SendsMoreThanAsked(WellBehaved):
    """Answers each read with more than was asked."""

    def read(self, file_obj, offset, size):
        return super().read(file_obj, offset, size + 1)


class LeavesAHole(WellBehaved):
    """Reports the end of the file too early, and no size."""

    def stat(self, path):
        super().stat(path)
        return asyncssh.SFTPAttrs()

    def read(self, file_obj, offset, size):
        return b"" if size <= offset < 2 * size else super().read(file_obj, offset, size)


class NeverEnds(WellBehaved):
    """Has more bytes for every read, and reports no size."""

    def stat(self, path):
        super().stat(path)
        return asyncssh.SFTPAttrs()

    def read(self, file_obj, offset, size):
        return b"x" * size


class RefusesToRead(WellBehaved):
    """Shows a file and lets nobody read it."""

    def open(self, path, pflags, attrs):
        raise asyncssh.SFTPPermissionDenied("not for you")


class FailsForNoReason(WellBehaved):
    """Answers reads with the failure that has no name."""

    def read(self, file_obj, offset, size):
        raise asyncssh.SFTPFailure("disk on fire")


class SftpServer:
    """Serves a directory over SFTP, and records who tried to log in.

    Args:
        root: what is served.
        behaviour: how files are served; None means SSH without SFTP.
        client_keys: public keys that may log in in addition to the password, as OpenSSH lines.
        host_key_types: the server has a key of each; the first is its `host_key`.
        options: more for asyncssh, such as the algorithms it offers.
    """

    def __init__(
        self,
        root: Path,
        *,
        behaviour: type[WellBehaved] | None = WellBehaved,
        client_keys: Collection[str] = (),
        host_key_types: Collection[str] = ("ssh-ed25519",),
        **options: object,
    ) -> None:
        self.root = root
        self.attempts: list[AuthAttempt] = []
        self.connections = 0
        self.files = []
        self.drops: list[int] = []
        self.client_keys = [asyncssh.import_public_key(line) for line in client_keys]
        self.port = 0
        self._private_keys = [asyncssh.generate_private_key(name) for name in host_key_types]
        self._behaviour = behaviour
        self._options = options
        self._open: set[asyncssh.SSHServerConnection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sftp-server", daemon=True)

    @property
    def host_keys(self) -> list[HostKey]:
        return [HostKey.parse(key.export_public_key().decode()) for key in self._private_keys]

    @property
    def host_key(self) -> HostKey:
        return self.host_keys[0]

    def replace_host_key(self) -> None:
        """From the next start on it shows another key."""
        self._private_keys = [asyncssh.generate_private_key("ssh-ed25519")]

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        behaviour = self._behaviour and type(self._behaviour.__name__, (self._behaviour,), {"server": self})
        self._acceptor = await asyncssh.listen(
            HOST,
            self.port,
            server_factory=lambda: _Access(self),
            server_host_keys=self._private_keys,
            sftp_factory=behaviour,
            config=None,
            **self._options,
        )
        self.port = self._acceptor.get_port()

    async def _close(self) -> None:
        self._acceptor.close()
        for connection in list(self._open):
            connection.abort()
        await self._acceptor.wait_closed()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for file in self.files:
            file.close()

    async def restart(self) -> None:
        await self._close()
        await self._listen()

    def restart_with_another_key(self) -> None:
        """The same port, another host key: a new server, or somebody in between."""
        self.replace_host_key()
        asyncio.run_coroutine_threadsafe(self.restart(), self._loop).result(10)


class _Access(asyncssh.SSHServer):
    """Lets the partner in, and writes down every attempt."""

    def __init__(self, server: SftpServer) -> None:
        self._server = server

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._server.connections += 1
        self._connection = conn
        self._server._open.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server._open.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        self._server.attempts.append(AuthAttempt("none", username))
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._server.attempts.append(AuthAttempt("password", username, password))
        return (username, password) == (USERNAME, PASSWORD)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self._server.attempts.append(AuthAttempt("publickey", username))
        return username == USERNAME and key in self._server.client_keys
