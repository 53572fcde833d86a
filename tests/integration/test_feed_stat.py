"""Servers that say nothing about the files that they serve, and files that look as before and are not."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import asyncssh
import pytest
from django.utils import timezone
from tests.support import ftp_server
from tests.support.feed_world import LOOPBACK, World, allow_loopback
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.ftp_server import FtpServer
from tests.support.log_lines import logged
from tests.support.sftp_server import SftpServer, WellBehaved, refuses_stat

from harvester.feeds.ingest import inflate_limits_of
from harvester.feeds.models import Feed
from harvester.guards import secrets
from harvester.ops.models import Alert
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")

NUMBERS = range(100, 110)
NO_STAT = {
    "refused": asyncssh.SFTPPermissionDenied("not for you"),
    "unsupported": asyncssh.SFTPOpUnsupported("no such operation"),
    "missing": asyncssh.SFTPNoSuchFile("no such file"),
}


@pytest.mark.parametrize("error", NO_STAT.values(), ids=NO_STAT)
def test_a_file_is_downloaded_although_the_server_refuses_to_say_anything_about_it(tmp_path, settings, error):
    allow_loopback(settings)
    with SftpServer(tmp_path, behaviour=refuses_stat(error)) as server:
        world = World(server)
        world.put(*NUMBERS)
        assert world.run().outcome == "PROMOTED"
        assert world.figures(world.run()).skipped_reason == "UNCHANGED_HASH"
        world.file.unlink()
        assert world.run().error_code == "REMOTE_FILE_NOT_FOUND", "opening it decides"


@pytest.mark.parametrize("reply", ["550 No such file.", "550 Access denied", "502 Not implemented.", "553 No."])
def test_the_same_holds_over_ftp(tmp_path, settings, reply):
    settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK, allow_plain_ftp=True)
    with (
        SftpServer(tmp_path) as server,
        FtpServer(tmp_path, behaviour=ftp_server.answers(SIZE=reply, MDTM=reply)) as ftp,
    ):
        world = World(server)
        Feed.objects.update(transport="FTP", port=ftp.port, host_keys="")
        secrets.put("feed", world.feed.id, {"password": ftp_server.PASSWORD})
        world.put(*NUMBERS)
        assert world.run().outcome == "PROMOTED"
        world.file.unlink()
        assert world.run().error_code == "REMOTE_FILE_NOT_FOUND"


class KeepsItsManifest(WellBehaved):
    """Lets nobody read the manifest."""

    def open(self, path, pflags, attrs):
        if path.endswith(b"catalogs_info_file.xml"):
            raise asyncssh.SFTPPermissionDenied("not for you")
        return super().open(path, pflags, attrs)


def test_a_manifest_that_may_not_be_read_is_no_manifest_and_logged(tmp_path, settings):
    allow_loopback(settings)
    (tmp_path / "catalogs_info_file.xml").write_text("not for you")
    with SftpServer(tmp_path, behaviour=KeepsItsManifest) as server:
        world = World(server)
        world.put(*NUMBERS)
        with logged() as lines:
            assert world.run().outcome == "PROMOTED"
            said = lines()
    assert [line["path"] for line in said if line["event"] == "MANIFEST_NOT_READABLE"] == ["/catalogs_info_file.xml"]


@pytest.fixture
def world(tmp_path, settings):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        yield World(server)


def test_a_file_that_was_read_right_after_it_was_written_is_compared_by_its_hash(world):
    world.put(*NUMBERS)
    moment = int(timezone.now().timestamp())
    os.utime(world.file, (moment, moment))
    assert world.run().outcome == "PROMOTED"
    changed = written(*(row(number) for number in NUMBERS)).replace("1.09", "2.09").encode()
    world.file.write_bytes(changed)
    os.utime(world.file, (moment, moment))
    assert world.run().outcome == "PROMOTED", "the same size and time, and another price"
    assert world.shown()["S-109"][1] == 2.09
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_HASH"
    # Once it was read long enough after its time, time and size are enough.
    newest = Run.objects.order_by("-no").first()
    Run.objects.filter(pk=newest.pk).update(started_at=timezone.now() + timedelta(minutes=11))
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_MTIME"


def test_a_limit_that_inflating_exceeds_is_reported_as_a_limit(world, monkeypatch):
    monkeypatch.setattr("harvester.feeds.ingest.LEAST_INFLATED_BYTES", 100)
    world.put(*NUMBERS, compressed=True)
    Feed.objects.update(max_file_bytes=Path(world.file).stat().st_size)
    monkeypatch.setattr("harvester.feeds.ingest.INFLATED_TIMES", 1)
    run = world.run()
    assert (run.status, run.error_code) == ("FAILED", "INFLATE_LIMIT_EXCEEDED")
    assert Alert.objects.get(resolved_at=None).kind == "LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    ("limit", "inflated"), [(None, 8 * 500 * 1024**2), (1000, 1024**3), (4 * 1024**3, 4 * 1024**3)]
)
def test_how_much_a_file_may_inflate_to_follows_from_the_limit_of_the_feed(limit, inflated):
    assert inflate_limits_of(Feed(max_file_bytes=limit)).output_bytes == inflated
