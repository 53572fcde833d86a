"""Read files over SFTP, from a server whose host key was approved.

The machine's SSH setup is not used: no agent, no configuration, no known_hosts file, no keys of the user. The host key
is checked during the key exchange, before any credential leaves the process.

asyncssh needs an event loop. Each session has its own, which runs only while a call waits for the server, in the
thread of the caller, so a session is an ordinary blocking object.
"""

import asyncio
import logging
import socket
from collections.abc import Collection, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import asyncssh

from harvester.guards import transfer
from harvester.guards.egress import EgressPolicy
from harvester.guards.greeting import expect_greeting
from harvester.guards.host_keys import HostKey, check_host_key
from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    Credentials,
    Downloaded,
    InvalidPrivateKey,
    NotAFile,
    OnProgress,
    PermissionDenied,
    ProtocolMismatch,
    RemoteBusy,
    RemoteFileNotFound,
    RemoteStat,
    RemoteTimedOut,
    Sink,
    TransferLimits,
    check_path,
    quote_reply,
)
from harvester.guards.sftp_reader import WindowedReader
from harvester.kernel.errors import ConfigError, HarvesterError

DEFAULT_PORT = 22
#: Bytes in flight. Measured with 50 ms to the server: 2 MB 18 MB/s, 4 MB 36 MB/s, 8 MB 48 MB/s.
WINDOW_BYTES = 8 * 1024 * 1024
#: Closing is a courtesy to the server; nothing waits longer for it.
CLOSE_SECONDS = 2.0

#: Requested host keys, the best first. RSA keys sign with SHA-2 only.
HOST_KEY_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
T = TypeVar("T")

# Its lines about each step of a connection repeat what the caller logs.
asyncssh.set_log_level(logging.WARNING)

_Kinds = tuple[type[Exception], ...]

#: The first row that matches counts: the library's errors derive from each other.
_ERRORS: tuple[tuple[_Kinds, type[HarvesterError], str], ...] = (
    ((TimeoutError,), RemoteTimedOut, "{host} stopped responding. It will be retried later."),
    (
        (asyncssh.PermissionDenied,),
        AuthenticationFailed,
        "{host} did not accept the credentials. They will not be retried; check user name, password and key.",
    ),
    (
        (asyncssh.SFTPPermissionDenied,),
        PermissionDenied,
        "{host} does not let this account read {path}: {reason}. Ask the partner for access, or correct the path.",
    ),
    (
        (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath, asyncssh.SFTPNotADirectory, asyncssh.SFTPInvalidFilename),
        RemoteFileNotFound,
        "There is no {path} on {host}. Correct the path; it is case-sensitive.",
    ),
    (
        (asyncssh.SFTPFileIsADirectory,),
        NotAFile,
        "{path} on {host} is a directory, not a file. Correct the path.",
    ),
    (
        # A ValueError is how the library reports numbers that no key exchange can have.
        (
            *(asyncssh.KeyExchangeFailed, asyncssh.ProtocolNotSupported, asyncssh.ProtocolError),
            *(asyncssh.SFTPOpUnsupported, ValueError),
        ),
        ProtocolMismatch,
        (
            "{host} and Harvester have no SFTP algorithms in common: {reason}. Check the port; only the partner can "
            "upgrade a server that offers nothing but outdated algorithms."
        ),
    ),
    (
        (asyncssh.ConnectionLost, asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.MACError),
        ConnectionLost,
        "The connection to {host} broke: {reason}. It will be retried later.",
    ),
    (
        (asyncssh.DisconnectError, asyncssh.ChannelOpenError, asyncssh.SFTPError),
        RemoteBusy,
        "{host} cannot serve this now: {reason}. It will be retried later.",
    ),
    ((OSError,), ConnectionLost, "The connection to {host} broke: {reason}. It will be retried later."),
)
#: The answer of a server with SSH but without SFTP.
_NO_SUBSYSTEM = asyncssh.OPEN_REQUEST_SESSION_FAILED


def connect_sftp(
    host: str,
    port: int,
    credentials: Credentials,
    *,
    host_keys: Collection[HostKey],
    policy: EgressPolicy,
    limits: TransferLimits | None = None,
) -> "SftpSession":
    """Connect, check the server's key, and log in.

    Args:
        host: the server.
        port: its port.
        credentials: user name with password or key.
        host_keys: the approved keys of this server; with none, the error contains the server's key.
        policy: where connections may go.
        limits: timeouts of the session.

    Raises:
        HostKeyUnknown, HostKeyChanged: no credential was sent.
        HarvesterError: one of the errors in remote.py and egress.py.
    """
    limits = limits or TransferLimits()
    checker = _HostKeyChecker(host, host_keys)
    options = _options(host, credentials, checker)
    connection = policy.connect(host, port, limits.connect)
    try:
        expect_greeting(connection, host, "SFTP")
        connection.setblocking(False)
        session = SftpSession(host, limits)
    except BaseException:
        connection.close()
        raise
    session.log_in(connection, options, checker)
    return session


class SftpSession:
    """A session with an SFTP server; created by `connect_sftp`."""

    def __init__(self, host: str, limits: TransferLimits) -> None:
        self._host = host
        self._limits = limits
        # Not asyncio.Runner: its handling of Ctrl-C formats each block (measured: 4 of 6 seconds).
        self._loop: asyncio.AbstractEventLoop | None = asyncio.new_event_loop()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._client: asyncssh.SFTPClient | None = None

    def log_in(
        self, connection: socket.socket, options: asyncssh.SSHClientConnectionOptions, checker: "_HostKeyChecker"
    ) -> None:
        try:
            self._run(self._limits.login, self._open(connection, options))
        except BaseException:
            self.close()
            if checker.refusal:
                raise checker.refusal from None
            raise

    async def _open(self, connection: socket.socket, options: asyncssh.SSHClientConnectionOptions) -> None:
        # `config` is also in the options, but without it here the user's configuration would be read.
        self._connection = await asyncssh.connect(self._host, sock=connection, config=None, options=options)
        self._client = await self._connection.start_sftp_client()

    def stat(self, path: str) -> RemoteStat:
        check_path(path)
        attributes = self._run(self._limits.idle, self._open_client().stat(path), path)
        if attributes.type not in (asyncssh.FILEXFER_TYPE_REGULAR, asyncssh.FILEXFER_TYPE_UNKNOWN):
            raise NotAFile(f"{path!r} on {self._host} is a directory or a device, not a file. Correct the path.")
        mtime = None
        if attributes.mtime is not None:
            with suppress(ValueError, OverflowError, OSError):
                mtime = datetime.fromtimestamp(attributes.mtime, UTC)
        return RemoteStat(size=attributes.size, mtime=mtime)

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
                loop.run_until_complete(asyncio.wait_for(self._disconnect(), CLOSE_SECONDS))
            loop.run_until_complete(_cancel_tasks())
        finally:
            loop.close()

    async def _disconnect(self) -> None:
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
        """Run the session's loop until the work is done, and translate its errors.

        `seconds` comes first because computing it may raise; a coroutine created before that would never be awaited.
        """
        if self._loop is None:
            work.close()
            raise ConnectionLost(f"The session with {self._host} is closed; connect again.")
        try:
            with translated_errors(self._host, path):
                return self._loop.run_until_complete(asyncio.wait_for(work, seconds))
        except (RemoteTimedOut, ConnectionLost):
            # Closing the session must not wait again for a server that is gone.
            if self._connection is not None:
                self._connection.abort()
            raise


@contextmanager
def translated_errors(host: str, path: str = "") -> Iterator[None]:
    """Raise asyncssh's errors as those of remote.py; all others pass."""
    try:
        yield
    except HarvesterError:
        raise
    except Exception as error:
        translated = _translate(error, host, path)
        if translated is None:
            raise
        raise translated from None


def _translate(error: Exception, host: str, path: str) -> HarvesterError | None:
    if isinstance(error, asyncssh.ChannelOpenError) and error.code == _NO_SUBSYSTEM:
        return ProtocolMismatch(f"{host} has SSH but no SFTP. Ask the partner, or use another transport.")
    for kinds, kind, text in _ERRORS:
        if isinstance(error, kinds):
            reason = quote_reply(getattr(error, "reason", "") or str(error)) or "no reason given"
            return kind(text.format(host=host, path=repr(path), reason=reason))
    return None


async def _cancel_tasks() -> None:
    """Cancel the remaining tasks; closing the loop would otherwise log a warning about each of them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _HostKeyChecker(asyncssh.SSHClient):
    """Checks the server's key; asyncssh calls it during each key exchange."""

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
        """Return those of the approved keys first, so that a server with several keys shows the approved one."""
        approved = {key.type for key in self._approved}
        return sorted(
            HOST_KEY_ALGORITHMS,
            key=lambda name: ("ssh-rsa" if name.startswith("rsa-") else name) not in approved,
        )


def load_private_key(credentials: Credentials) -> asyncssh.SSHKey:
    """Return the private key of credentials: OpenSSH or PEM, encrypted or not.

    Raises:
        InvalidPrivateKey: it cannot be read, or the passphrase is wrong.
    """
    problem = ""
    try:
        return asyncssh.import_private_key(
            (credentials.private_key or "").strip() + "\n", credentials.passphrase or None
        )
    except ValueError as error:
        is_locked = isinstance(error, asyncssh.KeyEncryptionError) or "passphrase" in str(error).lower()
        problem = (
            "its passphrase is missing or wrong" if is_locked else "it is not a private key in OpenSSH or PEM form"
        )
    # Raised outside of the handler, because the parser's error may quote a part of the key.
    raise InvalidPrivateKey(f"The private key cannot be used: {problem}. Nothing was sent. Enter it again.")


def _options(host: str, credentials: Credentials, checker: _HostKeyChecker) -> asyncssh.SSHClientConnectionOptions:
    key = load_private_key(credentials) if credentials.private_key else None
    try:
        return asyncssh.SSHClientConnectionOptions(
            host=host,
            client_factory=lambda: checker,
            username=credentials.username,
            password=credentials.password,
            client_keys=[key] if key else None,
            # None would mean the files of the user; three empty lists mean that only the checker decides.
            known_hosts=([], [], []),
            x509_trusted_certs=None,
            x509_trusted_cert_paths=[],
            config=None,
            agent_path=None,
            gss_host=None,
            gss_kex=False,
            gss_auth=False,
            host_based_auth=False,
            server_host_key_algs=checker.algorithms(),
            # CPUs have instructions for AES; ChaCha20, the library's first choice, takes 50 % longer.
            encryption_algs="^aes256-gcm@openssh.com,aes128-gcm@openssh.com",
            # Without the algorithms with SHA-1 that the library still offers.
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
