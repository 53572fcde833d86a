"""Reading files by plain FTP: passive, binary, and only where the operator switched it on.

Credentials and files travel readable to anybody on the way. The data connection goes to the very address of the
control connection, whatever the server says: an address in a passive reply could lead anywhere.
"""

import ftplib
import re
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from harvester.guards import transfer
from harvester.guards.egress import EgressPolicy
from harvester.guards.ftp_errors import is_missing, is_unsupported, told_plainly
from harvester.guards.greeting import expect_greeting
from harvester.guards.remote import (
    ConnectionLost,
    Credentials,
    Downloaded,
    OnProgress,
    PlainFtpForbidden,
    ProtocolMismatch,
    RemoteStat,
    Sink,
    TransferLimits,
    check_path,
)
from harvester.kernel.config import HIGHEST_PORT
from harvester.kernel.errors import InvalidInput

DEFAULT_PORT = 21
VARIABLE = "AFFILIATE_FEED_ALLOW_PLAIN_FTP"
BLOCK_BYTES = 256 * 1024
#: Servers take passive ports from above; a lower one would be a service of its own.
LOWEST_DATA_PORT = 1024
#: Greetings have some lines; one without end is an attack.
MOST_REPLY_LINES = 200
_TIME = re.compile(r"213 +(\d{14})(?:\.\d+)?\s*", re.ASCII)


def connect_ftp(
    host: str,
    port: int,
    credentials: Credentials,
    *,
    allow_plain_ftp: bool,
    policy: EgressPolicy,
    limits: TransferLimits | None = None,
) -> "FtpSession":
    """Connect and log in.

    Args:
        host: the server.
        port: its port.
        credentials: who logs in; the password is sent as it is.
        allow_plain_ftp: the setting AFFILIATE_FEED_ALLOW_PLAIN_FTP.
        policy: where connections may go.
        limits: how patient the session is.

    Raises:
        PlainFtpForbidden: it is switched off; nothing was connected.
        HarvesterError: one of the errors in remote.py and egress.py.
    """
    if not allow_plain_ftp:
        raise PlainFtpForbidden(
            f"Plain FTP is switched off, because it sends the password readable to anybody on the way. Nothing was "
            f"connected. Use SFTP; or an operator sets {VARIABLE}=true."
        )
    if not credentials.password:
        raise InvalidInput("FTP needs a password; private keys are for SFTP.")
    session = FtpSession(host, policy, limits or TransferLimits())
    try:
        session.log_in(port, credentials.username, credentials.password)
    except BaseException:
        session.close()
        raise
    return session


class FtpSession:
    """A session with an FTP server; `connect_ftp` makes it."""

    def __init__(self, host: str, policy: EgressPolicy, limits: TransferLimits) -> None:
        self._host = host
        self._limits = limits
        self._ftp: _CheckedFtp | None = _CheckedFtp(policy, limits)

    def log_in(self, port: int, username: str, password: str) -> None:
        with told_plainly(self._host):
            ftp = self._open_ftp()
            ftp.open(self._host, port)
            ftp.login(username, password)
            ftp.voidcmd("TYPE I")

    def stat(self, path: str) -> RemoteStat:
        """Ask for size and time. A server may know neither; a file is missing when it refuses both for that."""
        check_path(path)
        with told_plainly(self._host, path):
            size = self._ask(f"SIZE {path}")
            mtime = self._ask(f"MDTM {path}")
            if isinstance(size, ftplib.Error) and isinstance(mtime, ftplib.Error):
                self._raise_if_missing(size, mtime)
        return RemoteStat(size=_read_size(size), mtime=_read_time(mtime))

    def download(self, path: str, sink: Sink, *, cap_bytes: int, on_progress: OnProgress | None = None) -> Downloaded:
        return transfer.download(self, path, sink, cap_bytes=cap_bytes, limits=self._limits, on_progress=on_progress)

    def read_small(self, path: str, *, cap_bytes: int) -> bytes:
        return transfer.read_small(self, path, cap_bytes=cap_bytes, limits=self._limits)

    def blocks(self, path: str, pace: transfer.Pace) -> Generator[bytes, None, None]:
        """Yield the bytes of a file in order, to its end, which the server has to confirm."""
        ftp = self._open_ftp()
        with told_plainly(self._host, path):
            data = ftp.transfercmd(f"RETR {path}")
        is_whole = False
        try:
            with data, told_plainly(self._host, path):
                while block := _receive(data, pace):
                    yield block
            with told_plainly(self._host, path):
                ftp.voidresp()
            is_whole = True
        finally:
            # Servers disagree on how a transfer is broken off; a new connection is sure.
            if not is_whole:
                self.close()

    def close(self) -> None:
        ftp, self._ftp = self._ftp, None
        if ftp is None:
            return
        with suppress(OSError, EOFError, ftplib.Error):
            ftp.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_ftp(self) -> "_CheckedFtp":
        if self._ftp is None:
            raise ConnectionLost(f"The session with {self._host} is closed; connect again.")
        return self._ftp

    def _ask(self, command: str) -> str | ftplib.Error:
        try:
            return self._open_ftp().sendcmd(command)
        except ftplib.error_perm as refusal:
            if is_missing(refusal) or is_unsupported(refusal):
                return refusal
            raise

    @staticmethod
    def _raise_if_missing(*refusals: ftplib.Error) -> None:
        if all(is_missing(refusal) for refusal in refusals):
            raise refusals[0]


class _CheckedFtp(ftplib.FTP):
    """The standard client, with both connections made by the egress policy."""

    def __init__(self, policy: EgressPolicy, limits: TransferLimits) -> None:
        super().__init__(timeout=limits.idle)
        self._policy = policy
        self._limits = limits
        self._replies: _Replies | None = None

    def open(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.sock = self._policy.connect(host, port, self._limits.connect)
        expect_greeting(self.sock, host, "FTP")
        self.af = self.sock.family
        self._replies = _Replies(self.sock, self._limits.login)
        self.file = self._replies  # type: ignore[assignment]
        self.welcome = self.getresp()
        self._replies.seconds = self._limits.idle

    def getmultiline(self) -> str:
        if self._replies:
            self._replies.begin()
        return super().getmultiline()

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        del rest
        if self.sock is None:
            raise EOFError
        _, port = self.makepasv()
        if not LOWEST_DATA_PORT <= port <= HIGHEST_PORT:
            raise ProtocolMismatch(
                f"{self.host} offers its data on port {port}, where no FTP server does. Ask the partner."
            )
        data = self._policy.connect_again(self.sock, port, self._limits.connect)
        try:
            self._begin_transfer(cmd)
        except BaseException:
            data.close()
            raise
        return data, None

    def _begin_transfer(self, cmd: str) -> None:
        reply = self.sendcmd(cmd)
        if not reply.startswith("1"):
            raise ftplib.error_reply(reply)  # noqa: S321 - an error, no call


class _Replies:
    """The lines of the control connection, each reply within a time and a number of lines.

    The standard client sets a time for each piece that arrives: one byte a minute would hold it for ever.
    """

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._buffer = b""
        self._lines_left = MOST_REPLY_LINES
        self._deadline = 0.0
        self.seconds = seconds

    def begin(self) -> None:
        self._deadline = time.monotonic() + self.seconds
        self._lines_left = MOST_REPLY_LINES

    def readline(self, limit: int) -> str:
        self._lines_left -= 1
        if self._lines_left < 0:
            raise ftplib.error_proto("the reply has no end")  # noqa: S321 - an error, no call
        while b"\n" not in self._buffer[:limit] and len(self._buffer) < limit:
            self._connection.settimeout(max(self._deadline - time.monotonic(), 0.001))
            piece = self._connection.recv(4096)
            if not piece:
                break
            self._buffer += piece
        end = self._buffer.find(b"\n", 0, limit) + 1 or min(limit, len(self._buffer))
        line, self._buffer = self._buffer[:end], self._buffer[end:]
        self._connection.settimeout(self.seconds)
        return line.decode("utf-8", errors="replace")

    def close(self) -> None:
        self._buffer = b""


def _receive(data: socket.socket, pace: transfer.Pace) -> bytes:
    data.settimeout(pace.patience())
    return data.recv(BLOCK_BYTES)


def _read_size(reply: str | ftplib.Error) -> int | None:
    digits = reply[3:].strip() if isinstance(reply, str) and reply.startswith("213") else ""
    return int(digits) if digits.isascii() and digits.isdigit() else None


def _read_time(reply: str | ftplib.Error) -> datetime | None:
    match = _TIME.fullmatch(reply) if isinstance(reply, str) else None
    if not match:
        return None
    with suppress(ValueError):
        return datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return None
