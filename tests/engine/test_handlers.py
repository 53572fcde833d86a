"""Whatever a handler does, only its own job feels it."""

import asyncio
import contextlib
import json
import sys
import threading
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.db import connection, transaction
from tests.support.gates import gate
from tests.support.jobs import history, insert_raw, job, state, wait_for_state
from tests.support.kinds import note, notes
from tests.support.tables import rows
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import LONGEST_MESSAGE, LONGEST_TRACEBACK, ended_by
from harvester.engine.registry import Later, job_kind
from harvester.guards.redaction import REDACTED
from harvester.kernel.errors import TransientError
from harvester.kernel.retry import RetryPolicy


def recurse() -> None:
    recurse()


def allocate() -> None:
    bytearray(sys.maxsize)


def exit_now() -> None:
    sys.exit(3)


def interrupt() -> None:
    raise KeyboardInterrupt


def stop_generator() -> None:
    raise GeneratorExit


def stop_asyncio() -> None:
    raise asyncio.CancelledError


VIOLENT = {
    "RecursionError": recurse,
    "MemoryError": allocate,
    "SystemExit": exit_now,
    "KeyboardInterrupt": interrupt,
    "GeneratorExit": stop_generator,
    "CancelledError": stop_asyncio,
}


@job_kind("test.violent")
def violent(job: RunningJob, what: str) -> None:
    VIOLENT[what]()


@job_kind("test.violent_async")
async def violent_async(job: RunningJob, what: str) -> None:
    await asyncio.sleep(0)
    VIOLENT[what]()


@pytest.mark.parametrize("what", VIOLENT)
@pytest.mark.parametrize("kind", ["test.violent", "test.violent_async"])
def test_a_violent_end_of_a_handler_leaves_the_worker_alive(database, kind, what):
    with worker_thread(threads=1):
        hurt = enqueue(kind, {"what": what}, max_attempts=1).job_id
        wait_for_state(hurt, "failed")
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        wait_for_state(enqueue("test.gated_async_note").job_id, "succeeded")
    assert job(hurt).error_type == what
    assert history(hurt) == ["pending", "running", "failed"]


@job_kind("test.gated_async_note")
async def async_note(job: RunningJob) -> str:
    await asyncio.sleep(0)
    return "done"


def test_a_violent_end_is_retried_like_any_unknown_error(database):
    hurt = enqueue("test.violent", {"what": "SystemExit"}).job_id
    run_until_idle()
    assert state(hurt) == "retryable"


# -- errors that cannot be written -------------------------------------------------------------------------------


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")

    __repr__ = __str__


class ExitsWhenPrinted(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


class OddCode(Exception):
    @property
    def code(self) -> str:
        raise RuntimeError("no code today")


class NulCode(Exception):
    code = "nul \x00 and half \ud83d"


class LongCode(Exception):
    code = "c" * 1_000_000


class NotText(Exception):
    def __str__(self) -> str:
        return 7  # noqa: PLE0307 - wrong on purpose


def chain(links: int) -> Exception:
    error: Exception = ValueError("the first cause")
    for number in range(links):
        outer = ValueError(f"link {number}")
        outer.__cause__ = error
        error = outer
    return error


def own_cause() -> Exception:
    error = ValueError("round and round")
    error.__cause__ = error
    return error


UNWRITABLE = {
    "unprintable": Unprintable,
    "exits when printed": ExitsWhenPrinted,
    "odd code": OddCode,
    "nul code": NulCode,
    "long code": LongCode,
    "not text": NotText,
    "nul": lambda: ValueError("nul \x00 in it"),
    "lone surrogate": lambda: ValueError("half \ud83d of a cow"),
    "huge": lambda: ValueError("x" * 20_000_000),
    "object": lambda: ValueError(object()),
    "long chain": lambda: chain(5_000),
    "own cause": own_cause,
    "group": lambda: ExceptionGroup("many", [Unprintable(), ValueError("nul \x00")]),
    "empty": ValueError,
}


@job_kind("test.unwritable")
def unwritable(job: RunningJob, what: str) -> None:
    error = UNWRITABLE[what]()
    raise error


@pytest.mark.parametrize("what", UNWRITABLE)
def test_an_error_that_cannot_be_written_ends_its_job_cleanly(database, what):
    hurt = enqueue("test.unwritable", {"what": what}, max_attempts=1).job_id
    others = [enqueue("test.note").job_id for _ in range(3)]
    run_until_idle(threads=4)
    assert [state(other) for other in others] == ["succeeded"] * 3
    failed = job(hurt)
    assert failed.state == "failed"
    assert failed.error
    assert failed.error_type
    assert len(failed.error) + len(failed.error_type) + len(failed.traceback or "") < 50_000


@job_kind("test.leaky")
def leaky(job: RunningJob, padding: int = 0) -> None:
    url = "sftp://shop:hunter2secret@files.example/feed.csv"
    raise TransientError(f"password=hunter2secret {'x' * padding} {url}; Authorization: Bearer hunter2secret")


def test_errors_and_tracebacks_are_stored_without_secrets(database):
    hurt = enqueue("test.leaky").job_id
    run_until_idle()
    stored = f"{job(hurt).error} {job(hurt).traceback} {job(hurt).error_type}"
    assert "hunter2" not in stored
    assert REDACTED in stored
    assert "hunter2" not in str(rows("SELECT detail FROM job_events"))


@pytest.mark.parametrize("longest", [LONGEST_MESSAGE, LONGEST_TRACEBACK])
def test_no_cut_through_a_long_error_uncovers_a_secret(longest):
    attempt = SimpleNamespace(id=1, lease=uuid4(), attempt=1, max_attempts=1, lane=None, rest_until=None)
    for padding in range(longest - 200, longest + 1):
        try:
            leaky(attempt, padding)
        except TransientError as error:
            ending = ended_by(attempt, error, RetryPolicy())
        assert "hunter2" not in f"{ending.error} {ending.traceback} {ending.detail}"


@job_kind("test.deep_error")
def deep_error(job: RunningJob) -> None:
    try:
        json.loads("{")
    except ValueError as problem:
        raise TransientError("the answer was cut off") from problem


def test_a_traceback_shows_the_cause_too(database):
    hurt = enqueue("test.deep_error").job_id
    run_until_idle()
    assert "JSONDecodeError" in job(hurt).traceback
    assert job(hurt).traceback.rstrip().endswith("the answer was cut off")


# -- jobs that no handler can take -------------------------------------------------------------------------------


#: Deeper than any Python reads, and not too deep for the database.
DEEP = "[" * 12_000 + "]" * 12_000
BAD_ARGS = {
    "a list": "[1, 2]",
    "a number": "5",
    "null": "null",
    "text": '"key"',
    "a wrong name": '{"kay": "x"}',
    "one name too many": '{"key": "x", "more": 1}',
    "the job itself": '{"job": 1}',
    "nested too deep": DEEP,
    "deep inside an object": f'{{"key": {DEEP}}}',
    "a huge number": '{"key": ' + "9" * 5_000 + "}",
}


@pytest.mark.parametrize("args", BAD_ARGS)
def test_undecodable_arguments_fail_alone(database, args):
    before = enqueue("test.note", {"key": "before"}).job_id
    bad = insert_raw(args=BAD_ARGS[args])
    after = enqueue("test.note", {"key": "after"}).job_id
    run_until_idle(threads=4)
    assert [state(before), state(bad), state(after)] == ["succeeded", "failed", "succeeded"]
    assert (job(bad).error_type, job(bad).attempt) == ("BAD_ARGS", 1)


def test_an_unknown_kind_fails_alone(database):
    before = enqueue("test.note").job_id
    unknown = [insert_raw(kind="test.nobody_knows"), insert_raw(kind="test.nobody_knows", lane="x")]
    after = [enqueue("test.note").job_id, enqueue("test.note", lane="x").job_id]
    with worker_thread(threads=2):
        for job_id in [before, *after]:
            wait_for_state(job_id, "succeeded")
        for job_id in unknown:
            wait_for_state(job_id, "failed")
    assert {(job(job_id).error_type, job(job_id).attempt) for job_id in unknown} == {("UNKNOWN_KIND", 1)}


@job_kind("test.strict")
def strict(job: RunningJob, must: str, *, keyword: int = 3) -> str:
    return f"{must}{keyword}"


def test_arguments_come_by_name_with_the_handlers_defaults(database):
    made = enqueue("test.strict", {"must": "a"}).job_id
    missing = enqueue("test.strict", {"keyword": 4}).job_id
    run_until_idle()
    assert job(made).result == "a3"
    assert (state(missing), job(missing).error_type) == ("failed", "BAD_ARGS")


# -- results -----------------------------------------------------------------------------------------------------


class Weird(dict):
    def items(self):
        raise SystemExit(4)


def loop() -> list:
    endless: list = []
    endless.append(endless)
    return endless


RESULTS = {
    "object": object,
    "nan": lambda: float("nan"),
    "set": lambda: {1},
    "nul": lambda: {"a": "\x00"},
    "lone surrogate": lambda: ["\ud83d"],
    "loop": loop,
    "weird": lambda: Weird(a=1),
    "bytes": lambda: b"x",
}


@job_kind("test.result")
def give(job: RunningJob, what: str) -> object:
    return RESULTS[what]()


@pytest.mark.parametrize("what", RESULTS)
def test_a_result_that_is_not_json_hurts_nobody_and_the_job_has_succeeded(database, what):
    made = enqueue("test.result", {"what": what}).job_id
    other = enqueue("test.note", {"key": "x"}).job_id
    run_until_idle(threads=2)
    assert (state(made), state(other), job(other).result) == ("succeeded", "succeeded", "x")
    assert job(made).result


@job_kind("test.good_result")
def good_result(job: RunningJob) -> object:
    return {"rows": [1, 2.5, None, True], "text": "größer 🐄", "escape": r"\u0000"}


def test_a_result_is_kept_as_it_is(database):
    made = enqueue("test.good_result").job_id
    run_until_idle()
    assert job(made).result == {"rows": [1, 2.5, None, True], "text": "größer 🐄", "escape": r"\u0000"}


@job_kind("test.huge_result")
def huge_result(job: RunningJob) -> str:
    return "huge " * 1_000_000


def test_a_result_that_would_fill_the_table_is_not_kept(database):
    made = enqueue("test.huge_result").job_id
    run_until_idle()
    assert state(made) == "succeeded"
    assert list(job(made).result) == ["not_stored"]


# -- handlers that are not what they seem ------------------------------------------------------------------------


async def forgotten_coroutine() -> str:
    return "never awaited"


@job_kind("test.returns_coroutine")
def returns_coroutine(job: RunningJob) -> object:
    return forgotten_coroutine()


def test_a_handler_that_returns_a_coroutine_did_not_do_its_work(database):
    made = enqueue("test.returns_coroutine", max_attempts=1).job_id
    run_until_idle()
    assert state(made) == "failed"


def test_a_generator_is_no_handler():
    with pytest.raises(ValueError, match="generator"):

        @job_kind("test.generator")
        def generator(job: RunningJob):
            yield 1


def test_two_handlers_cannot_have_one_kind():
    with pytest.raises(ValueError, match="Two handlers"):

        @job_kind("test.note")
        def another(job: RunningJob) -> None: ...


# -- what a handler leaves behind --------------------------------------------------------------------------------


@job_kind("test.leave_transaction")
def leave_transaction(job: RunningJob) -> None:
    transaction.atomic().__enter__()
    note("never committed")


@job_kind("test.leave_autocommit_off")
def leave_autocommit_off(job: RunningJob) -> None:
    transaction.set_autocommit(False)
    note("never committed")


@job_kind("test.leave_broken_session")
def leave_broken_session(job: RunningJob) -> None:
    with connection.cursor() as cursor, contextlib.suppress(Exception):
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@job_kind("test.leave_failed_transaction")
def leave_failed_transaction(job: RunningJob) -> None:
    with transaction.atomic():
        note("never committed")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")


@job_kind("test.leave_closed_session")
def leave_closed_session(job: RunningJob) -> None:
    connection.ensure_connection()
    connection.connection.close()


@pytest.mark.parametrize(
    "kind", ["transaction", "autocommit_off", "broken_session", "failed_transaction", "closed_session"]
)
def test_what_a_handler_leaves_open_does_not_reach_the_next_job_of_its_thread(database, kind):
    with worker_thread(threads=1):
        wait_for_state(enqueue("test.note", {"key": "the thread is there"}).job_id, "succeeded")
        wait_for_state(enqueue(f"test.leave_{kind}", max_attempts=1).job_id, "succeeded", "failed")
        wait_for_state(enqueue("test.note", {"key": "next"}).job_id, "succeeded")
        wait_for_state(enqueue("test.write_once", {"key": "fenced"}).job_id, "succeeded")
    assert notes("never committed") == []
    assert len(notes("next")) == len(notes("fenced")) == 1


# -- coroutines --------------------------------------------------------------------------------------------------


def test_coroutine_handlers_run_at_once_and_share_the_slots(database):
    with worker_thread(threads=4), gate("slow") as slow:
        ids = [enqueue("test.gated_async", {"gate": "slow"}).job_id for _ in range(6)]
        for _ in range(4):
            slow.next_job()
        assert sum(state(job_id) == "pending" for job_id in ids) == 2
        slow.open()
        for job_id in ids:
            assert wait_for_state(job_id, "succeeded").result == "passed"


def test_coroutines_and_threads_share_the_slots(database):
    with worker_thread(threads=2), gate("slow") as slow:
        for kind in ("test.gated_async", "test.gated"):
            enqueue(kind, {"gate": "slow"})
        assert {slow.next_job().kind, slow.next_job().kind} == {"test.gated", "test.gated_async"}
        waiting = enqueue("test.note").job_id
        heartbeat = job(waiting)
        assert heartbeat.state == "pending"
        slow.open()
        wait_for_state(waiting, "succeeded")


@job_kind("test.fail_async")
async def fail_async(job: RunningJob) -> None:
    await asyncio.sleep(0)
    raise TransientError("not now")


def test_a_coroutine_that_fails_is_retried_like_any_other(database):
    made = enqueue("test.fail_async").job_id
    run_until_idle()
    assert (state(made), job(made).error_type) == ("retryable", "TRANSIENT")


@job_kind("test.async_in_thread")
async def async_in_thread(job: RunningJob, key: str) -> None:
    def write() -> None:
        with job.transaction():
            note(key, "written")
            job.finish("from a thread")
        connection.close()

    await asyncio.to_thread(write)


def test_a_coroutine_may_write_through_a_thread(database):
    made = enqueue("test.async_in_thread", {"key": "x"}).job_id
    run_until_idle()
    assert (state(made), job(made).result, notes("x")) == ("succeeded", "from a thread", ["written"])


@job_kind("test.own_cancellation")
async def own_cancellation(job: RunningJob) -> None:
    task = asyncio.create_task(asyncio.sleep(30))
    task.cancel()
    await task


def test_a_coroutine_whose_own_task_was_cancelled_has_failed_and_was_not_asked_to_stop(database):
    made = enqueue("test.own_cancellation", max_attempts=1).job_id
    run_until_idle()
    assert (state(made), job(made).error_type) == ("failed", "CancelledError")


def test_each_attempt_knows_its_job(database):
    seen: list[tuple] = []

    @job_kind("test.look_at_yourself")
    def look(job: RunningJob) -> None:
        seen.append((job.id, job.kind, job.queue, job.lane, job.attempt, job.max_attempts, job.worker))

    made = enqueue("test.look_at_yourself", queue="q", lane="l", max_attempts=5).job_id
    run_until_idle(name="the worker")
    assert seen == [(made, "test.look_at_yourself", "q", "l", 1, 5, "the worker")]


def test_a_thread_that_a_handler_left_behind_does_not_keep_the_worker(database):
    done = threading.Event()

    @job_kind("test.leave_thread")
    def leave_thread(job: RunningJob) -> None:
        threading.Thread(target=done.wait, args=(30,), daemon=True).start()

    made = enqueue("test.leave_thread").job_id
    run_until_idle()
    done.set()
    assert state(made) == "succeeded"


def test_a_handler_is_imported_with_the_first_job_of_its_kind(database):
    """Its arguments are checked as if it had been there all the time."""
    job_kind("test.later", queue="later")(Later("tests.support.kinds:leave_note"))
    good, bad = enqueue("test.later", {"key": "a"}).job_id, enqueue("test.later", {"nonsense": 1}).job_id
    run_until_idle(queues=("later",))
    assert (state(good), state(bad)) == ("succeeded", "failed")
    assert rows("SELECT error_type FROM jobs WHERE id = %s", bad) == [("BAD_ARGS",)]
