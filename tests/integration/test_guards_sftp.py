"""SFTP against a real server: what it reads, how it logs in, and how each misbehaviour ends."""

import asyncio
import functools
import hashlib
import io
import os
import random
import struct
import threading
import time
import tracemalloc
from datetime import UTC, datetime
from types import SimpleNamespace

import asyncssh
import pytest
from cryptography.hazmat.primitives import serialization
from tests.support import sftp_server as servers
from tests.support.guards import CAP, HASTY, IMPATIENT, LOOPBACK, PARTNER, PATIENT_AT_FIRST, sftp
from tests.support.scripted_server import ScriptedServer
from tests.support.sftp_server import USERNAME, SftpServer

from harvester.guards.redaction import redact_text
from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    Credentials,
    Downloaded,
    FileChanged,
    FileSizeLimitExceeded,
    InvalidPrivateKey,
    NotAFile,
    PermissionDenied,
    ProtocolMismatch,
    RemoteBusy,
    RemoteFileNotFound,
    RemoteStat,
    RemoteTimedOut,
    TransferLimits,
    TransferTooLong,
    TransferTooSlow,
    TruncatedDownload,
)
from harvester.guards.sftp import connect_sftp
from harvester.guards.sftp_reader import WindowedReader
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError, TransientError

CONTENT = random.Random(7).randbytes(5_000_000)
PATH = "/feeds/catalog.csv.gz"
#: Few, because what is tested is not how long guessing a passphrase takes.
QUICK = {"rounds": 1, "ignore_few_rounds": True}
MTIME = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "feeds").mkdir()
    path = tmp_path / "feeds" / "catalog.csv.gz"
    path.write_bytes(CONTENT)
    os.utime(path, (MTIME.timestamp(),) * 2)
    return tmp_path


@functools.cache
def client_key(kind):
    return asyncssh.generate_private_key(kind)


def serving(root, behaviour=servers.WellBehaved, **options):
    return SftpServer(root, behaviour=behaviour, **options)


def fetch(server, **options):
    """Download the catalog; what reached the sink, and the result."""
    sink = io.BytesIO()
    with sftp(server, **options) as session:
        return session.download(PATH, sink, cap_bytes=CAP), sink.getvalue()


class SlowDisk:
    """Takes its time for each block."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.blocks = 0

    def write(self, _block: bytes) -> None:
        self.blocks += 1
        time.sleep(self.seconds)


def test_a_file_arrives_whole_with_its_hash_and_figures(root):
    with serving(root) as server:
        downloaded, content = fetch(server)
    assert content == CONTENT
    assert downloaded == Downloaded(
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        stat=RemoteStat(size=len(CONTENT), mtime=MTIME),
    )


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("^chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"),
        ("aes128-gcm@openssh.com,aes256-ctr", "aes128-gcm@openssh.com"),
        ("chacha20-poly1305@openssh.com", "chacha20-poly1305@openssh.com"),
        ("aes256-ctr", "aes256-ctr"),
    ],
)
def test_the_cheapest_of_the_safe_ciphers_that_a_server_has_is_used(root, offered, chosen):
    with serving(root, encryption_algs=offered) as server, sftp(server) as session:
        assert session._connection.get_extra_info("recv_cipher") == chosen
        assert session.read_small(PATH, cap_bytes=CAP) == CONTENT


@pytest.mark.parametrize("size", [0, 1, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 256 * 1024, 256 * 1024 + 1])
def test_files_of_any_size_arrive_whole(root, size):
    (root / "feeds" / "catalog.csv.gz").write_bytes(CONTENT[:size])
    with serving(root) as server:
        assert fetch(server)[1] == CONTENT[:size]


def test_progress_is_reported_for_each_block_with_the_whole_size(root):
    reported = []
    with serving(root) as server, sftp(server) as session:
        session.download(PATH, io.BytesIO(), cap_bytes=CAP, on_progress=lambda *figures: reported.append(figures))
    assert len(reported) > 1
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1] == (len(CONTENT), len(CONTENT))


def test_what_the_progress_raises_ends_the_transfer_and_the_session_goes_on(root):
    def cancel(done, total):
        raise KeyError("cancelled")

    with serving(root) as server, sftp(server) as session:
        with pytest.raises(KeyError):
            session.download(PATH, io.BytesIO(), cap_bytes=CAP, on_progress=cancel)
        assert session.read_small(PATH, cap_bytes=CAP) == CONTENT


def test_memory_stays_flat_whatever_the_file(root):
    with (root / "feeds" / "large").open("wb") as file:
        file.truncate(30_000_000)

    class Nowhere:
        def write(self, block):
            assert len(block) <= 1024 * 1024

    with serving(root) as server, sftp(server) as session:
        tracemalloc.start()
        try:
            session.download("/feeds/large", Nowhere(), cap_bytes=CAP)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # The server's share is in it too.
    assert peak < 15_000_000, peak


def test_several_sessions_work_in_threads_at_once(root):
    found = []
    with serving(root) as server:
        threads = [threading.Thread(target=lambda: found.append(fetch(server)[1])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [CONTENT] * 4


def test_a_small_file_is_read_whole(root):
    (root / "catalogs_info_file.xml").write_text("<catalogs/>")
    with serving(root) as server, sftp(server) as session:
        assert session.read_small("/catalogs_info_file.xml", cap_bytes=1000) == b"<catalogs/>"


@pytest.mark.parametrize("cap", [len(CONTENT) - 1, 10, 0])
def test_a_file_above_the_cap_is_refused_and_nothing_of_it_read(root, cap):
    sink = io.BytesIO()
    with serving(root) as server, sftp(server) as session, pytest.raises(FileSizeLimitExceeded) as failure:
        session.download(PATH, sink, cap_bytes=cap)
    assert failure.value.code == "FILE_SIZE_LIMIT_EXCEEDED"
    assert sink.getvalue() == b""


def test_a_file_of_exactly_the_cap_is_read(root):
    with serving(root) as server, sftp(server) as session:
        assert len(session.read_small(PATH, cap_bytes=len(CONTENT))) == len(CONTENT)


def test_fault_20_an_endless_file_is_stopped_at_the_cap(root):
    sink = io.BytesIO()
    with serving(root, servers.NeverEnds) as server, sftp(server) as session, pytest.raises(FileSizeLimitExceeded):
        session.download(PATH, sink, cap_bytes=1_000_000)
    assert len(sink.getvalue()) <= 1_000_000


@pytest.mark.parametrize("passphrase", [None, "only for this key"])
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("ssh-rsa", "openssh"),
        ("ssh-rsa", "pkcs8-pem"),
        ("ssh-rsa", "pkcs1-pem"),
        ("ssh-ed25519", "openssh"),
        ("ssh-ed25519", "pkcs8-pem"),
        ("ecdsa-sha2-nistp256", "openssh"),
        ("ecdsa-sha2-nistp256", "pkcs8-pem"),
        ("ecdsa-sha2-nistp384", "pkcs1-pem"),
    ],
)
def test_a_private_key_of_any_usual_kind_and_form_logs_in(root, kind, form, passphrase):
    key = client_key(kind)
    text = key.export_private_key(form, passphrase=passphrase, **QUICK).decode()
    credentials = Credentials(username=USERNAME, private_key=f"\n{text}\n  ", passphrase=passphrase)
    with serving(root, client_keys=[key.export_public_key().decode()]) as server, sftp(server, credentials) as session:
        assert session.stat(PATH).size == len(CONTENT)
    assert "password" not in {attempt.method for attempt in server.attempts}


def test_a_key_made_by_openssl_logs_in(root):
    key = asyncssh.generate_private_key("ssh-rsa")
    traditional = key.pyca_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"geheim"),
    )
    credentials = Credentials(username=USERNAME, private_key=traditional.decode(), passphrase="geheim")
    with serving(root, client_keys=[key.export_public_key().decode()]) as server, sftp(server, credentials):
        pass


def test_a_password_helps_where_the_key_is_not_accepted(root):
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    with (
        serving(root) as server,
        sftp(server, Credentials(username=USERNAME, password=PARTNER.password, private_key=key)),
    ):
        pass
    assert [attempt.method for attempt in server.attempts] == ["none", "publickey", "password"]


@pytest.mark.parametrize(
    ("private_key", "passphrase", "why"),
    [
        ("hello", None, "not a private key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----", None, "not a private key"),
        ("{encrypted}", None, "passphrase"),
        ("{encrypted}", "wrong passphrase", "passphrase"),
        ("{public}", None, "not a private key"),
    ],
)
def test_a_private_key_that_cannot_be_used_is_rejected_before_connecting(root, private_key, passphrase, why):
    key = asyncssh.generate_private_key("ssh-ed25519")
    encrypted = key.export_private_key(passphrase="the right passphrase", **QUICK).decode()
    text = private_key.format(encrypted=encrypted, public=key.export_public_key().decode())
    with serving(root) as server:
        with pytest.raises(InvalidPrivateKey, match=why) as failure:
            sftp(server, Credentials(username=USERNAME, private_key=text, passphrase=passphrase))
        assert server.connections == 0
    assert isinstance(failure.value, ConfigError)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials(username=USERNAME, password="a wrong password"),
        Credentials(username="somebody else", password=PARTNER.password),
        Credentials(
            username=USERNAME,
            private_key=asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode(),
        ),
    ],
)
def test_credentials_that_are_not_accepted_are_terminal_and_not_shown(root, credentials):
    with serving(root) as server, pytest.raises(AuthenticationFailed) as failure:
        sftp(server, credentials)
    assert isinstance(failure.value, TerminalError)
    assert "a wrong password" not in str(failure.value)
    assert "PRIVATE KEY" not in str(failure.value)


def test_credentials_show_no_secret_and_are_remembered_by_the_redaction():
    credentials = Credentials(username="u", password="pw-4711-x", private_key="key-4712-x", passphrase="pp-4713-x")
    assert repr(credentials) == "Credentials(username='u')"
    for secret in ("pw-4711-x", "key-4712-x", "pp-4713-x"):
        assert secret not in redact_text(f"it said {secret}!")


@pytest.mark.parametrize(
    "fields",
    [
        {"username": "", "password": "x"},
        {"username": "u"},
        {"username": "u\r\nDELE x", "password": "x"},
        {"username": "u", "password": "x\n"},
        {"username": "u", "password": "half a character \ud83d"},
    ],
)
def test_credentials_that_cannot_be_sent_are_refused(fields):
    with pytest.raises(InvalidInput):
        Credentials(**fields)


@pytest.mark.parametrize("path", ["", "a\nb", "a\r\nDELE b", "a\0b", "\ud800"])
def test_a_path_that_cannot_be_sent_is_refused(root, path):
    with serving(root) as server, sftp(server) as session, pytest.raises(InvalidInput, match="path"):
        session.stat(path)


def greeting_with(**algorithms):
    """The first packet of an SSH server that offers only these algorithms."""
    offered = {"kex": "curve25519-sha256", "cipher": "aes256-ctr", "mac": "hmac-sha2-256", **algorithms}
    twice = [name for name in (offered["cipher"], offered["mac"], "none", "") for _ in range(2)]
    lists = [offered["kex"], "ssh-ed25519", *twice]
    payload = b"\x14" + bytes(16) + b"".join(struct.pack(">I", len(text)) + text.encode() for text in lists) + bytes(5)
    padding = 8 - (len(payload) + 5) % 8 + 8
    return b"SSH-2.0-old\r\n" + struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


@pytest.mark.parametrize(
    "algorithms",
    [
        {"kex": "diffie-hellman-group14-sha1"},
        {"kex": "diffie-hellman-group1-sha1"},
        {"cipher": "aes256-cbc"},
        {"cipher": "3des-cbc"},
        {"cipher": "arcfour"},
        {"mac": "hmac-sha1"},
        {"mac": "hmac-md5"},
    ],
)
def test_a_server_with_outdated_algorithms_only_is_a_config_error(algorithms):
    with ScriptedServer([greeting_with(**algorithms)]) as server, pytest.raises(ProtocolMismatch, match="outdated"):
        connect_sftp("127.0.0.1", server.port, PARTNER, host_keys=[], policy=LOOPBACK)


def test_a_server_with_today_s_algorithms_is_spoken_to():
    with ScriptedServer([greeting_with()]) as server, pytest.raises(RemoteTimedOut):
        connect_sftp("127.0.0.1", server.port, PARTNER, host_keys=[], policy=LOOPBACK, limits=IMPATIENT)
    assert PARTNER.password.encode() not in server.heard


@pytest.mark.parametrize("percent", range(0, 100, 10))
def test_fault_11_a_connection_dropped_at_any_tenth_never_gives_a_file(root, percent):
    with serving(root, servers.drops_connection_at(percent)) as server, pytest.raises(ConnectionLost) as failure:
        fetch(server)
    assert isinstance(failure.value, TransientError)


def grow(path):
    with path.open("ab") as file:
        file.write(b"more")


def shrink(path):
    os.truncate(path, 1_000_000)


def swap(path):
    path.with_name("new").write_bytes(CONTENT[::-1])
    path.with_name("new").replace(path)


def touch(path):
    os.utime(path, (0, 0))


@pytest.mark.parametrize("change", [grow, shrink, swap, touch, os.unlink])
def test_fault_11_a_file_that_changes_while_it_is_read_is_refused(root, change):
    with serving(root, servers.changes_file_while_read(change)) as server, pytest.raises(FileChanged) as failure:
        fetch(server)
    assert failure.value.code == "FILE_CHANGED"
    assert isinstance(failure.value, TransientError)


def test_fewer_bytes_than_the_server_said_are_a_truncated_download(root):
    with serving(root, servers.lies_about_size(+1)) as server, pytest.raises(TruncatedDownload) as failure:
        fetch(server)
    assert failure.value.code == "TRUNCATED_DOWNLOAD"
    assert isinstance(failure.value, TransientError)


def test_more_bytes_than_the_server_said_are_refused(root):
    with serving(root, servers.lies_about_size(-1)) as server, pytest.raises(FileChanged):
        fetch(server)


def test_a_size_above_the_cap_is_believed_and_one_below_is_not(root):
    with (
        serving(root, servers.lies_about_size(-4_000_000)) as server,
        sftp(server) as session,
        pytest.raises(FileSizeLimitExceeded),
    ):
        session.read_small(PATH, cap_bytes=2_000_000)


@pytest.mark.parametrize("figures", [{}, {"size": len(CONTENT)}, {"atime": 1, "mtime": 1_700_000_000}])
def test_a_server_that_reports_little_about_a_file_still_serves_it(root, figures):
    with serving(root, servers.reports(**figures)) as server:
        downloaded, content = fetch(server)
    assert content == CONTENT
    mtime = datetime.fromtimestamp(figures["mtime"], UTC) if "mtime" in figures else None
    assert downloaded.stat == RemoteStat(size=figures.get("size"), mtime=mtime)


def test_answers_shorter_than_asked_lose_nothing(root):
    with serving(root, servers.SendsLessThanAsked) as server:
        assert fetch(server)[1] == CONTENT


def test_answers_longer_than_asked_are_refused(root):
    with serving(root, servers.SendsMoreThanAsked) as server, pytest.raises(ProtocolMismatch):
        fetch(server)


class Flood:
    """A file whose server answers the first read last, and all others with far more than was asked."""

    limits = SimpleNamespace(max_read_len=0)

    async def open(self, *_, **__):
        return self

    async def close(self):
        pass

    async def read(self, size, offset):
        if offset:
            return bytes(1024 * 1024)
        await asyncio.sleep(0)
        self.held = tracemalloc.get_traced_memory()[0]
        return bytes(size)


def test_fault_20_answers_that_nobody_asked_for_are_not_kept_until_their_turn():
    async def read():
        reader = WindowedReader(flood, "catalog.csv")
        await reader.open()
        with pytest.raises(ProtocolMismatch):
            while await reader.next_block():
                pass
        await reader.close()

    flood = Flood()
    tracemalloc.start()
    try:
        asyncio.run(read())
    finally:
        tracemalloc.stop()
    assert flood.held < 10_000_000


def test_a_hole_in_a_file_is_neither_filled_nor_taken_for_its_end(root):
    with serving(root, servers.LeavesAHole) as server, pytest.raises(FileChanged):
        fetch(server)


def test_fault_20_a_server_that_drips_is_left_in_bounded_time(root):
    with serving(root, servers.Drips) as server, pytest.raises(TransferTooSlow) as failure:
        fetch(server, limits=HASTY)
    assert failure.value.code == "TRANSFER_TOO_SLOW"
    assert isinstance(failure.value, TransientError)


def test_fault_20_a_transfer_has_an_end_even_if_bytes_keep_coming(root):
    limits = TransferLimits(total=0.2, least_rate=1, idle=5)
    with serving(root, servers.Drips) as server, pytest.raises(TransferTooLong) as failure:
        fetch(server, limits=limits)
    assert isinstance(failure.value, TransientError)


def test_the_end_of_the_total_time_has_its_own_error_even_in_silence(root):
    limits = TransferLimits(total=0.2, idle=5)
    with serving(root, servers.stops_answering_at(50)) as server, pytest.raises(TransferTooLong):
        fetch(server, limits=limits)


@pytest.mark.parametrize("total", [0.0, 0.5])
def test_a_time_that_is_over_before_the_next_request_leaves_nothing_begun(root, total):
    """A coroutine that is never awaited is an unraisable error, and that fails the test."""
    disk = SlowDisk(total)
    limits = TransferLimits(total=total)
    with serving(root) as server, sftp(server, limits=limits) as session, pytest.raises(TransferTooLong):
        session.download(PATH, disk, cap_bytes=CAP)
    assert disk.blocks <= (1 if total else 0)


def test_a_server_that_goes_silent_is_left(root):
    with serving(root, servers.stops_answering_at(50)) as server, pytest.raises(RemoteTimedOut) as failure:
        fetch(server, limits=PATIENT_AT_FIRST)
    assert isinstance(failure.value, TransientError)


@pytest.mark.parametrize(
    ("behaviour", "path", "error"),
    [
        (servers.WellBehaved, "/feeds/nothing.csv", RemoteFileNotFound),
        (servers.WellBehaved, "/nothing/at/all", RemoteFileNotFound),
        (servers.WellBehaved, "/feeds/catalog.csv.gz/below", RemoteFileNotFound),
        (servers.WellBehaved, "/feeds", NotAFile),
        (servers.WellBehaved, "/pipe", NotAFile),
        (servers.RefusesToRead, PATH, PermissionDenied),
        (servers.FailsForNoReason, PATH, RemoteBusy),
    ],
)
def test_each_refusal_of_a_path_has_its_own_error(root, behaviour, path, error):
    os.mkfifo(root / "pipe")
    with serving(root, behaviour) as server, sftp(server) as session:
        with pytest.raises(error) as failure:
            session.download(path, io.BytesIO(), cap_bytes=CAP)
        assert issubclass(error, TransientError if error is RemoteBusy else TerminalError)
        assert path in str(failure.value) or error is RemoteBusy


def test_a_missing_file_leaves_the_session_usable(root):
    with serving(root) as server, sftp(server) as session:
        with pytest.raises(RemoteFileNotFound):
            session.read_small("/manifest.xml", cap_bytes=1000)
        assert session.read_small(PATH, cap_bytes=CAP) == CONTENT


def test_ssh_without_sftp_is_a_config_error(root):
    with (
        serving(root, None, process_factory=lambda process: process.exit(0)) as server,
        pytest.raises(ProtocolMismatch, match="has SSH but no SFTP"),
    ):
        sftp(server)


@pytest.mark.parametrize(
    ("greeting", "error"),
    [
        (b"220 ProFTPD ready\r\n", ProtocolMismatch),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolMismatch),
        (b"\x15\x03\x01\x00\x02\x02\x46", ProtocolMismatch),
        (b"SSH-1.5-old\r\n", ProtocolMismatch),
        (b"", RemoteTimedOut),
        (b"SSH-2.0-silent\r\n", RemoteTimedOut),
        (b"x" * 100_000, ProtocolMismatch),
        (b"hello\r\n" * 10_000, ProtocolMismatch),
    ],
)
def test_another_kind_of_server_is_known_by_its_greeting(greeting, error):
    limits = IMPATIENT if error is RemoteTimedOut else PATIENT_AT_FIRST
    with ScriptedServer([greeting]) as server, pytest.raises(error) as failure:
        connect_sftp("127.0.0.1", server.port, PARTNER, host_keys=[], policy=LOOPBACK, limits=limits)
    assert PARTNER.password.encode() not in server.heard
    assert isinstance(failure.value, TransientError if error is RemoteTimedOut else ConfigError)


@pytest.mark.parametrize("lines", [[], [b"SSH-2.0-x\r\n"]])
def test_a_server_that_hangs_up_is_tried_again(lines):
    with ScriptedServer(lines, hang_up=True) as server, pytest.raises(ConnectionLost):
        connect_sftp("127.0.0.1", server.port, PARTNER, host_keys=[], policy=LOOPBACK)


def test_fault_20_a_greeting_that_drips_is_left_in_bounded_time():
    with (
        ScriptedServer([b"hi\r\n"], pause=0.05, for_ever=True) as server,
        pytest.raises((RemoteTimedOut, ProtocolMismatch)),
    ):
        connect_sftp("127.0.0.1", server.port, PARTNER, host_keys=[], policy=LOOPBACK, limits=IMPATIENT)


def test_a_closed_session_says_so_and_closes_twice_without_harm(root):
    with serving(root) as server:
        session = sftp(server)
        session.close()
        session.close()
        with pytest.raises(ConnectionLost, match="closed"):
            session.stat(PATH)


def test_a_server_that_is_gone_between_two_calls_is_a_lost_connection(root):
    with serving(root) as server:
        session = sftp(server)
    with session, pytest.raises(ConnectionLost):
        session.stat(PATH)


def test_the_reply_of_a_server_is_shown_on_one_line_and_truncated(root):
    class Shouts(servers.WellBehaved):
        def open(self, path, pflags, attrs):
            raise asyncssh.SFTPPermissionDenied(f"password={PARTNER.password}\n\x1b[31m" + "x" * 10_000)

    with serving(root, Shouts) as server, pytest.raises(PermissionDenied) as failure:
        fetch(server)
    assert str(failure.value).isprintable()
    assert len(str(failure.value)) < 500
    assert PARTNER.password not in str(failure.value)
