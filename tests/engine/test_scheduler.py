"""Each due moment is taken once, whatever the number of schedulers and the clock's mood."""

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection, connections
from tests.support.jobs import change, insert_raw, wait_for_state
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import refuse_to_end, run_until_idle

from harvester.engine import registry, scheduler, sql
from harvester.engine.cron import next_moment
from harvester.engine.models import Job, PeriodicJob
from harvester.engine.registry import periodic
from harvester.engine.scheduler import Scheduler, register_all, repair_plans, tick
from harvester.kernel.errors import ConfigError

#: Half an hour away: no moment of the wall clock comes while these tests run.
MINUTE = (datetime.now(UTC).minute + 30) % 60
HOURLY = f"{MINUTE} * * * *"
#: SQL: the last moment of it that has passed.
LAST = f"(date_trunc('hour', clock_timestamp() - interval '{MINUTE} minutes') + interval '{MINUTE} minutes')"


@pytest.fixture
def hourly(database, monkeypatch):
    """One periodic job, known to the database."""
    monkeypatch.setattr(registry, "_periodic", {})
    periodic("hourly", kind="test.note", cron=HOURLY)
    register_all()


def plan(next_at: str, last_at: str = "NULL", name: str = "hourly") -> None:
    """Move the plan; both are SQL expressions."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE periodic_jobs SET next_at = {next_at}, last_at = {last_at} WHERE name = %s", [name])


def planned(name: str = "hourly") -> datetime:
    return PeriodicJob.objects.get(name=name).next_at


def database_time() -> datetime:
    return rows("SELECT clock_timestamp()")[0][0]


@pytest.fixture
def turns(monkeypatch):
    """Grows with each turn of a scheduler, at its end."""
    ended, look = [], scheduler._until_next

    def look_and_note():
        ended.append(look())
        return ended[-1]

    monkeypatch.setattr(scheduler, "_until_next", look_and_note)
    return ended


@contextmanager
def scheduler_thread():
    running = Scheduler(stuck_seconds=300, stale_check_seconds=60, end_process=refuse_to_end)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.stop()
        thread.join(30)
        assert not thread.is_alive(), "the scheduler did not stop"


def test_a_new_periodic_job_is_planned_for_its_next_moment(hourly):
    assert database_time() < planned() <= database_time() + timedelta(hours=1)
    assert (planned().minute, planned().second) == (MINUTE, 0)
    assert tick() == []


def test_a_due_moment_is_enqueued_and_the_next_one_planned(hourly):
    plan(LAST)
    assert tick() == ["hourly"]
    assert tick() == []
    made = Job.objects.get()
    row = PeriodicJob.objects.get()
    assert (made.kind, made.args, row.last_job_id) == ("test.note", {}, made.id)
    assert row.next_at - row.last_at == timedelta(hours=1)


def test_moments_that_passed_while_nobody_looked_are_made_up_for_once(hourly):
    plan(f"{LAST} - interval '3 days'")
    assert tick() == ["hourly"]
    assert tick() == []
    assert planned() > database_time()
    assert Job.objects.count() == 1


@pytest.mark.parametrize("schedulers", [2, 8])
def test_several_schedulers_take_each_moment_once(hourly, schedulers):
    rounds = 10
    taken: list[str] = []
    ready, done = threading.Barrier(schedulers + 1, timeout=30), threading.Barrier(schedulers + 1, timeout=30)

    def schedule() -> None:
        for _ in range(rounds):
            ready.wait()
            taken.extend(tick())
            done.wait()
        connections.close_all()

    threads = [threading.Thread(target=schedule, daemon=True) for _ in range(schedulers)]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        plan(LAST)
        ready.wait()
        done.wait()
        run_until_idle(threads=1)
    for thread in threads:
        thread.join(30)
    assert taken == ["hourly"] * rounds
    assert Job.objects.filter(state="succeeded").count() == rounds


def test_a_restart_keeps_the_plan_and_takes_no_moment_twice(hourly):
    plan(LAST)
    for _ in range(2):
        with scheduler_thread():
            wait_for(Job.objects.exists)
    assert Job.objects.count() == 1


def test_a_moment_that_passed_while_all_schedulers_were_away_is_not_lost_by_a_restart(hourly):
    plan("clock_timestamp() - interval '5 hours'")
    register_all()
    assert tick() == ["hourly"]


def test_a_clock_that_is_set_back_brings_no_moment_twice(hourly, turns):
    """The clock was ahead by forty minutes, a moment was taken, and then it was set right."""
    plan(f"{LAST} + interval '2 hours'", f"{LAST} + interval '1 hour'")
    before = planned()
    assert tick() == []
    assert repair_plans() == []
    with scheduler_thread():
        wait_for(lambda: turns, "the first turn")
    assert planned() == before
    assert not Job.objects.exists()


def test_a_clock_that_was_a_year_ahead_does_not_silence_periodic_work(hourly):
    plan("clock_timestamp() + interval '1 year 1 hour'", "clock_timestamp() + interval '1 year'")
    assert repair_plans() == ["hourly"]
    assert planned() <= database_time() + timedelta(hours=1)
    assert repair_plans() == []


def test_a_changed_cron_line_is_planned_again_and_an_unchanged_one_is_not(hourly):
    plan("clock_timestamp() + interval '10 minutes'")
    before = planned()
    register_all()
    assert planned() == before
    periodic("hourly", kind="test.note", cron="30 4 1 1 *")
    register_all()
    assert (planned().month, planned().day, planned().hour, planned().minute) == (1, 1, 4, 30)


def test_a_moment_is_not_enqueued_while_the_job_of_the_last_one_is_open(hourly):
    for _ in range(2):
        plan(LAST)
        assert tick() == ["hourly"]
    assert Job.objects.count() == 1
    run_until_idle()
    plan(LAST)
    tick()
    assert Job.objects.count() == 2


def test_a_moment_is_taken_and_enqueued_together_or_not_at_all(hourly, monkeypatch):
    plan(LAST)
    before = planned()
    with monkeypatch.context() as broken:
        broken.setattr(sql, "ADVANCE_PERIODIC", "SELECT 1 / 0")
        with pytest.raises(Exception, match="division by zero"):
            tick()
    assert (planned(), Job.objects.count()) == (before, 0)
    assert tick() == ["hourly"]


def test_a_periodic_job_that_cannot_be_enqueued_does_not_stop_the_others(hourly):
    periodic("broken", kind="test.nobody_knows", cron=HOURLY)
    register_all()
    for name in ("broken", "hourly"):
        plan(LAST, name=name)
    tick()
    assert [made.kind for made in Job.objects.all()] == ["test.note"]
    assert planned("broken") > database_time()


def test_periodic_jobs_of_another_version_are_left_to_it(hourly):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO periodic_jobs (name, kind, cron, next_at) "
            "VALUES ('newer', 'test.newer', '* * * * *', clock_timestamp() - interval '1 day')"
        )
    assert tick() == []
    assert PeriodicJob.objects.get(name="newer").last_at is None


def test_a_scheduler_enqueues_what_comes_due_while_it_runs(hourly):
    plan("clock_timestamp() + interval '1 second'")
    with scheduler_thread():
        wait_for(Job.objects.exists, "the job")
    assert Job.objects.get().created_at >= PeriodicJob.objects.get().last_at


def test_a_scheduler_survives_the_loss_of_its_session(hourly, turns, monkeypatch):
    monkeypatch.setattr(scheduler, "_AFTER_FAILURE_SECONDS", 0.05)
    monkeypatch.setattr(scheduler, "LONGEST_SLEEP_SECONDS", 0.05)
    with scheduler_thread():
        wait_for(lambda: turns, "the first turn")
        ended = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND usename = current_user AND query LIKE '%%periodic_jobs%%'"
        )
        wait_for(lambda: rows(ended), "its session ends")
        plan(LAST)
        wait_for(Job.objects.exists, "the job")


def test_a_scheduler_rescues_stuck_jobs_too(hourly):
    job_id = insert_raw()
    change(
        job_id, "state = 'running', lease = gen_random_uuid(), heartbeat_at = now() - interval '1 hour', worker = 'x'"
    )
    running = Scheduler(stuck_seconds=1.0, stale_check_seconds=0.1, end_process=refuse_to_end)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        wait_for_state(job_id, "retryable")
    finally:
        running.stop()
        thread.join(30)


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 * * * *", "2026-03-01T10:00:00", "2026-03-01T11:00:00"),
        ("17 3 * * *", "2026-03-01T03:17:00", "2026-03-02T03:17:00"),
        ("*/15 * * * *", "2026-12-31T23:50:00", "2027-01-01T00:00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("30 2 * * *", "2026-03-29T01:59:00", "2026-03-29T02:30:00"),  # no summer time in UTC
    ],
)
def test_the_next_moment_of_a_cron_line(cron, after, expected):
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert next_moment(cron, start) == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    abroad = start.astimezone(timezone(timedelta(hours=9)))
    assert next_moment(cron, abroad) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize("cron", ["", "every day", "* * * *", "61 * * * *", "0 0 30 2 *", "@hourly"])
def test_a_cron_line_that_never_comes_due_is_refused_where_it_is_written(monkeypatch, cron):
    monkeypatch.setattr(registry, "_periodic", {})
    with pytest.raises(ConfigError):
        periodic("broken", kind="test.note", cron=cron)
    assert "broken" not in registry.all_periodic()
