"""The endings of attempts, written in batches."""

import json
import random
import time
import traceback as traceback_module
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError
from psycopg import InterfaceError as RawInterfaceError
from psycopg import OperationalError as RawOperationalError

from harvester.engine import sql
from harvester.engine.errors import JobCancelled, LeaseLost, Snooze
from harvester.engine.json_values import to_json
from harvester.engine.states import JobState
from harvester.guards.redaction import redact
from harvester.kernel.errors import TerminalError, TransientError
from harvester.kernel.retry import LONGEST_WAIT_SECONDS, RetryPolicy

log = structlog.get_logger(__name__)

#: Characters to store: enough to understand, too few to fill a disk.
LONGEST_CODE = 200
LONGEST_MESSAGE = 2_000
#: Begins the event of a job that waits again; the reason follows.
SNOOZED = "snoozed: "
LONGEST_TRACEBACK = 20_000
#: A result is figures and ids; anything larger belongs in a separate table.
LONGEST_RESULT = 100_000
#: Text is searched for secrets up to this multiple of the stored length, so that truncation cannot split a secret.
_SEARCHED = 10
#: A lost database connection is not an error of the job.
DATABASE_LOST = (OperationalError, InterfaceError, RawOperationalError, RawInterfaceError)

#: Identifies one attempt. A job id alone does not: a worker may hold a lost attempt and the new one at once.
AttemptKey = tuple[int, UUID]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one attempt ended.

    Attributes:
        job_id: the job.
        lease: the attempt's fencing token; nothing is changed if it is no longer valid.
        state: the new state of the job.
        delay: seconds until it may run again, if it does.
        refund: 1 to give the attempt back.
        rest_until: until when the job's lane rests, by the monotonic clock.
        result: the handler's result as JSON.
        progress: the last progress that the handler reported, as JSON; it may not be written yet.
        error_type: stable code or class name of the error.
        error: its message, redacted.
        traceback: redacted.
        detail: a line for the job's history.
        unknown: the error is not in the error tree; somebody should look at it.
    """

    job_id: int
    lease: UUID
    state: JobState
    delay: float | None = None
    refund: int = 0
    rest_until: float | None = None
    result: str | None = None
    progress: str | None = None
    error_type: str | None = None
    error: str | None = None
    traceback: str | None = None
    detail: str | None = None
    unknown: bool = False

    @property
    def key(self) -> AttemptKey:
        return self.job_id, self.lease


class Attempt(Protocol):
    """The part of a running job that is needed to end it."""

    id: int
    lane: str | None
    lease: UUID
    attempt: int
    max_attempts: int
    rest_until: float | None

    def take_progress(self) -> str | None: ...


class Cursor(Protocol):
    """Both Django's cursor and psycopg's."""

    def execute(self, query: Any, params: Any = None) -> Any: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...


def succeeded(job: Attempt, result: Any) -> Ending:
    return Ending(
        job_id=job.id,
        lease=job.lease,
        state=JobState.SUCCEEDED,
        rest_until=job.rest_until,
        result=_result(job, result),
        progress=job.take_progress(),
    )


def handed_back(job: Attempt) -> Ending:
    """Return the ending of a job whose worker stops first; another one runs it again, without counting the attempt."""
    return Ending(
        job_id=job.id,
        lease=job.lease,
        state=JobState.PENDING,
        delay=0,
        refund=1,
        rest_until=job.rest_until,
        detail="handed back by a stopping worker",
    )


def unwritable(ending: Ending, problem: BaseException) -> Ending:
    """Return a minimal ending, because the database rejected the original one."""
    return Ending(
        job_id=ending.job_id,
        lease=ending.lease,
        state=JobState.FAILED,
        rest_until=ending.rest_until,
        error_type="ENDING_NOT_STORED",
        error=f"The job ended as {ending.state}, but its details could not be stored: {_message(problem)}",
        unknown=True,
    )


def ended_by(job: Attempt, error: BaseException, retry: RetryPolicy) -> Ending | None:
    """Return the ending of an attempt that raised; None if the lease is lost."""
    if isinstance(error, LeaseLost):
        return None
    if isinstance(error, JobCancelled):
        return Ending(
            job_id=job.id,
            lease=job.lease,
            state=JobState.CANCELLED,
            rest_until=job.rest_until,
            detail="stopped as asked",
        )
    if isinstance(error, Snooze):
        return _snoozed(job, error)
    try:
        return _failed(job, error, retry)
    except BaseException as problem:  # noqa: BLE001 - an attempt without an ending would keep its slot forever
        unknown = Ending(job_id=job.id, lease=job.lease, state=JobState.FAILED, rest_until=job.rest_until)
        return unwritable(unknown, problem)


def _snoozed(job: Attempt, snooze: Snooze) -> Ending:
    """Return the ending of a job that waits again; if its lane rests, it keeps its time and so its place."""
    rests = snooze.rest_lane and job.lane is not None
    return Ending(
        job_id=job.id,
        lease=job.lease,
        state=JobState.PENDING,
        delay=None if rests else snooze.seconds,
        refund=1,
        rest_until=max(job.rest_until or 0.0, time.monotonic() + snooze.seconds) if rests else job.rest_until,
        detail=_clean(f"{SNOOZED}{snooze}")[:LONGEST_MESSAGE],
    )


def _failed(job: Attempt, error: BaseException, retry: RetryPolicy) -> Ending:
    message = _message(error)
    again = not isinstance(error, TerminalError) and job.attempt < job.max_attempts
    return Ending(
        job_id=job.id,
        lease=job.lease,
        state=JobState.RETRYABLE if again else JobState.FAILED,
        delay=_retry_delay(job, error, retry) if again else None,
        rest_until=job.rest_until,
        progress=job.take_progress(),
        error_type=_code(error),
        error=message,
        traceback=_traceback(error),
        detail=message,
        unknown=not isinstance(error, (TerminalError, TransientError, *DATABASE_LOST)),
    )


def _retry_delay(job: Attempt, error: BaseException, retry: RetryPolicy) -> float:
    delay = retry.wait(job.attempt, random.random())  # noqa: S311 - jitter, not a secret
    named = error.retry_after if isinstance(error, TransientError) else None
    return delay if named is None else max(delay, min(named, LONGEST_WAIT_SECONDS))


def _code(error: BaseException) -> str:
    """Return the stable name of an error: its code, or else its class."""
    try:
        code = getattr(error, "code", None)
    except BaseException:  # noqa: BLE001 - a property may raise anything
        code = None
    name = code if isinstance(code, str) else type(error).__name__
    return _clean(name[: LONGEST_CODE * _SEARCHED])[:LONGEST_CODE]


def _message(error: BaseException) -> str:
    """Return the message of an error, or else its class."""
    try:
        text = str(error) or type(error).__name__
    except BaseException:  # noqa: BLE001 - an error's own __str__ may raise anything
        text = f"{type(error).__name__} (its message cannot be printed)"
    return _clean(text[: LONGEST_MESSAGE * _SEARCHED])[:LONGEST_MESSAGE]


def _traceback(error: BaseException) -> str | None:
    try:
        lines = traceback_module.format_exception(error, limit=-30)
    except BaseException:  # noqa: BLE001 - formatting calls the error's own code
        lines = traceback_module.format_tb(error.__traceback__, limit=-30)
    return _clean("".join(lines)[-LONGEST_TRACEBACK * _SEARCHED :])[-LONGEST_TRACEBACK:]


def _clean(text: str) -> str:
    """Return storable text without secrets. Truncate only afterwards: half a key is still a secret."""
    return str(redact(text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")))


def _result(job: Attempt, result: Any) -> str | None:
    """Return the result as JSON. The job is done, so a result that cannot be stored is not an error."""
    if result is None:
        return None
    try:
        return to_json(redact(result), "The result", longest=LONGEST_RESULT)
    except BaseException as problem:  # noqa: BLE001 - encoding calls the result's own code
        log.warning("JOB_RESULT_NOT_STORED", job_id=job.id, reason=_message(problem))
        return to_json({"not_stored": type(result).__name__}, "The result")


def settle_in(cursor: Cursor, endings: Sequence[Ending], *, by_force: bool = False) -> dict[AttemptKey, str]:
    """Write endings; return the attempts that were still held, with the new states of their jobs."""
    write_endings(cursor, endings, by_force=by_force)
    return read_settled(cursor)


def read_settled(cursor: Cursor) -> dict[AttemptKey, str]:
    return {(job_id, lease): state for job_id, lease, state in cursor.fetchall()}


def write_endings(cursor: Cursor, endings: Sequence[Ending], *, by_force: bool = False) -> None:
    if not endings:
        return
    # One JSON text: with ten arrays, psycopg would need more time than the server.
    rows = json.dumps([_row(ending) for ending in endings])
    cursor.execute(sql.SETTLE_BY_FORCE if by_force else sql.SETTLE, {"endings": rows})


def _row(ending: Ending) -> dict[str, Any]:
    """Return the ending as the statement reads it; missing keys are null."""
    row = {"id": ending.job_id, "lease": str(ending.lease), "state": ending.state, "refund": ending.refund}
    if ending.result is not None:
        row["result"] = ending.result
    if ending.rest_until is not None:
        row["rest"] = max(ending.rest_until - time.monotonic(), 0.0)
    if ending.progress is not None:
        row["progress"] = ending.progress
    if ending.state is not JobState.SUCCEEDED:
        row |= {
            "delay": ending.delay,
            "error_type": ending.error_type,
            "error": ending.error,
            "traceback": ending.traceback,
            "detail": ending.detail,
        }
    return row
