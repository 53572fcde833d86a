"""Enqueue jobs in the caller's transaction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from harvester.engine import sql
from harvester.engine.errors import LONGEST_DELAY_SECONDS, DuplicateJob, SecretInArgs
from harvester.engine.json_values import check_name, to_json
from harvester.engine.registry import kind_of
from harvester.guards.redaction import is_secret_name, redact_text
from harvester.kernel.errors import InvalidInput
from harvester.kernel.retry import MOST_ATTEMPTS

#: Attempts to insert or find a job whose dedupe key is taken by jobs that end in between.
_LOOKS = 5
LOWEST_PRIORITY, HIGHEST_PRIORITY = -32768, 32767
#: Characters of up to four bytes; queue and lane together must fit into one index entry of 2,700 bytes.
LONGEST_QUEUE, LONGEST_LANE, LONGEST_DEDUPE_KEY = 100, 500, 600


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job to enqueue.

    Attributes:
        kind: a registered kind.
        args: ids and plain values, by name; never a secret.
        queue: by default the kind's own queue.
        lane: jobs of a queue with the same lane share that lane's concurrency (by default 1).
        dedupe_key: at most one open job has it.
        priority: higher goes first; within a priority, first in, first out. By default the kind's own: 0, or more for
            urgent kinds.
        delay: seconds before it may run.
        run_at: the time at which it may run, instead of a delay; with a time zone.
        max_attempts: overrides the kind's number of attempts.
    """

    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    lane: str | None = None
    dedupe_key: str | None = None
    priority: int | None = None
    delay: float = 0.0
    run_at: datetime | None = None
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise InvalidInput(f"run_at of {self.kind} has no time zone.")
        if self.priority is not None and not LOWEST_PRIORITY <= self.priority <= HIGHEST_PRIORITY:
            raise InvalidInput(f"priority must be from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}.")
        if not 0 <= self.delay <= LONGEST_DELAY_SECONDS:
            raise InvalidInput(f"delay must be from 0 to {LONGEST_DELAY_SECONDS} seconds.")
        if self.max_attempts is not None and not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise InvalidInput(f"max_attempts must be from 1 to {MOST_ATTEMPTS}.")
        check_name(self.queue, "queue", LONGEST_QUEUE)
        check_name(self.lane, "lane", LONGEST_LANE)
        check_name(self.dedupe_key, "dedupe_key", LONGEST_DEDUPE_KEY)
        try:
            _refuse_secrets(self.args, self.kind)
        except RecursionError:
            raise InvalidInput(f"The arguments of {self.kind} are nested too deeply.") from None


def _refuse_secrets(value: Any, kind: str) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if is_secret_name(str(name)):
                raise SecretInArgs(f"{kind} has an argument named {name}; jobs carry ids, never secrets.")
            _refuse_secrets(inner, kind)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_secrets(inner, kind)


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """The id of a job, and whether it was created or an open one was found."""

    job_id: int
    created: bool


def enqueue(kind: str, args: Mapping[str, Any] | None = None, **options: Any) -> Enqueued:
    """Enqueue one job in the caller's transaction; if its dedupe key is taken, return the open job instead.

    Options are the fields of `NewJob`.
    """
    job = NewJob(kind=kind, args=args or {}, **options)
    for _ in range(_LOOKS):
        made = _insert([job])
        if made:
            return Enqueued(job_id=made[0], created=True)
        with connection.cursor() as cursor:
            cursor.execute(sql.OPEN_JOB_BY_DEDUPE_KEY, {"dedupe_key": job.dedupe_key})
            row = cursor.fetchone()
        if row:
            return Enqueued(job_id=row[0], created=False)
    raise DuplicateJob(f"Jobs with the key {job.dedupe_key} start and end too fast; try again.")


def enqueue_many(jobs: Iterable[NewJob]) -> list[int]:
    """Enqueue all of these jobs or, if one of them has a taken dedupe key, none."""
    batch = list(jobs)
    with transaction.atomic():
        made = _insert(batch) if batch else []
        if len(made) != len(batch):
            raise DuplicateJob(
                f"{len(batch) - len(made)} of {len(batch)} jobs have the dedupe key of an open job; none was enqueued."
            )
    return made


def _insert(jobs: list[NewJob]) -> list[int]:
    kinds = [kind_of(job.kind) for job in jobs]
    columns: dict[str, Any] = {
        "kind": [job.kind for job in jobs],
        "queue": [job.queue or kind.queue for job, kind in zip(jobs, kinds, strict=True)],
        "lane": [job.lane for job in jobs],
        "dedupe_key": [job.dedupe_key for job in jobs],
        "args": _encode(jobs),
        "priority": [
            kind.priority if job.priority is None else job.priority for job, kind in zip(jobs, kinds, strict=True)
        ],
        "run_at": [job.run_at for job in jobs],
        "delay": [job.delay for job in jobs],
        "max_attempts": [job.max_attempts or kind.retry.attempts for job, kind in zip(jobs, kinds, strict=True)],
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.ENQUEUE, columns)
        return [row[0] for row in cursor.fetchall()]


def _encode(jobs: list[NewJob]) -> list[str]:
    """Return the arguments as JSON. They are searched once for all: a plain value may also contain a secret."""
    encoded = [to_json(dict(job.args), f"An argument of {job.kind}") for job in jobs]
    together = "\n".join(encoded)
    if redact_text(together) != together:
        kinds = ", ".join(sorted({job.kind for job in jobs}))
        raise SecretInArgs(f"An argument of {kinds} contains a secret; jobs carry ids, and handlers open secrets.")
    return encoded
