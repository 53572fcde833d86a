"""A lane that rests is not claimed from, whatever wakes it, and nobody else waits for it."""

import time
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from tests.support.jobs import change, history, job, state, wait_for_state
from tests.support.kinds import FAST, note, notes
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine import lanes, sql
from harvester.engine.claim import Claimer
from harvester.engine.connections import connect
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.registry import job_kind
from harvester.engine.worker import Worker
from harvester.kernel.actor import system
from harvester.kernel.errors import InvalidInput, TerminalError, TransientError
from harvester.kernel.retry import LONGEST_WAIT_SECONDS
from harvester.ops import jobs as verbs

#: No test takes this long.
LONG = 3600.0
NEVER = {"poll_seconds": 600.0, "stale_check_seconds": 600.0, "stuck_seconds": 3600.0}
#: Claims of jobs, first and repeated ones.
CLAIMS = "SELECT count(*) FROM job_events WHERE state = 'running'"


def rest_and_end(job: RunningJob, how: str) -> None:
    """Rest the lane the first time, and end in the given way."""
    if notes("rested"):
        return
    note("rested")
    job.rest_lane(LONG)
    if how == "finish":
        with job.transaction():
            job.finish()
    elif how == "transient":
        raise TransientError("not now")
    elif how == "terminal":
        raise TerminalError("never")
    elif how == "snooze":
        raise Snooze(0.01, "the job waits")
    elif how in ("cancel", "timeout", "hand back"):
        wait_for(job.check, "the end of the attempt")


job_kind("test.rest_and_end", retry=FAST)(rest_and_end)
job_kind("test.rest_too_long", retry=FAST, timeout=0.2)(rest_and_end)


class Pace:
    """What a limiter of a site would do, in this process only."""

    def __init__(self, interval: float) -> None:
        self.interval, self.due, self.refusals = interval, 0.0, 0

    def take(self) -> float:
        wait = self.due - time.monotonic()
        if wait > 0:
            self.refusals += 1
            return wait
        self.due = time.monotonic() + self.interval
        return 0.0


PACE = Pace(0.02)


@job_kind("test.paced", retry=FAST)
def paced(job: RunningJob, rests_after_grant: bool = True) -> None:
    if wait := PACE.take():
        raise Snooze(wait, "pace", rest_lane=True)
    if rests_after_grant:
        job.rest_lane(PACE.interval)


@job_kind("test.rest_once")
def rest_once(job: RunningJob) -> None:
    if not rows("SELECT FROM job_events WHERE job_id = %s AND detail LIKE 'snoozed%%'", job.id):
        raise Snooze(LONG, "robots.txt is not available", rest_lane=True)


@job_kind("test.named_delay", retry=FAST)
def named_delay(job: RunningJob, seconds: float) -> None:
    raise TransientError("too many requests", retry_after=seconds)


def not_before(lane: str = "x"):
    found = rows("SELECT not_before FROM job_lanes WHERE lane = %s", lane)
    return found[0][0] if found else None


def end_rest(lane: str = "x") -> None:
    lanes.rest("default", lane, 0, shorten=True)


def preview() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql.PREVIEW, {"queues": [], "most": 100})
        return [row[0] for row in cursor.fetchall()]


def claim_in_one_turn(most: int = 10) -> list[str | None]:
    with connect("test") as session, session.transaction():
        return [claimed.lane for claimed in Claimer(worker="test", queues=[]).claim(session, most)]


def test_a_lane_that_rests_waits_and_all_others_go_on(database):
    lanes.rest("default", "x", LONG)
    resting = enqueue("test.note", lane="x", priority=9).job_id
    others = [enqueue("test.note", lane=lane).job_id for lane in ("a", None, "b")]
    other_queue = enqueue("test.note", lane="x", queue="other").job_id
    with worker_thread(**NEVER):
        for other in (*others, other_queue):
            wait_for_state(other, "succeeded")
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        assert history(resting) == ["pending"]
        end_rest()
        wait_for_state(resting, "succeeded")


def test_a_lane_rests_from_the_moment_it_is_asked_to(database):
    """Its job is due and known to the claimer before."""
    first = enqueue("test.noop", lane="x").job_id
    assert claim_in_one_turn() == ["x"]
    change(first, "state = 'pending', lease = NULL")
    lanes.rest("default", "x", LONG)
    assert claim_in_one_turn() == []


def test_a_lane_is_claimed_from_when_its_rest_is_over_although_nobody_wakes_it(database):
    lanes.rest("default", "x", 0.3)
    waiting = enqueue("test.note", lane="x").job_id
    with worker_thread(**NEVER):
        done = wait_for_state(waiting, "succeeded")
    assert done.started_at >= not_before()


def test_a_shorter_rest_does_not_end_a_longer_one(database):
    lanes.rest("default", "x", LONG)
    assert claim_in_one_turn() == []
    longer = not_before()
    lanes.rest("default", "x", 1)
    assert claim_in_one_turn() == []
    assert not_before() == longer
    lanes.rest("default", "x", 2 * LONG)
    lanes.rest("default", "x", 1)
    assert claim_in_one_turn() == []
    assert not_before() > longer


def test_a_rest_can_be_shortened_if_asked(database):
    waiting = enqueue("test.note", lane="x").job_id
    lanes.rest("default", "x", 2 * LONG)
    run_until_idle()
    longer = not_before()
    lanes.rest("default", "x", LONG, shorten=True)
    run_until_idle()
    assert (not_before() < longer, state(waiting)) == (True, "pending")
    end_rest()
    run_until_idle()
    assert state(waiting) == "succeeded"


@pytest.mark.parametrize(
    ("how", "after"),
    [
        ("succeed", "succeeded"),
        ("finish", "succeeded"),
        ("transient", "retryable"),
        ("terminal", "failed"),
        ("snooze", "pending"),
        ("timeout", "retryable"),
        ("cancel", "cancelled"),
        ("hand back", "pending"),
    ],
)
def test_a_lane_rests_however_the_job_ends_that_asked_for_it(database, how, after):
    kind = "test.rest_too_long" if how == "timeout" else "test.rest_and_end"
    asked = enqueue(kind, {"how": how}, lane="x", priority=1).job_id
    waiting = enqueue("test.note", lane="x").job_id
    with worker_thread(grace_seconds=1.0) as worker:
        wait_for(lambda: notes("rested"), "the handler runs")
        if how == "cancel":
            verbs.cancel(system("test"), asked)
        if how == "hand back":
            worker.stop()
        wait_for_state(asked, after)
    run_until_idle()
    assert (state(asked), history(waiting)) == (after, ["pending"])
    change(asked, "run_at = clock_timestamp()")
    end_rest()
    run_until_idle()
    assert state(waiting) == "succeeded"


def test_a_job_whose_lane_rests_keeps_its_attempt_and_its_place(database):
    first = enqueue("test.rest_once", lane="x").job_id
    behind = enqueue_many(NewJob(kind="test.note", lane="x") for _ in range(5))
    run_until_idle(threads=4)
    assert (state(first), job(first).attempt) == ("pending", 0)
    assert Job.objects.filter(id__in=behind, state="pending").count() == 5
    end_rest()
    run_until_idle(threads=4)
    assert rows("SELECT id FROM jobs ORDER BY started_at, id") == [(first,), *((number,) for number in behind)]


def test_a_job_without_a_lane_only_snoozes(database):
    alone = enqueue("test.rest_once").job_id
    run_until_idle()
    assert (state(alone), job(alone).run_at > job(alone).created_at) == ("pending", True)


@pytest.mark.parametrize("rests_after_grant", [True, False])
def test_many_jobs_of_one_lane_cost_one_claim_each(database, rests_after_grant):
    """A job that only snoozes costs two: the refusal, and the same job again."""
    PACE.refusals = 0
    enqueue_many(NewJob(kind="test.paced", args={"rests_after_grant": rests_after_grant}, lane="x") for _ in range(100))
    with worker_thread(threads=4, **NEVER), worker_thread(threads=4, **NEVER):
        wait_for(lambda: Job.objects.filter(state="succeeded").count() == 100, "all jobs done")
    [(claims,)] = rows(CLAIMS)
    assert claims == 100 + PACE.refusals
    assert claims <= (105 if rests_after_grant else 210)


def test_a_lane_rests_after_its_job_lost_its_worker(database):
    lost = enqueue("test.note", lane="x").job_id
    change(lost, "state = 'running', lease = gen_random_uuid(), heartbeat_at = clock_timestamp() - interval '1 hour'")
    lanes.rest("default", "x", LONG)
    with worker_thread():
        wait_for_state(lost, "retryable")
        wait_for_state(enqueue("test.note").job_id, "succeeded")
    assert state(lost) == "retryable"


def test_a_job_that_a_person_retries_waits_for_the_end_of_the_rest(database):
    failed = enqueue("test.fail_terminal", lane="x").job_id
    run_until_idle()
    lanes.rest("default", "x", LONG)
    verbs.retry(system("test"), failed)
    run_until_idle()
    assert state(failed) == "pending"


def test_cancelling_jobs_of_a_lane_that_rests_leaves_nothing_behind(database):
    lanes.rest("default", "x", LONG)
    ids = enqueue_many(NewJob(kind="test.note", lane="x") for _ in range(3))
    run_until_idle()
    for number in ids:
        verbs.cancel(system("test"), number)
    end_rest()
    run_until_idle()
    assert rows("SELECT wake_at = 'infinity' FROM job_lanes WHERE lane = 'x'") == [(True,)]


def test_a_rest_in_an_open_transaction_stops_no_worker(database):
    with worker_thread(threads=2):
        wait_for_state(enqueue("test.note", lane="x").job_id, "succeeded")
        with transaction.atomic():
            lanes.rest("default", "x", LONG)
            with connections["owner"].cursor() as other:
                other.execute(sql.REST_LANE, {"queue": "default", "lane": "y", "seconds": 0, "shorten": True})
            wait_for(lambda: rows("SELECT FROM job_lanes WHERE lane = 'y'"), "the workers go on")


def test_maintenance_does_not_wake_a_lane_that_rests(database):
    enqueue("test.note", lane="x")
    lanes.rest("default", "x", LONG)
    run_until_idle()

    def repair() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql.LANES_REPAIR)

    repair()
    assert rows("SELECT * FROM job_lane_wakeups") == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE job_lanes SET wake_at = 'infinity'")
    repair()
    assert claim_in_one_turn() == []
    assert rows("SELECT wake_at = not_before FROM job_lanes") == [(True,)]


def test_a_lane_that_rests_is_not_forgotten(database):
    lanes.rest("default", "x", LONG)
    lanes.rest("default", "y", 0)
    run_until_idle()
    with connection.cursor() as cursor:
        cursor.execute(sql.CLEAN_UP_LANES)
    assert rows("SELECT lane FROM job_lanes") == [("x",)]


def test_the_preview_of_a_dry_run_shows_nothing_of_a_lane_that_rests(database):
    resting, other = enqueue("test.note", lane="x").job_id, enqueue("test.note", lane="y").job_id
    assert preview() == [resting, other]
    lanes.rest("default", "x", LONG)
    assert preview() == [other]
    assert claim_in_one_turn() == ["y"]
    assert preview() == []
    end_rest()
    assert preview() == [resting]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), None, 1e12])
def test_a_rest_that_makes_no_sense_is_refused(database, seconds):
    with pytest.raises(InvalidInput, match="cannot rest"):
        lanes.rest("default", "x", seconds)


@pytest.mark.parametrize(
    ("named", "least", "most"),
    [
        (LONG, LONG, LONG + 60),
        (1e9, LONGEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS + 60),
        (0.0, 0.0, 60.0),
        (-5, 0.0, 60.0),
    ],
)
def test_a_job_waits_at_least_as_long_as_its_error_says(database, named, least, most):
    failed = enqueue("test.named_delay", {"seconds": named}).job_id
    with worker_thread(poll_seconds=0.1, max_jobs=1):
        after = wait_for_state(failed, "retryable")
    [(ended,)] = rows("SELECT at FROM job_events WHERE job_id = %s AND state = 'retryable'", failed)
    assert after.attempt == 1
    assert timedelta(seconds=least) - timedelta(seconds=1) <= after.run_at - ended <= timedelta(seconds=most)


def test_an_idle_worker_looks_at_a_lane_that_rests_only_when_it_may_be_due(database, monkeypatch):
    enqueue_many(NewJob(kind="test.noop", lane="x") for _ in range(1000))
    lanes.rest("default", "x", LONG)
    looks = []
    look = Claimer.claim
    monkeypatch.setattr(Claimer, "claim", lambda *given: looks.append(1) or look(*given))
    with worker_thread(**NEVER) as worker:
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        assert isinstance(worker, Worker)
        wait_for(lambda: worker._claimer.next_in and worker._claimer.next_in > LONG / 2, "it knows when to look")
        assert len(looks) < 20
