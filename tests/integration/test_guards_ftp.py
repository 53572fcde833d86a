"""Plain FTP against a real server: what it reads, and how each misbehaviour ends."""

import hashlib
import io
import os
import random
import socket
from datetime import UTC, datetime
from ipaddress import ip_network

import pytest
from tests.support import ftp_server as servers
from tests.support.ftp_server import FtpServer
from tests.support.guards import CAP, HASTY, IMPATIENT, LOOPBACK, PARTNER, PATIENT_AT_FIRST, ftp
from tests.support.scripted_server import ScriptedServer

from harvester.guards.egress import ConnectionRefused, EgressPolicy
from harvester.guards.ftp import connect_ftp
from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    Credentials,
    Downloaded,
    FileChanged,
    FileSizeLimitExceeded,
    PermissionDenied,
    PlainFtpForbidden,
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
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError, TransientError

CONTENT = random.Random(11).randbytes(3_000_000)
PATH = "/feeds/catalog.csv.gz"
MTIME = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "feeds").mkdir()
    path = tmp_path / "feeds" / "catalog.csv.gz"
    path.write_bytes(CONTENT)
    os.utime(path, (MTIME.timestamp(),) * 2)
    return tmp_path


def fetch(server, **options):
    """Download the catalog; what reached the sink, and the result."""
    sink = io.BytesIO()
    with ftp(server, **options) as session:
        return session.download(PATH, sink, cap_bytes=CAP), sink.getvalue()


def test_plain_ftp_is_off_unless_the_operator_switches_it_on():
    assert Config.from_env({"HOME": "/nowhere"}).allow_plain_ftp is False
    assert Config.from_env({"HOME": "/nowhere", "AFFILIATE_FEED_ALLOW_PLAIN_FTP": "true"}).allow_plain_ftp is True


def test_where_plain_ftp_is_off_nothing_is_connected(root):
    with ScriptedServer() as server:
        with pytest.raises(PlainFtpForbidden, match="AFFILIATE_FEED_ALLOW_PLAIN_FTP") as refusal:
            connect_ftp("127.0.0.1", server.port, PARTNER, allow_plain_ftp=False, policy=LOOPBACK)
        assert server.connections == 0
    assert isinstance(refusal.value, ConfigError)


def test_a_file_arrives_whole_with_its_hash_and_figures(root):
    with FtpServer(root) as server:
        downloaded, content = fetch(server)
    assert content == CONTENT
    assert downloaded == Downloaded(
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        stat=RemoteStat(size=len(CONTENT), mtime=MTIME),
    )


def test_only_passive_and_binary_transfers_are_asked_for(root):
    with FtpServer(root) as server:
        fetch(server)
    commands = [line.split()[0] for line in server.commands]
    assert "TYPE I" in server.commands
    assert "PASV" in commands
    assert not {"PORT", "EPRT", "EPSV", "STOR", "DELE", "LIST"} & set(commands)


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1])
def test_files_of_any_size_arrive_whole_line_ends_included(root, size):
    content = (b"a,b\r\nc\nd\r" * size)[:size]
    (root / "feeds" / "catalog.csv.gz").write_bytes(content)
    with FtpServer(root) as server:
        assert fetch(server)[1] == content


def test_ipv6_works_the_same(root):
    with (
        FtpServer(root, host="::1") as server,
        connect_ftp("::1", server.port, PARTNER, allow_plain_ftp=True, policy=LOOPBACK) as session,
    ):
        assert session.read_small(PATH, cap_bytes=CAP) == CONTENT
    assert "EPSV" in server.commands


def test_the_address_in_a_passive_reply_is_ignored(root):
    with FtpServer(root, behaviour=servers.NamesAnotherAddress) as server:
        assert fetch(server)[1] == CONTENT


def test_both_connections_go_to_the_address_that_was_checked_once(root):
    asked = []

    def rebinding(name):
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    policy = EgressPolicy([ip_network("127.0.0.1/32")], resolver=rebinding)
    with (
        FtpServer(root) as server,
        connect_ftp("ftp.example.com", server.port, PARTNER, allow_plain_ftp=True, policy=policy) as session,
    ):
        assert session.read_small(PATH, cap_bytes=CAP) == CONTENT
    assert asked == ["ftp.example.com"]


@pytest.mark.parametrize("port", [22, 1023, 65_536])
def test_a_passive_reply_cannot_lead_to_another_service(root, port):
    reply = f"227 Entering Passive Mode (127,0,0,1,{port // 256},{port % 256})"
    with (
        FtpServer(root, behaviour=servers.answers(PASV=reply)) as server,
        pytest.raises(ProtocolMismatch, match="port"),
    ):
        fetch(server)


def test_a_file_above_the_cap_is_refused(root):
    with FtpServer(root) as server, ftp(server) as session, pytest.raises(FileSizeLimitExceeded):
        session.read_small(PATH, cap_bytes=len(CONTENT) - 1)


def test_a_file_above_the_cap_is_refused_while_reading_where_the_size_is_unknown(root):
    sink = io.BytesIO()
    with (
        FtpServer(root, behaviour=servers.KnowsNeitherSizeNorTime) as server,
        ftp(server) as session,
        pytest.raises(FileSizeLimitExceeded),
    ):
        session.download(PATH, sink, cap_bytes=1_000_000)
    assert len(sink.getvalue()) <= 1_000_000


def test_a_server_that_knows_neither_size_nor_time_still_serves(root):
    with FtpServer(root, behaviour=servers.KnowsNeitherSizeNorTime) as server:
        downloaded, content = fetch(server)
    assert content == CONTENT
    assert downloaded.stat == RemoteStat(size=None, mtime=None)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ({"SIZE": "213 12"}, RemoteStat(size=12, mtime=MTIME)),
        ({"SIZE": "550 SIZE not allowed"}, RemoteStat(size=None, mtime=MTIME)),
        ({"SIZE": "213 many"}, RemoteStat(size=None, mtime=MTIME)),
        ({"MDTM": "213 20240517123000.123"}, RemoteStat(size=len(CONTENT), mtime=MTIME)),
        ({"MDTM": "213 20241399000000"}, RemoteStat(size=len(CONTENT), mtime=None)),
        ({"MDTM": "213 yesterday"}, RemoteStat(size=len(CONTENT), mtime=None)),
        ({"MDTM": "502 no"}, RemoteStat(size=len(CONTENT), mtime=None)),
    ],
)
def test_figures_are_read_where_they_can_be(root, replies, expected):
    with FtpServer(root, behaviour=servers.answers(**replies)) as server, ftp(server) as session:
        assert session.stat(PATH) == expected


@pytest.mark.parametrize("percent", range(0, 100, 10))
@pytest.mark.parametrize("data_only", [True, False])
def test_fault_11_a_connection_dropped_at_any_tenth_never_gives_a_file(root, percent, data_only):
    behaviour = servers.drops_connection_at(percent, data_only=data_only)
    with (
        FtpServer(root, behaviour=behaviour) as server,
        pytest.raises((ConnectionLost, RemoteBusy, TruncatedDownload, RemoteTimedOut)) as failure,
    ):
        fetch(server, limits=PATIENT_AT_FIRST)
    assert isinstance(failure.value, TransientError)


def grow(path):
    with path.open("ab") as file:
        file.write(b"more")


def swap(path):
    path.with_name("new").write_bytes(CONTENT[::-1])
    path.with_name("new").replace(path)


@pytest.mark.parametrize("change", [grow, swap, os.unlink])
def test_fault_11_a_file_that_changes_while_it_is_read_is_refused(root, change):
    with FtpServer(root, behaviour=servers.changes_file_while_read(change)) as server, pytest.raises(FileChanged):
        fetch(server)


@pytest.mark.parametrize(("by", "error"), [(+1, TruncatedDownload), (-1, FileChanged)])
def test_another_number_of_bytes_than_the_server_said_is_refused(root, by, error):
    with FtpServer(root, behaviour=servers.lies_about_size(by)) as server, pytest.raises(error):
        fetch(server)


def test_fault_20_a_server_that_drips_is_left_in_bounded_time(root):
    with FtpServer(root, behaviour=servers.Drips) as server, pytest.raises(TransferTooSlow):
        fetch(server, limits=HASTY)


def test_fault_20_a_transfer_has_an_end_even_if_bytes_keep_coming(root):
    limits = TransferLimits(total=0.2, least_rate=1)
    with FtpServer(root, behaviour=servers.Drips) as server, pytest.raises(TransferTooLong):
        fetch(server, limits=limits)


def test_a_server_that_sends_nothing_is_left(root):
    with FtpServer(root, behaviour=servers.StopsSending) as server, pytest.raises(RemoteTimedOut):
        fetch(server, limits=PATIENT_AT_FIRST)


@pytest.mark.parametrize(
    ("replies", "error"),
    [
        ({"RETR": "421 Too many users"}, RemoteBusy),
        ({"RETR": "425 No data connection"}, RemoteBusy),
        ({"RETR": "450 File busy"}, RemoteBusy),
        ({"RETR": "451 Local error"}, RemoteBusy),
        ({"RETR": "452 No space"}, RemoteBusy),
        ({"RETR": "550 Permission denied"}, PermissionDenied),
        ({"RETR": "550 No such file"}, RemoteFileNotFound),
        ({"RETR": "553 Not allowed"}, PermissionDenied),
        ({"RETR": "530 Not logged in"}, AuthenticationFailed),
        ({"RETR": "502 Not implemented"}, ProtocolMismatch),
        ({"PASV": "502 Not implemented"}, ProtocolMismatch),
        ({"PASV": "227 nonsense"}, ProtocolMismatch),
        ({"PASV": "425 Not now"}, RemoteBusy),
        ({"RETR": "250 done"}, ProtocolMismatch),
        ({"SIZE": "450 busy"}, RemoteBusy),
        ({"USER": "530 No"}, AuthenticationFailed),
        ({"PASS": "530 Login incorrect"}, AuthenticationFailed),
        ({"PASS": "430 Invalid"}, AuthenticationFailed),
        ({"PASS": "421 Busy"}, RemoteBusy),
        ({"TYPE": "504 Only text"}, ProtocolMismatch),
    ],
)
def test_each_reply_has_its_own_error(root, replies, error):
    with FtpServer(root, behaviour=servers.answers(**replies)) as server, pytest.raises(error) as failure:
        fetch(server)
    assert isinstance(failure.value, TransientError if error is RemoteBusy else TerminalError)
    assert str(failure.value).isprintable()


def test_a_full_server_is_tried_again(root):
    with FtpServer(root, most_connections=1) as server, ftp(server), pytest.raises(RemoteBusy, match="421"):
        ftp(server)


def test_a_wrong_password_is_terminal_and_not_shown(root):
    with FtpServer(root, behaviour=servers.FailsLoginAtOnce) as server, pytest.raises(AuthenticationFailed) as failure:
        ftp(server, Credentials(username=servers.USERNAME, password="a wrong password"))
    assert "a wrong password" not in str(failure.value)


def test_a_server_that_repeats_the_password_does_not_bring_it_into_the_error(root):
    behaviour = servers.answers(PASS=f"530 {PARTNER.password} is wrong")
    with FtpServer(root, behaviour=behaviour) as server, pytest.raises(AuthenticationFailed) as failure:
        ftp(server)
    assert PARTNER.password not in str(failure.value)


def test_a_password_with_odd_spaces_is_not_shown_either(root):
    credentials = Credentials(username="u", password="two  spaces  and two more")
    behaviour = servers.answers(USER="331 go on", PASS=f"530 {credentials.password} is wrong")
    with FtpServer(root, behaviour=behaviour) as server, pytest.raises(AuthenticationFailed) as failure:
        ftp(server, credentials)
    assert "spaces" not in str(failure.value)


def test_ftp_without_a_password_is_refused(root):
    with FtpServer(root) as server, pytest.raises(InvalidInput, match="password"):
        ftp(server, Credentials(username="u", private_key="a key"))


@pytest.mark.parametrize("path", ["", "a\r\nDELE b", "a\nb"])
def test_a_path_cannot_bring_a_command_of_its_own(root, path):
    with FtpServer(root) as server, ftp(server) as session, pytest.raises(InvalidInput):
        session.download(path, io.BytesIO(), cap_bytes=CAP)
    assert not [line for line in server.commands if line.startswith("DELE")]


def test_a_missing_file_leaves_the_session_usable(root):
    with FtpServer(root) as server, ftp(server) as session:
        with pytest.raises(RemoteFileNotFound):
            session.read_small("/manifest.xml", cap_bytes=1000)
        assert session.read_small(PATH, cap_bytes=CAP) == CONTENT


def test_a_broken_transfer_closes_the_session(root):
    with FtpServer(root) as server, ftp(server) as session:
        with pytest.raises(KeyError):
            session.download(PATH, io.BytesIO(), cap_bytes=CAP, on_progress=lambda *_: {}["cancelled"])
        with pytest.raises(ConnectionLost, match="closed"):
            session.stat(PATH)


@pytest.mark.parametrize(
    ("greeting", "error"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", ProtocolMismatch),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolMismatch),
        (b"x" * 100_000, ProtocolMismatch),
        (b"220-" + b"x" * 50 + b"\r\n220-more\r\n" * 10_000, ProtocolMismatch),
        (b"421 too many connections\r\n", RemoteBusy),
        (b"", RemoteTimedOut),
        (b"220-never ends\r\n", RemoteTimedOut),
        (b"220 \xe9\xff welcome\r\n", RemoteTimedOut),
    ],
)
def test_another_kind_of_server_is_known_by_its_greeting(greeting, error):
    limits = IMPATIENT if error is RemoteTimedOut else PATIENT_AT_FIRST
    with ScriptedServer([greeting]) as server, pytest.raises(error):
        connect_ftp("127.0.0.1", server.port, PARTNER, allow_plain_ftp=True, policy=LOOPBACK, limits=limits)
    assert PARTNER.password.encode() not in server.heard


def test_fault_20_a_reply_that_drips_is_left_in_bounded_time():
    with (
        ScriptedServer([b"2", b"2", b"0", b"-", b"x"], pause=0.05, for_ever=True) as server,
        pytest.raises((RemoteTimedOut, ProtocolMismatch)),
    ):
        connect_ftp("127.0.0.1", server.port, PARTNER, allow_plain_ftp=True, policy=LOOPBACK, limits=IMPATIENT)


def test_a_server_that_hangs_up_is_tried_again():
    with ScriptedServer([b"220 hello\r\n"], hang_up=True) as server, pytest.raises(ConnectionLost):
        connect_ftp("127.0.0.1", server.port, PARTNER, allow_plain_ftp=True, policy=LOOPBACK)


def test_nobody_listening_is_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefused):
        connect_ftp("127.0.0.1", port, PARTNER, allow_plain_ftp=True, policy=LOOPBACK)
