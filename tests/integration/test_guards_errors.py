"""Whether to try again is a property of the type: the table of errors of the guards."""

import importlib
import inspect

import pytest

from harvester.guards import artifacts, egress, host_keys, http, inflate, remote
from harvester.kernel.errors import ConfigError, HarvesterError, TerminalError, TransientError

MODULES = ("artifacts", "egress", "host_keys", "inflate", "remote", "hosts", "http")

TRANSIENT = {
    "name servers silent": (egress.ResolutionTimedOut, "DNS_TIMEOUT"),
    "no address": (egress.NameNotResolved, "DNS_FAILED"),
    "no answer to the connection": (egress.ConnectTimedOut, "CONNECT_TIMEOUT"),
    "connection refused": (egress.ConnectionRefused, "CONNECTION_REFUSED"),
    "no route": (egress.HostUnreachable, "HOST_UNREACHABLE"),
    "network timeout": (remote.RemoteTimedOut, "REMOTE_TIMEOUT"),
    "reset, broken pipe": (remote.ConnectionLost, "CONNECTION_LOST"),
    "FTP 421, 450, 452, SFTP channel": (remote.RemoteBusy, "REMOTE_BUSY"),
    "replaced while read": (remote.FileChanged, "FILE_CHANGED"),
    "too few bytes": (remote.TruncatedDownload, "TRUNCATED_DOWNLOAD"),
    "drips": (remote.TransferTooSlow, "TRANSFER_TOO_SLOW"),
    "never ends": (remote.TransferTooLong, "TRANSFER_TOO_LONG"),
    "truncated gzip": (inflate.TruncatedGzip, "TRUNCATED_GZIP"),
    "damaged gzip": (inflate.BadGzip, "BAD_GZIP"),
    "no complete answer in HTTP": (http.BadHttpAnswer, "BAD_HTTP_ANSWER"),
    "disk full": (artifacts.DiskFull, "DISK_FULL"),
    "disk broken": (artifacts.ArtifactStoreFailed, "ARTIFACT_STORE_FAILED"),
}
TERMINAL = {
    "FTP 530, SFTP authentication": (remote.AuthenticationFailed, "AUTH_FAILED"),
    "FTP 550 (permission), SFTP EACCES": (remote.PermissionDenied, "PERMISSION_DENIED"),
    "FTP 550 (not found), SFTP ENOENT": (remote.RemoteFileNotFound, "REMOTE_FILE_NOT_FOUND"),
    "a directory": (remote.NotAFile, "NOT_A_FILE"),
    "file too large": (remote.FileSizeLimitExceeded, "FILE_SIZE_LIMIT_EXCEEDED"),
    "answer too large": (http.ResponseTooLarge, "RESPONSE_TOO_LARGE"),
    "redirects without end": (http.TooManyRedirects, "TOO_MANY_REDIRECTS"),
    "odd address": (http.InvalidUrl, "INVALID_URL"),
    "certificate not trusted": (http.TlsNotTrusted, "TLS_NOT_TRUSTED"),
    "bomb": (inflate.InflateLimitExceeded, "INFLATE_LIMIT_EXCEEDED"),
    "artifact gone": (artifacts.ArtifactMissing, "ARTIFACT_MISSING"),
}
CONFIG = {
    "wrong port or transport": (remote.ProtocolMismatch, "PROTOCOL_MISMATCH"),
    "plain FTP off": (remote.PlainFtpForbidden, "PLAIN_FTP_FORBIDDEN"),
    "unusable private key": (remote.InvalidPrivateKey, "INVALID_PRIVATE_KEY"),
    "host key unknown": (host_keys.HostKeyUnknown, "HOST_KEY_UNKNOWN"),
    "host key changed": (host_keys.HostKeyChanged, "HOST_KEY_CHANGED"),
    "forbidden network": (egress.EgressRefused, "EGRESS_REFUSED"),
    "odd host": (egress.InvalidHost, "EGRESS_INVALID_HOST"),
    "store not writable": (artifacts.ArtifactStoreForbidden, "ARTIFACT_STORE_FORBIDDEN"),
}


@pytest.mark.parametrize(("kind", "code"), TRANSIENT.values(), ids=TRANSIENT)
def test_what_may_pass_is_tried_again(kind, code):
    assert issubclass(kind, TransientError)
    assert kind.code == code


@pytest.mark.parametrize(("kind", "code"), TERMINAL.values(), ids=TERMINAL)
def test_what_cannot_pass_is_never_tried_again(kind, code):
    assert issubclass(kind, TerminalError)
    assert not issubclass(kind, ConfigError)
    assert kind.code == code


@pytest.mark.parametrize(("kind", "code"), CONFIG.values(), ids=CONFIG)
def test_what_a_person_has_to_change_is_a_config_error(kind, code):
    assert issubclass(kind, ConfigError)
    assert kind.code == code


def test_every_error_of_the_guards_is_in_one_of_the_tables_with_its_own_code():
    defined = {
        kind
        for module in map(importlib.import_module, (f"harvester.guards.{name}" for name in MODULES))
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, HarvesterError) and kind.__module__ == module.__name__
    }
    listed = [kind for table in (TRANSIENT, TERMINAL, CONFIG) for kind, _ in table.values()]
    assert set(listed) == defined
    assert len({kind.code for kind in listed}) == len(listed)
