"""Downloads that break off, and files that change under them: a partial file is never read, and the end is the same."""

from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections
from tests.support.feed_twins import Twins
from tests.support.feed_world import loopback_allowed
from tests.support.sftp_server import DropsOnRequest, SftpServer, changes_file_while_read
from tests.support.tables import empty_all

from harvester.feeds.files import DIRECTORY
from harvester.feeds.models import FeedRun

#: So long that reading the file takes many blocks.
PAD = "x" * 10_000


@pytest.fixture(scope="module")
def standing_twins(cluster, django_db_blocker, tmp_path_factory):
    root = tmp_path_factory.mktemp("partner")
    with django_db_blocker.unblock(), loopback_allowed(), SftpServer(root, behaviour=DropsOnRequest) as server:
        empty_all()
        yield Twins(server)
        empty_all()
        connections.close_all()


@pytest.mark.parametrize("percent", range(0, 100, 10))
def test_a_download_that_breaks_off_starts_again_and_ends_the_same(twins, percent):
    twins.publish(padding=PAD)
    assert twins.peaceful.run().outcome == "PROMOTED"
    before = artifacts()
    twins.server.drops = [percent]
    run = twins.disturbed.run()
    assert (run.attempt, twins.server.drops) == (2, [])
    twins.must_be_alike()
    assert artifacts() == before, "no more than the one whole file is kept"


def test_when_no_attempt_gets_through_the_run_has_failed_once_and_the_last_good_data_serves(twins):
    before = twins.differences()
    twins.publish(padding=PAD)
    twins.server.drops = [50, 50, 50]
    run = twins.disturbed.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", "CONNECTION_LOST", 3)
    twins.disturbed.feed.refresh_from_db()
    assert twins.disturbed.feed.consecutive_failures == 1
    only_the_run = [line for line in twins.differences() if line.startswith(("+ offers", "+ prices", "+ source_prod"))]
    assert (before, only_the_run) == ([], [])
    assert FeedRun.objects.get(pk=run.pk).rows_read is None, "no row was parsed"


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(database, settings, tmp_path):
    def replace(path: Path) -> None:
        twins.publish(padding=PAD)

    with loopback_allowed(), SftpServer(tmp_path, behaviour=changes_file_while_read(replace)) as server:
        twins = Twins(server)
        twins.make()
        twins.publish(padding=PAD)
        run = twins.disturbed.run()
        assert (run.outcome, run.attempt) == ("PROMOTED", 2)
        twins.peaceful.run()
        twins.must_be_alike()


def artifacts() -> set[str]:
    root = settings.CONFIG.home / DIRECTORY
    return {path.name for path in root.rglob("*") if path.is_file()}
