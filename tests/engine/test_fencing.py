"""What an attempt writes counts only while it holds its lease."""

import itertools
import threading
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, connections, transaction
from tests.support.gates import gate, gate_of
from tests.support.jobs import change, history, job, state, wait_for_state
from tests.support.kinds import note, notes
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine import maintenance, sql
from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.errors import LeaseLost
from harvester.engine.heartbeat import Heartbeat
from harvester.engine.job import RunningJob
from harvester.engine.maintenance import Rescuer
from harvester.engine.models import Job
from harvester.engine.outcomes import Ending, settle_in
from harvester.engine.registry import job_kind
from harvester.engine.states import JobState
from harvester.kernel.errors import TransientError


class Broken(Exception):
    """Ends a transaction on purpose."""


def held(**columns) -> RunningJob:
    """A job as its worker holds it."""
    made = enqueue("test.note", {"key": "x"}, **columns).job_id
    lease = uuid4()
    change(
        made,
        "state = 'running', lease = %s, attempt = 1, worker = 'me', started_at = clock_timestamp(), "
        "heartbeat_at = clock_timestamp()",
        lease,
    )
    row = job(made)
    return RunningJob(
        id=made,
        kind=row.kind,
        queue=row.queue,
        lane=row.lane,
        raw_args="{}",
        priority=0,
        run_at=row.run_at,
        attempt=1,
        max_attempts=3,
        lease=lease,
        worker="me",
    )


def take_over(taken: RunningJob) -> None:
    """What the rescuer and the next claim do to the row."""
    change(taken.id, "lease = gen_random_uuid(), worker = 'another', attempt = 2")


def test_what_is_written_in_the_fenced_transaction_stays(database):
    mine = held()
    with mine.transaction():
        note("x", "written")
    assert notes("x") == ["written"]
    assert state(mine.id) == "running"


def test_the_fenced_transaction_rolls_back_on_an_error(database):
    mine = held()
    with pytest.raises(Broken), mine.transaction():
        note("x", "written")
        raise Broken
    assert notes("x") == []
    with mine.transaction():
        note("x", "second try")
    assert notes("x") == ["second try"]


def test_the_end_of_the_job_and_its_effects_are_one_transaction(database):
    mine = held()
    with mine.transaction():
        note("x", "written")
        mine.finish({"rows": 1})
        assert _seen_from_outside(mine.id) == ("running", 0)
    assert _seen_from_outside(mine.id) == ("succeeded", 1)
    assert mine.finished
    assert job(mine.id).result == {"rows": 1}


def _seen_from_outside(job_id: int) -> tuple[str, int]:
    with connect("test") as other:
        found = other.execute("SELECT state, (SELECT count(*) FROM test_effects) FROM jobs WHERE id = %s", [job_id])
        return found.fetchone()


def test_an_end_that_is_rolled_back_did_not_happen(database):
    mine = held()
    with pytest.raises(Broken), mine.transaction():
        note("x", "written")
        mine.finish()
        raise Broken
    assert (state(mine.id), notes("x"), mine.finished) == ("running", [], False)
    assert history(mine.id) == ["pending"]


def test_a_follow_up_job_is_enqueued_with_the_end_or_not_at_all(database):
    mine = held()
    with pytest.raises(Broken), mine.transaction():
        enqueue("test.note")
        mine.finish()
        raise Broken
    assert Job.objects.count() == 1
    with mine.transaction():
        enqueue("test.note")
        mine.finish()
    assert sorted(Job.objects.values_list("state", flat=True)) == ["pending", "succeeded"]


def test_a_handler_that_fails_after_its_end_was_committed_has_succeeded(database):
    made = enqueue("test.finish_then_fail").job_id
    run_until_idle()
    assert (state(made), notes("x")) == ("succeeded", ["written"])
    assert history(made) == ["pending", "running", "succeeded"]


@job_kind("test.finish_then_fail")
def finish_then_fail(job: RunningJob) -> None:
    with job.transaction():
        note("x", "written")
        job.finish()
    raise TransientError("too late to matter")


def test_an_attempt_that_lost_its_lease_can_write_nothing(database):
    mine = held()
    take_over(mine)
    with pytest.raises(LeaseLost), mine.transaction():
        note("x", "written by a zombie")
    assert notes("x") == []
    with pytest.raises(LeaseLost):
        mine.check()


def test_an_attempt_that_loses_its_lease_between_two_transactions_can_write_nothing_more(database):
    mine = held()
    with mine.transaction():
        note("x", "in time")
    take_over(mine)
    with pytest.raises(LeaseLost), mine.transaction():
        note("x", "too late")
    assert notes("x") == ["in time"]


def test_an_attempt_that_lost_its_lease_cannot_end_the_job(database):
    mine = held()
    take_over(mine)
    with pytest.raises(LeaseLost), transaction.atomic():
        note("x", "written by a zombie")
        mine.finish("overwritten")
    assert (state(mine.id), job(mine.id).result, notes("x")) == ("running", None, [])


@pytest.mark.parametrize("ended", ["succeeded", "failed", "cancelled"])
def test_an_attempt_whose_job_has_ended_can_write_nothing(database, ended):
    mine = held()
    change(mine.id, "state = %s, lease = NULL, finished_at = clock_timestamp()", ended)
    with pytest.raises(LeaseLost), mine.transaction():
        note("x", "written by a zombie")
    assert notes("x") == []


def test_the_end_belongs_inside_a_transaction(database):
    mine = held()
    with pytest.raises(RuntimeError):
        mine.finish()
    assert state(mine.id) == "running"


def test_fenced_transactions_do_not_nest(database):
    mine = held()
    with pytest.raises(RuntimeError), mine.transaction(), mine.transaction():
        note("x", "written")
    with pytest.raises(RuntimeError), transaction.atomic(), mine.transaction():
        note("x", "written")
    assert notes("x") == []


def test_a_savepoint_inside_a_fenced_transaction_is_possible(database):
    mine = held()
    with mine.transaction():
        note("x", "kept")
        with pytest.raises(Broken), transaction.atomic():
            note("x", "undone")
            raise Broken
        mine.finish()
    assert (notes("x"), state(mine.id)) == (["kept"], "succeeded")


def test_a_fenced_transaction_lets_heartbeats_through_and_keeps_the_rescuer_out(database):
    with worker_thread(threads=1, stuck_seconds=3600.0), gate("long") as long:
        made = enqueue("test.long_transaction", {"gate": "long"}).job_id
        long.next_job()
        before = job(made).heartbeat_at
        wait_for(lambda: job(made).heartbeat_at > before, "a heartbeat inside the transaction")
        with connect("test") as session:
            session.execute("SET lock_timeout = '30s'")
            locked = session.execute("SELECT id FROM jobs WHERE id = %s FOR UPDATE SKIP LOCKED", [made]).fetchall()
            assert locked == []
        long.open()
        wait_for_state(made, "succeeded")
    assert notes("x") == ["written"]


@job_kind("test.long_transaction")
def long_transaction(job: RunningJob, gate: str) -> None:
    with job.transaction():
        note("x", "written")
        gate_of(gate).pass_through(job)
        job.finish()


WRITERS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s ORDER BY backend_start"


def writers(mine: RunningJob) -> list[int]:
    return [pid for (pid,) in rows(WRITERS, f"harvester job {mine.lease}")]


def test_sessions_say_for_which_attempt_they_write(database):
    mine = held()
    with mine.transaction():
        assert writers(mine) == [connection.connection.info.backend_pid]


def test_a_session_still_says_so_after_a_transaction_that_failed(database):
    mine = held()
    with pytest.raises(Broken), mine.transaction():
        raise Broken
    assert writers(mine) == [connection.connection.info.backend_pid]


def test_a_job_that_got_a_new_session_says_so(database):
    mine = held()
    with mine.transaction():
        note("x", "first")
    before = writers(mine)
    connection.close()
    with mine.transaction():
        assert writers(mine) not in ([], before)


def test_the_writing_sessions_of_a_lost_job_are_ended_before_it_is_taken(database):
    mine, gone = held(), threading.Event()
    inside, problems = threading.Barrier(3), []

    def write() -> None:
        try:
            with mine.transaction():
                note("x", "written by a frozen worker")
                inside.wait(30)
                gone.wait(30)
        except Exception as problem:  # noqa: BLE001 - raised by the main thread
            problems.append(type(problem).__name__)
        connections.close_all()

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(30)
    change(mine.id, "heartbeat_at = clock_timestamp() - interval '1 hour'")
    clock = iter([0.0, 60.0])
    rescuer = Rescuer(stuck_seconds=300, between=60, clock=lambda: next(clock))
    with connect("test") as session:
        rescuer.look(session)
        assert rescuer.look(session) == [mine.id]
    gone.set()
    for thread in threads:
        thread.join()
    assert (state(mine.id), notes("x"), len(problems)) == ("retryable", [], 2)


def test_a_session_that_serves_another_job_now_is_not_ended(database):
    mine, other = held(), held()
    with mine.transaction():
        note("x", "written before")
    change(mine.id, "heartbeat_at = clock_timestamp() - interval '1 hour'")
    clock = iter([0.0, 60.0])
    rescuer = Rescuer(stuck_seconds=300, between=60, clock=lambda: next(clock))
    with other.transaction(), connect("test") as session:
        rescuer.look(session)
        assert rescuer.look(session) == [mine.id]
        note("x", "written for another job")
    assert notes("x") == ["written before", "written for another job"]


STRENGTHS = ["UPDATE", "NO KEY UPDATE"]


def silent() -> RunningJob:
    """A held job that was last heard of an hour ago."""
    mine = held()
    change(mine.id, "heartbeat_at = clock_timestamp() - interval '1 hour'")
    return mine


def patient_rescuer() -> Rescuer:
    """One to whom enough time passes between two looks."""
    return Rescuer(stuck_seconds=300, between=60, clock=itertools.count(step=60.0).__next__)


def beat(mine: RunningJob) -> None:
    heartbeat = Heartbeat(lambda: [mine], interval=3600, on_cancel=lambda _: None)
    heartbeat.hurry()
    heartbeat.beat_if_due()
    heartbeat._drop_connection()


@pytest.mark.parametrize("fences", [1, 2], ids=["alone", "together with another of its writers"])
def test_a_writer_that_froze_between_the_end_of_the_job_and_its_commit_loses_it(database, fences):
    """Its own end of the job holds the row; nobody else does."""
    mine, rescuer = silent(), patient_rescuer()
    with connect("test") as session, connect("other") as other:
        other.execute(sql.WRITER, {"name": sql.WRITER_NAME.format(lease=mine.lease)})
        if fences > 1:
            other.execute("BEGIN")
            other.execute(sql.FENCE, {"id": mine.id, "lease": mine.lease})
        with pytest.raises(OperationalError), mine.transaction():
            note("x", "written by a frozen worker")
            mine.finish()
            assert rescuer.look(session) == []
            assert rescuer.look(session) == [mine.id]
        other.close()
    connection.close()
    assert (state(mine.id), notes("x")) == ("retryable", [])


@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_job_whose_row_another_session_holds_is_not_taken_and_its_writers_live(database, strength):
    mine, rescuer = silent(), patient_rescuer()
    with connect("test") as session, connect("holder") as holder:
        with holder.transaction():
            holder.execute(f"SELECT FROM jobs WHERE id = %s FOR {strength}", [mine.id])
            mine._announce_writer(connection)
            assert [rescuer.look(session) for _ in range(4)] == [[]] * 4
            assert writers(mine) == [connection.connection.info.backend_pid]
        assert rescuer.look(session) == [], "the first look that finds the row free, and the heartbeat may beat now"
        beat(mine)
        assert [rescuer.look(session) for _ in range(3)] == [[]] * 3
    with mine.transaction():
        mine.finish()
    assert history(mine.id)[-1] == "succeeded"


def test_a_row_that_is_locked_after_the_look_costs_no_writer_its_session(database):
    mine, rescuer = silent(), patient_rescuer()
    with mine.transaction(), connect("test") as session, connect("holder") as holder:
        rescuer.look(session)
        [silence] = rescuer._suspects
        found = session.execute(sql.STUCK, {"stuck": 0}).fetchone()
        with holder.transaction():
            holder.execute("SELECT FROM jobs WHERE id = %s FOR NO KEY UPDATE", [mine.id])
            assert not rescuer._take(session, silence, found)
        note("x", "written")
        mine.finish()
    assert (state(mine.id), notes("x")) == ("succeeded", ["written"])


def test_a_job_that_beats_after_the_look_costs_no_writer_its_session(database):
    mine, rescuer = silent(), patient_rescuer()
    with mine.transaction(), connect("test") as session:
        rescuer.look(session)
        [silence] = rescuer._suspects
        found = session.execute(sql.STUCK, {"stuck": 0}).fetchone()
        beat(mine)
        assert not rescuer._take(session, silence, found)
        note("x", "written")
        mine.finish()
    assert (state(mine.id), notes("x")) == ("succeeded", ["written"])


def test_a_writer_that_thaws_during_the_takeover_keeps_its_job(database, monkeypatch):
    """It opens a new fence after its sessions were ended: then the job is still its own, and it may commit."""
    mine, rescuer = silent(), patient_rescuer()
    real = maintenance.end_writers
    with connect("test") as session, connect("thawed") as thawed:

        def thaw_afterwards(*values) -> None:
            real(*values)
            thawed.execute("BEGIN")
            assert thawed.execute(sql.FENCE, {"id": mine.id, "lease": mine.lease}).fetchone() == (False,)

        monkeypatch.setattr(maintenance, "end_writers", thaw_afterwards)
        rescuer.look(session)
        assert rescuer.look(session) == []
        assert (state(mine.id), job(mine.id).lease) == ("running", mine.lease)
        thawed.execute("INSERT INTO test_effects (key, note) VALUES ('x', 'written')")
        thawed.execute("COMMIT")
        monkeypatch.setattr(maintenance, "end_writers", real)
        assert rescuer.look(session) == [mine.id]
        assert thawed.execute(sql.FENCE, {"id": mine.id, "lease": mine.lease}).fetchone() is None
    assert notes("x") == ["written"]


def test_no_fence_and_no_heartbeat_gets_in_between_the_end_of_the_writers_and_the_takeover(database, monkeypatch):
    mine, rescuer = silent(), patient_rescuer()
    monkeypatch.setattr(maintenance, "end_writers", lambda *_: beat(mine))
    before = job(mine.id).heartbeat_at
    with connect("test") as session:
        rescuer.look(session)
        assert rescuer.look(session) == [mine.id]
    assert (state(mine.id), job(mine.id).heartbeat_at) == ("retryable", before)


# -- one worker that loses a job and gets it again ---------------------------------------------------------------


def test_a_worker_that_claims_a_job_again_while_its_lost_attempt_still_runs_keeps_the_new_one_alive(database):
    with worker_thread(threads=2, stuck_seconds=3600.0), gate("both") as both:
        made = enqueue("test.gated_by_attempt", {"gate": "both"}).job_id
        first = both.next_job()
        change(made, "state = 'retryable', lease = NULL, run_at = clock_timestamp()")
        second = both.next_job()
        assert (first.id, second.id) == (made, made)
        FIRST_MAY_END.set()
        both.next_left()
        before = job(made).heartbeat_at
        wait_for(lambda: job(made).heartbeat_at > before, "the second attempt still beats")
        assert job(made).lease == second.lease
        both.open()
        wait_for_state(made, "succeeded")
    assert job(made).result == "attempt 2"


def test_a_lost_attempt_is_marked_although_a_newer_one_of_the_same_job_runs_here(database):
    FIRST_MAY_END.clear()
    with worker_thread(threads=2, stuck_seconds=3600.0), gate("both") as both:
        made = enqueue("test.gated_by_attempt", {"gate": "both"}).job_id
        first = both.next_job()
        change(made, "state = 'retryable', lease = NULL, run_at = clock_timestamp()")
        second = both.next_job()
        wait_for(lambda: first.is_lost, "the first attempt knows that it was lost")
        assert not second.is_lost
        FIRST_MAY_END.set()


FIRST_MAY_END = threading.Event()


@job_kind("test.gated_by_attempt")
def gated_by_attempt(job: RunningJob, gate: str) -> str:
    try:
        if job.attempt == 1:
            gate_of(gate).entered.put(job)
            FIRST_MAY_END.wait(30)
        else:
            gate_of(gate).pass_through(job)
        return f"attempt {job.attempt}"
    finally:
        gate_of(gate).left.put(job)


def test_every_statement_of_a_job_checks_its_lease(database):
    """No ending or heartbeat of an old lease touches the row, and it ends no session."""
    mine = held()
    before = rows("SELECT xmin::text, * FROM jobs")
    old = {
        "id": mine.id,
        "lease": uuid4(),
        "ids": [mine.id],
        "leases": [uuid4()],
        "progress": ['{"done": 1}'],
        "name": "harvester test",
    }
    rescue = {"heartbeat_at": job(mine.id).heartbeat_at, "error": "lost"}
    ending = Ending(job_id=mine.id, lease=uuid4(), state=JobState.SUCCEEDED, result="1")
    with connect("test") as session, session.cursor() as cursor:
        for statement in (sql.HEARTBEAT, sql.END_WRITERS, sql.FENCE, sql.RESCUE_LOCK, sql.RESCUE):
            assert session.execute(statement, {**old, **rescue}).fetchall() == []
        for by_force in (False, True):
            assert settle_in(cursor, [ending], by_force=by_force) == {}
    assert rows("SELECT xmin::text, * FROM jobs") == before
