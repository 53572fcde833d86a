"""Files on other people's servers: what every protocol offers, and what can go wrong with it.

A session is one connection, logged in. It belongs to one thread, which runs no event loop. It is closed after use;
when a transfer fails, it may have closed itself.

TransientError                  tried again later
├── RemoteTimedOut              the server went silent
├── ConnectionLost              the connection broke
├── RemoteBusy                  the server has no room for us or its file just now
├── FileChanged                 the file was replaced while it was read
├── TruncatedDownload           fewer bytes came than the server said
├── TransferTooSlow             bytes come, but too few to be of use
├── TransferTooLong             the whole transfer took longer than it may
└── the transient errors of egress.py
TerminalError                   never tried again
├── AuthenticationFailed        the credentials are not accepted
├── PermissionDenied            the account may not read that path
├── RemoteFileNotFound          there is no such path
├── NotAFile                    the path is a directory or a device
├── FileSizeLimitExceeded       the file is larger than it may be
└── ConfigError                 a person has to change the feed or a setting
    ├── ProtocolMismatch        another kind of server, or one without a common algorithm
    ├── PlainFtpForbidden       plain FTP is switched off
    ├── InvalidPrivateKey       the key or its passphrase cannot be used
    ├── HostKeyUnknown          nobody approved the server's key yet       (host_keys.py)
    ├── HostKeyChanged          the server shows another key               (host_keys.py)
    └── the config errors of egress.py

No message carries a password, a key or a passphrase; text that a server sent is cut and redacted.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from harvester.guards.redaction import redact_text, remember
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError, TransientError

#: More of what a server says helps nobody.
LONGEST_REPLY = 200
#: More of it is not even looked at.
LONGEST_READ = 10_000


class RemoteTimedOut(TransientError):
    """The server went silent."""

    code = "REMOTE_TIMEOUT"


class ConnectionLost(TransientError):
    """The connection broke."""

    code = "CONNECTION_LOST"


class RemoteBusy(TransientError):
    """The server cannot serve this just now."""

    code = "REMOTE_BUSY"


class FileChanged(TransientError):
    """The file was replaced while it was read."""

    code = "FILE_CHANGED"


class TruncatedDownload(TransientError):
    """Fewer bytes came than the server said."""

    code = "TRUNCATED_DOWNLOAD"


class TransferTooSlow(TransientError):
    """Bytes come, but too few to be of use."""

    code = "TRANSFER_TOO_SLOW"


class TransferTooLong(TransientError):
    """The transfer took longer than it may."""

    code = "TRANSFER_TOO_LONG"


class AuthenticationFailed(TerminalError):
    """The server does not accept the credentials."""

    code = "AUTH_FAILED"


class PermissionDenied(TerminalError):
    """The account may not read that path."""

    code = "PERMISSION_DENIED"


class RemoteFileNotFound(TerminalError):
    """There is no such path on the server."""

    code = "REMOTE_FILE_NOT_FOUND"


class NotAFile(TerminalError):
    """The path is a directory or a device."""

    code = "NOT_A_FILE"


class FileSizeLimitExceeded(TerminalError):
    """The file is larger than it may be."""

    code = "FILE_SIZE_LIMIT_EXCEEDED"


class ProtocolMismatch(ConfigError):
    """The server speaks something else."""

    code = "PROTOCOL_MISMATCH"


class PlainFtpForbidden(ConfigError):
    """Plain FTP is switched off."""

    code = "PLAIN_FTP_FORBIDDEN"


class InvalidPrivateKey(ConfigError):
    """The private key or its passphrase cannot be used."""

    code = "INVALID_PRIVATE_KEY"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Who logs in, and with what: a password, a private key, or both (the key is tried first).

    Attributes:
        username: the account.
        password: its password.
        private_key: the text of a key file, OpenSSH or PEM.
        passphrase: what the private key is encrypted with.
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
        _refuse_unsendable("The user name", self.username)
        _refuse_unsendable("The password", self.password or "")
        for secret in (self.password, self.private_key, self.passphrase):
            if secret:
                remember(secret)


@dataclass(frozen=True, kw_only=True)
class TransferLimits:
    """How patient a session is. All times are in seconds.

    Attributes:
        connect: until the server accepts the connection and says its first word.
        login: until it has accepted the credentials.
        idle: silence that ends a session.
        total: the longest that one transfer may take.
        rate_window: the time over which the least rate is measured.
        least_rate: bytes for each second that a window has to bring.
    """

    connect: float = 20.0
    login: float = 30.0
    idle: float = 60.0
    total: float = 2 * 60 * 60.0
    rate_window: float = 60.0
    least_rate: int = 8 * 1024


@dataclass(frozen=True, kw_only=True)
class RemoteStat:
    """What the server says about a file; many servers do not know one or the other.

    Attributes:
        size: bytes.
        mtime: when it was last changed, in UTC, as exact as the server tells.
    """

    size: int | None
    mtime: datetime | None


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """A whole file, read from a server on which it did not change meanwhile.

    Attributes:
        size: bytes that came.
        sha256: their hash, in hexadecimal.
        stat: what the server says about the file.
    """

    size: int
    sha256: str
    stat: RemoteStat


class Sink(Protocol):
    """Where a download goes: a file, the writer of an artifact."""

    def write(self, block: bytes, /) -> object: ...


#: Gets the bytes that came so far and the size of the file, if that is known; what it raises ends the transfer.
OnProgress = Callable[[int, int | None], object]


class RemoteFiles(Protocol):
    """A session with a server."""

    def stat(self, path: str) -> RemoteStat:
        """Ask the server about a file."""
        ...

    def download(self, path: str, sink: Sink, *, cap_bytes: int, on_progress: OnProgress | None = None) -> Downloaded:
        """Read a whole file into a sink, block by block.

        What reached the sink counts only if this returns.
        """
        ...

    def read_small(self, path: str, *, cap_bytes: int) -> bytes:
        """Read a whole small file, such as a manifest."""
        ...

    def close(self) -> None:
        """End the session; doing it twice is harmless."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def check_path(path: str) -> None:
    """Refuse a path that could not be sent as it is."""
    if not path:
        raise InvalidInput("The path is missing.")
    _refuse_unsendable("The path", path)


def _refuse_unsendable(what: str, text: str) -> None:
    """A line break would begin a command of its own; half a character cannot be encoded."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise InvalidInput(f"{what} has a line break or another control character in it; enter it again.")


def quote_reply(text: str) -> str:
    """What a server said, for a message: without secrets, on one line, cut."""
    # Redacted as it came: a password with two spaces in it would not be known any more with one.
    redacted = redact_text(text[:LONGEST_READ])
    printable = "".join(character if character.isprintable() else " " for character in redacted)
    return " ".join(printable.split())[:LONGEST_REPLY]
