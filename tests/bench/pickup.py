"""How soon an idle worker begins a job: from just before the enqueuer's COMMIT is sent to the handler's first line.

Both moments are read from the machine's monotonic clock, which all processes share.
"""

import sys
import threading
import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any, NamedTuple

from tests.bench.contender import Child, Contender

KIND = "bench.pickup"
#: Seconds between the end of one job and the next enqueue, so that the worker is idle again.
PAUSE_SECONDS = 0.02


class Pickup(NamedTuple):
    """Milliseconds."""

    p50: float
    p95: float


def register(then: Callable[[], None] = lambda: None) -> None:
    from harvester.engine.registry import job_kind

    @job_kind(KIND)
    def pickup(job: Any) -> None:
        then()


def measure_pickup(address: dict[str, Any], jobs: int) -> Pickup:
    register()
    child = Child(Contender(name="pickup", module="pickup", jobs=jobs), address)
    try:
        child.go()
        child.expect("listening")
        waited = [_one(child) for _ in range(jobs)]
    finally:
        child.end()
    return Pickup(median(waited), quantiles(waited, n=20, method="inclusive")[-1])


def _one(child: Child) -> float:
    from django.db import transaction

    from harvester.engine.enqueue import enqueue

    time.sleep(PAUSE_SECONDS)
    with transaction.atomic():
        enqueue(KIND)
        committing = time.monotonic()
    return (float(child.read()) - committing) * 1_000


def start(address: dict[str, Any]) -> Callable[[], list[int]]:
    """A worker that says when each job began, until it is killed."""
    import django

    django.setup()
    from harvester.engine.worker import Worker, WorkerOptions
    from harvester.guards.logs import configure_logging

    configure_logging("warning")
    register(lambda: print(time.monotonic(), flush=True))  # noqa: T201 - the parent reads it
    worker = Worker(WorkerOptions())

    def work() -> list[int]:
        thread = threading.Thread(target=worker.run)
        thread.start()
        print("listening", flush=True)  # noqa: T201 - the parent reads it
        sys.stdin.read()
        worker.stop()
        thread.join()
        return []

    return work
