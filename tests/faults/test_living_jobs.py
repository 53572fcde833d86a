"""Jobs that live are never taken from their workers, however long they take and whatever happens around them."""

import signal
import time
from datetime import timedelta

import psycopg
import pytest
from tests.support.kinds import notes
from tests.support.outcomes import history, job, silent_job, wait_until_ended, wait_until_rescued
from tests.support.signals import say, wait_to_hear
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import QUICK, worker_processes

from harvester.engine import heartbeat as heartbeat_module
from harvester.engine.claim import Claimer
from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.heartbeat import Heartbeat
from harvester.engine.maintenance import Maintenance

STUCK = timedelta(seconds=QUICK["stuck_seconds"])


def test_a_slow_living_job_is_never_taken(database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(2):
        wait_to_hear("started:k:1")
        wait_until_rescued(silent_job())
        say("release:k:1")
        ended = wait_until_ended(job_id)
    assert (ended.state, ended.attempt) == ("succeeded", 1)
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_a_slow_living_job_is_not_taken_while_its_worker_drains(database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(1, "name=draining", "grace_seconds=60") as [draining]:
        wait_to_hear("started:k:1")
        draining.send_signal(signal.SIGTERM)
        wait_to_hear("stopping:draining")
        with worker_processes(1, "name=other"):
            wait_until_rescued(silent_job())
            say("release:k:1")
            assert draining.wait(30) == 0
    assert (job(job_id).state, job(job_id).result) == ("succeeded", "draining 1")
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_a_long_fenced_transaction_neither_stops_the_heartbeats_nor_gets_the_job_taken(database):
    job_id = enqueue("test.inside_transaction", {"key": "k"}).job_id
    with worker_processes(1, "name=w"), worker_processes(1, "name=other"):
        wait_to_hear("inside:k")
        silent = silent_job()
        beats = set()
        while "retryable" not in history(silent):
            beats.add(job(job_id).heartbeat_at)
        say("release:k")
        ended = wait_until_ended(job_id)
    assert len(beats) > 3
    assert ended.attempt == 1
    assert len(notes("k")) == 1
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_after_the_database_was_away_for_longer_than_the_stuck_time_no_living_job_is_taken(own_database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(2):
        wait_to_hear("started:k:1")
        silent = silent_job()
        own_database.stop()
        away_since = time.monotonic()
        wait_for(lambda: time.monotonic() - away_since > 1.5 * QUICK["stuck_seconds"], "a long outage")
        own_database.start()
        assert rows("SELECT clock_timestamp() - heartbeat_at > %s FROM jobs WHERE id = %s", STUCK, silent) == [(True,)]
        wait_until_rescued(silent)
        say("release:k:1")
        ended = wait_until_ended(job_id)
    assert ended.attempt == 1
    assert history(job_id) == ["pending", "running", "succeeded"]


@pytest.fixture
def held(database):
    """A job that this process holds, without a worker that beats for it."""
    enqueue("test.noop")
    with connect("test") as session:
        [running] = Claimer(worker="w", queues=[]).claim(session, 1)
    return running


def test_a_beat_that_failed_is_made_up_for_at_once(held, monkeypatch):
    """Not an interval later: after a long outage every job looks stuck, and the rescuer is about to look twice."""
    heartbeat = Heartbeat(lambda: [held], interval=3600, on_cancel=lambda _: None)
    heartbeat._beat_at = float("-inf")
    before = job(held.id).heartbeat_at
    with monkeypatch.context() as patch:
        patch.setattr(heartbeat_module, "connect", fail_to_connect)
        heartbeat.beat_if_due()
    assert job(held.id).heartbeat_at == before
    heartbeat.beat_if_due()
    assert job(held.id).heartbeat_at > before
    heartbeat._drop_connection()


@pytest.mark.parametrize("strength", ["UPDATE", "NO KEY UPDATE"])
def test_a_beat_that_skipped_a_locked_row_is_made_up_for_at_once(held, strength):
    """Not an interval later: by then the job would have been silent for too long."""
    heartbeat = Heartbeat(lambda: [held], interval=3600, on_cancel=lambda _: None)
    heartbeat._beat_at = float("-inf")
    before = job(held.id).heartbeat_at
    with connect("holder") as holder, holder.transaction():
        holder.execute(f"SELECT FROM jobs WHERE id = %s FOR {strength}", [held.id])
        heartbeat.beat_if_due()
        heartbeat.beat_if_due()
        assert (job(held.id).heartbeat_at, held.is_lost) == (before, False)
    heartbeat.beat_if_due()
    beaten = job(held.id).heartbeat_at
    assert beaten > before
    heartbeat.beat_if_due()
    assert job(held.id).heartbeat_at == beaten, "the next one comes an interval later"
    heartbeat._drop_connection()


def test_progress_that_a_skipped_beat_did_not_write_is_left_to_the_next_one_and_to_the_end(held):
    heartbeat = Heartbeat(lambda: [held], interval=3600, on_cancel=lambda _: None)
    with connect("holder") as holder, holder.transaction():
        holder.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [held.id])
        held.progress(7, 10)
        heartbeat.beat_if_due()
        assert (held.look_at_progress()[0], job(held.id).progress) == ({"done": 7, "total": 10, "note": ""}, None)
    heartbeat.beat_if_due()
    assert job(held.id).progress["done"] == 7
    assert held.take_progress() is None
    heartbeat._drop_connection()


def test_news_that_could_not_be_fetched_are_fetched_as_soon_as_the_database_is_back(held, monkeypatch):
    """A request to stop hurries the heartbeat; a beat that fails must not leave it to the next interval."""
    cancelled = []
    heartbeat = Heartbeat(lambda: [held], interval=3600, on_cancel=cancelled.append)
    with connect("test") as session:
        session.execute("UPDATE jobs SET cancel_requested_at = now()")
    heartbeat.hurry()
    with monkeypatch.context() as patch:
        patch.setattr(heartbeat_module, "connect", fail_to_connect)
        heartbeat.beat_if_due()
    assert cancelled == []
    heartbeat.beat_if_due()
    assert cancelled == [held]
    heartbeat._drop_connection()


def test_a_heartbeat_continues_when_asking_a_handler_to_stop_fails(held):
    heartbeat = Heartbeat(lambda: [held], interval=0, on_cancel=fail_to_cancel)
    with connect("test") as session:
        session.execute("UPDATE jobs SET cancel_requested_at = now()")
    heartbeat.beat_if_due()
    before = job(held.id).heartbeat_at
    heartbeat.beat_if_due()
    assert job(held.id).heartbeat_at > before
    heartbeat._drop_connection()


def test_two_looks_in_quick_succession_take_no_job(held):
    """However often an operator has stuck jobs looked for: hearts need a while to beat again after an outage."""
    with connect("test") as session:
        session.execute("UPDATE jobs SET heartbeat_at = now() - interval '1 hour'")
    maintenance = Maintenance(stuck_seconds=600, interval=0.001)
    assert [maintenance.once() for _ in range(5)] == [[]] * 5
    maintenance._drop_connection()


def fail_to_cancel(_):
    raise RuntimeError("Event loop is closed")


def fail_to_connect(*_):
    raise psycopg.OperationalError("too many clients already")
