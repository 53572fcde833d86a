"""Several processes at once: each job once, each key once, each lane one at a time, each moment once."""

import signal

import pytest
from tests.support.outcomes import history, states, wait_until, wait_until_all_ended
from tests.support.signals import say, wait_to_hear
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import ended_at_last, python_process, start_process, worker_processes

from harvester.engine.enqueue import NewJob, enqueue, enqueue_many

DUE_MOMENTS = "SELECT count(*) FROM periodic_jobs WHERE next_at <= clock_timestamp()"


@pytest.mark.parametrize(("jobs", "processes", "threads"), [(20, 2, 1), (1000, 4, 5)])
def test_each_job_runs_once(database, jobs, processes, threads):
    keys = [f"job {number}" for number in range(jobs)]
    with worker_processes(processes, f"threads={threads}"):
        wait_for_workers(processes)
        enqueue_many([NewJob(kind="test.note", args={"key": key}) for key in keys])
        wait_until_all_ended()
    assert states() == {"succeeded": jobs}
    assert sorted(rows("SELECT key FROM test_effects")) == sorted((key,) for key in keys)
    assert rows("SELECT DISTINCT attempt FROM jobs") == [(1,)]


def test_twenty_processes_enqueue_one_dedupe_key_and_one_job_results(database):
    with python_process("tests.support.enqueue_herd", "20", "the key") as herd:
        for number in range(20):
            wait_to_hear(f"ready:{number}")
        say("go")
        assert herd.wait(60) == 0
    [(job_id,)] = rows("SELECT id FROM jobs")
    answers = sorted(wait_to_hear(f"made:{number}") for number in range(20))
    assert answers == [f"{job_id} False"] * 19 + [f"{job_id} True"]


def test_a_lane_is_serial_across_processes(database):
    """Fewer slots than lanes, so that a lane goes from one process to the next."""
    lanes = [f"lane {number}" for number in range(8)]
    with worker_processes(3, "threads=2"):
        wait_for_workers(3)
        enqueue_many([NewJob(kind="test.step", args={"key": lane}, lane=lane) for lane in lanes * 6])
        wait_until_all_ended()
    assert len(rows("SELECT DISTINCT lane, worker FROM jobs")) > len(lanes)
    for lane in lanes:
        steps = [note for (note,) in rows("SELECT note FROM test_effects WHERE key = %s ORDER BY at, note DESC", lane)]
        assert steps == ["begin", "end"] * 6


def test_a_busy_lane_holds_up_no_other_lane_and_no_job_without_one(database):
    busy = enqueue("test.busy", {"key": "k"}, lane="busy").job_id
    with worker_processes(2, "threads=2"):
        wait_to_hear("started:k:1")
        stuck_behind = [enqueue("test.noop", lane="busy").job_id for _ in range(20)]
        others = [enqueue("test.noop", lane=lane).job_id for lane in ("other", None) for _ in range(10)]
        for job_id in others:
            wait_until(job_id, "succeeded")
        assert [history(job_id) for job_id in stuck_behind] == [["pending"]] * 20
        say("release:k:1")
        wait_until_all_ended()
    assert history(busy) == ["pending", "running", "succeeded"]


def test_two_schedulers_take_each_moment_once(database):
    names = [f"work {number}" for number in range(8)]
    rounds = 5
    schedulers = [start_process("tests.support.scheduler_process", *names) for _ in range(2)]
    with ended_at_last(schedulers), worker_processes(1):
        for scheduler in schedulers:
            wait_to_hear(f"scheduling:{scheduler.pid}")
        wait_for(lambda: rows("SELECT count(*) FROM periodic_jobs") == [(len(names),)], "the registration")
        for done in range(rounds):
            rows("UPDATE periodic_jobs SET next_at = clock_timestamp() RETURNING name")
            wait_for(lambda: rows(DUE_MOMENTS) == [(0,)], "the taking of all moments")
            wait_until_all_ended()
            assert states() == {"succeeded": len(names) * (done + 1)}
        for scheduler in schedulers:
            scheduler.send_signal(signal.SIGTERM)
        assert [scheduler.wait(30) for scheduler in schedulers] == [0, 0]


def wait_for_workers(count):
    listening = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'harvester listen'"
    wait_for(lambda: rows(listening)[0][0] == count, "the start of all workers")
