"""A running job, as passed to its handler."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from harvester.engine import sql
from harvester.engine.errors import JobCancelled, LeaseLost, check_delay
from harvester.engine.json_values import to_json
from harvester.engine.outcomes import AttemptKey, settle_in, succeeded
from harvester.guards.prepared import prepared_cursor
from harvester.guards.redaction import redact

#: Characters of JSON: two numbers and a line of text, written twice a second.
LONGEST_PROGRESS = 10_000


@dataclass(eq=False, kw_only=True)
class RunningJob:
    """One attempt at a job, held by a lease.

    Attributes:
        id: the job.
        kind: its kind.
        queue: where it waited.
        lane: its lane, if any.
        raw_args: its arguments as JSON text; decoded only inside the attempt, so that bad ones fail only this job.
        priority: higher went first.
        run_at: when it was due.
        attempt: 1 for the first attempt.
        max_attempts: how many are allowed.
        lease: the fencing token of this attempt.
        worker: the name of its worker.
    """

    id: int
    kind: str
    queue: str
    lane: str | None
    raw_args: str
    priority: int
    run_at: datetime
    attempt: int
    max_attempts: int
    lease: UUID
    worker: str
    #: Its kind is urgent: it may use the slot reserved for such jobs.
    urgent: bool = False
    #: Set once the job ended in its own transaction; the worker has nothing left to record.
    finished: bool = False
    #: Set when the worker took the slot away (timeout, stop); nothing is recorded any more.
    abandoned: bool = False
    deadline: float | None = None
    #: Its lane rests until then, by the monotonic clock, once the attempt has ended.
    rest_until: float | None = None
    #: Makes a block in which the slot may be lent; none for coroutines, which share one thread.
    lendable: Callable[["RunningJob"], AbstractContextManager[None]] | None = None
    #: Seconds of its longest block under `waiting`.
    longest_wait: float = 0.0
    _lost: bool = False
    _cancel: bool = False
    _progress: dict[str, Any] | None = None

    def check(self) -> None:
        """Raise if this attempt should stop: its lease is gone, or the job was asked to stop.

        Long handlers call this between steps.
        """
        if self._lost or self.abandoned:
            raise LeaseLost(f"Job {self.id} is no longer held by {self.worker}.")
        if self._cancel:
            raise JobCancelled("stopped as asked")

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report progress, which is visible within about a second. Never blocks, never fails."""
        self._progress = {"done": done, "total": total, "note": note[:LONGEST_PROGRESS]}

    def rest_lane(self, seconds: float) -> None:
        """Let the next job of this job's lane wait for so long from now, however this attempt ends.

        Costs no statement: the rest is written with the end of the attempt. If the worker is killed it is lost, and so
        it must not be the only guard. In a lane with a concurrency above 1, others may start before; see
        `lanes.rest`.
        """
        check_delay(seconds, "A lane cannot rest")
        self.rest_until = max(self.rest_until or 0.0, time.monotonic() + seconds)

    def waiting(self) -> AbstractContextManager[None]:
        """Mark a block that only waits for somebody outside, such as a server, and does not use the database.

        If that takes long, the worker runs another job meanwhile and closes the database sessions of this thread.
        Django opens new ones, but locks and tables that belong to a session are lost. The end of the block may wait
        some seconds for a slot.
        """
        if connections["default"].in_atomic_block:
            raise RuntimeError("A transaction would keep its locks for as long as somebody outside takes.")
        return self.lendable(self) if self.lendable else nullcontext()

    @contextmanager
    def transaction(self) -> Iterator[BaseDatabaseWrapper]:
        """Open a database transaction that commits only while this attempt holds its lease.

        Its writes happen once: a worker that was declared dead gets LeaseLost instead. To make the end of the job part
        of it, call `finish` inside.
        """
        database = connections["default"]
        self._announce_writer(database)
        with transaction.atomic(durable=True):
            with prepared_cursor() as cursor:
                cursor.execute(sql.FENCE, {"id": self.id, "lease": self.lease})
                if cursor.fetchone() is None:
                    self._lost = True
                    raise LeaseLost(f"Job {self.id} was taken over; nothing of this transaction was written.")
            yield database

    def finish(self, result: Any = None) -> None:
        """End the job as succeeded in the open transaction, so that its effects and its end are atomic."""
        database = connections["default"]
        if not database.in_atomic_block:
            raise RuntimeError("finish() belongs inside job.transaction()")
        ending = succeeded(self, result)
        with prepared_cursor() as cursor:
            if ending.key not in settle_in(cursor, [ending]):
                raise LeaseLost(f"Job {self.id} was taken over; nothing of this transaction was written.")
        transaction.on_commit(self._mark_finished)

    def _mark_finished(self) -> None:
        self.finished = True

    def _announce_writer(self, database: BaseDatabaseWrapper) -> None:
        """Name the session, once, as one that writes for this attempt."""
        database.ensure_connection()
        name = sql.WRITER_NAME.format(lease=self.lease)
        if database.connection.info.parameter_status("application_name") != name:
            with prepared_cursor() as cursor:
                cursor.execute(sql.WRITER, {"name": name})

    def mark_lost(self) -> None:
        self._lost = True

    def request_cancel(self) -> None:
        self._cancel = True

    @property
    def key(self) -> AttemptKey:
        return self.id, self.lease

    @property
    def is_lost(self) -> bool:
        return self._lost

    @property
    def cancel_requested(self) -> bool:
        return self._cancel

    @property
    def overdue(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def take_progress(self) -> str | None:
        """Return unwritten progress as JSON and forget it; the caller must write it."""
        progress, self._progress = self._progress, None
        return self._encode(progress)

    def look_at_progress(self) -> tuple[dict[str, Any] | None, str | None]:
        """Return unwritten progress without forgetting it, as an object for `progress_written` and as JSON."""
        progress = self._progress
        return progress, self._encode(progress)

    def progress_written(self, progress: dict[str, Any] | None) -> None:
        """Forget written progress, unless the handler has reported something newer."""
        if self._progress is progress:
            self._progress = None

    @staticmethod
    def _encode(progress: dict[str, Any] | None) -> str | None:
        try:
            return to_json(redact(progress), "The progress", longest=LONGEST_PROGRESS) if progress is not None else None
        except BaseException:  # noqa: BLE001 - encoding calls the handler's objects, in the thread that beats for all
            return None
