"""A full disk, and what dead workers leave on it."""

import numpy as np
import polars as pl
import pytest
from django.conf import settings
from tests.support.feed_twins import take_over
from tests.support.feed_worker import feed_worker, wait_at_point
from tests.support.outcomes import job
from tests.support.small_disk import files_no_larger_than
from tests.support.workers import run_until_idle

from harvester.feeds.files import DIRECTORY
from harvester.feeds.ingest import spool_directory
from harvester.feeds.reader.spool import Spool
from harvester.guards.artifacts import PART_PREFIX
from harvester.runs.models import Run

ROOM = 100_000


@pytest.mark.parametrize("compressed", [False, True], ids=["no room for the file", "no room for its rows"])
def test_a_full_disk_is_a_failure_that_passes_and_leaves_nothing_behind(twins, compressed):
    """Compressed, the file itself has room enough."""
    twins.publish_much(compressed=compressed)
    twins.peaceful.run()
    waiting = twins.disturbed.ask()
    with files_no_larger_than(ROOM):
        run_until_idle()
    assert (job(waiting).state, job(waiting).error_type) == ("retryable", "DISK_FULL")
    run = Run.objects.get(job_id=waiting)
    assert (run.status, run.error_code) == ("RUNNING", "DISK_FULL")
    assert Run.objects.get(pk=run.pk).next_try_at is not None
    assert left_on_disk() == []
    twins.disturbed.work(waiting)
    twins.must_be_alike()
    assert left_on_disk() == []


def test_what_a_killed_worker_left_is_removed_by_the_next_run_and_what_a_living_one_has_is_not(twins):
    twins.publish()
    twins.peaceful.run()
    run = twins.disturbed.ask()
    with Spool(spool_directory()) as living:
        living.add(pl.DataFrame({"line": [7], "title": ["kept"]}))
        with feed_worker("STEP judge") as victim:
            backend = wait_at_point()
            victim.kill()
        assert len(left_on_disk()) == 2
        take_over(run, backend)
        twins.disturbed.work(run)
        assert len(left_on_disk()) == 1
        [kept] = living.rows(np.array([7]), ["title"])
        assert kept["title"].to_list() == ["kept"]
    assert left_on_disk() == []
    twins.must_be_alike()


def left_on_disk():
    parts = (settings.CONFIG.home / DIRECTORY).glob(f"{PART_PREFIX}*")
    return [*parts, *spool_directory().glob("*")]
