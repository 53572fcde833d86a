"""How a feed connects: with its own credentials, to servers that were approved, where the operator allows it."""

import io

import pytest
from tests.support import ftp_server, sftp_server
from tests.support.feed_rows import PATH, allow_loopback, make_feed
from tests.support.ftp_server import FtpServer
from tests.support.sftp_server import SftpServer

from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import CredentialsMissing, note_host_key, open_remote, port_of
from harvester.guards.egress import EgressRefused
from harvester.guards.host_keys import HostKeyChanged, HostKeyUnknown
from harvester.guards.remote import PlainFtpForbidden

pytestmark = pytest.mark.usefixtures("database")

CONTENT = b"Sku,Name\n1,one\n"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "feeds").mkdir()
    (tmp_path / "feeds" / "catalog.csv").write_bytes(CONTENT)
    return tmp_path


@pytest.fixture
def server(root, settings):
    allow_loopback(settings)
    with SftpServer(root, host_key_types=("ssh-ed25519", "ecdsa-sha2-nistp256")) as running:
        yield running


def read(feed):
    sink = io.BytesIO()
    with open_remote(feed) as remote:
        remote.download(feed.path, sink, cap_bytes=1000)
    return sink.getvalue()


def test_a_feed_reads_its_file_by_sftp(server):
    lines = "\n".join(str(key) for key in reversed(server.host_keys)) + "\n"
    assert read(make_feed(port=server.port, host_keys=lines)) == CONTENT


def test_a_feed_reads_its_file_by_ftp_where_that_is_allowed(root, settings):
    allow_loopback(settings, allow_plain_ftp=True)
    with FtpServer(root) as server:
        feed = make_feed(transport="FTP", port=server.port, password=ftp_server.PASSWORD)
        assert read(feed) == CONTENT


def test_plain_ftp_is_refused_where_it_is_not_allowed(root, settings):
    allow_loopback(settings)
    with FtpServer(root) as server, pytest.raises(PlainFtpForbidden):
        open_remote(make_feed(transport="FTP", port=server.port))
    assert server.commands == []


def test_a_server_whose_key_nobody_approved_gets_no_credentials(server):
    feed = make_feed(port=server.port)
    with pytest.raises(HostKeyUnknown) as refused:
        open_remote(feed)
    assert server.attempts == []
    note_host_key(feed, refused.value.seen)
    assert Feed.objects.get(pk=feed.pk).seen_host_key == str(server.host_key)


def test_a_server_with_another_key_gets_no_credentials(server):
    feed = make_feed(port=server.port, host_keys=str(server.host_key))
    server.restart_with_another_key()
    with pytest.raises(HostKeyChanged):
        open_remote(feed)
    assert server.attempts == []


def test_a_feed_without_credentials_connects_to_nobody(server):
    with pytest.raises(CredentialsMissing, match="Enter its credentials"):
        open_remote(make_feed(port=server.port, host_keys=str(server.host_key), password=""))
    assert server.connections == 0


def test_a_feed_reaches_only_networks_that_are_allowed(root):
    with SftpServer(root) as server, pytest.raises(EgressRefused):
        open_remote(make_feed(port=server.port, host_keys=str(server.host_key)))
    assert server.connections == 0


@pytest.mark.parametrize(("transport", "given", "port"), [("SFTP", None, 22), ("FTP", None, 21), ("FTP", 2121, 2121)])
def test_each_transport_has_its_usual_port(transport, given, port):
    feed = Feed(transport=transport, port=given, host=sftp_server.HOST, path=PATH)
    assert port_of(feed) == port
