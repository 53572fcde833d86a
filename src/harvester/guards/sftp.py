"""Reading files by SFTP, from a server whose host key was approved.

Nothing of the machine's own SSH set-up takes part: no agent, no configuration, no known_hosts file, no keys of
the user. The host key is judged during the key exchange, before any credential leaves the process.

asyncssh works on an event loop. Each session has its own, which runs only while a call waits for the server, in
the thread of the caller; so a session looks like any other blocking object.
"""

import asyncio
import logging
import socket
from collections.abc import Collection, Coroutine, Generator
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import asyncssh

from harvester.guards import transfer
from harvester.guards.egress import EgressPolicy
from harvester.guards.greeting import expect_greeting
from harvester.guards.host_keys import HostKey, check_host_key
from harvester.guards.remote import (
    ConnectionLost,
    Credentials,
    Downloaded,
    InvalidPrivateKey,
    NotAFile,
    OnProgress,
    RemoteStat,
    RemoteTimedOut,
    Sink,
    TransferLimits,
    check_path,
    quote_reply,
)
from harvester.guards.sftp_errors import told_plainly
from harvester.guards.sftp_reader import WindowedReader
from harvester.kernel.errors import ConfigError

DEFAULT_PORT = 22
#: What may be on its way. Measured with 50 ms to the server: 2 MB 18 MB/s, 4 MB 36 MB/s, 8 MB 48 MB/s.
WINDOW_BYTES = 8 * 1024 * 1024
#: Closing is a courtesy to the server; it is not waited for any longer.
CLOSE_SECONDS = 2.0

#: Host keys that are asked for, the best first. RSA keys sign with SHA-2 only.
HOST_KEY_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_RSA = "ssh-rsa"

T = TypeVar("T")

# Its lines about each step of each connection say nothing that the caller does not say better.
asyncssh.set_log_level(logging.WARNING)


def connect_sftp(
    host: str,
    port: int,
    credentials: Credentials,
    *,
    host_keys: Collection[HostKey],
    policy: EgressPolicy,
    limits: TransferLimits | None = None,
) -> "SftpSession":
    """Connect, judge the server's key, and log in.

    Args:
        host: the server.
        port: its port.
        credentials: who logs in.
        host_keys: the keys that were approved for this server; with none, the server's key is told by the error.
        policy: where connections may go.
        limits: how patient the session is.

    Raises:
        HostKeyUnknown, HostKeyChanged: no credential was sent.
        HarvesterError: one of the errors in remote.py and egress.py.
    """
    limits = limits or TransferLimits()
    judge = _HostKeyJudge(host, host_keys)
    options = _options(host, credentials, judge)
    connection = policy.connect(host, port, limits.connect)
    try:
        expect_greeting(connection, host, "SFTP")
        connection.setblocking(False)
        session = SftpSession(host, limits)
    except BaseException:
        connection.close()
        raise
    session.log_in(connection, options, judge)
    return session


class SftpSession:
    """A session with an SFTP server; `connect_sftp` makes it."""

    def __init__(self, host: str, limits: TransferLimits) -> None:
        self._host = host
        self._limits = limits
        # Not asyncio.Runner: it watches for Ctrl-C by means that print each block (measured: 4 of 6 seconds).
        self._loop: asyncio.AbstractEventLoop | None = asyncio.new_event_loop()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._client: asyncssh.SFTPClient | None = None

    def log_in(
        self, connection: socket.socket, options: asyncssh.SSHClientConnectionOptions, judge: "_HostKeyJudge"
    ) -> None:
        try:
            self._run(self._limits.login, self._open(connection, options))
        except BaseException:
            self.close()
            if judge.refusal:
                raise judge.refusal from None
            raise

    async def _open(self, connection: socket.socket, options: asyncssh.SSHClientConnectionOptions) -> None:
        # The options say so too, but without it here the user's configuration would be read.
        self._connection = await asyncssh.connect(self._host, sock=connection, config=None, options=options)
        self._client = await self._connection.start_sftp_client()

    def stat(self, path: str) -> RemoteStat:
        check_path(path)
        attributes = self._run(self._limits.idle, self._open_client().stat(path), path)
        if attributes.type not in (asyncssh.FILEXFER_TYPE_REGULAR, asyncssh.FILEXFER_TYPE_UNKNOWN):
            raise NotAFile(f"{path!r} on {self._host} is a directory or a device, no file. Correct the path.")
        return RemoteStat(size=attributes.size, mtime=_moment(attributes.mtime))

    def download(self, path: str, sink: Sink, *, cap_bytes: int, on_progress: OnProgress | None = None) -> Downloaded:
        return transfer.download(self, path, sink, cap_bytes=cap_bytes, limits=self._limits, on_progress=on_progress)

    def read_small(self, path: str, *, cap_bytes: int) -> bytes:
        return transfer.read_small(self, path, cap_bytes=cap_bytes, limits=self._limits)

    def blocks(self, path: str, pace: transfer.Pace) -> Generator[bytes, None, None]:
        """Yield the bytes of a file in order, to its end."""
        reader = WindowedReader(self._open_client(), path)
        try:
            self._run(pace.patience(), reader.open(), path)
            while block := self._run(pace.patience(), reader.next_block(), path):
                yield block
        finally:
            with suppress(Exception):
                self._run(CLOSE_SECONDS, reader.close())

    def close(self) -> None:
        loop, self._loop, self._client = self._loop, None, None
        if loop is None:
            return
        try:
            with suppress(Exception):
                loop.run_until_complete(asyncio.wait_for(self._say_goodbye(), CLOSE_SECONDS))
            loop.run_until_complete(_cancel_rest())
        finally:
            loop.close()

    async def _say_goodbye(self) -> None:
        if self._connection is None:
            return
        try:
            self._connection.close()
            await self._connection.wait_closed()
        finally:
            self._connection.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_client(self) -> asyncssh.SFTPClient:
        if self._client is None:
            raise ConnectionLost(f"The session with {self._host} is closed; connect again.")
        return self._client

    def _run(self, seconds: float, work: Coroutine[Any, Any, T], path: str = "") -> T:
        """Run the session's loop until the work is done, and tell failures as ours.

        The seconds come first because they may turn out to be over: work that was made by then would never be begun.
        """
        if self._loop is None:
            work.close()
            raise ConnectionLost(f"The session with {self._host} is closed; connect again.")
        try:
            with told_plainly(self._host, path):
                return self._loop.run_until_complete(asyncio.wait_for(work, seconds))
        except (RemoteTimedOut, ConnectionLost):
            # A server that is gone is not waited for again when the session is closed.
            if self._connection is not None:
                self._connection.abort()
            raise


def _moment(seconds: float | None) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return None


async def _cancel_rest() -> None:
    """A loop that closes over waiting tasks would complain about each of them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _HostKeyJudge(asyncssh.SSHClient):
    """Judges the server's key; asyncssh asks it during each key exchange."""

    def __init__(self, host: str, approved: Collection[HostKey]) -> None:
        self._host = host
        self._approved = approved
        self.refusal: ConfigError | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        del host, addr, port
        try:
            check_host_key(HostKey.parse(key.export_public_key().decode()), self._approved, self._host)
        except ConfigError as error:
            self.refusal = error
        return self.refusal is None

    def algorithms(self) -> list[str]:
        """Those of the approved keys come first: a server with several keys then shows the approved one."""
        approved = {key.type for key in self._approved}
        return sorted(HOST_KEY_ALGORITHMS, key=lambda name: _key_type(name) not in approved)


def _key_type(algorithm: str) -> str:
    return _RSA if algorithm.startswith("rsa-") else algorithm


def load_private_key(credentials: Credentials) -> asyncssh.SSHKey:
    """Read the private key of some credentials: OpenSSH or PEM, encrypted or not.

    Raises:
        InvalidPrivateKey: it cannot be read, or the passphrase does not open it.
    """
    problem = ""
    try:
        return asyncssh.import_private_key(
            (credentials.private_key or "").strip() + "\n", credentials.passphrase or None
        )
    except ValueError as error:
        is_locked = isinstance(error, asyncssh.KeyEncryptionError) or "passphrase" in str(error).lower()
        problem = "its passphrase is missing or wrong" if is_locked else "it is no private key in OpenSSH or PEM form"
    # Raised out here: what the parser quotes may be a part of the key.
    raise InvalidPrivateKey(f"The private key cannot be used: {problem}. Nothing was sent. Enter it again.")


def _options(host: str, credentials: Credentials, judge: _HostKeyJudge) -> asyncssh.SSHClientConnectionOptions:
    key = load_private_key(credentials) if credentials.private_key else None
    try:
        return asyncssh.SSHClientConnectionOptions(
            host=host,
            client_factory=lambda: judge,
            username=credentials.username,
            password=credentials.password,
            client_keys=[key] if key else None,
            # Empty ones would mean the files of the user; three empty lists mean that only the judge decides.
            known_hosts=([], [], []),
            x509_trusted_certs=None,
            x509_trusted_cert_paths=[],
            config=None,
            agent_path=None,
            gss_host=None,
            gss_kex=False,
            gss_auth=False,
            host_based_auth=False,
            server_host_key_algs=judge.algorithms(),
            # Processors have instructions for AES; ChaCha20, the library's first choice, takes half as long again.
            encryption_algs="^aes256-gcm@openssh.com,aes128-gcm@openssh.com",
            # What the library still offers of SHA-1 goes.
            kex_algs="-*-sha1,rsa2048-sha256",
            mac_algs="-hmac-sha1*",
            signature_algs="-ssh-rsa",
            compression_algs=None,
            utf8_decode_errors="replace",
            window=WINDOW_BYTES,
            login_timeout=0,
        )
    except (ValueError, OSError) as error:
        raise ConfigError(f"SSH cannot be used for {host}: {quote_reply(str(error))}") from None
