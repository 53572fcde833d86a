"""Runs of all kinds as others get to see them: newest first, in a few statements whatever their number."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db.models import Count

from harvester.kernel.errors import InvalidInput
from harvester.runs.errors import RunNotFound
from harvester.runs.kinds import PartsKind, RunKind, all_kinds, kind_or_none
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

#: At most so many runs in one answer.
MOST: Final = 10_000
#: The outcome of parts that have not ended.
PENDING: Final = "PENDING"


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """Which runs.

    Attributes:
        kind: only of this kind.
        subject_id: only of this subject, such as a feed.
        source_id: only those that may change the prices of this source.
        status: only in this state.
        outcome: only with this outcome.
        trigger: only those that began for this reason.
        before: only runs with a smaller number.
        most: at most this many, the newest.
    """

    kind: str | None = None
    subject_id: UUID | None = None
    source_id: UUID | None = None
    status: RunStatus | None = None
    outcome: RunOutcome | None = None
    trigger: RunTrigger | None = None
    before: int | None = None
    most: int = 20

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST:
            raise InvalidInput(f"allowed is 1 to {MOST:,}.", field="most")
        names = [kind.name for kind in all_kinds()]
        if self.kind is not None and self.kind not in names:
            raise InvalidInput(f"{self.kind!r} is not a kind of run; there are {', '.join(names)}.", field="kind")


@dataclass(frozen=True, kw_only=True)
class DescribedRun:
    """A run as people see it.

    Attributes:
        run: the run.
        kind: its kind; None if this version does not have it.
        subject_name: the name of its subject; None if it no longer exists.
        figures: its figures by name.
    """

    run: Run
    kind: RunKind | None = None
    subject_name: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind_label(self) -> str:
        return self.kind.label if self.kind else self.run.kind.replace("_", " ").capitalize()

    @property
    def subject_type(self) -> str | None:
        return self.kind.subject if self.kind else None

    @property
    def labelled_figures(self) -> list[tuple[str, int]]:
        """The figures that are known, with their labels, in the order in which people read them."""
        labels = self.kind.figure_labels.items() if self.kind else ()
        return [(label, self.figures[name]) for name, label in labels if self.figures.get(name) is not None]

    @property
    def advice(self) -> str | None:
        """What to do about a failed run."""
        return self.kind.advice(self.run.error_code) if self.kind and self.run.status == RunStatus.FAILED else None

    def column(self, name: str) -> Any:
        """What a list of runs shows in one of the columns of `RunKind.list_columns`."""
        return self.figures.get(self.kind.list_columns.get(name, "")) if self.kind else None


def run(wanted: UUID | int) -> Run:
    """A run by its id or its number."""
    found = Run.objects.filter(**{"no" if isinstance(wanted, int) else "pk": wanted}).first()
    if found is None:
        raise RunNotFound(f"There is no run {wanted}; it may have been deleted after the retention period.")
    return found


def runs(query: RunQuery) -> list[Run]:
    """Runs, newest first."""
    wanted = {
        "kind": query.kind,
        "subject_id": query.subject_id,
        "source_id": query.source_id,
        "status": query.status,
        "outcome": query.outcome,
        "trigger": query.trigger,
        "no__lt": query.before,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    return list(Run.objects.filter(**given).order_by("-no")[: query.most])


def described(runs: Iterable[Run]) -> list[DescribedRun]:
    """The same runs with what their kinds say about them, in two statements for each kind."""
    shown, by_kind = list(runs), defaultdict(list)
    for run in shown:
        by_kind[run.kind].append(run)
    found = {}
    for kind in all_kinds():
        if of_kind := by_kind[kind.name]:
            names = kind.subject_names({run.subject_id for run in of_kind})
            figures = kind.shown_figures([run.pk for run in of_kind])
            for run in of_kind:
                name, known = names.get(run.subject_id), figures.get(run.pk, {})
                found[run.pk] = DescribedRun(run=run, kind=kind, subject_name=name, figures=known)
    return [found.get(run.pk) or DescribedRun(run=run) for run in shown]


@dataclass(frozen=True, kw_only=True)
class DescribedPart:
    """A part of a run as people see it.

    Attributes:
        part: the part.
        name: of what it reads.
        outcome: its outcome, PENDING if it has not ended.
    """

    part: RunPart
    name: str
    outcome: str

    @property
    def found(self) -> str:
        """What was found, or why nothing was, in one line; lists of evidence are for the part's own page."""
        facts = {**(self.part.found or {}), **self.part.detail}
        shown = {
            name: value
            for name, value in facts.items()
            if value and value != self.name and not isinstance(value, dict | list)
        }
        return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in shown.items())


def part_counts(run: Run) -> dict[str, int]:
    """Outcome -> the number of parts; empty for a run that has none."""
    if not isinstance(kind_or_none(run.kind), PartsKind):
        return {}
    counted = RunPart.objects.filter(run=run).values_list("outcome").annotate(number=Count("pk")).order_by("outcome")
    return {outcome or PENDING: number for outcome, number in counted}


def parts(run: Run, outcome: str = "", most: int = MOST) -> list[DescribedPart]:
    """The parts of a run, on request only those with one outcome, in the order in which they were enqueued."""
    kind = kind_or_none(run.kind)
    if not isinstance(kind, PartsKind):
        return []
    wanted = {"outcome": None if outcome == PENDING else outcome} if outcome else {}
    found = list(RunPart.objects.filter(run=run, **wanted).order_by("job_id", "pk")[:most])
    names = kind.part_names({part.target_id for part in found})
    return [
        DescribedPart(part=part, name=names.get(part.target_id, str(part.target_id)), outcome=part.outcome or PENDING)
        for part in found
    ]
