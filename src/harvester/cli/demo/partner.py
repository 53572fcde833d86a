"""The partner: an SFTP server in this process, for this machine only, with a new password and a new key."""

import asyncio
import os
import secrets
import threading
from pathlib import Path
from typing import Self

import asyncssh

HOST = "127.0.0.1"
USERNAME = "harvester"
#: Timeout for starting and stopping the server.
PATIENCE_SECONDS = 10.0


class Partner:
    """Serves a directory over SFTP, and can stall its readers.

    Attributes:
        directory: the directory.
        password: of its only user.
        port: the port it listens on, 0 before it does.
        has_reader: set while a stalled reader waits.
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
        """Return the public key, which a real partner would publish."""
        return self._key.export_public_key().decode().strip()

    def put(self, path: str, data: bytes) -> None:
        """Replace a file atomically."""
        file = self.directory / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".part")
        draft.write_bytes(data)
        draft.replace(file)

    def stall(self) -> None:
        """Stall readers until `resume` is called."""
        self.has_reader.clear()
        self._loop.call_soon_threadsafe(self._may_send.clear)

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._may_send.set)

    async def wait_until_resumed(self) -> None:
        """Wait while readers are stalled; every read calls this."""
        if not self._may_send.is_set():
            self.has_reader.set()
        await self._may_send.wait()

    def __enter__(self) -> Self:
        self.directory.mkdir(exist_ok=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    async def _listen(self) -> None:
        self._acceptor = await asyncssh.listen(
            HOST,
            0,
            server_factory=lambda: _Server(self.password, self._connections),
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


class _Server(asyncssh.SSHServer):
    """Accepts the password of the only user."""

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
    """Serves only the directory."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], partner: Partner) -> None:
        super().__init__(channel, chroot=os.fsencode(partner.directory))
        self._partner = partner

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        await self._partner.wait_until_resumed()
        data: bytes = super().read(file_obj, offset, size)  # type: ignore[assignment]  # the parent's is not async
        return data
