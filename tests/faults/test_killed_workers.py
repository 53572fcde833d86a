"""Workers that die at once: nothing they held is lost, and nothing loops for ever."""

import signal
from itertools import count

from tests.support.kinds import notes
from tests.support.outcomes import history, job, moment, silent_job, wait_until, wait_until_ended
from tests.support.signals import say, wait_to_hear
from tests.support.waiting import wait_for
from tests.support.workers import worker_processes

from harvester.engine import sql
from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.maintenance import Rescuer
from harvester.engine.outcomes import Ending, settle_in
from harvester.engine.states import JobState


def test_a_job_whose_worker_was_killed_comes_back_and_ends(database):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_processes(1, "name=first") as [first]:
        assert wait_to_hear("started:k:1") == "first 1"
        first.kill()
        say("release:k:2")
        with worker_processes(1, "name=second"):
            ended = wait_until_ended(job_id)
    assert (ended.state, ended.result, ended.attempt) == ("succeeded", "second 2", 2)
    assert history(job_id) == ["pending", "running", "retryable", "running", "succeeded"]


def test_after_a_hard_abort_every_job_of_the_process_comes_back(database):
    others = [enqueue("test.busy", {"key": f"k{number}"}).job_id for number in range(5)]
    with worker_processes(1, "threads=6", "name=first") as [first]:
        for number in range(5):
            wait_to_hear(f"started:k{number}:1")
            say(f"release:k{number}:2")
        aborting = enqueue("test.abort").job_id
        assert first.wait(30) == -signal.SIGABRT
        with worker_processes(1, "threads=6", "name=second"):
            ended = [wait_until_ended(job_id) for job_id in others]
            assert wait_until_ended(aborting).result == "survived"
    assert [found.result for found in ended] == ["second 2"] * 5


def test_a_job_that_kills_its_worker_every_time_ends_as_failed_after_its_attempts(database):
    job_id = enqueue("test.die", {"attempts": 99}, max_attempts=2).job_id
    deaths = 0
    while job(job_id).state != "failed":
        with worker_processes(1) as [worker]:
            wait_for(lambda: worker.poll() is not None or job(job_id).state == "failed", "a death or the end")
            deaths += worker.poll() is not None
    assert deaths == 2
    assert notes(job_id) == ["about to die"] * 2
    ended = job(job_id)
    assert (ended.attempt, ended.error_type) == (2, "WORKER_LOST")
    assert "stopped responding" in ended.error


def test_a_killed_lane_holder_frees_its_lane_after_rescue(database):
    holder = enqueue("test.busy", {"key": "k"}, lane="shop").job_id
    with worker_processes(1, "name=first") as [first]:
        wait_to_hear("started:k:1")
        follower = enqueue("test.note", {"key": "follower"}, lane="shop").job_id
        first.kill()
        say("release:k:2")
        with worker_processes(1, "name=second"):
            wait_until(follower, "succeeded")
            wait_until(holder, "succeeded")
    assert moment(holder, "retryable") < moment(follower, "running")


def test_the_rescuer_never_overwrites_a_job_that_ended_after_it_was_suspected(database):
    silent = silent_job()
    rescuer = Rescuer(stuck_seconds=0, between=1, clock=count(step=2).__next__)
    with connect("test") as session:
        assert rescuer.look(session) == []
        [suspect] = rescuer._suspects
        found = session.execute(sql.STUCK, {"stuck": 0}).fetchone()
        ending = Ending(job_id=silent, lease=suspect.lease, state=JobState.SUCCEEDED, result='"in time"')
        with session.cursor() as cursor:
            settle_in(cursor, [ending])
        assert rescuer.look(session) == []
        assert not rescuer._take(session, suspect, found)
    assert (job(silent).state, job(silent).result, job(silent).error) == ("succeeded", "in time", None)


def test_the_rescuer_passes_by_a_job_that_beat_after_it_was_suspected(database):
    silent = silent_job()
    rescuer = Rescuer(stuck_seconds=0, between=1, clock=count(step=2).__next__)
    with connect("test") as session:
        assert rescuer.look(session) == []
        [suspect] = rescuer._suspects
        found = session.execute(sql.STUCK, {"stuck": 0}).fetchone()
        session.execute("UPDATE jobs SET heartbeat_at = clock_timestamp()")
        assert not rescuer._take(session, suspect, found)
    assert job(silent).state == "running"


def test_the_two_looks_that_make_a_job_stuck_are_on_one_unbroken_connection(database):
    """A broken one means that the database was away, and then every living job looks stuck at first."""
    silent = silent_job()
    rescuer = Rescuer(stuck_seconds=0, between=1, clock=count(step=2).__next__)
    with connect("test") as before, connect("test") as after:
        assert rescuer.look(before) == []
        assert rescuer.look(after) == []
        assert rescuer.look(after) == [silent]
