"""The page of one run, and what people do about the run.

It shows where the run is, what it found, what the gates say, and what would change if it were approved. People approve,
reject, ignore and undo it, and have its file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from harvester.catalog.models import Source
from harvester.engine.models import Job, JobEvent
from harvester.engine.states import OPEN, JobState
from harvester.feeds import decisions, files
from harvester.feeds.runs import FEED_RUNS
from harvester.guards.artifacts import ArtifactMissing
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import AuditEvent, Role
from harvester.portal.display import verb
from harvester.portal.requests import attempt, is_fragment, may, require
from harvester.portal.runs import labels, sections
from harvester.runs import queries
from harvester.runs.decision_jobs import REJUDGING
from harvester.runs.decisions import last_decision, request_approval, request_rejection
from harvester.runs.kinds import PartsKind, holding_kind, kind_or_none
from harvester.runs.models import Run
from harvester.runs.queries import DescribedRun
from harvester.runs.states import RunOutcome, RunStatus
from harvester.scraping.states import RUN_KIND
from harvester.scraping.verbs import runs as scraping_runs

#: Seconds between two looks: at a run that moves, and at one that waits for somebody, who may sit elsewhere.
MOVING, WAITING = 2, 10
#: Parts that the page shows.
MOST_PARTS = 50
#: Kind of run -> what its pages show besides. Its `part` says which templates come where, see run_body.html.
_SECTIONS: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    FEED_RUNS.name: sections.of_feed,
    RUN_KIND: sections.of_pages,
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
    run = Run.objects.filter(no=run_no).first()
    if run is None:
        raise Http404
    seen = Seen(
        run=run,
        described=queries.described([run])[0],
        job=Job.objects.filter(pk=run.job_id or 0).first() if run.status == RunStatus.RUNNING else None,
        decision=last_decision(run) if run.outcome == RunOutcome.HELD else None,
    )
    section = _SECTIONS.get(run.kind)
    more = section(request, run, waits=seen.waits) if section else {}
    if "source" not in more:
        more["source"] = Source.objects.filter(pk=run.source_id).first() if run.source_id else None
    stages = seen.described.kind.stages if seen.described.kind else {}
    context = {
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
        "story": story_of(run),
        "advice": seen.described.advice,
        **_decision(request, seen),
        **_parts(request, run),
        **more,
    }
    if is_fragment(request):
        return TemplateResponse(request, "portal/runs/run_body.html", context)
    shell = {**site.each_context(request), "title": f"{seen.described.kind_label} {run_no}"}
    return TemplateResponse(request, "portal/runs/run.html", {**shell, **context})


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


#: Events of each kind; only a run that failed very often has more, and the page of its job has them all.
MOST = 20
#: Verb -> the state whose color it has.
_TONES = {
    "RUN_HELD": "retryable",
    "RUN_HELD_AGAIN": "retryable",
    "RUN_PROMOTED": "succeeded",
    "ACTIVATION_APPROVED": "succeeded",
    "ACTIVATION_REJECTED": "cancelled",
    "RUN_IGNORED": "failed",
}


def story_of(run: Run) -> list[dict[str, Any]]:
    """Return the events of a run, newest first."""
    decided = AuditEvent.objects.filter(object_type="run", object_id=str(run.pk)).order_by("-at", "-id")[:MOST]
    found = []
    for event in decided:
        why = event.detail.get("reason")
        found.append(
            {
                "at": event.at,
                "title": verb(event.verb),
                "who": event.actor_name if event.actor_kind == "person" else "",
                "tone": _TONES.get(event.verb, "running"),
                "text": why if isinstance(why, str) else "",
                "event_id": event.pk,
            }
        )
    events = JobEvent.objects.filter(job_id=run.job_id).order_by("-at", "-id")[:MOST] if run.job_id else []
    for worked in events:
        # The page shows the error of the run above.
        is_shown_above = bool(run.error and worked.detail and run.error[:100] in worked.detail)
        attempt = f", attempt {worked.attempt}" if worked.attempt else ""
        found.append(
            {
                "at": worked.at,
                "title": f"Job {worked.state}{attempt}",
                "who": worked.worker or "",
                "tone": worked.state,
                "text": "" if is_shown_above else worked.detail or "",
                "event_id": None,
            }
        )
    return sorted(found, key=lambda each: each["at"], reverse=True)


#: More digits than any count has.
LONGEST_FIGURE = 18


def approve(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def verb(run_id: UUID) -> str:
        request_approval(actor, run_id, _figures_seen(request, run_id))
        return f"Run {run_no} is being approved. This page updates automatically."

    return _done(request, run_no, verb)


def reject(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def verb(run_id: UUID) -> str:
        request_rejection(actor, run_id, _reason(request), _figures_seen(request, run_id))
        return f"Run {run_no} is being rejected. This page updates automatically."

    return _done(request, run_no, verb)


def ignore(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def verb(run_id: UUID) -> str:
        count = _decisions_of(run_id).ignore(actor, run_id, _reason(request))
        return f"The prices of run {run_no} are hidden; that concerns {count:,} products."

    return _done(request, run_no, verb)


def undo_ignore(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def verb(run_id: UUID) -> str:
        count = _decisions_of(run_id).undo_ignore(actor, run_id)
        return f"The prices of run {run_no} count again; that concerns {count:,} products."

    return _done(request, run_no, verb)


def _decisions_of(run_id: UUID) -> Any:
    """Return the verbs that decide about runs of this kind."""
    return scraping_runs if Run.objects.filter(pk=run_id, kind=RUN_KIND).exists() else decisions


def file(request: HttpRequest, run_no: int) -> HttpResponseBase:
    """The file as the partner wrote it, never shown in the browser: what is in it is somebody else's."""
    actor = require(request, Role.OPERATOR)
    try:
        kept = files.hand_out(actor, _id_of(run_no))
    except NotFound as problem:
        raise Http404 from problem
    except (Conflict, ArtifactMissing) as problem:
        messages.error(request, str(problem))
        return redirect("admin:runs_run_change", run_no)
    answer = FileResponse(kept.content, as_attachment=True, filename=kept.name, content_type="application/octet-stream")
    answer.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return answer


def _done(request: HttpRequest, run_no: int, verb: Callable[[UUID], str]) -> HttpResponse:
    run_id = _id_of(run_no)
    attempt(request, lambda: verb(run_id))
    return redirect("admin:runs_run_change", run_no)


def _id_of(run_no: int) -> UUID:
    run_id = Run.objects.filter(no=run_no).values_list("pk", flat=True).first()
    if run_id is None:
        raise Http404
    return run_id


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").replace("\x00", "")


def _figures_seen(request: HttpRequest, run_id: UUID) -> dict[str, int]:
    """What the page showed when the person decided; without it nobody knows what was decided about."""
    kind = holding_kind(Run.objects.values_list("kind", flat=True).get(pk=run_id))
    given = {name: request.POST.get(name, "") for name in (kind.decision_figures if kind else ())}
    if not all(text.isascii() and text.isdigit() and len(text) <= LONGEST_FIGURE for text in given.values()):
        raise InvalidInput("The figures that were decided about did not come along. Look at the page and decide there.")
    return {name: int(text) for name, text in given.items()}
