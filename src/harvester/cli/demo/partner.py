"""The partner's side: an SFTP server of this process, for this machine only, with a password and a key made anew."""

import asyncio
import os
import secrets
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self

import asyncssh

HOST = "127.0.0.1"
USERNAME = "harvester"
#: Seconds that the server may take to begin or to end.
PATIENCE_SECONDS = 10.0


class Partner:
    """Serves a directory over SFTP, and can be told to keep a reader waiting.

    Attributes:
        directory: what is served.
        password: of the one user.
        port: where it listens, once it does.
        has_reader: set while somebody reads and is kept waiting.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.password = secrets.token_urlsafe(24)
        self.port = 0
        self.has_reader = threading.Event()
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-partner", daemon=True)
        self._may_send = asyncio.Event()
        self._may_send.set()

    @property
    def host_key(self) -> str:
        """The line that a partner would tell by phone or letter."""
        return self._key.export_public_key().decode().strip()

    def put(self, path: str, data: bytes) -> None:
        """Replace a catalog at once, as partners do under the same name."""
        file = self.directory / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".part")
        draft.write_bytes(data)
        draft.replace(file)

    def stall(self) -> None:
        """From now on keep readers waiting."""
        self.has_reader.clear()
        self._loop.call_soon_threadsafe(self._may_send.clear)

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._may_send.set)

    async def line(self) -> None:
        """What every read waits for."""
        if not self._may_send.is_set():
            self.has_reader.set()
        await self._may_send.wait()

    def __enter__(self) -> Self:
        self.directory.mkdir(exist_ok=True)
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    async def _listen(self) -> None:
        self._acceptor = await asyncssh.listen(
            HOST,
            0,
            server_factory=lambda: _Door(self.password, self._connections),
            server_host_keys=[self._key],
            sftp_factory=lambda channel: _Files(channel, self),
            config=None,
        )
        self.port = self._acceptor.get_port()

    async def _close(self) -> None:
        self._may_send.set()
        self._acceptor.close()
        for connection in list(self._connections):
            connection.close()
            await connection.wait_closed()
        await self._acceptor.wait_closed()


class _Door(asyncssh.SSHServer):
    """Lets the one user in."""

    def __init__(self, password: str, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._password = password
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncssh names it
        self._connections.discard(self._connection)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return username == USERNAME and secrets.compare_digest(password.encode(), self._password.encode())


class _Files(asyncssh.SFTPServer):
    """Serves the directory and nothing above it."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], partner: Partner) -> None:
        super().__init__(channel, chroot=os.fsencode(partner.directory))
        self._partner = partner

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        await self._partner.line()
        data: bytes = super().read(file_obj, offset, size)  # type: ignore[assignment]  # the parent's is not async
        return data
