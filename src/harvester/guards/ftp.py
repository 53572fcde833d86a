"""Read files over plain FTP: passive, binary, and only if an operator enabled it.

Credentials and files are sent unencrypted. The data connection always goes to the address of the control connection,
because an address in a passive reply could lead anywhere.
"""

import ftplib
import re
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from harvester.guards import transfer
from harvester.guards.egress import EgressPolicy
from harvester.guards.greeting import expect_greeting
from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    Credentials,
    Downloaded,
    OnProgress,
    PermissionDenied,
    PlainFtpForbidden,
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
from harvester.kernel.config import HIGHEST_PORT
from harvester.kernel.errors import HarvesterError, InvalidInput

DEFAULT_PORT = 21
VARIABLE = "AFFILIATE_FEED_ALLOW_PLAIN_FTP"
BLOCK_BYTES = 256 * 1024
#: Passive ports are higher; a lower one would be another service.
LOWEST_DATA_PORT = 1024
#: Greetings have a few lines; one that never ends is an attack.
MOST_REPLY_LINES = 200
_TIME = re.compile(r"213 +(\d{14})(?:\.\d+)?\s*", re.ASCII)

_UNAVAILABLE = 550
_UNSUPPORTED = range(500, 505)
_LOGIN = (430, 530, 532)
_DENIED = re.compile(r"permission|denied|not allowed|not permitted|forbidden|access", re.IGNORECASE)


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
        credentials: user name and password; the password is sent unencrypted.
        allow_plain_ftp: the setting AFFILIATE_FEED_ALLOW_PLAIN_FTP.
        policy: where connections may go.
        limits: timeouts of the session.

    Raises:
        PlainFtpForbidden: it is disabled; no connection was made.
        HarvesterError: one of the errors in remote.py and egress.py.
    """
    if not allow_plain_ftp:
        raise PlainFtpForbidden(
            "Plain FTP is disabled, because it sends the password unencrypted. No connection was made. Use SFTP, or "
            f"have an operator set {VARIABLE}=true."
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
    """A session with an FTP server; created by `connect_ftp`."""

    def __init__(self, host: str, policy: EgressPolicy, limits: TransferLimits) -> None:
        self._host = host
        self._limits = limits
        self._ftp: _CheckedFtp | None = _CheckedFtp(policy, limits)

    def log_in(self, port: int, username: str, password: str) -> None:
        with translated_errors(self._host):
            ftp = self._open_ftp()
            ftp.open(self._host, port)
            ftp.login(username, password)
            ftp.voidcmd("TYPE I")

    def stat(self, path: str) -> RemoteStat:
        """Return size and time, if the server knows them; a file is missing if the server refuses both for that."""
        check_path(path)
        with translated_errors(self._host, path):
            size = self._ask(f"SIZE {path}")
            mtime = self._ask(f"MDTM {path}")
            refusals = [reply for reply in (size, mtime) if isinstance(reply, ftplib.Error) and _is_missing(reply)]
            if len(refusals) == 2:  # noqa: PLR2004 - both of them
                raise refusals[0]
        digits = size[3:].strip() if isinstance(size, str) and size.startswith("213") else ""
        return RemoteStat(
            size=int(digits) if digits.isascii() and digits.isdigit() else None,
            mtime=_read_time(mtime) if isinstance(mtime, str) else None,
        )

    def download(self, path: str, sink: Sink, *, cap_bytes: int, on_progress: OnProgress | None = None) -> Downloaded:
        return transfer.download(self, path, sink, cap_bytes=cap_bytes, limits=self._limits, on_progress=on_progress)

    def read_small(self, path: str, *, cap_bytes: int) -> bytes:
        return transfer.read_small(self, path, cap_bytes=cap_bytes, limits=self._limits)

    def blocks(self, path: str, pace: transfer.Pace) -> Generator[bytes, None, None]:
        """Yield the bytes of a file in order, to its end, which the server must confirm."""
        ftp = self._open_ftp()
        with translated_errors(self._host, path):
            data = ftp.transfercmd(f"RETR {path}")
        is_complete = False
        try:
            with data, translated_errors(self._host, path):
                data.settimeout(pace.patience())
                while block := data.recv(BLOCK_BYTES):
                    yield block
                    data.settimeout(pace.patience())
            with translated_errors(self._host, path):
                ftp.voidresp()
            is_complete = True
        finally:
            # Servers disagree on how a transfer is aborted; a new connection always works.
            if not is_complete:
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
            if _is_missing(refusal) or _number(refusal) in _UNSUPPORTED:
                return refusal
            raise


class _CheckedFtp(ftplib.FTP):
    """The standard client, with both connections made through the egress policy."""

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
                f"{self.host} offers its data on port {port}, which no FTP server uses. Ask the partner."
            )
        data = self._policy.connect_again(self.sock, port, self._limits.connect)
        try:
            reply = self.sendcmd(cmd)
            if not reply.startswith("1"):
                raise ftplib.error_reply(reply)  # noqa: S321, TRY301 - an error and not a call; the data socket is closed
        except BaseException:
            data.close()
            raise
        return data, None


class _Replies:
    """The lines of the control connection, each reply with a limit of time and lines.

    The standard client has a timeout for each piece that arrives: one byte a minute would block it forever.
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


def _read_time(reply: str) -> datetime | None:
    if match := _TIME.fullmatch(reply):
        with suppress(ValueError):
            return datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return None


@contextmanager
def translated_errors(host: str, path: str = "") -> Iterator[None]:
    """Raise the standard library's errors as those of remote.py; all others pass.

    The reply code decides about retries. Servers use 550 both for a missing file and for one that may not be read, so
    only there the text is examined, and both are final.
    """
    try:
        yield
    except (ftplib.error_temp, ftplib.error_perm) as refusal:
        raise _translate(refusal, host, path) from None
    except ftplib.Error as strange:
        reply = quote_reply(str(strange))
        raise ProtocolMismatch(
            f"{host} does not respond like an FTP server: {reply!r}. Check the port, and ask the partner."
        ) from None
    except TimeoutError:
        raise RemoteTimedOut(f"{host} stopped responding. It will be retried later.") from None
    except EOFError:
        raise ConnectionLost(f"{host} closed the connection. It will be retried later.") from None
    except OSError as error:
        raise ConnectionLost(f"The connection to {host} broke: {error.strerror}. It will be retried later.") from None


def _translate(refusal: ftplib.Error, host: str, path: str) -> HarvesterError:
    reply = f"{host} replied {quote_reply(str(refusal))!r}."
    number = _number(refusal)
    if isinstance(refusal, ftplib.error_temp) and number not in _LOGIN:
        return RemoteBusy(f"{reply} It will be retried later.")
    if number in _UNSUPPORTED:
        return ProtocolMismatch(f"{reply} The server does not support passive transfers. Ask the partner for SFTP.")
    if number in _LOGIN or not path:
        return AuthenticationFailed(f"{reply} The login will not be retried; check user name and password.")
    if _DENIED.search(str(refusal)):
        return PermissionDenied(f"{reply} Ask the partner for access to {path!r}, or correct the path.")
    return RemoteFileNotFound(f"{reply} Correct the path {path!r}; it is case-sensitive.")


def _is_missing(refusal: ftplib.Error) -> bool:
    return _number(refusal) == _UNAVAILABLE


def _number(refusal: ftplib.Error) -> int:
    digits = str(refusal)[:3]
    return int(digits) if digits.isascii() and digits.isdigit() else 0
