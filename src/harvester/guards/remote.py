"""Files on remote servers: the interface of all protocols, and its errors.

A session is one logged-in connection. It belongs to one thread without a running event loop. It is closed after use;
a failed transfer may have closed it already.

TransientError                  retried later
├── RemoteTimedOut              the server stopped responding
├── ConnectionLost              the connection broke
├── RemoteBusy                  the server is overloaded or the file is in use
├── FileChanged                 the file was replaced while it was read
├── TruncatedDownload           fewer bytes arrived than the server reported
├── TransferTooSlow             too few bytes per second
├── TransferTooLong             the transfer exceeded its total time
└── the transient errors of egress.py
TerminalError                   never retried
├── AuthenticationFailed        the credentials are not accepted
├── PermissionDenied            the account may not read that path
├── RemoteFileNotFound          the path does not exist
├── NotAFile                    the path is a directory or a device
├── FileSizeLimitExceeded       the file exceeds the size limit
└── ConfigError                 a person has to change the feed or a setting
    ├── ProtocolMismatch        another kind of server, or no common algorithm
    ├── PlainFtpForbidden       plain FTP is disabled
    ├── InvalidPrivateKey       the key or its passphrase cannot be used
    ├── HostKeyUnknown          nobody has approved the server's key       (host_keys.py)
    ├── HostKeyChanged          the server shows another key               (host_keys.py)
    └── the config errors of egress.py

No message contains a password, a key or a passphrase; text from a server is truncated and redacted.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from harvester.guards.redaction import redact_text, remember
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError, TransientError

#: Characters of a server's reply that are shown.
LONGEST_REPLY = 200
#: Characters of a server's reply that are examined.
LONGEST_READ = 10_000


class RemoteTimedOut(TransientError):
    """The server stopped responding."""

    code = "REMOTE_TIMEOUT"


class ConnectionLost(TransientError):
    """The connection broke."""

    code = "CONNECTION_LOST"


class RemoteBusy(TransientError):
    """The server cannot serve this now."""

    code = "REMOTE_BUSY"


class FileChanged(TransientError):
    """The file was replaced while it was read."""

    code = "FILE_CHANGED"


class TruncatedDownload(TransientError):
    """Fewer bytes arrived than the server reported."""

    code = "TRUNCATED_DOWNLOAD"


class TransferTooSlow(TransientError):
    """Too few bytes arrive per second."""

    code = "TRANSFER_TOO_SLOW"


class TransferTooLong(TransientError):
    """The transfer exceeded its total time."""

    code = "TRANSFER_TOO_LONG"


class AuthenticationFailed(TerminalError):
    """The server does not accept the credentials."""

    code = "AUTH_FAILED"


class PermissionDenied(TerminalError):
    """The account may not read that path."""

    code = "PERMISSION_DENIED"


class RemoteFileNotFound(TerminalError):
    """The path does not exist on the server."""

    code = "REMOTE_FILE_NOT_FOUND"


class NotAFile(TerminalError):
    """The path is a directory or a device."""

    code = "NOT_A_FILE"


class FileSizeLimitExceeded(TerminalError):
    """The file exceeds the size limit."""

    code = "FILE_SIZE_LIMIT_EXCEEDED"


class ProtocolMismatch(ConfigError):
    """The server uses another protocol, or no common algorithm."""

    code = "PROTOCOL_MISMATCH"


class PlainFtpForbidden(ConfigError):
    """Plain FTP is disabled."""

    code = "PLAIN_FTP_FORBIDDEN"


class InvalidPrivateKey(ConfigError):
    """The private key or its passphrase cannot be used."""

    code = "INVALID_PRIVATE_KEY"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """A user name with a password, a private key, or both (the key is tried first).

    Attributes:
        username: the account.
        password: its password.
        private_key: the text of a key file, OpenSSH or PEM.
        passphrase: of the private key.
    """

    username: str
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.username:
            raise InvalidInput("The user name is missing.")
        if not self.password and not self.private_key:
            raise InvalidInput("A password or a private key is needed.")
        _check_sendable("username", self.username)
        _check_sendable("password", self.password or "")
        for secret in (self.password, self.private_key, self.passphrase):
            if secret:
                remember(secret)


@dataclass(frozen=True, kw_only=True)
class TransferLimits:
    """Limits of a session. All times are in seconds.

    Attributes:
        connect: until the server accepts the connection and sends its greeting.
        login: until it has accepted the credentials.
        idle: time without data that ends a session.
        total: the longest time for one transfer.
        rate_window: the time over which the rate is measured.
        least_rate: bytes per second that are required in each window.
    """

    connect: float = 20.0
    login: float = 30.0
    idle: float = 60.0
    total: float = 2 * 60 * 60.0
    rate_window: float = 60.0
    least_rate: int = 8 * 1024


@dataclass(frozen=True, kw_only=True)
class RemoteStat:
    """Size and time of a file, if the server reports them.

    Attributes:
        size: bytes.
        mtime: when it last changed, in UTC, as exact as the server reports it.
    """

    size: int | None
    mtime: datetime | None


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """A complete download of a file that did not change meanwhile.

    Attributes:
        size: received bytes.
        sha256: their hash, in hexadecimal.
        stat: size and time as the server reports them.
    """

    size: int
    sha256: str
    stat: RemoteStat


class Sink(Protocol):
    """The target of a download: a file, the writer of an artifact."""

    def write(self, block: bytes, /) -> object: ...


#: Called with the bytes received so far and the size of the file, if known; an exception ends the transfer.
OnProgress = Callable[[int, int | None], object]


class RemoteFiles(Protocol):
    """A session with a server."""

    def stat(self, path: str) -> RemoteStat:
        """Return size and time of a file."""
        ...

    def download(self, path: str, sink: Sink, *, cap_bytes: int, on_progress: OnProgress | None = None) -> Downloaded:
        """Read a whole file into a sink, block by block; its content is valid only if this returns."""
        ...

    def read_small(self, path: str, *, cap_bytes: int) -> bytes:
        """Read a whole small file, such as a manifest."""
        ...

    def close(self) -> None:
        """End the session; may be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def check_path(path: str) -> None:
    """Raise if a path cannot be sent unchanged."""
    if not path:
        raise InvalidInput("The path is missing.")
    _check_sendable("path", path)


def _check_sendable(field: str, text: str) -> None:
    """Raise if text has a line break, which would start another command, or half a character."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise InvalidInput("it contains a line break or another control character; enter it again.", field=field)


def quote_reply(text: str) -> str:
    """Return a server's reply for a message: without secrets, on one line, truncated."""
    # Redacted first: a password with two spaces in it would not be recognized with one.
    redacted = redact_text(text[:LONGEST_READ])
    printable = "".join(character if character.isprintable() else " " for character in redacted)
    return " ".join(printable.split())[:LONGEST_REPLY]
