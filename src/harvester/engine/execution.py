"""Running one handler, whatever it does."""

import asyncio
import inspect
import json
from typing import Any

from django.db import connections

from harvester.engine.errors import BadArgs, JobCancelled, LeaseLost
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import Ending, ended_by, succeeded
from harvester.engine.registry import Kind, kind_of
from harvester.guards.logs import log_context
from harvester.kernel.retry import RetryPolicy


def execute(job: RunningJob) -> Ending | None:
    """Run the handler in this thread. Nothing it raises gets out, SystemExit included."""
    retry = RetryPolicy()
    try:
        kind = kind_of(job.kind)
        retry = kind.retry
        call = kind.bind(job, _decode(job))
        with log_context(job_id=job.id, job_kind=job.kind, attempt=job.attempt):
            result = kind.handler(*call.args, **call.kwargs)
            _refuse_awaitable(kind, result)
        return None if job.finished else succeeded(job, result)
    except BaseException as error:  # noqa: BLE001 - the worker outlives whatever a handler raises
        return None if job.finished else ended_by(job, error, retry)
    finally:
        _tidy_connections()


async def execute_async(job: RunningJob) -> Ending | None:
    """Run a coroutine handler as a task of the worker's event loop."""
    retry = RetryPolicy()
    try:
        kind = kind_of(job.kind)
        retry = kind.retry
        call = kind.bind(job, _decode(job))
        with log_context(job_id=job.id, job_kind=job.kind, attempt=job.attempt):
            result = await kind.handler(*call.args, **call.kwargs)
        return None if job.finished else succeeded(job, result)
    except asyncio.CancelledError as error:
        return None if job.finished else ended_by(job, _why_cancelled(job) or error, retry)
    except BaseException as error:  # noqa: BLE001 - the worker outlives whatever a handler raises
        return None if job.finished else ended_by(job, error, retry)


def is_async(job: RunningJob) -> bool:
    kind = _kind_or_none(job)
    return kind is not None and kind.is_async


def timeout_of(job: RunningJob) -> float | None:
    kind = _kind_or_none(job)
    return kind.timeout if kind else None


def _kind_or_none(job: RunningJob) -> Kind | None:
    try:
        return kind_of(job.kind)
    except Exception:  # noqa: BLE001 - an unknown kind fails inside its own attempt, not here
        return None


def _decode(job: RunningJob) -> object:
    try:
        return json.loads(job.raw_args)
    except (ValueError, RecursionError):
        raise BadArgs(f"The arguments of {job.kind} cannot be read.") from None


def _why_cancelled(job: RunningJob) -> Exception | None:
    """What the worker meant by interrupting the handler; None if it did not, and a task of the handler's own ended."""
    if job.abandoned or job.is_lost:
        return LeaseLost("the slot was given away")
    return JobCancelled("stopped as asked") if job.cancel_requested else None


def _refuse_awaitable(kind: Kind, result: Any) -> None:
    """A function that hands out a coroutine has done nothing yet, and nobody would ever do it."""
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError(f"The handler of {kind.name} returned an awaitable; make the handler itself `async def`.")


def _tidy_connections() -> None:
    """Leave no broken session and no open transaction behind for the next job of this thread."""
    for connection in connections.all(initialized_only=True):
        try:
            if connection.in_atomic_block:
                connection.connection.close()
                del connections[connection.alias]
            else:
                connection.close_if_unusable_or_obsolete()
        except Exception:  # noqa: BLE001 - a session that cannot even be closed is replaced on next use
            del connections[connection.alias]
