"""What is cleared away, and what never is."""

import itertools
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.db import connections, transaction
from django.utils import timezone
from tests.support.jobs import change, insert_raw, job, state, wait_for_state
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.lanes import set_concurrency
from harvester.engine.models import Job
from harvester.engine.registry import all_kinds, all_periodic
from harvester.engine.states import ENDED, JobState
from harvester.kernel.actor import system
from harvester.ops import jobs as verbs
from harvester.ops import retention

PARTITIONED = ("job_events", "audit_events", "prices")
KEEP_SUCCEEDED = settings.CONFIG.keep_succeeded_days
KEEP_FAILED = settings.CONFIG.keep_failed_days


def aged(current: str, days: float) -> int:
    """A job in a state that it reached so many days ago, with every other time as old."""
    made = insert_raw(run_at=f"now() - interval '{days} days'", queue="old")
    ended = f"now() - interval '{days} days'" if current in ENDED else "NULL"
    lease = "gen_random_uuid()" if current == "running" else "NULL"
    change(
        made,
        f"state = %s, finished_at = {ended}, lease = {lease}, heartbeat_at = clock_timestamp(), "
        f"created_at = run_at, started_at = run_at",
        current,
    )
    return made


def clean_up() -> dict[str, int]:
    made = enqueue(retention.CLEAN_UP).job_id
    run_until_idle(queues=("maintenance",), stuck_seconds=3600.0)
    assert state(made) == "succeeded", job(made).error
    return job(made).result


def left(*ids: int) -> list[bool]:
    found = set(Job.objects.filter(id__in=ids).values_list("id", flat=True))
    return [job_id in found for job_id in ids]


def test_clean_up_never_deletes_a_live_job(database):
    live = [aged(current.value, 3650) for current in JobState if current not in ENDED]
    ended = [aged(current.value, 3650) for current in ENDED]
    clean_up()
    assert left(*live) == [True] * 3
    assert left(*ended) == [False] * 3


@pytest.mark.parametrize(
    ("current", "days", "kept"),
    [
        ("succeeded", KEEP_SUCCEEDED - 0.5, True),
        ("succeeded", KEEP_SUCCEEDED + 0.5, False),
        ("cancelled", KEEP_SUCCEEDED - 0.5, True),
        ("cancelled", KEEP_SUCCEEDED + 0.5, False),
        ("failed", KEEP_SUCCEEDED + 0.5, True),
        ("failed", KEEP_FAILED - 0.5, True),
        ("failed", KEEP_FAILED + 0.5, False),
    ],
)
def test_ended_jobs_are_kept_as_long_as_the_settings_say(database, current, days, kept):
    made = aged(current, days)
    clean_up()
    assert left(made) == [kept]


def test_an_old_job_that_ended_lately_is_kept(database):
    made = aged("failed", 3650)
    change(made, "finished_at = clock_timestamp()")
    clean_up()
    assert left(made) == [True]


def test_many_jobs_are_deleted_in_small_transactions(database, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 10)
    ids = [aged("succeeded", 100) for _ in range(35)]
    assert clean_up()["succeeded_jobs"] == 35
    assert not any(left(*ids))


def test_a_job_that_a_person_drives_again_meanwhile_is_not_deleted(database):
    failed, other = aged("failed", 3650), aged("failed", 3650)
    with transaction.atomic():
        verbs.retry(system("test"), failed)
        in_another_session(clean_up)
    assert left(failed, other) == [True, False]
    assert state(failed) == "pending"


def in_another_session(work) -> None:
    def run() -> None:
        work()
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_clean_up_can_be_cancelled(database, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 1)
    for _ in range(3):
        aged("succeeded", 100)
    steps = itertools.count()
    real = retention._delete_jobs

    def delete(job, *arguments):
        if next(steps) == 0:
            verbs.cancel(system("test"), job.id)
            wait_for(lambda: job.cancel_requested, "the wish to stop")
        return real(job, *arguments)

    monkeypatch.setattr(retention, "_delete_jobs", delete)
    made = enqueue(retention.CLEAN_UP).job_id
    with worker_thread(queues=("maintenance",)):
        wait_for_state(made, "cancelled")
    assert Job.objects.filter(queue="old").count() == 3


def test_clean_up_is_planned_every_day():
    [daily] = [item for item in all_periodic().values() if item.kind == retention.CLEAN_UP]
    assert all_kinds()[daily.kind].queue == "maintenance"


# -- lanes -------------------------------------------------------------------------------------------------------


def test_lanes_in_which_nothing_waits_are_forgotten_and_the_others_are_not(database):
    enqueue("test.note", lane="idle")
    enqueue("test.note", lane="wide")
    set_concurrency("default", "wide", 3)
    run_until_idle()
    enqueue("test.note", lane="waiting", delay=3600)
    run_until_idle()
    clean_up()
    assert rows("SELECT lane FROM job_lanes ORDER BY lane") == [("waiting",), ("wide",)]


def test_a_forgotten_lane_comes_back_with_its_next_job(database):
    enqueue("test.note", lane="x")
    run_until_idle()
    clean_up()
    again = enqueue("test.note", lane="x").job_id
    run_until_idle()
    assert state(again) == "succeeded"


# -- months ------------------------------------------------------------------------------------------------------


def owner(statement: str, *values: object) -> list[tuple]:
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def month(table: str, first: str, last: str):
    """A partition for one month, gone afterwards."""
    name = f"{table}_{first[:4]}{first[5:7]}"
    owner(f"CREATE TABLE {name} PARTITION OF {table} FOR VALUES FROM ('{first} 00:00+00') TO ('{last} 00:00+00')")
    try:
        yield name
    finally:
        owner(f"DROP TABLE IF EXISTS {name}")


def months(table: str) -> list[str]:
    found = owner("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", table)
    return sorted(name for (name,) in found)


def test_old_months_of_the_history_are_dropped(database):
    with month("job_events", "2020-01-01", "2020-02-01") as old:
        owner("INSERT INTO job_events (job_id, state, attempt, at) VALUES (1, 'failed', 1, '2020-01-10') RETURNING id")
        assert clean_up()["dropped_months"] == 1
        assert old not in months("job_events")
        assert rows("SELECT count(*) FROM job_events WHERE at < '2021-01-01'") == [(0,)]


def test_a_month_is_dropped_only_when_all_of_it_is_old(database):
    with month("job_events", "2020-01-01", "2020-02-01") as january:
        assert rows("SELECT drop_old_job_events('2020-01-31 23:59+00')") == [(0,)]
        assert january in months("job_events")
        assert rows("SELECT drop_old_job_events('2020-02-01 00:00+00')") == [(1,)]
        assert january not in months("job_events")


@pytest.mark.parametrize("before", ["infinity", "2100-01-01"])
def test_the_history_of_the_last_month_cannot_be_dropped_whatever_is_asked_for(database, before):
    enqueue("test.note")
    [(first, last, over)] = rows(
        "SELECT d::date::text, (d + interval '1 month')::date::text, d + interval '1 month 30 days' <= n "
        "FROM (SELECT now() AT TIME ZONE 'UTC') AS t (n), date_trunc('month', n - interval '1 month') AS d"
    )
    with month("job_events", first, last) as recent:
        rows("SELECT drop_old_job_events(%s)", before)
        # On the last day of a long month, 30 days are over for the month before.
        assert (recent in months("job_events")) is not over
        assert rows("SELECT count(*) FROM job_events") == [(1,)]


def test_nothing_is_dropped_without_a_moment(database):
    with month("job_events", "2020-01-01", "2020-02-01") as old:
        assert rows("SELECT drop_old_job_events(NULL)") == [(None,)]
        assert old in months("job_events")


def test_the_audit_log_is_never_dropped(database):
    with month("audit_events", "2020-01-01", "2020-02-01") as old:
        clean_up()
        rows("SELECT drop_old_job_events('2100-01-01')")
        owner("SELECT make_partitions('job_events', 3)")
        assert old in months("audit_events")


def test_a_table_that_only_looks_like_a_month_of_the_history_is_not_dropped(database):
    owner("CREATE TABLE job_events_201901 (id bigint)")
    try:
        assert rows("SELECT drop_old_job_events('2020-01-01')") == [(0,)]
        assert owner("SELECT to_regclass('job_events_201901') IS NOT NULL") == [(True,)]
    finally:
        owner("DROP TABLE job_events_201901")


def test_the_months_to_come_are_made_ahead(database):
    [(last,)] = rows("SELECT to_char(now() AT TIME ZONE 'UTC' + interval '3 months', 'YYYYMM')")
    for table in PARTITIONED:
        owner(f"DROP TABLE IF EXISTS {table}_{last}")
    clean_up()
    for table in PARTITIONED:
        assert f"{table}_{last}" in months(table)
        assert rows(f"SELECT make_partitions('{table}', 3)") == [(0,)]


def test_only_partitioned_tables_get_months(database):
    with pytest.raises(Exception, match="is not partitioned"):
        rows("SELECT make_partitions('jobs', 3)")


def test_a_month_whose_rows_came_before_its_partition_does_not_stop_clean_up(database):
    """After a long pause without a scheduler, rows of this month already stand in the default partition."""
    [(this,)] = rows("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMM')")
    owner(f"DROP TABLE job_events_{this}")
    try:
        rows("INSERT INTO job_events (job_id, state, attempt) VALUES (1, 'failed', 1) RETURNING id")
        clean_up()
        assert f"job_events_{this}" not in months("job_events")
    finally:
        owner("SET session_replication_role = replica")
        owner("DELETE FROM job_events")
        owner("SET session_replication_role = origin")
        owner("SELECT make_partitions('job_events', 3)")
    assert f"job_events_{this}" in months("job_events")


def test_clean_up_holds_nobody_up_while_somebodys_transaction_is_open(database):
    """Dropping a month locks the whole history. An enqueuer that has not committed must not block all others."""
    with month("job_events", "2020-01-01", "2020-02-01") as old, worker_thread(queues=("maintenance",)):
        with transaction.atomic():
            enqueue("test.note")
            made = []
            in_another_session(lambda: made.append(enqueue(retention.CLEAN_UP, max_attempts=9).job_id))
            wait_for(lambda: job(made[0]).state == "retryable", "clean-up gave way")
            in_another_session(lambda: made.append(enqueue("test.note").job_id))
            assert old in months("job_events")
        verbs.retry(system("test"), made[0])
        wait_for_state(made[0], "succeeded")
        assert old not in months("job_events")


def test_the_settings_decide_how_far_back_the_history_goes(database, monkeypatch):
    short = SimpleNamespace(keep_succeeded_days=1, keep_failed_days=3650, keep_alerts_days=90)
    monkeypatch.setattr(settings, "CONFIG", short)
    year = timezone.now().year - 2
    with (
        month("job_events", f"{year}-01-01", f"{year}-02-01") as recent,
        month("job_events", "2012-01-01", "2012-02-01"),
    ):
        assert clean_up()["dropped_months"] == 1
        assert recent in months("job_events")
