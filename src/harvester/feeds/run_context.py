"""One run of one feed while it is at work."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import transaction
from structlog.typing import FilteringBoundLogger

from harvester.catalog.models import Run
from harvester.catalog.states import RunStatus
from harvester.engine.job import RunningJob
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.networks import network_named
from harvester.kernel.network import Network


def go_on(job: RunningJob, feed: Feed, run: Run, stage: str = "scheduler") -> "Work":
    """The work on a run that began before."""
    timings = FeedRun.objects.values_list("timings", flat=True).get(pk=run.pk)
    return Work(job=job, feed=feed, run=run, stage=stage, timings=timings)


def fields_of(feed: Feed) -> dict[str, str]:
    """What every event about a feed carries."""
    return {"feed_id": str(feed.id), "source_id": str(feed.source_id), "network": feed.network}


@dataclass(eq=False, kw_only=True)
class Work:
    """What every step of a run needs.

    Attributes:
        job: the attempt; everything is written inside its transactions.
        feed: as it was when the attempt began.
        run: the run, from which nobody else takes anything while the feed's lock is held.
        stage: where it is, for people.
        timings: milliseconds of each step that has ended, in all attempts.
    """

    job: RunningJob
    feed: Feed
    run: Run
    stage: str = "scheduler"
    timings: dict[str, int] = field(default_factory=dict)
    _began: float | None = None

    @property
    def log(self) -> FilteringBoundLogger:
        logger: FilteringBoundLogger = structlog.get_logger(__name__)
        return logger.bind(**fields_of(self.feed), run_id=str(self.run.id), run_no=self.run.no, stage=self.stage)

    def log_when_true(self, event: str, *, timed: bool = False, **fields: Any) -> None:
        """Log what the open transaction does once it has done it; if asked for, with the time of the step so far."""
        log = self.log

        def say() -> None:
            log.info(event, **fields, **({"duration_ms": self.elapsed_ms()} if timed else {}))

        transaction.on_commit(say)

    @property
    def network(self) -> Network:
        return network_named(self.feed.network)

    @contextmanager
    def step(self, stage: str) -> Iterator[None]:
        """Name the step and take its time."""
        self.stage = stage
        self._began = time.monotonic()
        self.job.check()
        self._show_stage()
        try:
            yield
        finally:
            self.timings, self._began = self.timings_so_far(), None

    def _show_stage(self) -> None:
        """People see where a run is while it is there. One that is judged anew says that and nothing else."""
        if self.run.status == RunStatus.RUNNING:
            with self.job.transaction():
                Run.objects.filter(pk=self.run.pk, status=RunStatus.RUNNING).update(stage=self.stage)

    def timings_so_far(self) -> dict[str, int]:
        """Milliseconds of each step, the one at work included."""
        if self._began is None:
            return self.timings
        return {**self.timings, self.stage: self.timings.get(self.stage, 0) + self.elapsed_ms()}

    def elapsed_ms(self) -> int:
        """Milliseconds since the step at work began."""
        return round((time.monotonic() - self._began) * 1000) if self._began is not None else 0

    def note(self, **figures: Any) -> None:
        """Write figures of the run, and where it is; the transaction is the caller's."""
        FeedRun.objects.filter(pk=self.run.pk).update(timings=self.timings_so_far(), **figures)
        Run.objects.filter(pk=self.run.pk, status=RunStatus.RUNNING).update(stage=self.stage)
