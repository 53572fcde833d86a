"""The database goes away and comes back: what was done stays done, and is done once."""

import contextlib
import threading
import time
from contextlib import contextmanager
from itertools import count

import pytest
from django.db import OperationalError, close_old_connections, connections
from tests.support.commit_thief import CommitThief
from tests.support.kinds import notes
from tests.support.outcomes import (
    history,
    sessions,
    states,
    wait_until,
    wait_until_all_ended,
    wait_until_ended,
)
from tests.support.signals import say, wait_to_hear
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import external_url, worker_processes, worker_thread

from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue


def test_a_result_is_recorded_once_the_database_is_back_and_the_job_is_not_run_twice(own_database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_thread(name="w") as worker:
        wait_to_hear("started:k:1")
        own_database.stop("immediate")
        say("release:k:1")
        wait_for(lambda: worker._endings and worker._failures, "a try to record the end")
        own_database.start()
        ended = wait_until_ended(job_id)
    assert (ended.state, ended.result) == ("succeeded", "w 1")
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_a_handler_that_returned_in_time_did_not_time_out_however_late_its_end_is_recorded(database):
    """The worker cannot write: it waits for a row that somebody else has locked."""
    blocked = enqueue("test.busy", {"key": "blocked"}).job_id
    job_id = enqueue("test.limited", {"key": "k"}).job_id
    with worker_thread(name="w") as worker, connect("test") as other:
        wait_to_hear("started:blocked:1")
        wait_to_hear("started:k:1")
        with other.transaction():
            other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [blocked])
            say("release:blocked:1")
            wait_for(lambda: worker._slots.busy == 1 and not worker._endings, "the try to write")
            say("release:k:1")
            wait_for(lambda: worker._endings, "the return of the handler")
            wait_for(lambda: all(held.overdue for held in worker._held_jobs() if held.id == job_id), "its deadline")
        ended = wait_until_ended(job_id)
    assert (ended.state, ended.result) == ("succeeded", "w 1")
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_the_answer_to_the_commit_of_effect_and_end_is_lost_and_nothing_is_done_twice(database):
    job_id = enqueue("test.write_once", {"key": "k"}).job_id
    with thieving_worker(b"INSERT INTO test_effects") as thief:
        assert thief.stolen.wait(30)
        wait_until_ended(job_id)
        wait_until_ended(enqueue("test.note").job_id)
    assert notes("k") == ["w 1"]
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_the_answer_to_the_commit_of_an_ending_is_lost_and_the_job_is_not_run_again(database):
    job_id = enqueue("test.note", {"key": "k"}).job_id
    with thieving_worker(b'"state": "succeeded"') as thief:
        assert thief.stolen.wait(30)
        wait_until_ended(job_id)
        wait_until_ended(enqueue("test.note").job_id)
    assert notes("k") == ["w 1"]
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_the_answer_to_the_commit_of_a_claim_is_lost_and_the_attempt_is_given_back(database):
    """No worker knows of that claim, so none beats for it; it is given back when the database answers again."""
    job_id = enqueue("test.note", {"key": "look for me"}, max_attempts=1).job_id
    with thieving_worker(b"look for me", "stuck_seconds=600") as thief:
        assert thief.stolen.wait(30)
        ended = wait_until_ended(job_id)
    assert (ended.state, ended.attempt) == ("succeeded", 1)
    assert notes("look for me") == ["w 1"]
    assert history(job_id) == ["pending", "running", "pending", "running", "succeeded"]


@contextmanager
def thieving_worker(marker, *arguments):
    """A worker that reaches the database through a thief of commits only."""
    with CommitThief(marker) as thief, worker_processes(1, "name=w", *arguments, **external_url(str(thief.place))):
        yield thief


def test_while_the_database_restarts_again_and_again_every_acknowledged_enqueue_runs_once(own_database):
    restarts = ["fast", "immediate", "crash", "immediate"]
    with worker_processes(2, "threads=3"), enqueuing() as acknowledged:
        for how in restarts:
            before = len(acknowledged)
            wait_for(lambda: len(acknowledged) > before + 40, "more jobs")  # noqa: B023
            own_database.restart(how)
    with worker_processes(2, "threads=3"):
        wait_until_all_ended()
    effects = dict(rows("SELECT key, count(*) FROM test_effects GROUP BY key"))
    assert set(effects.values()) == {1}
    assert not set(acknowledged) - set(effects)
    assert set(states()) == {"succeeded"}


def test_jobs_are_found_although_the_listening_session_was_ended(database):
    """Polling alone would find them after an hour."""
    with worker_thread(poll_seconds=3600):
        [listening] = wait_for(lambda: sessions("listen"), "the listener")
        rows("SELECT pg_terminate_backend(%s, 5000)", listening)
        missed = enqueue("test.note").job_id
        wait_until_ended(missed)
        wait_until_ended(enqueue("test.note").job_id)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_worker_recovers_when_the_server_has_no_connection_left_for_it(database, left, signals):
    """It needs three, and more once it has jobs."""
    job_id = enqueue("test.note", {"key": "k"}, max_attempts=99).job_id
    log = signals / "log"
    with connections_left(left), worker_processes(1, "threads=1", TEST_LOG=str(log)):
        wait_for(lambda: log.exists() and "too many connections" in log.read_text(), "a refused connection")
        limit_connections(-1)
        wait_until(job_id, "succeeded")
    assert len(notes("k")) == 1


@contextmanager
def connections_left(left):
    """The application's role gets no more than this many connections in addition to the ones it has."""
    [(taken,)] = rows("SELECT count(*) FROM pg_stat_activity WHERE usename = 'harvester_app'")
    limit_connections(taken + left)
    try:
        yield
    finally:
        limit_connections(-1)


def limit_connections(most):
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"ALTER ROLE harvester_app CONNECTION LIMIT {most}")


@contextmanager
def enqueuing():
    """Enqueue without a pause and without giving up; answers the keys whose commit was answered."""
    acknowledged = []
    stop = threading.Event()

    def go_on():
        for number in count():
            if stop.is_set():
                break
            with contextlib.suppress(OperationalError):
                enqueue("test.write_once", {"key": f"job {number}"}, max_attempts=50)
                acknowledged.append(f"job {number}")
            close_old_connections()
            time.sleep(0.002)
        connections.close_all()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        thread.join()
