"""One run of one feed while it is at work."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

from harvester.catalog.models import Run
from harvester.engine.job import RunningJob
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.networks import network_named
from harvester.kernel.network import Network


@dataclass(eq=False, kw_only=True)
class Work:
    """What every step of a run needs.

    Attributes:
        job: the attempt; everything is written inside its transactions.
        feed: as it was when the attempt began.
        run: the run, from which nobody else takes anything while the feed's lock is held.
        stage: where it is, for people.
        timings: milliseconds of each step.
    """

    job: RunningJob
    feed: Feed
    run: Run
    stage: str = "scheduler"
    timings: dict[str, int] = field(default_factory=dict)

    @property
    def log(self) -> FilteringBoundLogger:
        logger: FilteringBoundLogger = structlog.get_logger(__name__)
        return logger.bind(
            feed_id=str(self.feed.id),
            run_id=str(self.run.id),
            run_no=self.run.no,
            source_id=str(self.feed.source_id),
            network=self.feed.network,
            stage=self.stage,
        )

    @property
    def network(self) -> Network:
        return network_named(self.feed.network)

    @contextmanager
    def step(self, stage: str) -> Iterator[None]:
        """Name the step and take its time."""
        self.stage = stage
        began = time.monotonic()
        self.job.check()
        try:
            yield
        finally:
            self.timings[stage] = self.timings.get(stage, 0) + round((time.monotonic() - began) * 1000)

    def note(self, **figures: Any) -> None:
        """Write figures of the run; the transaction is the caller's."""
        FeedRun.objects.filter(pk=self.run.pk).update(timings=self.timings, **figures)
