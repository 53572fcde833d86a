"""Errors of the FTP and SFTP libraries become Harvester's own, which decide about retries."""

import errno
import ftplib

import asyncssh
import pytest

from harvester.guards import ftp, sftp
from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    PermissionDenied,
    ProtocolMismatch,
    RemoteBusy,
    RemoteFileNotFound,
    RemoteTimedOut,
)

#: The same for both libraries.
OF_THE_SYSTEM = [
    (OSError(errno.ETIMEDOUT, "Connection timed out"), RemoteTimedOut),
    (OSError(errno.ECONNRESET, "Connection reset by peer"), ConnectionLost),
    (OSError(errno.EPIPE, "Broken pipe"), ConnectionLost),
    (OSError(errno.ENETUNREACH, "Network is unreachable"), ConnectionLost),
]
OF_FTP = [
    (EOFError(), ConnectionLost),
    (ftplib.error_temp("421 Too many users"), RemoteBusy),
    (ftplib.error_temp("450 File busy"), RemoteBusy),
    (ftplib.error_temp("452 No space"), RemoteBusy),
    (ftplib.error_perm("530 Login incorrect"), AuthenticationFailed),
    (ftplib.error_perm("550 Permission denied"), PermissionDenied),
    (ftplib.error_perm("550 No such file"), RemoteFileNotFound),
]
OF_SFTP = [
    (TimeoutError(), RemoteTimedOut),
    (asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "busy"), RemoteBusy),
    (asyncssh.SFTPFailure("busy"), RemoteBusy),
    (asyncssh.PermissionDenied("no"), AuthenticationFailed),
    (asyncssh.SFTPPermissionDenied("no"), PermissionDenied),
    (asyncssh.SFTPNoSuchFile("no"), RemoteFileNotFound),
    (ValueError("p (modulus) must be at least 512-bit"), ProtocolMismatch),
]


@pytest.mark.parametrize(
    ("protocol", "raised", "expected"),
    [
        *((ftp, *case) for case in (*OF_THE_SYSTEM, *OF_FTP)),
        *((sftp, *case) for case in (*OF_THE_SYSTEM, *OF_SFTP)),
    ],
    ids=lambda value: getattr(value, "__name__", "").rpartition(".")[2] or repr(value),
)
def test_each_error_is_translated(protocol, raised, expected):
    with pytest.raises(expected) as caught, protocol.translated_errors("sftp.example.com", "/catalog.csv"):
        raise raised
    assert type(caught.value) is expected
