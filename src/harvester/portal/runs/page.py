"""The page of one run: where it is, what it found, what the gates say, and what would change if it were approved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.engine.states import OPEN, JobState
from harvester.feeds.runs import FEED_RUNS
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import Role
from harvester.portal.display import verb
from harvester.portal.requests import is_fragment, may
from harvester.portal.runs import feed_section, labels, scrape_section, timeline
from harvester.runs import queries
from harvester.runs.decision_jobs import REJUDGING
from harvester.runs.decisions import last_decision
from harvester.runs.kinds import PartsKind, holding_kind, kind_or_none
from harvester.runs.models import Run
from harvester.runs.queries import DescribedRun
from harvester.runs.states import RunOutcome, RunStatus
from harvester.scraping.states import RUN_KIND

#: Seconds between two looks: at a run that moves, and at one that waits for somebody, who may sit elsewhere.
MOVING, WAITING = 2, 10
#: Parts that the page shows.
MOST_PARTS = 50
#: Kind of run -> what its pages show besides. Its `part` says which templates come where, see run_body.html.
_SECTIONS: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    FEED_RUNS.name: feed_section.context,
    RUN_KIND: scrape_section.context,
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run as the page finds it.

    Attributes:
        run: the run.
        described: what its kind says about it.
        job: its job while it is in progress.
        decision: the job of the last decision about it.
    """

    run: Run
    described: DescribedRun
    job: Job | None
    decision: Job | None

    @property
    def is_deciding(self) -> bool:
        return self.decision is not None and self.decision.state in OPEN

    @property
    def is_rejudged(self) -> bool:
        return self.run.stage == REJUDGING and self.run.outcome == RunOutcome.HELD

    @property
    def waits(self) -> bool:
        """Whether a person can decide about it now."""
        return self.run.outcome == RunOutcome.HELD and not self.is_deciding and not self.is_rejudged

    @property
    def refresh_seconds(self) -> int:
        if self.run.status == RunStatus.RUNNING or self.is_deciding or self.is_rejudged:
            return MOVING
        return WAITING if self.waits else 0


def show(site: AdminSite, request: HttpRequest, run_no: int) -> HttpResponse:
    seen = _look(run_no)
    section = _SECTIONS.get(seen.run.kind)
    more = section(request, seen.run, waits=seen.waits) if section else {}
    if "source" not in more:
        more["source"] = Source.objects.filter(pk=seen.run.source_id).first() if seen.run.source_id else None
    context = {**_facts(seen), **_decision(request, seen), **_parts(request, seen.run), **more}
    if is_fragment(request):
        return TemplateResponse(request, "portal/runs/run_body.html", context)
    shell = {**site.each_context(request), "title": f"{seen.described.kind_label} {run_no}"}
    return TemplateResponse(request, "portal/runs/run.html", {**shell, **context})


def _look(run_no: int) -> Seen:
    run = Run.objects.filter(no=run_no).first()
    if run is None:
        raise Http404
    return Seen(
        run=run,
        described=queries.described([run])[0],
        job=Job.objects.filter(pk=run.job_id or 0).first() if run.status == RunStatus.RUNNING else None,
        decision=last_decision(run) if run.outcome == RunOutcome.HELD else None,
    )


def _facts(seen: Seen) -> dict[str, Any]:
    run, kind = seen.run, seen.described.kind
    stages = kind.stages if kind else {}
    return {
        "seen": seen,
        "run": run,
        "subject_type": seen.described.subject_type,
        "subject_name": seen.described.subject_name,
        "state": "ignored" if run.ignored_at else run.outcome or run.status,
        "steps": labels.steps(run, stages) if run.status == RunStatus.RUNNING else None,
        "took": labels.took(run),
        "gates": labels.gates(run.verdict),
        "stages": labels.waterfall(run.timings, stages),
        "figures": seen.described.labelled_figures,
        "decision_failed": seen.decision is not None and seen.decision.state == JobState.FAILED,
        "story": timeline.of(run),
        "advice": seen.described.advice,
    }


def _parts(request: HttpRequest, run: Run) -> dict[str, Any]:
    """The parts of a run that has some, with all outcomes or the one that the person looks at."""
    counts, kind = queries.part_counts(run), kind_or_none(run.kind)
    if not counts or not isinstance(kind, PartsKind):
        return {}
    chosen = request.GET.get("part", "")
    return {
        "part_word": kind.part,
        "part_counts": counts,
        "part_total": sum(counts.values()),
        "part_chosen": chosen if chosen in counts else "",
        "parts": queries.parts(run, chosen if chosen in counts else "", MOST_PARTS),
    }


def _decision(request: HttpRequest, seen: Seen) -> dict[str, Any]:
    operator, kind = may(request, Role.OPERATOR), holding_kind(seen.run.kind)
    expected = kind.figures(seen.run) if kind and seen.waits else {}
    return {
        "operator": operator,
        "longest_reason": LONGEST_REASON,
        "may_decide": operator and kind is not None and seen.waits,
        "expected": expected,
        "decided_figures": [(kind.figure_labels.get(name, verb(name)), expected[name]) for name in expected]
        if kind
        else [],
    }
