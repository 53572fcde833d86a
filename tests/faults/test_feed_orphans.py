"""Runs whose workers died until no attempt was left: none stays RUNNING, and the next one makes up for it."""

from contextlib import contextmanager

from tests.support.feed_twins import take_over
from tests.support.feed_worker import feed_worker, wait_at_point
from tests.support.feed_world import OLGA
from tests.support.jobs import change
from tests.support.outcomes import job
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.feeds.verbs.lifecycle import run_now
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run


@contextmanager
def die_for_good(world, *path):
    """A worker is killed in the last attempt at a run."""
    last = world.ask()
    change(last, "max_attempts = 1")
    with feed_worker(*path) as victim:
        backend = wait_at_point()
        yield last
        victim.kill()
    take_over(last, backend)
    assert job(last).state == "failed"


def look_for_orphans():
    enqueue(CLOSE_ORPHANS)
    run_until_idle()


def test_a_run_whose_workers_all_died_is_ended_and_is_no_failure_of_the_feed(twins):
    twins.publish()
    with die_for_good(twins.disturbed, "STEP stage_contents") as last:
        run = Run.objects.get(job_id=last)
    look_for_orphans()
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("FAILED", "ABANDONED")
    twins.disturbed.feed.refresh_from_db()
    assert (twins.disturbed.feed.consecutive_failures, twins.disturbed.feed.status) == (0, "ENABLED")


def test_the_run_after_an_abandoned_one_brings_everything_that_it_would_have_brought(twins):
    """The abandoned run had made new products, which nobody has seen: to the next one they are new."""
    twins.publish()
    expected = twins.peaceful.figures(twins.peaceful.run())
    with die_for_good(twins.disturbed, "STEP stage_contents"):
        pass
    run = twins.disturbed.run()
    assert run.outcome == "PROMOTED"
    figures = twins.disturbed.figures(run)
    names = ("products_new", "products_changed", "products_missing", "products_back", "prices_written")
    assert [getattr(figures, name) for name in names] == [getattr(expected, name) for name in names]
    assert not Run.objects.filter(status="RUNNING").exists()


def test_a_click_during_a_run_that_is_abandoned_gets_its_own_run(twins):
    twins.publish()
    with die_for_good(twins.disturbed, "STEP _download"):
        click = run_now(OLGA, twins.disturbed.feed.id).job_id
        # The session of the killed worker may keep the feed's lock for a moment; then the job comes again.
        wait_for(lambda: run_until_idle() and job(click).result, "the click's job to end")
        assert job(click).result["note"] == "a run was in progress"
    look_for_orphans()
    last = Run.objects.filter(source_id=twins.disturbed.source.pk).order_by("-no").first()
    assert (last.trigger, last.outcome) == ("MANUAL_PENDING", "PROMOTED")
