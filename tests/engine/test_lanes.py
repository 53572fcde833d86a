"""Jobs that share a lane share its concurrency, and nobody else waits for them."""

import threading

import pytest
from django.db import connections, transaction
from tests.support.gates import gate
from tests.support.jobs import change, job, state, wait_for_state
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.claim import RETRY_SECONDS, Claimer
from harvester.engine.connections import Connection, connect
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.engine.lanes import set_concurrency
from harvester.engine.models import Job
from harvester.engine.registry import job_kind
from harvester.kernel.actor import system
from harvester.kernel.errors import InvalidInput
from harvester.ops import jobs as verbs

OVERLAPS = """
SELECT count(*) FROM jobs a JOIN jobs b ON a.lane = b.lane AND a.queue = b.queue AND a.id < b.id
WHERE a.started_at < b.finished_at AND b.started_at < a.finished_at
"""


@job_kind("test.snooze_once")
def snooze_once(job: RunningJob, seconds: float) -> None:
    if not rows("SELECT FROM job_events WHERE job_id = %s AND detail LIKE 'snoozed%%'", job.id):
        raise Snooze(seconds, "not yet")


def gated(name: str, **options) -> int:
    return enqueue("test.gated", {"gate": name}, **options).job_id


def succeeded(*ids: int) -> bool:
    return Job.objects.filter(id__in=ids, state="succeeded").count() == len(ids)


def test_jobs_of_one_lane_run_one_after_the_other(database):
    jobs = [NewJob(kind="test.note", args={"key": str(n)}, lane=f"lane {n % 3}") for n in range(60)]
    ids = enqueue_many(jobs)
    with worker_thread(threads=8), worker_thread(threads=8):
        wait_for(lambda: succeeded(*ids), "all jobs done")
    assert rows(OVERLAPS) == [(0,)]
    assert rows("SELECT count(*), count(DISTINCT key) FROM test_effects") == [(60, 60)]


def test_a_busy_lane_holds_up_neither_other_lanes_nor_jobs_without_one(database):
    with worker_thread(threads=3), gate("slow") as slow:
        first, second = gated("slow", lane="busy"), gated("slow", lane="busy")
        slow.next_job()
        others = [enqueue("test.note", lane=lane).job_id for lane in ("a", "b", None, "a", None)]
        wait_for(lambda: succeeded(*others), "the others done")
        assert [state(first), state(second)] == ["running", "pending"]
        slow.open()
        wait_for_state(second, "succeeded")


def test_a_busy_lane_takes_no_slot_from_others_while_its_jobs_wait(database):
    with worker_thread(threads=2), gate("slow") as slow:
        crowd = enqueue_many(NewJob(kind="test.gated", args={"gate": "slow"}, lane="busy") for _ in range(50))
        slow.next_job()
        late = enqueue("test.note").job_id
        wait_for_state(late, "succeeded")
        assert Job.objects.filter(id__in=crowd, state="running").count() == 1


def test_no_lane_is_no_lane(database):
    with worker_thread(threads=4), gate("slow") as slow:
        for _ in range(4):
            gated("slow")
        assert len({slow.next_job().id for _ in range(4)}) == 4


def test_the_same_lane_in_two_queues_is_two_lanes(database):
    with worker_thread(threads=4), gate("slow") as slow:
        gated("slow", lane="x", queue="a")
        gated("slow", lane="x", queue="b")
        assert {slow.next_job().queue, slow.next_job().queue} == {"a", "b"}


def test_lanes_with_only_future_jobs_starve_nobody(database):
    enqueue_many(NewJob(kind="test.note", lane=f"lane {n}", delay=3600, priority=9) for n in range(300))
    due = enqueue("test.note", lane="due").job_id
    with worker_thread(threads=1):
        wait_for_state(due, "succeeded")
        assert rows("SELECT count(*) FROM job_lanes WHERE wake_at <= clock_timestamp()") == [(0,)]


def test_a_future_job_in_a_lane_does_not_hold_up_a_due_one(database):
    future = enqueue("test.note", lane="x", delay=3600, priority=9).job_id
    due = enqueue("test.note", lane="x").job_id
    run_until_idle()
    assert [state(future), state(due)] == ["pending", "succeeded"]


def test_a_lane_may_run_as_many_jobs_at_once_as_its_concurrency(database):
    set_concurrency("default", "wide", 3)
    with worker_thread(threads=8), gate("slow") as slow:
        ids = [gated("slow", lane="wide") for _ in range(5)]
        for _ in range(3):
            slow.next_job()
        canary = enqueue("test.note").job_id
        wait_for_state(canary, "succeeded")
        assert Job.objects.filter(id__in=ids, state="running").count() == 3
        slow.open()
        wait_for(lambda: succeeded(*ids), "all jobs done")


def test_a_wider_lane_takes_effect_while_its_jobs_wait(database):
    with worker_thread(threads=4), gate("slow") as slow:
        for _ in range(2):
            gated("slow", lane="x")
        slow.next_job()
        set_concurrency("default", "x", 2)
        slow.next_job()


def test_a_narrower_lane_takes_effect_when_its_jobs_end(database):
    set_concurrency("default", "x", 3)
    with worker_thread(threads=4), gate("first") as first, gate("rest") as rest:
        for _ in range(3):
            gated("first", lane="x")
        for _ in range(3):
            first.next_job()
        set_concurrency("default", "x", 1)
        ids = [gated("rest", lane="x") for _ in range(3)]
        first.open()
        rest.next_job()
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        assert Job.objects.filter(id__in=ids, state="running").count() == 1


def test_a_concurrency_below_one_is_refused(database):
    with pytest.raises(InvalidInput):
        set_concurrency("default", "x", 0)


def test_changing_a_lane_in_an_open_transaction_stops_no_worker(database):
    with worker_thread(threads=2):
        wait_for_state(enqueue("test.note", lane="x").job_id, "succeeded")
        with transaction.atomic():
            set_concurrency("default", "x", 2)
            done = _enqueue_elsewhere("x", "y", None)
            wait_for(lambda: succeeded(*done), "the workers go on")


def _enqueue_elsewhere(*lanes: str | None) -> list[int]:
    """Enqueue and commit in another session than this thread's."""
    made: list[int] = []

    def work() -> None:
        made.extend(enqueue("test.note", lane=lane).job_id for lane in lanes)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return made


@pytest.mark.parametrize("kind", ["test.fail_transient", "test.fail_terminal"])
def test_a_job_that_fails_frees_its_lane(database, kind):
    failing = enqueue(kind, lane="x", priority=1).job_id
    waiting = enqueue("test.note", lane="x").job_id
    with worker_thread(threads=4):
        wait_for_state(waiting, "succeeded")
        wait_for_state(failing, "failed")


def test_a_snoozed_job_frees_its_lane(database):
    snoozed = enqueue("test.snooze_once", {"seconds": 3600}, lane="x", priority=1).job_id
    waiting = enqueue("test.note", lane="x").job_id
    run_until_idle(threads=4)
    assert [state(snoozed), state(waiting)] == ["pending", "succeeded"]


def test_a_snoozed_job_returns_to_its_lane_at_its_time(database):
    snoozed = enqueue("test.snooze_once", {"seconds": 0.2}, lane="x").job_id
    with worker_thread(threads=2, poll_seconds=600.0):
        wait_for_state(snoozed, "succeeded")
    assert job(snoozed).started_at >= job(snoozed).run_at


def test_a_cancelled_job_frees_its_lane(database):
    with worker_thread(threads=4):
        running = enqueue("test.hold", lane="x").job_id
        wait_for_state(running, "running")
        waiting = enqueue("test.note", lane="x").job_id
        verbs.cancel(system("test"), running)
        wait_for_state(waiting, "succeeded")
        assert state(running) == "cancelled"


def test_cancelling_the_next_job_of_a_lane_lets_the_one_behind_it_run(database):
    first, second = enqueue("test.note", lane="x").job_id, enqueue("test.note", lane="x").job_id
    verbs.cancel(system("test"), first)
    run_until_idle()
    assert [state(first), state(second)] == ["cancelled", "succeeded"]


def test_a_job_that_a_person_drives_again_waits_in_its_lane(database):
    failed = enqueue("test.fail_terminal", lane="x").job_id
    run_until_idle()
    with worker_thread(threads=4), gate("slow") as slow:
        gated("slow", lane="x")
        slow.next_job()
        verbs.retry(system("test"), failed)
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        assert state(failed) == "pending"
        slow.open()
        wait_for_state(failed, "failed")


def test_a_job_finished_in_its_own_transaction_frees_its_lane(database):
    ids = enqueue_many(NewJob(kind="test.write_once", args={"key": str(n)}, lane="x") for n in range(10))
    with worker_thread(threads=4, poll_seconds=600.0):
        wait_for(lambda: succeeded(*ids), "all jobs done")
    assert rows(OVERLAPS) == [(0,)]


def test_a_job_that_was_moved_out_of_the_way_does_not_block_its_lane(database):
    """Whatever a person does to the rows: the next look finds what waits."""
    stray = enqueue("test.note", lane="x").job_id
    change(stray, "state = 'running', lease = gen_random_uuid(), heartbeat_at = clock_timestamp()")
    waiting = enqueue("test.note", lane="x").job_id
    run_until_idle(stuck_seconds=3600.0)
    assert state(waiting) == "pending"
    rows("DELETE FROM jobs WHERE id = %s RETURNING id", stray)
    with worker_thread():
        wait_for_state(waiting, "succeeded")


def test_enqueuers_with_the_same_lanes_in_opposite_order_do_not_deadlock(database):
    lanes = [f"lane {n}" for n in range(20)]
    at_once = threading.Barrier(2, timeout=30)
    problems: list[Exception] = []

    def produce(order: list[str]) -> None:
        try:
            for _ in range(10):
                at_once.wait()
                with transaction.atomic():
                    for lane in order:
                        enqueue("test.noop", lane=lane)
        except Exception as problem:  # noqa: BLE001 - raised by the main thread
            problems.append(problem)
            at_once.abort()
        finally:
            connections.close_all()

    enqueuers = [threading.Thread(target=produce, args=(order,)) for order in (lanes, lanes[::-1])]
    with worker_thread(threads=4):
        for enqueuer in enqueuers:
            enqueuer.start()
        for enqueuer in enqueuers:
            enqueuer.join()
        assert problems == []
        wait_for(lambda: Job.objects.filter(state="succeeded").count() == 400, "all jobs done")


def test_an_enqueuer_with_an_open_transaction_holds_up_no_lane(database):
    with connect("test") as other, worker_thread(threads=2):
        other.autocommit = False
        other.execute("INSERT INTO job_lane_wakeups (queue, lane, wake_at) VALUES ('default', 'x', now())")
        wait_for_state(enqueue("test.note", lane="x").job_id, "succeeded")
        other.rollback()


def test_many_workers_on_many_lanes_do_not_deadlock(database):
    before = rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    ids = enqueue_many(NewJob(kind="test.noop", lane=f"lane {n % 40}") for n in range(600))
    workers = [worker_thread(threads=3, poll_seconds=0.05) for _ in range(6)]
    entered = [worker.__enter__() for worker in workers]
    try:
        assert len(entered) == 6
        wait_for(lambda: succeeded(*ids), "all jobs done", seconds=60)
    finally:
        for worker in workers:
            worker.__exit__(None, None, None)
    assert rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == before
    assert rows(OVERLAPS) == [(0,)]


def test_no_job_of_a_lane_waits_for_the_next_poll(database):
    """Two workers hand a few lanes to each other; every ending has to wake the lane for one of them."""
    never = {"poll_seconds": 600.0, "stale_check_seconds": 600.0, "stuck_seconds": 3600.0}
    with worker_thread(threads=2, **never), worker_thread(threads=2, **never):
        ids = enqueue_many(NewJob(kind="test.noop", lane=f"lane {n % 3}") for n in range(300))
        wait_for(lambda: succeeded(*ids), "all jobs done")
    assert rows(OVERLAPS) == [(0,)]


def rows_read(session: Connection) -> int:
    found = session.execute(
        "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'jobs'"
    ).fetchone()
    return found[0]


def test_a_claim_from_a_long_lane_reads_only_what_it_takes(database):
    enqueue_many(NewJob(kind="test.noop", lane=f"lane {n}") for n in range(500))
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE jobs")
    enqueue_many(NewJob(kind="test.noop", lane="long", priority=1) for _ in range(2000))
    set_concurrency("default", "long", 100)
    claimer = Claimer(worker="test", queues=[])
    with connect("test") as session, session.transaction():
        claimer.claim(session, 1)
        before = rows_read(session)
        assert {claimed.lane for claimed in claimer.claim(session, 5)} == {"long"}
        assert rows_read(session) - before < 100


def test_a_lane_whose_job_somebody_holds_is_asked_for_again_without_haste(database):
    held = enqueue("test.note", lane="x").job_id
    claimer = Claimer(worker="test", queues=[])
    with connect("person") as person, connect("test") as session, person.transaction():
        person.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [held])
        for _ in range(3):
            with session.transaction():
                assert claimer.claim(session, 1) == []
        assert claimer.next_in == RETRY_SECONDS
    with connect("test") as session, session.transaction():
        assert [claimed.id for claimed in claimer.claim(session, 1)] == [held]
