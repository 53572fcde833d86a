"""`harvester worker` and `scheduler`: every option, and stopping at any time."""

import signal
import subprocess
import sys

import pytest
from tests.support.command import environment, harvester, running
from tests.support.jobs import change
from tests.support.waiting import wait_for

from harvester.engine import lanes
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job, PeriodicJob

pytestmark = pytest.mark.usefixtures("database")

KIND = "ops.clean_up"


def put(count, **options):
    return [enqueue(KIND, **options).job_id for _ in range(count)]


def states():
    return sorted(Job.objects.values_list("state", flat=True))


def test_once_runs_one_job_and_ends():
    put(2)
    assert harvester("worker", "--once").code == 0
    assert states() == ["pending", "succeeded"]


def test_once_without_a_job_is_no_failure():
    assert harvester("worker", "--once").code == 0


def test_max_jobs_ends_after_that_many():
    put(3)
    assert harvester("worker", "--max-jobs", 2, "--threads", 1).code == 0
    assert states() == ["pending", "succeeded", "succeeded"]


def test_only_its_queues_are_served():
    put(1, queue="a"), put(1, queue="b"), put(1, queue="c")
    harvester("worker", "--queues", "a, b", "--max-jobs", 2, "--poll-interval", 1, "--stale-check-interval", 5)
    assert {job.queue: job.state for job in Job.objects.all()} == {"a": "succeeded", "b": "succeeded", "c": "pending"}


def test_a_dry_run_shows_what_would_run_and_claims_nothing():
    first, second = put(2, priority=1)
    put(1, queue="other"), put(1, delay=3600)
    ran = harvester("worker", "--dry-run", "--queues", "maintenance", "--threads", 8, "--json")
    assert [job["id"] for job in ran.json["would_run"]] == [first, second]
    assert "A worker would run now" in harvester("worker", "--dry-run").out
    assert states() == ["pending"] * 4


def test_a_dry_run_shows_no_more_jobs_of_a_lane_than_it_has_room_for():
    narrow, wide = put(3, lane="narrow"), put(3, lane="wide")
    full = put(2, lane="full")
    free = put(1)
    lanes.set_concurrency("maintenance", "wide", 2)
    change(full[0], "state = 'running', lease = gen_random_uuid(), attempt = 1, heartbeat_at = now()")
    ran = harvester("worker", "--dry-run", "--threads", 8, "--json")
    assert [job["id"] for job in ran.json["would_run"]] == [narrow[0], *wide[:2], *free]


def test_a_dry_run_with_nothing_due_says_so():
    assert "No jobs are due" in harvester("worker", "--dry-run").out


def test_a_job_has_the_name_of_its_worker():
    [job_id] = put(1)
    harvester("worker", "--once", "--name", "worker of ann")
    assert Job.objects.get(id=job_id).worker == "worker of ann"
    [job_id] = put(1)
    harvester("worker", "--once", WORKER_ID="worker of bob")
    assert Job.objects.get(id=job_id).worker == "worker of bob"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_worker_and_a_second_one_does_no_harm(number):
    with running("worker") as worker:
        worker.says("WORKER_STARTED")
        worker.signal(number)
        worker.signal(number)
        ran = worker.ends()
    assert ran.code == 0
    assert "WORKER_STOPPED" in ran.err


STOPPED_BEFORE_IT_STARTS = """
import os, signal
from harvester.cli import processes, signals
prepared = signals.StopRequest.__init__
def prepare(self):
    prepared(self)
    os.kill(os.getpid(), signal.SIGTERM)
signals.StopRequest.__init__ = prepare
from harvester.cli.app import run
raise SystemExit(run(["{command}"]))
"""


@pytest.mark.parametrize("command", ["worker", "scheduler"])
def test_a_stop_before_the_loop_starts_is_not_lost(command):
    put(1)
    code = STOPPED_BEFORE_IT_STARTS.format(command=command)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{command.upper()}_STOPPED" in done.stderr
    assert states() == ["pending"]


def test_a_scheduler_makes_periodic_jobs_known_and_stops_on_a_signal():
    with running("scheduler") as scheduler:
        wait_for(lambda: PeriodicJob.objects.filter(kind=KIND).exists(), "the periodic job")
        scheduler.signal(signal.SIGTERM)
        assert scheduler.ends().code == 0
