"""The page of one run: where it is, what it found, what the gates say, and what would change if it were approved."""

from dataclasses import dataclass
from typing import Any

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from harvester.catalog import before_images
from harvester.catalog.exposure import exposure_of, missed_by
from harvester.catalog.holds import choices, hold_of
from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.engine.states import OPEN, JobState
from harvester.feeds import files, run_details
from harvester.feeds.advice import advice_for
from harvester.feeds.findings import header_check
from harvester.feeds.models import FeedRun
from harvester.feeds.notices import titled
from harvester.feeds.runs import FEED_RUNS
from harvester.feeds.states import FeedStatus
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import Role
from harvester.portal.requests import is_fragment, may
from harvester.portal.runs import labels, timeline
from harvester.runs.decision_jobs import REJUDGING
from harvester.runs.decisions import last_decision
from harvester.runs.models import Run
from harvester.runs.states import EVER_HELD, PROMOTED, RunOutcome, RunStatus

#: Seconds between two looks: at a run that moves, and at one that waits for somebody, who may sit elsewhere.
MOVING, WAITING = 2, 10
#: Rows of each code that the page shows at first.
FIRST_SAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run as the page finds it.

    Attributes:
        run: the run.
        source: the source whose prices it may change.
        figures: its figures; none if it is not of a feed.
        job: its own job while it is at work.
        decision: the job of the last decision about it.
    """

    run: Run
    source: Source | None
    figures: FeedRun | None
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
    context = {**_facts(seen), **_buttons(request, seen), **_difference(request, seen), **_samples(request, seen)}
    if is_fragment(request):
        return TemplateResponse(request, "portal/runs/run_body.html", context)
    shell = {**site.each_context(request), "title": f"Run {run_no}"}
    return TemplateResponse(request, "portal/runs/run.html", {**shell, **context})


def _look(run_no: int) -> Seen:
    run = Run.objects.filter(no=run_no).first()
    if run is None:
        raise Http404
    decision = last_decision(run) if run.outcome == RunOutcome.HELD else None
    return Seen(
        run=run,
        source=Source.objects.filter(pk=run.source_id).first() if run.source_id else None,
        figures=FeedRun.objects.select_related("feed").filter(pk=run.pk).first(),
        job=Job.objects.filter(pk=run.job_id or 0).first() if run.status == RunStatus.RUNNING else None,
        decision=decision,
    )


def _facts(seen: Seen) -> dict[str, Any]:
    run, source, figures = seen.run, seen.source, seen.figures
    known: dict[str, Any] = {}
    if figures is not None:
        known = {
            "feed": figures.feed,
            "figures": figures,
            "figure_groups": labels.figure_groups(figures),
            "gates": labels.gates(run.verdict),
            "notices": titled(figures.notices),
            "stages": labels.stages(run.timings),
            "binding": labels.binding(figures.dialect),
            "header_rows": [row._replace(field=labels.code(row.field)) for row in header_check(run, figures.dialect)],
            "delimiter": labels.delimiter(figures.dialect),
        }
    return {
        "seen": seen,
        "run": run,
        "source": source,
        "state": "ignored" if run.ignored_at else run.outcome or run.status,
        "steps": labels.steps(run) if run.status == RunStatus.RUNNING else None,
        "took": labels.took(run),
        "hold": hold_of(source) if run.outcome == RunOutcome.HELD and source else None,
        "shown_is_ignored": (run.outcome == RunOutcome.HELD or bool(run.error)) and _shown_is_ignored(source),
        "not_visible": exposure_of(run.source_id).not_visible_because if run.source_id else None,
        "choices": choices(run.source_id, run.no) if seen.waits and run.source_id else None,
        "missed": missed_by(run.source_id, run.no) if run.outcome in PROMOTED and run.source_id else None,
        "now": timezone.now(),
        "decision_failed": seen.decision is not None and seen.decision.state == JobState.FAILED,
        "story": timeline.of(run),
        "advice": advice_for(run.error_code) if run.status == RunStatus.FAILED else None,
        "file_hash": files.hash_of(run),
        **known,
    }


def _shown_is_ignored(source: Source | None) -> bool:
    """Whether the prices of the run that was promoted last are hidden, so that consumers see what was before it."""
    last = source.last_promoted_run_no if source else None
    return last is not None and Run.objects.filter(no=last, ignored_at__isnull=False).exists()


def _buttons(request: HttpRequest, seen: Seen) -> dict[str, Any]:
    run, operator, admin = seen.run, may(request, Role.OPERATOR), may(request, Role.ADMIN)
    is_feeds = seen.figures is not None
    may_ignore = admin and is_feeds and run.outcome in PROMOTED and run.ignored_at is None
    return {
        "operator": operator,
        "longest_reason": LONGEST_REASON,
        "may_decide": operator and is_feeds and seen.waits,
        "may_ignore": may_ignore,
        "ignoring_restores": may_ignore and before_images.are_kept(run.source_id, run.no),
        "may_repair": is_feeds and run.status == RunStatus.FAILED,
        "may_run": operator and seen.figures is not None and seen.figures.feed.status == FeedStatus.ENABLED,
        "may_edit": admin,
        "is_retired": seen.figures is not None and seen.figures.feed.retired_at is not None,
        "may_undo": admin and is_feeds and run.ignored_at is not None,
        "file_kept": is_feeds and files.is_kept(run),
        "expected": FEED_RUNS.figures(run) if seen.waits and is_feeds else {},
    }


def _difference(request: HttpRequest, seen: Seen) -> dict[str, Any]:
    """What would change, or would have changed, with the kind of change that the person looks at."""
    told = run_details.difference_of(seen.run) if seen.run.outcome in EVER_HELD else None
    if told is None:
        return {}
    view = labels.difference(told, request.GET.get("show", ""), every="more" in request.GET)
    goes_live = any(told["counts"][kind] for kind in ("prices", "new", "content", "back"))
    return {"difference": view, "changes": labels.changes_sentence(told["counts"]), "goes_live": goes_live}


def _samples(request: HttpRequest, seen: Seen) -> dict[str, Any]:
    if seen.figures is None:
        return {}
    every = request.GET.get("samples") == "all"
    samples = run_details.samples_of(seen.run, None if every else FIRST_SAMPLES)
    return {"findings": labels.findings(seen.figures, samples), "every_sample": every}
