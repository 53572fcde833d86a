"""Putting jobs in belongs to the caller's transaction: with it they come, with it they go."""

import datetime as dt
import decimal
import uuid

import psycopg
import pytest
from django.db import transaction
from tests.support.jobs import history, job
from tests.support.tables import rows

from harvester.engine.connections import Connection, connect
from harvester.engine.enqueue import HIGHEST_PRIORITY, LOWEST_PRIORITY, NewJob, enqueue, enqueue_many
from harvester.engine.errors import SecretInArgs, UnknownKind
from harvester.engine.models import Job, JobEvent
from harvester.engine.wakeup import CHANNEL
from harvester.kernel.errors import InvalidInput


class Undone(Exception):
    """Ends a transaction on purpose."""


@pytest.fixture
def listening(database) -> Connection:
    """A session that hears what workers would hear."""
    with connect("test") as session:
        session.execute(f"LISTEN {CHANNEL}")
        yield session


def heard(session: Connection) -> int:
    """Notifications so far; the statement's round trip brings all that were sent before it."""
    session.execute("SELECT 1")
    return len(list(session.notifies(timeout=0.2, stop_after=50)))


def test_a_commit_brings_the_job_its_first_event_and_a_notification(listening):
    with transaction.atomic():
        made = enqueue("test.note", {"key": "x"}, lane="x")
    assert made.created
    assert history(made.job_id) == ["pending"]
    assert heard(listening) == 1


def test_a_rollback_leaves_no_job_and_no_notification(listening):
    with pytest.raises(Undone), transaction.atomic():
        enqueue("test.note", {"key": "x"}, lane="x", dedupe_key="x")
        raise Undone
    left = rows("SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM job_events), count(*) FROM job_lane_wakeups")
    assert left == [(0, 0, 0)]
    assert heard(listening) == 0


def test_a_rolled_back_savepoint_takes_only_its_own_job_along(listening):
    with transaction.atomic():
        kept = enqueue("test.note", queue="kept").job_id
        with pytest.raises(Undone), transaction.atomic():
            enqueue("test.note", queue="undone")
            raise Undone
    assert list(Job.objects.values_list("id", flat=True)) == [kept]
    assert heard(listening) == 1


def test_nothing_is_seen_before_the_commit(listening):
    with transaction.atomic():
        enqueue("test.note")
        assert listening.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
        assert heard(listening) == 0
    assert heard(listening) == 1


def test_a_batch_answers_its_ids_in_its_order(database):
    ids = enqueue_many(NewJob(kind="test.note", args={"n": n}, priority=n % 3) for n in range(50))
    assert [job(job_id).args["n"] for job_id in ids] == list(range(50))
    assert JobEvent.objects.count() == 50


def test_an_empty_batch_is_no_work(listening):
    assert enqueue_many([]) == []
    assert heard(listening) == 0


def test_an_unknown_kind_in_a_batch_keeps_all_of_it_out(database):
    with pytest.raises(UnknownKind):
        enqueue_many([NewJob(kind="test.note"), NewJob(kind="test.nobody_knows")])
    assert not Job.objects.exists()


def test_a_job_takes_queue_and_attempts_from_its_kind_by_default(database):
    plain = job(enqueue("test.note").job_id)
    given = job(enqueue("test.note", queue="other", max_attempts=7).job_id)
    assert (plain.queue, plain.max_attempts) == ("default", 3)
    assert (given.queue, given.max_attempts) == ("other", 7)


def test_uuids_times_and_decimals_travel_as_text(database):
    a_uuid, a_time = uuid.uuid4(), dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    made = enqueue("test.note", {"u": a_uuid, "t": a_time, "d": a_time.date(), "m": decimal.Decimal("12.30")})
    assert job(made.job_id).args == {"u": str(a_uuid), "t": str(a_time), "d": "2026-03-01", "m": "12.30"}


def test_text_that_only_looks_like_an_escape_is_kept(database):
    made = enqueue("test.note", {"pattern": r"\u0000", "emoji": "🐄", "path": "C:\\users"})
    assert job(made.job_id).args == {"pattern": r"\u0000", "emoji": "🐄", "path": "C:\\users"}


def nested(levels: int) -> dict:
    value: dict = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "args",
    [
        {"key": float("nan")},
        {"key": float("inf")},
        {"key": "nul \x00"},
        {"nul \x00": 1},
        {"key": "half \ud83d"},
        {"key": object()},
        {"key": {1, 2}},
        {"key": b"bytes"},
        nested(100_000),
    ],
    ids=["nan", "inf", "nul", "nul in a name", "lone surrogate", "object", "set", "bytes", "too deep"],
)
def test_arguments_that_cannot_be_stored_are_refused_before_the_database_sees_them(database, args):
    with transaction.atomic():
        with pytest.raises(InvalidInput):
            enqueue("test.note", args)
        enqueue("test.note")
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    "args",
    [
        {"password": "x"},
        {"api_key": "x"},
        {"feed": {"credentials": {"Private-Key": "x"}}},
        {"headers": [{"Authorization": "Bearer x"}]},
        {"accessToken": None},
        {"pairs": ({"secret": 1},)},
        {"url": "sftp://shop:hunter2secret@files.example/feed.csv"},
        {"note": "Authorization: Bearer hunter2secret"},
    ],
    ids=lambda args: next(iter(args)),
)
def test_an_argument_that_is_named_or_looks_like_a_secret_is_refused(database, args):
    with pytest.raises(SecretInArgs) as refused:
        enqueue("test.note", args)
    assert "hunter2" not in str(refused.value)
    assert not Job.objects.exists()


def test_ids_and_statements_about_secrets_are_no_secrets(database):
    enqueue("test.note", {"credential_id": 3, "secret_version": 2, "author": "x"})
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    "options",
    [
        {"run_at": dt.datetime(2026, 1, 1)},  # noqa: DTZ001 - naive on purpose
        {"priority": HIGHEST_PRIORITY + 1},
        {"priority": LOWEST_PRIORITY - 1},
        {"delay": -0.001},
        {"delay": float("nan")},
        {"delay": float("inf")},
        {"delay": 1e300},
        {"max_attempts": 0},
        {"max_attempts": 40_000},
        {"queue": "nul \x00"},
        {"queue": "q" * 10_000},
        {"queue": " "},
        {"lane": ""},
        {"lane": "half \ud83d"},
        {"lane": "l" * 10_000},
        {"dedupe_key": ""},
        {"dedupe_key": "k" * 10_000},
    ],
    ids=lambda options: f"{next(iter(options))} {str(next(iter(options.values())))[:12]!r}",
)
def test_impossible_options_are_refused_at_birth(options):
    with pytest.raises(InvalidInput):
        NewJob(kind="test.note", **options)


@pytest.mark.parametrize("priority", [LOWEST_PRIORITY, HIGHEST_PRIORITY])
def test_the_outermost_priorities_are_possible(database, priority):
    assert job(enqueue("test.note", priority=priority).job_id).priority == priority


def test_the_table_itself_refuses_states_that_do_not_exist(database):
    made = enqueue("test.note").job_id
    with connect("test") as session:
        for change in ("state = 'lost'", "state = 'running'", "state = 'failed'", "lease = gen_random_uuid()"):
            with pytest.raises(psycopg.errors.CheckViolation):
                session.execute(f"UPDATE jobs SET {change} WHERE id = {made}")
