"""The tick: which feeds get a run, when the next one is, and that each moment is taken once."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, connections, transaction
from structlog.testing import capture_logs
from tests.support.feed_jobs import jobs_of
from tests.support.feed_rows import make_feed, make_source
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle

from harvester.engine import scheduler
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.engine.registry import all_periodic
from harvester.feeds import jobs, schedule
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.states import SCHEDULES, FeedStatus
from harvester.feeds.verbs.locked_feed import database_now, locked
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")

DRAFT, ENABLED, PAUSED, DISABLED = FeedStatus


def scheduled(name="feed", *, late=timedelta(minutes=1), status=ENABLED, hours=1):
    """A feed whose moment was that long ago, where its state allows a moment."""
    due = database_now() - late if status == ENABLED and hours else None
    return make_feed(make_source(name), status=status, schedule_hours=hours, next_run_at=due, password="")


def tick():
    """What one tick did."""
    job = enqueue(jobs.TICK).job_id
    run_until_idle(queues=("maintenance",))
    return Job.objects.get(id=job).result["enqueued"]


def enqueued():
    return [args["feed_id"] for args in jobs_of("feeds.run")]


# The table of 5.1.


@pytest.mark.parametrize("hours", [None, *SCHEDULES])
@pytest.mark.parametrize("status", FeedStatus)
def test_only_enabled_feeds_with_a_frequency_run_by_themselves(status, hours):
    feed = scheduled(status=status, hours=hours)
    assert tick() == int(status == ENABLED and hours is not None)
    assert enqueued() == ([str(feed.id)] if status == ENABLED and hours else [])


@pytest.mark.parametrize("status", [DRAFT, PAUSED, DISABLED])
def test_a_feed_that_does_not_run_by_itself_cannot_have_a_moment(status):
    feed = scheduled(status=status)
    with pytest.raises(IntegrityError, match="scheduled_only_when_enabled"), transaction.atomic():
        Feed.objects.filter(pk=feed.pk).update(next_run_at=database_now())


def test_a_feed_is_due_from_its_moment_on():
    scheduled(late=timedelta(0))
    assert tick() == 1


def test_a_feed_whose_moment_has_not_come_waits():
    feed = scheduled(late=timedelta(minutes=-1))
    assert tick() == 0
    assert Feed.objects.get().next_run_at == feed.next_run_at


@pytest.mark.parametrize("hours", SCHEDULES)
def test_the_next_run_is_one_interval_from_now_and_a_backlog_makes_one_run(hours):
    feed = scheduled(hours=hours, late=timedelta(days=30))
    before = database_now()
    assert tick() == 1
    planned = Feed.objects.get(pk=feed.pk).next_run_at
    assert before + timedelta(hours=hours) <= planned <= database_now() + timedelta(hours=hours)
    assert tick() == 0


def test_the_job_of_a_run_names_its_feed_and_its_reason():
    feed = scheduled()
    with capture_logs() as logged:
        tick()
    job = Job.objects.get(kind="feeds.run")
    assert job.args == {"feed_id": str(feed.id), "trigger": "SCHEDULED"}
    assert (job.queue, job.dedupe_key) == ("feeds", None)
    [event] = [line for line in logged if line["event"] == "FEED_ENQUEUED"]
    assert (event["feed_id"], event["network"], event["trigger"]) == (str(feed.id), "impact", "SCHEDULED")
    assert event["next_run_at"] == Feed.objects.get().next_run_at.isoformat()
    [ticked] = [line for line in logged if line["event"] == "SCHEDULER_TICK"]
    assert (ticked["log_level"], ticked["eligible_feeds"]) == ("debug", 1)


def test_a_tick_goes_on_until_nothing_is_due(monkeypatch):
    monkeypatch.setattr(schedule, "BATCH", 2)
    feeds = [scheduled(f"feed {number}") for number in range(5)]
    assert tick() == 5
    assert sorted(enqueued()) == sorted(str(feed.id) for feed in feeds)


def test_ticks_at_once_take_each_feed_once(monkeypatch):
    monkeypatch.setattr(schedule, "BATCH", 3)
    feeds = [scheduled(f"feed {number}") for number in range(20)]
    made = [enqueue(jobs.TICK).job_id for _ in range(4)]
    run_until_idle(queues=("maintenance",), threads=4)
    assert sum(job.result["enqueued"] for job in Job.objects.filter(id__in=made)) == len(feeds)
    assert sorted(enqueued()) == sorted(str(feed.id) for feed in feeds)


def test_a_feed_that_somebody_is_changing_is_left_for_the_next_tick():
    changed, other = scheduled("changed"), scheduled("other")
    done, held = threading.Event(), threading.Event()

    def change():
        with transaction.atomic():
            locked(changed.id)
            held.set()
            done.wait(30)
        connections.close_all()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        wait_for(held.is_set, "the lock")
        assert tick() == 1
        assert enqueued() == [str(other.id)]
    finally:
        done.set()
        thread.join()
    assert tick() == 1


def test_a_run_that_is_just_being_made_does_not_hide_its_feed():
    feed = scheduled()
    done, held = threading.Event(), threading.Event()

    def begin_a_run():
        with transaction.atomic():
            run = Run.objects.create(
                kind="AFFILIATE_FEED", subject_id=feed.pk, source_id=feed.source_id, trigger="MANUAL", status="RUNNING"
            )
            FeedRun.objects.create(run=run, feed_id=feed.id)
            held.set()
            done.wait(30)
        connections.close_all()

    thread = threading.Thread(target=begin_a_run)
    thread.start()
    try:
        wait_for(held.is_set, "the run")
        assert tick() == 1
    finally:
        done.set()
        thread.join()


def test_a_claim_whose_enqueue_fails_is_no_claim(monkeypatch):
    feed = scheduled()
    monkeypatch.setattr(schedule, "enqueue_many", lambda jobs: 1 / 0)
    enqueue(jobs.TICK, max_attempts=1)
    run_until_idle(queues=("maintenance",))
    assert Feed.objects.get().next_run_at == feed.next_run_at
    assert enqueued() == []


def test_the_tick_comes_every_minute_and_does_not_wait_for_runs():
    [item] = [item for item in all_periodic().values() if item.kind == jobs.TICK]
    assert item.cron == "* * * * *"
    scheduler.register_all()
    rows("UPDATE periodic_jobs SET next_at = clock_timestamp() WHERE kind = %s RETURNING name", jobs.TICK)
    scheduler.tick()
    assert Job.objects.get(kind=jobs.TICK).queue == "maintenance"
