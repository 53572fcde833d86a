"""What asyncssh raises, told as the errors of remote.py."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncssh

from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    NotAFile,
    PermissionDenied,
    ProtocolMismatch,
    RemoteBusy,
    RemoteFileNotFound,
    RemoteTimedOut,
    quote_reply,
)
from harvester.kernel.errors import HarvesterError

_Kinds = tuple[type[Exception], ...]

#: The first row that fits counts: the library's kinds derive from each other.
_TABLE: tuple[tuple[_Kinds, type[HarvesterError], str], ...] = (
    ((TimeoutError,), RemoteTimedOut, "{host} went silent. It is tried again later."),
    (
        (asyncssh.PermissionDenied,),
        AuthenticationFailed,
        "{host} did not accept the credentials. They are not tried again; check user name, password and key.",
    ),
    (
        (asyncssh.SFTPPermissionDenied,),
        PermissionDenied,
        "{host} does not let this account read {path}: {reason}. Ask the partner for access, or correct the path.",
    ),
    (
        (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath, asyncssh.SFTPNotADirectory, asyncssh.SFTPInvalidFilename),
        RemoteFileNotFound,
        "There is no {path} on {host}. Correct the path; upper and lower case count.",
    ),
    (
        (asyncssh.SFTPFileIsADirectory,),
        NotAFile,
        "{path} on {host} is a directory, no file. Correct the path.",
    ),
    (
        # A ValueError is what the library lets pass of numbers that no key exchange can have.
        (
            *(asyncssh.KeyExchangeFailed, asyncssh.ProtocolNotSupported, asyncssh.ProtocolError),
            *(asyncssh.SFTPOpUnsupported, ValueError),
        ),
        ProtocolMismatch,
        (
            "{host} and Harvester have no common way of speaking SFTP: {reason}. Check the port; only the partner "
            "can renew a server that offers nothing but outdated algorithms."
        ),
    ),
    (
        (asyncssh.ConnectionLost, asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.MACError),
        ConnectionLost,
        "The connection to {host} broke: {reason}. It is tried again later.",
    ),
    (
        (asyncssh.DisconnectError, asyncssh.ChannelOpenError, asyncssh.SFTPError),
        RemoteBusy,
        "{host} cannot serve this now: {reason}. It is tried again later.",
    ),
    ((OSError,), ConnectionLost, "The connection to {host} broke: {reason}. It is tried again later."),
)
#: What a server answers that has SSH and no SFTP.
_NO_SUBSYSTEM = asyncssh.OPEN_REQUEST_SESSION_FAILED


@contextmanager
def told_plainly(host: str, path: str = "") -> Iterator[None]:
    """Raise the library's errors as ours; others, and our own, pass."""
    try:
        yield
    except HarvesterError:
        raise
    except Exception as error:
        told = _told(error, host, path)
        if told is None:
            raise
        raise told from None


def _told(error: Exception, host: str, path: str) -> HarvesterError | None:
    if isinstance(error, asyncssh.ChannelOpenError) and error.code == _NO_SUBSYSTEM:
        return ProtocolMismatch(f"{host} speaks SSH but offers no SFTP. Ask the partner, or use another transport.")
    for kinds, kind, text in _TABLE:
        if isinstance(error, kinds):
            reason = quote_reply(getattr(error, "reason", "") or str(error)) or "no reason given"
            return kind(text.format(host=host, path=repr(path), reason=reason))
    return None
