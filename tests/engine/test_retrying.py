"""Jobs that failed: retries and the end of retries."""

import itertools
from datetime import datetime

import pytest
from structlog.testing import capture_logs
from tests.support.jobs import change, history, insert_raw, job, state, wait_for_state
from tests.support.tables import rows
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine import events
from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.errors import Snooze
from harvester.engine.events import EngineEvent
from harvester.engine.job import RunningJob
from harvester.engine.maintenance import Rescuer
from harvester.engine.models import Job
from harvester.engine.registry import job_kind
from harvester.kernel.actor import Actor
from harvester.kernel.errors import ConfigError, Conflict, NotFound, TransientError
from harvester.kernel.retry import RetryPolicy
from harvester.ops import jobs as verbs
from harvester.ops.models import AuditEvent

PERSON = Actor(kind="person", id="7", name="Ada")
STEADY = RetryPolicy(base=40.0, factor=3.0, attempts=4)


@job_kind("test.fail_steadily", retry=STEADY)
def fail_steadily(job: RunningJob) -> None:
    raise TransientError("the shop is closed")


@job_kind("test.misconfigured", retry=STEADY)
def misconfigured(job: RunningJob) -> None:
    raise ConfigError("the key is missing")


@job_kind("test.snooze")
def snooze(job: RunningJob, seconds: float = 60.0) -> None:
    raise Snooze(seconds, "come back later")


@pytest.fixture
def emitted(monkeypatch) -> list[EngineEvent]:
    """All events of the engine."""
    heard: list[EngineEvent] = []
    monkeypatch.setattr(events, "_listeners", [heard.append])
    return heard


def waits(job_id: int) -> list[float]:
    """Run all attempts at once by moving the clock's hand, and answer how long each would have waited."""
    seconds = []
    while state(job_id) in ("pending", "retryable"):
        run_until_idle()
        if state(job_id) == "retryable":
            [(wait,)] = rows("SELECT extract(epoch FROM run_at - clock_timestamp())::float8 FROM jobs")
            seconds.append(wait)
            change(job_id, "run_at = clock_timestamp()")
    return seconds


def test_a_transient_error_is_retried_with_growing_waits_until_no_attempt_is_left(database):
    failing = enqueue("test.fail_steadily").job_id
    first, second, third = waits(failing)
    assert 30 < first <= 50
    assert 110 < second <= 150
    assert 350 < third <= 450
    assert job(failing).attempt == 4
    assert history(failing) == ["pending", *["running", "retryable"] * 3, "running", "failed"]


def test_a_retry_comes_by_itself(database):
    with worker_thread(poll_seconds=600.0):
        failing = enqueue("test.succeed_second_time").job_id
        wait_for_state(failing, "succeeded")
    assert history(failing) == ["pending", "running", "retryable", "running", "succeeded"]
    assert (job(failing).error, job(failing).error_type, job(failing).traceback) == (None, None, None)


@pytest.mark.parametrize("kind", ["test.fail_terminal", "test.misconfigured"])
def test_a_terminal_error_is_never_retried(database, kind):
    failing = enqueue(kind).job_id
    run_until_idle()
    assert history(failing) == ["pending", "running", "failed"]
    assert job(failing).attempt == 1


def test_an_unknown_error_is_retried_and_emitted(database, emitted):
    failing = enqueue("test.fail_unknown").job_id
    waits(failing)
    assert history(failing).count("running") == 3
    names = [event.name for event in emitted if event.job_id == failing]
    assert names == ["JOB_ERROR_UNKNOWN", "JOB_ERROR_UNKNOWN", "JOB_FAILED", "JOB_ERROR_UNKNOWN"]


def test_a_known_error_is_emitted_only_when_the_job_failed_for_good(database, emitted):
    failing = enqueue("test.fail_steadily", max_attempts=2).job_id
    waits(failing)
    assert [(event.name, event.job_id) for event in emitted] == [("JOB_FAILED", failing)]


@job_kind("test.fail_with_secret", retry=STEADY)
def fail_with_secret(job: RunningJob) -> None:
    raise TransientError("cannot log in to ftp://shop:hunter2@files.example/catalog")


def test_the_log_has_attempt_maximum_next_time_and_the_redacted_error(database):
    failing = enqueue("test.fail_with_secret", max_attempts=2).job_id
    with capture_logs() as logs:
        run_until_idle()
        [planned] = rows("SELECT run_at FROM jobs")[0]
        change(failing, "run_at = clock_timestamp()")
        run_until_idle()
    again, failed = [line for line in logs if line["event"] in ("JOB_RETRYABLE", "JOB_FAILED")]
    assert (again["event"], again["attempt"], again["max_attempts"]) == ("JOB_RETRYABLE", 1, 2)
    assert (failed["event"], failed["attempt"], failed["max_attempts"]) == ("JOB_FAILED", 2, 2)
    assert abs((datetime.fromisoformat(again["next_run_at"]) - planned).total_seconds()) < 30
    for line in (again, failed):
        assert line["job_kind"] == "test.fail_with_secret"
        assert line["error"].startswith("cannot log in to")
        assert "hunter2" not in str(line)


def test_a_listener_that_fails_stops_nothing(database, monkeypatch):
    monkeypatch.setattr(events, "_listeners", [lambda _: 1 / 0])
    failing, fine = enqueue("test.fail_terminal").job_id, enqueue("test.note").job_id
    run_until_idle()
    assert [state(failing), state(fine)] == ["failed", "succeeded"]


def test_a_failed_job_stays_visible_with_its_error(database):
    failing = enqueue("test.fail_terminal", {}, queue="feeds").job_id
    run_until_idle()
    failed = job(failing)
    assert (failed.error_type, failed.error) == ("TERMINAL", "this can only fail")
    assert "fail_terminal" in failed.traceback
    assert failed.finished_at is not None
    assert failed.lease is None


def test_a_snooze_counts_no_attempt(database):
    snoozing = enqueue("test.snooze", max_attempts=1).job_id
    for _ in range(3):
        run_until_idle()
        assert (state(snoozing), job(snoozing).attempt) == ("pending", 0)
        assert rows("SELECT run_at > clock_timestamp() + interval '50 seconds' FROM jobs") == [(True,)]
        change(snoozing, "run_at = clock_timestamp()")
    assert history(snoozing) == ["pending", *["running", "pending"] * 3]


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, 1e300, "soon"])
def test_a_snooze_for_an_impossible_time_harms_only_its_own_job(database, seconds):
    snoozing = insert_raw(kind="test.snooze_oddly", max_attempts=1)
    ODD["seconds"] = seconds
    others = [enqueue("test.note").job_id for _ in range(3)]
    run_until_idle(threads=4)
    assert [state(other) for other in others] == ["succeeded"] * 3
    assert state(snoozing) in ("failed", "pending", "succeeded")


ODD: dict = {}


@job_kind("test.snooze_oddly")
def snooze_oddly(job: RunningJob) -> None:
    if job.attempt == 1 and ODD:
        raise Snooze(ODD.pop("seconds"))


# -- a person drives it again ------------------------------------------------------------------------------------


def test_a_person_drives_a_failed_job_again_with_all_its_attempts(database):
    failing = enqueue("test.fail_unknown", max_attempts=1).job_id
    run_until_idle()
    verbs.retry(PERSON, failing)
    again = job(failing)
    assert (again.state, again.attempt, again.finished_at) == ("pending", 0, None)
    run_until_idle()
    assert history(failing) == ["pending", "running", "failed", "pending", "running", "failed"]


def test_driving_again_is_audited_in_the_same_transaction(database):
    failing = enqueue("test.fail_terminal").job_id
    run_until_idle()
    verbs.retry(PERSON, failing)
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_type, event.object_id) == ("JOB_RETRIED", "job", str(failing))
    assert (event.actor_kind, event.actor_id, event.actor_name) == ("person", "7", "Ada")


def test_an_idle_worker_takes_up_a_job_that_a_person_drives_again(database):
    with worker_thread(poll_seconds=600.0):
        failing = enqueue("test.fail_terminal").job_id
        wait_for_state(failing, "failed")
        verbs.retry(PERSON, failing)
        wait_for_state(failing, "failed")
        assert history(failing).count("running") == 2


def test_a_person_need_not_wait_for_the_next_attempt(database):
    failing = enqueue("test.fail_steadily").job_id
    run_until_idle()
    verbs.retry(PERSON, failing)
    run_until_idle()
    assert history(failing) == ["pending", "running", "retryable", "pending", "running", "retryable"]
    assert job(failing).attempt == 1


@pytest.mark.parametrize("current", ["pending", "succeeded"])
def test_a_job_that_did_not_fail_is_not_driven_again(database, current):
    made = enqueue("test.note").job_id
    if current == "succeeded":
        run_until_idle()
    with pytest.raises(Conflict):
        verbs.retry(PERSON, made)
    assert state(made) == current
    assert not AuditEvent.objects.exists()


def test_a_job_that_does_not_exist_is_not_found(database):
    with pytest.raises(NotFound):
        verbs.retry(PERSON, 12345)


# -- rescue ------------------------------------------------------------------------------------------------------


def lost(**columns) -> int:
    """A job whose worker was last heard of an hour ago."""
    made = insert_raw(**columns)
    change(
        made,
        "state = 'running', lease = gen_random_uuid(), worker = 'dead', started_at = clock_timestamp(), "
        "attempt = attempt + 1, heartbeat_at = clock_timestamp() - interval '1 hour'",
    )
    return made


def looks(seconds_apart: float) -> Rescuer:
    clock = itertools.count(step=seconds_apart)
    return Rescuer(stuck_seconds=300, between=60, clock=lambda: next(clock))


def test_a_lost_job_is_rescued_at_the_second_look_and_keeps_its_attempt(database):
    job_id = lost()
    rescuer = looks(60)
    with connect("test") as session:
        assert rescuer.look(session) == []
        assert rescuer.look(session) == [job_id]
    rescued = job(job_id)
    assert (rescued.state, rescued.attempt, rescued.error_type) == ("retryable", 1, "WORKER_LOST")
    assert "dead" in rescued.error
    run_until_idle()
    assert (state(job_id), job(job_id).attempt) == ("succeeded", 2)


def test_a_rescue_at_the_last_attempt_ends_as_failed(database, emitted):
    job_id = lost(max_attempts=2, attempt=1)
    rescuer = looks(60)
    with connect("test") as session, capture_logs() as logs:
        rescuer.look(session)
        rescuer.look(session)
    assert (state(job_id), job(job_id).attempt) == ("failed", 2)
    assert [(event.name, event.job_id) for event in emitted] == [("JOB_FAILED", job_id)]
    [failed] = [line for line in logs if line["event"] == "JOB_FAILED"]
    assert (failed["job_kind"], failed["attempt"], failed["max_attempts"]) == ("test.note", 2, 2)
    run_until_idle()
    assert state(job_id) == "failed"


def test_two_looks_too_close_together_take_nothing(database):
    job_id = lost()
    rescuer = looks(10)
    with connect("test") as session:
        assert [rescuer.look(session) for _ in range(6)] == [[]] * 6
        assert rescuer.look(session) == [job_id]


def test_a_job_that_beats_between_two_looks_is_left_alone(database):
    job_id = lost()
    rescuer = looks(60)
    with connect("test") as session:
        rescuer.look(session)
        change(job_id, "heartbeat_at = clock_timestamp() - interval '50 minutes'")
        assert rescuer.look(session) == []
        change(job_id, "heartbeat_at = clock_timestamp()")
        assert [rescuer.look(session) for _ in range(3)] == [[]] * 3
    assert state(job_id) == "running"


def test_looks_on_two_connections_do_not_add_up(database):
    lost()
    rescuer = looks(60)
    for _ in range(3):
        with connect("test") as session:
            assert rescuer.look(session) == []


def test_a_lost_job_that_somebody_wanted_to_stop_is_cancelled(database):
    job_id = lost(max_attempts=1)
    verbs.cancel(PERSON, job_id)
    rescuer = looks(60)
    with connect("test") as session:
        rescuer.look(session)
        rescuer.look(session)
    assert (state(job_id), job(job_id).finished_at is not None) == ("cancelled", True)


def test_a_lost_job_of_a_lane_makes_room_in_it(database):
    job_id, waiting = lost(lane="x"), enqueue("test.note", lane="x").job_id
    with worker_thread(stuck_seconds=1.0, stale_check_seconds=0.2):
        wait_for_state(waiting, "succeeded")
        wait_for_state(job_id, "succeeded")


def test_jobs_that_are_not_running_are_never_rescued(database):
    for current in ("pending", "retryable", "succeeded", "failed", "cancelled"):
        made = insert_raw(max_attempts=1)
        ended = "clock_timestamp()" if current in ("succeeded", "failed", "cancelled") else "NULL"
        change(made, f"state = %s, finished_at = {ended}, heartbeat_at = now() - interval '9 days'", current)
    before = list(Job.objects.order_by("id").values_list("state", flat=True))
    rescuer = looks(60)
    with connect("test") as session:
        assert [rescuer.look(session) for _ in range(3)] == [[]] * 3
    assert list(Job.objects.order_by("id").values_list("state", flat=True)) == before
