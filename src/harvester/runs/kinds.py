"""Kinds of runs. A capability registers one object for each kind; nothing here knows the capabilities.

RunKind       what every kind has: its subject, its lock, its figures, and what follows when a run fails
JobRunKind    one job does the whole run, and tries again after an error
PartsKind     a run consists of parts, each with its own job, and the last one ends it
HoldingKind   gates can hold a run, and a person approves or rejects it
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final
from uuid import UUID

from harvester.engine.job import RunningJob
from harvester.kernel.actor import Actor
from harvester.kernel.retry import RetryPolicy
from harvester.runs.context import RunContext
from harvester.runs.gates import Gate
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The result of a decision.

    Attributes:
        moment: when, by the database's clock.
        observed_at: the time that the run's prices have now, if it wrote any.
        detail: for the audit event.
    """

    moment: datetime
    observed_at: datetime | None = None
    detail: dict[str, Any] = field(default_factory=dict)


class RunKind(ABC):
    """A kind of run.

    Attributes:
        name: kept with each run; constant.
        label: for people, such as "Feed run".
        subject: the type of its subject, one lower-case word such as "feed".
        actor: the actor of what the system decides.
        needed_sql: a condition on the row `r` of a run that must not be deleted however old it is.
        stages: stage -> what happens in it, in their order.
        figure_labels: figure -> what people call it, in the order in which they read it.
        list_columns: column of a list of runs (rows, products, prices, missing, remark) -> the figure that it shows.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    subject: ClassVar[str]
    actor: ClassVar[Actor]
    context_class: ClassVar[type[RunContext]] = RunContext
    needed_sql: ClassVar[str] = "false"
    stages: ClassVar[Mapping[str, str]] = {}
    figure_labels: ClassVar[Mapping[str, str]] = {}
    list_columns: ClassVar[Mapping[str, str]] = {}

    @property
    def subject_key(self) -> str:
        """The name of the subject's id in logs, alerts and jobs."""
        return f"{self.subject}_id"

    def is_running(self, subject: Any) -> bool:
        """Whether a run of the subject is in progress."""
        return Run.objects.filter(kind=self.name, subject_id=subject.pk, status=RunStatus.RUNNING).exists()

    @abstractmethod
    def find_or_none(self, subject_id: UUID | str) -> Any:
        """Return the current state of the subject."""

    @abstractmethod
    def lock(self, cursor: Any, subject: Any) -> tuple[Any, Any]:
        """Lock the subject and everything that its runs write, always in the same order.

        Return the subject, which cannot change until the transaction ends, and what the kind needs in addition.
        """

    @abstractmethod
    def lock_key(self, subject: Any) -> tuple[int, int]:
        """Return the key of the advisory lock that allows one run or decision of a subject at a time."""

    @abstractmethod
    def log_fields(self, subject: Any) -> dict[str, str]:
        """Return the fields of every event about the subject."""

    @abstractmethod
    def source_id(self, subject: Any) -> UUID | None:
        """Return the source whose prices its runs may change."""

    @abstractmethod
    def begin(self, run: Run, subject: Any, **more: Any) -> None:
        """Create the row with the figures of a new run; `more` is what the capability's own verb added."""

    @abstractmethod
    def write_figures(self, run: Run, figures: Mapping[str, Any]) -> None:
        """Write figures of a run."""

    @abstractmethod
    def failed(self, subject: Any, run: Run, *, is_counted: bool, run_follows: bool) -> None:
        """Update the subject after a failed run. The subject is locked, and the run has ended.

        Args:
            subject: as locked.
            run: the run, which has ended.
            is_counted: whether the subject is to blame.
            run_follows: whether the next run begins in this very transaction, so that none has to be enqueued.
        """

    def subject_names(self, subject_ids: Collection[UUID]) -> dict[UUID, str]:  # noqa: ARG002 - not every kind has names
        """Subject -> its name."""
        return {}

    def shown_figures(self, run_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:  # noqa: ARG002 - nor figures
        """Run -> its figures: those of `figure_labels` and `list_columns`."""
        return {}

    def advice(self, code: str | None) -> str | None:  # noqa: ARG002 - nor advice
        """What to do about a run that failed with this code."""
        return None

    def runs_deleted(self, cursor: Any, runs: Sequence[tuple[int, UUID | None]]) -> None:  # noqa: B027 - optional
        """Delete rows without a foreign key that belong to deleted runs, given as number and source."""

    def alert_for(self, code: str) -> str:  # noqa: ARG002 - a kind may have alerts of its own
        """Return the alert for a failure with this code."""
        return "RUN_FAILED"

    #: Every alert that a run which succeeds resolves.
    failure_alerts: ClassVar[tuple[str, ...]] = ("RUN_FAILED",)


class JobRunKind(RunKind):
    """A kind with one job per run.

    Attributes:
        job_kind: the job.
        retry: how often and after how long it tries again.
    """

    job_kind: ClassVar[str]
    retry: ClassVar[RetryPolicy]

    @abstractmethod
    def is_wanted(self, subject: Any, trigger: RunTrigger) -> bool:
        """Return whether a run should begin."""

    @abstractmethod
    def attempt(self, context: Any) -> None:
        """Do the work and end the run through `runs.endings`. An exception ends the attempt."""

    def note_error(self, context: Any, error: Exception, wait: float | None) -> None:
        """Log that an attempt failed; it is tried again after `wait` seconds, or not."""
        if wait is not None:
            context.log_retry("RUN_RETRY", error, wait)

    def job_failed(self, subject: Any) -> None:
        """Update the subject after a job that failed before it had a run."""


@dataclass(frozen=True, kw_only=True)
class PartEnd:
    """The end of a part of a run.

    Attributes:
        outcome: one of the words of the kind.
        detail: why it ended like that, for people.
        found: what was read, such as an offer; it waits in the part until it is judged.
        page: hash of the kept response.
        version: of the code that read it.
        observed_at: when, by the database's clock; none if nothing was observed.
    """

    outcome: str
    detail: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] | None = None
    page: str | None = None
    version: str | None = None
    observed_at: datetime | None = None


class PartsKind(RunKind):
    """A kind whose runs consist of parts.

    Attributes:
        part_job_kind: the job of a part.
        part: what a part is, in one lower-case word, as in "page".
    """

    part_job_kind: ClassVar[str]
    part: ClassVar[str] = "part"

    def part_names(self, target_ids: Collection[UUID]) -> dict[UUID, str]:  # noqa: ARG002 - not every kind has names
        """Target -> its name."""
        return {}

    def more_for_retry(self, actor: Actor) -> dict[str, Any]:  # noqa: ARG002 - not every kind needs more
        """What `begin` gets in addition when somebody retries a part of an ended run."""
        return {}

    def subject_of(self, run: Run) -> Any:
        """Return the subject of a run, to be locked; a kind that reads it with the lock needs no more than its id."""
        return self.find_or_none(run.subject_id)

    @abstractmethod
    def do_part(self, job: RunningJob, part: RunPart) -> PartEnd:
        """Do a part, outside any transaction. An exception ends the attempt."""

    def part_ended(self, context: Any, cursor: Any, state: Any, part: RunPart) -> None:
        """Note the end of a part in the transaction that ends it.

        A part whose `judged_at` stays empty waits. An outcome that is changed here is changed on `part` too.
        """

    def has_batch(self, context: Any, cursor: Any, state: Any) -> bool:  # noqa: ARG002 - not every kind judges
        """Whether enough of the subject waits to be judged; asked after each part."""
        return False

    def judge_batch(self, context: Any, cursor: Any, state: Any) -> None:
        """Judge what waits of the subject."""

    def judge_rest(self, cursor: Any, subject: Any, state: Any) -> None:
        """Judge what waits, however little it is, because no part of the subject has ended for a while."""

    @abstractmethod
    def end(self, context: Any, cursor: Any, state: Any) -> RunOutcome:
        """Judge the rest and return the outcome of the run, whose parts have all ended."""


class HoldingKind(RunKind):
    """A kind whose gates can hold a run.

    Attributes:
        gates: its gates, in the order in which they are shown.
        decision_figures: figures that a person saw when deciding; if one has changed, the decision is refused.
    """

    gates: ClassVar[tuple[Gate, ...]]
    decision_figures: ClassVar[tuple[str, ...]]

    @abstractmethod
    def figures(self, run: Run) -> dict[str, int]:
        """Return the figures that a decision depends on."""

    @abstractmethod
    def apply(self, context: Any, cursor: Any, subject: Any, state: Any) -> Applied:
        """Write the facts of a held run. `subject` and `state` were returned by `lock`."""

    @abstractmethod
    def discard(self, context: Any, cursor: Any, state: Any) -> Applied:
        """Drop the difference of a held run."""

    def judge_again(self, context: Any) -> None:
        """Judge a held run again, because the state that it was compared with has changed. Not every kind can."""
        raise NotImplementedError(f"{self.label} cannot be judged again: {context.run}")


_PATHS: Final[dict[str, str]] = {}


def register(name: str, path: str) -> None:
    """Register a kind by the place of its object, as in "harvester.feeds.runs:FEED_RUNS".

    It is imported at its first use, because every process registers all kinds and only some need what a kind imports.
    """
    _PATHS[name] = path


@cache
def kind_named(name: str) -> RunKind:
    module, _, attribute = _PATHS[name].partition(":")
    kind: RunKind = getattr(import_module(module), attribute)
    return kind


def kind_or_none(name: str) -> RunKind | None:
    """The kind with this name; None for a run of a kind that this version does not have."""
    return kind_named(name) if name in _PATHS else None


def holding_kind(name: str) -> HoldingKind | None:
    """The kind with this name, if its runs can be held."""
    kind = kind_or_none(name)
    return kind if isinstance(kind, HoldingKind) else None


def all_kinds() -> list[RunKind]:
    """Return all kinds, in the order of their registration."""
    return [kind_named(name) for name in _PATHS]


def gate_named(name: str) -> Gate | None:
    """Return a gate of any kind; None if it was removed since."""
    found = (gate for kind in all_kinds() if isinstance(kind, HoldingKind) for gate in kind.gates)
    return next((gate for gate in found if gate.name == name), None)
