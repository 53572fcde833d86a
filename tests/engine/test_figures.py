"""What people and monitoring read about the engine."""

import threading

import pytest
from django.db import connections, transaction
from prometheus_client.parser import text_string_to_metric_families
from tests.support.jobs import change, insert_raw
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine import events
from harvester.engine import maintenance as maintenance_module
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.events import EngineEvent
from harvester.engine.maintenance import Maintenance
from harvester.ops import job_figures, metrics


def scraped() -> dict[tuple[str, str], float]:
    """The metrics page by name and label."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def some_work(database):
    """Two queues with something of everything."""
    enqueue_many(NewJob(kind="test.note", queue="feeds") for _ in range(3))
    enqueue("test.note", queue="feeds", delay=3600)
    insert_raw(queue="feeds", run_at="clock_timestamp() - interval '10 minutes'")
    for _ in range(2):
        enqueue("test.fail_terminal", queue="pages")
    for _ in range(4):
        enqueue("test.note", queue="pages")
    run_until_idle(queues=("pages",))
    # Only now: a worker that takes its time would rescue a running job without a heartbeat.
    running = insert_raw(queue="feeds")
    change(running, "state = 'running', lease = gen_random_uuid(), heartbeat_at = now() - interval '10 minutes'")
    return running


def test_a_queue_has_depth_age_rate_and_failures(some_work):
    feeds, pages = job_figures.tally().queues
    assert (feeds.queue, feeds.waiting, feeds.scheduled, feeds.running) == ("feeds", 4, 1, 1)
    assert 600 <= feeds.oldest_waiting_seconds < 3600
    assert (feeds.finished_per_second, feeds.failed_last_hour) == (0, 0)
    assert (pages.queue, pages.waiting, pages.running, pages.oldest_waiting_seconds) == ("pages", 0, 0, 0)
    assert (pages.finished_per_second, pages.failed_last_hour) == (6 / job_figures.RATE_SECONDS, 2)


def test_failures_and_rates_forget_what_is_long_past(some_work):
    rows("UPDATE jobs SET finished_at = finished_at - interval '30 minutes' WHERE queue = 'pages' RETURNING id")
    [pages] = [queue for queue in job_figures.tally().queues if queue.queue == "pages"]
    assert (pages.finished_per_second, pages.failed_last_hour) == (0, 2)
    rows("UPDATE jobs SET finished_at = finished_at - interval '40 minutes' WHERE queue = 'pages' RETURNING id")
    assert [queue.queue for queue in job_figures.tally().queues] == ["feeds"]


def test_states_are_counted_with_their_zeros(some_work):
    assert job_figures.tally().states == {
        "pending": 5,
        "running": 1,
        "retryable": 0,
        "succeeded": 4,
        "failed": 2,
        "cancelled": 0,
    }


def test_the_last_day_has_twenty_four_hours_whatever_was_done(some_work):
    hours = job_figures.last_day()
    assert len(hours) == 24
    assert sum(hour["succeeded"] for hour in hours) == 4
    assert sum(hour["failed"] for hour in hours) == 2
    assert hours == sorted(hours, key=lambda hour: hour["hour"])


def test_stuck_jobs_are_those_without_a_sign_of_life(some_work):
    assert [job.id for job in job_figures.stuck(300)] == [some_work]
    assert job_figures.stuck(3600) == []


def test_the_metrics_page_shows_the_same_per_queue(some_work):
    page = scraped()
    assert page["harvester_queue_waiting", "feeds"] == 4
    assert page["harvester_queue_scheduled", "feeds"] == 1
    assert page["harvester_queue_running", "feeds"] == 1
    assert page["harvester_queue_oldest_waiting_seconds", "feeds"] >= 600
    assert page["harvester_queue_finished_per_second", "pages"] == pytest.approx(6 / job_figures.RATE_SECONDS)
    assert page["harvester_queue_failed_last_hour", "pages"] == 2
    assert page["harvester_jobs", "failed"] == 2
    assert page["harvester_oldest_snapshot_seconds", ""] >= 0


def test_the_metrics_page_of_an_empty_engine_is_readable(database):
    assert scraped()["harvester_jobs", "running"] == 0


def test_the_name_of_a_queue_cannot_break_the_metrics_page(database):
    enqueue("test.note", queue='odd "queue" \\ {x="y"}')
    assert scraped()["harvester_queue_waiting", 'odd "queue" \\ {x="y"}'] == 1


def test_an_open_transaction_shows_as_the_oldest_snapshot(database):
    inside, done = threading.Event(), threading.Event()

    def report() -> None:
        with transaction.atomic():
            transaction.get_connection().cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            rows("SELECT count(*) FROM jobs")
            inside.set()
            done.wait(30)
        connections.close_all()

    thread = threading.Thread(target=report)
    thread.start()
    inside.wait(30)
    try:
        assert job_figures.oldest_snapshot_seconds() > 0
    finally:
        done.set()
        thread.join()


def test_a_snapshot_that_is_too_old_is_reported_once(database, monkeypatch):
    emitted: list[EngineEvent] = []
    monkeypatch.setattr(events, "_listeners", [emitted.append])
    monkeypatch.setattr(maintenance_module, "OLD_SNAPSHOT_SECONDS", -1.0)
    maintenance = Maintenance(300, 60)
    try:
        for _ in range(3):
            maintenance.once()
        assert [event.name for event in emitted] == ["SNAPSHOT_TOO_OLD"]
    finally:
        maintenance._drop_connection()
