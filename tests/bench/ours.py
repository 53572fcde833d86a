"""Harvester's own engine."""

from collections.abc import Callable
from typing import Any

import psycopg

from tests.bench.contender import Tally

KIND = "bench.noop"
ENQUEUE_BATCH = 5_000
#: Jobs that wait in lanes while those without a lane are measured.
BACKLOG = 200_000
#: Besides the hot lane, this many lanes share what it leaves of the backlog.
COOL_LANES = 20
#: Of the backlog, the share that one lane owns.
HOT_SHARE = 0.95

TALLY = """
SELECT min(j.started_at), max(j.finished_at), count(*) FILTER (WHERE e.state = 'running'),
       count(*) FILTER (WHERE e.state = 'succeeded')
FROM jobs j JOIN job_events e ON e.job_id = j.id
WHERE j.lane IS NULL AND j.state = 'succeeded' AND j.attempt = 1
"""


def register(handled: list[int], then: Callable[[], None] = lambda: None) -> None:
    """Register the kind whose handler does nothing but leave its id, which is how once-only is checked."""
    from harvester.engine.registry import job_kind

    @job_kind(KIND)
    def noop(job: Any) -> None:
        if job.lane is None:
            handled.append(job.id)
            then()


def prepare(address: dict[str, Any], *, jobs: int, older_backlog: int = 0, younger_backlog: int = 0) -> None:
    register([])
    _enqueue(_lanes(older_backlog))
    _enqueue([None] * jobs)
    _enqueue(_lanes(younger_backlog))


def _lanes(backlog: int) -> list[str | None]:
    """The lanes of a backlog, in the order of its jobs: the cool lanes are spread over it."""
    every = round(1 / (1 - HOT_SHARE))
    return [f"cool-{place // every % COOL_LANES}" if place % every == 0 else "hot" for place in range(backlog)]


def _enqueue(lanes: list[str | None]) -> None:
    from harvester.engine.enqueue import NewJob, enqueue_many

    for place in range(0, len(lanes), ENQUEUE_BATCH):
        enqueue_many(NewJob(kind=KIND, lane=lane) for lane in lanes[place : place + ENQUEUE_BATCH])


def start(address: dict[str, Any], *, threads: int, stop_after: int = 0) -> Callable[[], list[int]]:
    """A worker that stops when nothing is due, or after so many jobs without a lane."""
    import django

    django.setup()
    from harvester.engine.worker import Worker, WorkerOptions
    from harvester.guards.logs import configure_logging

    configure_logging("warning")

    worker = Worker(WorkerOptions(threads=threads, until_idle=not stop_after))
    handled: list[int] = []

    def then() -> None:
        if len(handled) == stop_after:
            worker.stop()

    def work() -> list[int]:
        worker.run()
        return handled

    register(handled, then)
    return work


def tally(connection: psycopg.Connection) -> Tally:
    return Tally(*connection.execute(TALLY).fetchone())
