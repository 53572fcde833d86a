"""Who gets which job, and in which order."""

import threading
from contextlib import ExitStack

import pytest
from django.db import connection, connections, transaction
from tests.support.gates import gate
from tests.support.jobs import change, history, insert_raw, job, state, wait_for_state
from tests.support.kinds import notes
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine import claim, sql
from harvester.engine.claim import Claimer
from harvester.engine.connections import connect
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.models import Job

SLOW_POLL = 600.0


def ran() -> list[str]:
    """Keys of the jobs that ran, in the order in which they were started."""
    return [key for (key,) in rows("SELECT args ->> 'key' FROM jobs WHERE started_at IS NOT NULL ORDER BY started_at")]


@pytest.fixture
def lanes_at_every_turn(monkeypatch) -> None:
    """Lanes are looked at a few times a second only, for speed; in between, jobs without a lane may overtake."""
    monkeypatch.setattr(claim, "LANE_PACE_SECONDS", 0.0)


def put(key: str, **options) -> int:
    return enqueue("test.note", {"key": key}, **options).job_id


def test_one_job_and_two_workers_run_it_once(database):
    with worker_thread(threads=4), worker_thread(threads=4):
        for number in range(30):
            wait_for_state(put(f"job {number}"), "succeeded")
    assert [len(notes(f"job {number}")) for number in range(30)] == [1] * 30


def test_two_workers_share_twenty_jobs_and_run_each_once(database):
    ids = enqueue_many(NewJob(kind="test.note", args={"key": f"job {n}"}) for n in range(20))
    with worker_thread(name="first", threads=2), worker_thread(name="second", threads=2):
        for job_id in ids:
            wait_for_state(job_id, "succeeded")
    assert sorted(key for (key,) in rows("SELECT key FROM test_effects")) == sorted(f"job {n}" for n in range(20))


def test_workers_that_claim_at_the_same_moment_get_different_jobs(database):
    enqueue_many(NewJob(kind="test.note", args={"key": f"job {n}"}) for n in range(200))
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(worker_thread(threads=8))
        wait_for(lambda: not Job.objects.exclude(state="succeeded").exists(), "all jobs done")
    assert rows("SELECT count(*), count(DISTINCT key) FROM test_effects") == [(200, 200)]


def test_higher_priority_goes_first_and_equals_go_in_their_order(database):
    for key, priority in [("low", -5), ("first", 0), ("second", 0), ("high", 9), ("third", 0)]:
        put(key, priority=priority)
    run_until_idle(threads=1)
    assert ran() == ["high", "first", "second", "third", "low"]


def test_a_batch_keeps_its_order(database):
    enqueue_many(NewJob(kind="test.note", args={"key": str(n)}) for n in range(30))
    run_until_idle(threads=1)
    assert ran() == [str(n) for n in range(30)]


def test_an_earlier_due_time_goes_first_whatever_the_order_of_ids(database):
    now = rows("SELECT clock_timestamp() - interval '1 hour', clock_timestamp() - interval '2 hours'")[0]
    put("later", run_at=now[0])
    put("earlier", run_at=now[1])
    run_until_idle(threads=1)
    assert ran() == ["earlier", "later"]


def test_queues_of_one_worker_share_one_order(database):
    for key, queue in [("1", "zebra"), ("2", "ape"), ("3", "zebra"), ("4", "ape"), ("5", "mole")]:
        put(key, queue=queue)
    put("urgent", queue="zebra", priority=1)
    run_until_idle(threads=1)
    assert ran() == ["urgent", "1", "2", "3", "4", "5"]


def test_a_queue_with_a_backlog_does_not_starve_another_one(database):
    put("late comer", queue="zebra")
    for n in range(20):
        put(f"backlog {n}", queue="ape")
    run_until_idle(threads=2)
    assert ran().index("late comer") < 2


def test_jobs_with_and_without_a_lane_share_one_order(database, lanes_at_every_turn):
    put("1")
    put("2", lane="a")
    put("3")
    put("4", lane="b")
    put("urgent in a lane", lane="c", priority=5)
    put("urgent without", priority=4)
    put("unimportant in a lane", lane="d", priority=-1)
    run_until_idle(threads=1)
    assert ran() == ["urgent in a lane", "urgent without", "1", "2", "3", "4", "unimportant in a lane"]


def test_priority_decides_between_more_lanes_than_there_are_slots(database):
    for n in range(30):
        put(f"ordinary {n}", lane=f"lane {n}")
    put("urgent", lane="the last lane", priority=3)
    run_until_idle(threads=1)
    assert ran()[0] == "urgent"


def test_a_priority_that_comes_later_overtakes_what_already_waits(database, lanes_at_every_turn):
    with worker_thread(threads=1, poll_seconds=SLOW_POLL) as worker, gate("busy") as busy:
        enqueue("test.gated", {"gate": "busy"})
        busy.next_job()
        put("ordinary")
        put("ordinary in a lane", lane="a")
        last = put("urgent in a lane", lane="b", priority=7)
        wait_for(lambda: ("default", 7) in worker._claimer._announced, "the worker heard of it")
        busy.open()
        wait_for_state(last, "succeeded")
        wait_for(lambda: len(ran()) == 4, "all jobs ran")
    assert ran()[1] == "urgent in a lane"


def test_a_worker_serves_its_own_queues_only(database):
    mine, other = put("mine", queue="a"), put("other", queue="b")
    lane = put("other lane", queue="b", lane="x")
    run_until_idle(queues=("a",))
    assert [state(mine), state(other), state(lane)] == ["succeeded", "pending", "pending"]


def test_a_future_job_is_not_claimed_before_its_time(database):
    tomorrow = put("tomorrow", delay=86_400)
    lane = put("tomorrow in a lane", delay=86_400, lane="x")
    run_until_idle()
    assert history(tomorrow) == history(lane) == ["pending"]


def test_a_future_job_starts_by_itself_and_not_early(database):
    with worker_thread(poll_seconds=SLOW_POLL):
        soon = [put("soon", delay=0.4), put("soon in a lane", delay=0.4, lane="x")]
        for job_id in soon:
            wait_for_state(job_id, "succeeded")
    assert all(job(job_id).started_at >= job(job_id).run_at for job_id in soon)


def test_a_future_job_survives_a_restart_of_its_worker(database):
    with worker_thread():
        soon = [put("soon", delay=3600), put("soon in a lane", delay=3600, lane="x")]
    assert [state(job_id) for job_id in soon] == ["pending", "pending"]
    for job_id in soon:
        change(job_id, "run_at = clock_timestamp()")
    with worker_thread():
        for job_id in soon:
            wait_for_state(job_id, "succeeded")
    assert all(job(job_id).started_at >= job(job_id).run_at for job_id in soon)
    assert notes("soon") + notes("soon in a lane") == [f"{job(job_id).worker} 1" for job_id in soon]


def test_an_idle_worker_hears_of_a_new_job(database):
    with worker_thread(poll_seconds=SLOW_POLL):
        for n in range(5):
            wait_for_state(put(str(n), lane=None if n % 2 else "x"), "succeeded")


def test_a_lost_wake_up_is_found_by_polling(database):
    with worker_thread(poll_seconds=0.1) as worker:
        wait_for_state(put("the worker is up"), "succeeded")
        silent = insert_raw(args='{"key": "silent"}')
        wait_for_state(silent, "succeeded")
    assert job(silent).worker == worker.options.name


@pytest.mark.parametrize("known", [False, True], ids=["of a new lane", "of a known lane"])
def test_the_lost_wakeup_of_a_lane_is_repaired(database, known):
    if known:
        put("makes the lane known", lane="x")
        run_until_idle()
    with worker_thread(poll_seconds=0.1):
        wait_for_state(put("the worker is up"), "succeeded")
        silent = insert_raw(args='{"key": "silent"}', lane="x")
        wait_for_state(silent, "succeeded")


def test_a_listener_whose_session_was_ended_listens_again(database):
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'harvester listen'"
    listening = "SELECT pid FROM pg_stat_activity WHERE application_name = 'harvester listen'"
    with worker_thread(poll_seconds=SLOW_POLL):
        [(before,)] = wait_for(lambda: rows(listening))
        rows(ended)
        wait_for(lambda: rows(listening) not in ([], [(before,)]), "a new session listens")
        wait_for_state(put("heard"), "succeeded")


def test_a_job_that_was_committed_late_is_found_behind_the_remembered_place(database):
    with connect("test") as late, gate("busy") as busy, worker_thread(threads=1):
        late.autocommit = False
        late.execute(
            "INSERT INTO jobs (kind, queue, args, priority, run_at, max_attempts) "
            "VALUES ('test.note', 'default', '{\"key\": \"late\"}', 0, clock_timestamp(), 1)"
        )
        put("claimed first")
        enqueue("test.gated", {"gate": "busy"})
        busy.next_job()
        late.commit()
        busy.open()
        wait_for(lambda: ran()[-1:] == ["late"], "the late job ran")


def test_a_claim_that_rolls_back_leaves_the_job_to_the_next(database):
    waiting = put("x")
    claimer = Claimer(worker="dying", queues=[])
    with connect("test") as dying, dying.transaction(force_rollback=True):
        assert [claimed.id for claimed in claimer.claim(dying, 5)] == [waiting]
    assert history(waiting) == ["pending"]
    run_until_idle()
    assert job(waiting).attempt == 1


def test_a_row_that_somebody_holds_does_not_stop_the_others(database):
    held, free = put("held"), put("free")
    with connect("test") as person, worker_thread(threads=1):
        with person.transaction():
            person.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [held])
            wait_for_state(free, "succeeded")
            assert state(held) == "pending"
        wait_for_state(held, "succeeded")


def test_a_worker_claims_no_more_than_it_may(database):
    for n in range(6):
        put(str(n))
    with worker_thread(threads=4, max_jobs=3) as worker:
        wait_for(lambda: Job.objects.filter(state="succeeded").count() == 3)
    assert worker.claimed == 3
    assert Job.objects.filter(state="pending").count() == 3


def test_a_worker_that_claimed_its_last_job_lets_it_finish(database):
    with worker_thread(threads=2, max_jobs=1, grace_seconds=0.0), gate("slow") as slow:
        only = enqueue("test.gated", {"gate": "slow"}).job_id
        slow.next_job()
        put("one too many")
        slow.open()
        wait_for_state(only, "succeeded")
    assert history(only) == ["pending", "running", "succeeded"]


def test_the_preview_of_a_dry_run_shows_what_is_due_and_claims_nothing(database):
    low, high, _ = put("low"), put("high", priority=1, queue="b"), put("future", delay=60)
    with connection.cursor() as cursor:
        cursor.execute(sql.PREVIEW, {"queues": [], "most": 10})
        assert [row[0] for row in cursor.fetchall()] == [high, low]
        cursor.execute(sql.PREVIEW, {"queues": ["b"], "most": 10})
        assert [row[0] for row in cursor.fetchall()] == [high]
    assert {state(low), state(high)} == {"pending"}


def test_enqueuers_and_workers_at_once_lose_nothing(database):
    def produce(name: str) -> None:
        for n in range(40):
            with transaction.atomic():
                put(f"{name} {n}", lane=f"lane {n % 7}" if n % 2 else None, priority=n % 3)
        connections.close_all()

    producers = [threading.Thread(target=produce, args=(name,)) for name in "abc"]
    with worker_thread(threads=4), worker_thread(threads=4):
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        wait_for(lambda: Job.objects.filter(state="succeeded").count() == 120, "all jobs done")
    assert rows("SELECT count(*), count(DISTINCT key) FROM test_effects") == [(120, 120)]


@pytest.mark.parametrize("lane", [None, "a lane of its own"])
def test_a_new_priority_overtakes_a_backlog_that_keeps_all_slots_busy(database, lanes_at_every_turn, lane):
    for n in range(20):
        put(f"backlog {n}")
    with worker_thread(threads=1, poll_seconds=SLOW_POLL) as worker, gate("busy") as busy:
        wait_for(lambda: len(ran()) >= 20)
        first = enqueue("test.gated", {"gate": "busy"}).job_id
        busy.next_job()
        for n in range(20):
            put(f"more {n}")
        urgent = put("urgent", priority=5, lane=lane)
        wait_for(lambda: ("default", 5) in worker._claimer._announced, "the worker heard of it")
        busy.open()
        wait_for_state(urgent, "succeeded")
        wait_for(lambda: len(ran()) == 42)
    assert state(first) == "succeeded"
    assert ran()[21] == "urgent"
