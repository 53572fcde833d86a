"""SIGTERM: nothing new is begun, what runs may end, and what does not end is handed back."""

import signal

from tests.support.kinds import notes
from tests.support.outcomes import history, job, wait_until
from tests.support.signals import say, wait_to_hear
from tests.support.workers import python_process, worker_processes

from harvester.engine.enqueue import enqueue


def test_sigterm_lets_running_jobs_finish_and_begins_no_new_one(database):
    running = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(1, "threads=2", "name=w", "grace_seconds=30") as [worker]:
        wait_to_hear("started:k:1")
        worker.send_signal(signal.SIGTERM)
        wait_to_hear("stopping:w")
        late = enqueue("test.note").job_id
        say("release:k:1")
        assert worker.wait(30) == 0
    assert (job(running).state, job(running).result) == ("succeeded", "w 1")
    assert history(late) == ["pending"]


def test_past_the_grace_time_the_job_is_handed_back_and_the_attempt_given_back(database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(1, "grace_seconds=0.2") as [worker]:
        wait_to_hear("started:k:1")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    handed_back = job(job_id)
    assert (handed_back.state, handed_back.attempt, handed_back.lease) == ("pending", 0, None)
    assert history(job_id) == ["pending", "running", "pending"]
    say("release:k:1")
    with worker_processes(1, "name=next"):
        assert wait_until(job_id, "succeeded").result == "next 1"


def test_what_a_handed_back_job_had_not_committed_is_undone(database):
    job_id = enqueue("test.inside_transaction", {"key": "k"}).job_id
    with worker_processes(1, "grace_seconds=0.2") as [worker]:
        wait_to_hear("inside:k")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert job(job_id).state == "pending"
    say("release:k")
    with worker_processes(1, "name=next"):
        wait_until(job_id, "succeeded")
    assert notes("k") == ["next 1"]


def test_a_second_sigterm_while_draining_is_harmless(database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(1, "name=w", "grace_seconds=30") as [worker]:
        wait_to_hear("started:k:1")
        worker.send_signal(signal.SIGTERM)
        wait_to_hear("stopping:w")
        worker.send_signal(signal.SIGTERM)
        say("release:k:1")
        assert worker.wait(30) == 0
    assert history(job_id) == ["pending", "running", "succeeded"]


def test_sigterm_before_the_loop_starts_is_not_lost(database):
    job_id = enqueue("test.note").job_id
    with worker_processes(1, TEST_SIGTERM_FIRST="yes") as [worker]:
        assert worker.wait(30) == 0
    assert history(job_id) == ["pending"]


def test_a_bell_rung_by_signals_at_every_moment_of_the_waiting_never_hangs():
    with python_process("tests.support.signal_hail") as hail:
        assert hail.wait(60) == 0
