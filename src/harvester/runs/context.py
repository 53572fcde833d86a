"""One run while it is in progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from django.db import transaction
from structlog.typing import FilteringBoundLogger

from harvester.runs.gates import Verdict
from harvester.runs.models import Run
from harvester.runs.states import RunStatus

if TYPE_CHECKING:
    from harvester.runs.kinds import RunKind


@dataclass(eq=False, kw_only=True)
class RunContext:
    """The values that every step of a run needs.

    Attributes:
        kind: the kind of the run.
        job: the attempt, a `RunningJob`; everything is written inside its transactions. The end of a run that consists
            of parts has none: it is part of the transaction of the last part.
        subject: its state when the attempt began.
        run: the run; only the holder of the subject's lock changes it.
        stage: the current stage, for people.
        timings: milliseconds of each finished step, over all attempts.
    """

    kind: RunKind
    job: Any
    subject: Any
    run: Run
    stage: str = "scheduler"
    timings: dict[str, int] = field(default_factory=dict)
    _began: float | None = None

    @property
    def log(self) -> FilteringBoundLogger:
        logger: FilteringBoundLogger = structlog.get_logger(__name__)
        fields = self.kind.log_fields(self.subject)
        return logger.bind(**fields, run_id=str(self.run.id), run_no=self.run.no, stage=self.stage)

    def log_on_commit(self, event: str, *, timed: bool = False, **fields: Any) -> None:
        """Log an event after the open transaction is committed; if `timed`, with the duration of the step so far."""
        log = self.log

        def write() -> None:
            log.info(event, **fields, **({"duration_ms": self.elapsed_ms()} if timed else {}))

        transaction.on_commit(write)

    def log_retry(self, event: str, error: Exception, wait: float) -> None:
        """Log that the attempt failed and that the next one follows after `wait` seconds."""
        self.log.warning(
            event,
            attempt=self.job.attempt,
            max_attempts=self.job.max_attempts,
            error=str(error),
            retry_in_ms=round(wait * 1000),
        )

    @contextmanager
    def step(self, stage: str) -> Iterator[None]:
        """Show the stage on the run while the step lasts, and measure its duration."""
        self.stage = stage
        self._began = time.monotonic()
        self.job.check()
        # A run that is judged again keeps that stage.
        if self.run.status == RunStatus.RUNNING:
            with self.job.transaction():
                Run.objects.filter(pk=self.run.pk, status=RunStatus.RUNNING).update(stage=stage)
        try:
            yield
        finally:
            self.timings, self._began = self.timings_so_far(), None

    def timings_so_far(self) -> dict[str, int]:
        """Milliseconds of each step, including the one in progress."""
        if self._began is None:
            return self.timings
        return {**self.timings, self.stage: self.timings.get(self.stage, 0) + self.elapsed_ms()}

    def elapsed_ms(self) -> int:
        """Milliseconds since the current step began."""
        return round((time.monotonic() - self._began) * 1000) if self._began is not None else 0

    def note(self, **figures: Any) -> None:
        """Write figures of the run, its stage and timings; the transaction is the caller's."""
        Run.objects.filter(pk=self.run.pk).update(timings=self.timings_so_far())
        Run.objects.filter(pk=self.run.pk, status=RunStatus.RUNNING).update(stage=self.stage)
        if figures:
            self.kind.write_figures(self.run, figures)

    def note_verdict(self, verdict: Verdict) -> None:
        """Store the verdict with the run; the transaction is the caller's."""
        Run.objects.filter(pk=self.run.pk).update(verdict=verdict.as_json())
