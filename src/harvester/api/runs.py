"""Runs of all kinds, and the decisions about those that are held."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Path, Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.jobs import enqueued
from harvester.api.keys import BearerKey, key_of, require
from harvester.api.problems import Refused, WrongField
from harvester.api.schemas import (
    HIGHEST,
    Approval,
    Decision,
    Filters,
    IgnoredRun,
    Ignoring,
    Job,
    Rejection,
    Run,
    Runs,
    RunSummary,
)
from harvester.catalog.exposure import missed_by
from harvester.catalog.holds import choices
from harvester.engine.enqueue import Enqueued
from harvester.feeds import decisions as feed_decisions
from harvester.feeds import files
from harvester.feeds.models import FeedRun
from harvester.feeds.queries import LARGEST_PAGE
from harvester.guards.artifacts import ArtifactMissing
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict
from harvester.ops.scopes import Scope
from harvester.runs import decisions, models, queries
from harvester.runs.kinds import holding_kind
from harvester.runs.states import PROMOTED, RunOutcome, RunStatus, RunTrigger
from harvester.scraping.states import RUN_KIND
from harvester.scraping.verbs import runs as page_decisions

RunId = Annotated[
    UUID | Annotated[int, Field(ge=1, le=HIGHEST)], Path(description="as `id` or `no` of a run: people call it by `no`")
]

router = Router(tags=["runs"], auth=BearerKey(Scope.FEEDS_READ))
_OPERATE, _ADMIN = BearerKey(Scope.FEEDS_OPERATE), BearerKey(Scope.FEEDS_ADMIN)

_OF_RUN = (
    "id", "no", "kind", "trigger", "status", "outcome", "started_at", "finished_at", "duration_ms", "job_id",
    "error_code",
)  # fmt: skip
_MORE_OF_RUN = (
    "attempt", "stage", "error", "decided_at", "decided_by", "decision_reason", "ignored_at",
)  # fmt: skip
_OF_FEED_RUN = ("skipped_reason", "rejects", "warnings", "notices")
_OF_OTHER_RUN: Final[dict[str, Any]] = {
    "skipped_reason": None, "file": None, "choices": None, "disappearing": None,
    "rejects": {}, "warnings": {}, "notices": [],
}  # fmt: skip


class RunFilters(Filters):
    """Which runs."""

    kind: str | None = Field(None, max_length=50, description="only of this kind, such as AFFILIATE_FEED")
    feed: UUID | None = Field(None, description="only of this feed, by id")
    status: RunStatus | None = Field(None, description="only in this state")
    outcome: RunOutcome | None = Field(None, description="only those of which this became, such as HELD")
    trigger: RunTrigger | None = Field(None, description="only those that began for this reason")
    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the page before")
    page_size: int = Field(20, ge=1, le=LARGEST_PAGE)


@router.get("/runs", response=Runs, operation_id="list_runs", summary="List runs")
def list_runs(request: HttpRequest, filters: Query[RunFilters]) -> HttpResponse:
    """Runs of all kinds, newest first."""
    query = queries.RunQuery(
        kind=filters.kind,
        subject_id=filters.feed,
        status=filters.status,
        outcome=filters.outcome,
        trigger=filters.trigger,
        before=cursors.number(filters.cursor, filters) if filters.cursor else None,
        most=filters.page_size + 1,
    )
    found = queries.runs(query)
    shown = found[: filters.page_size]
    cursor = cursors.after(filters, shown[-1].no) if len(found) > len(shown) else None
    items = [RunSummary.model_validate(_summary(run)) for run in queries.described(shown)]
    return responses.read(request, Runs(items=items, next_cursor=cursor))


@router.get("/runs/{run_id}", response=Run, operation_id="get_run", summary="Get one run")
def get_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """A run with its figures; of a held one, `expected` is what a decision has to send back."""
    return responses.read(request, run_shape(queries.run(run_id)))


@router.post(
    "/runs/{run_id}/approve", response={202: Job}, operation_id="approve_run", summary="Approve a run", auth=_OPERATE
)
def approve_run(request: HttpRequest, run_id: RunId, body: Approval) -> HttpResponse:
    """Have a held run promoted. It is a job: a rule may still refuse it, and then the job's error says why."""
    return _decide(request, run_id, body, decisions.request_approval)


@router.post(
    "/runs/{run_id}/reject", response={202: Job}, operation_id="reject_run", summary="Reject a run", auth=_OPERATE
)
def reject_run(request: HttpRequest, run_id: RunId, body: Rejection) -> HttpResponse:
    """Have a held run dropped; what consumers see stays as it is. It is a job, like an approval."""
    return _decide(request, run_id, body, partial(decisions.request_rejection, reason=body.reason))


@router.post(
    "/runs/{run_id}/ignore", response=IgnoredRun, operation_id="ignore_run", summary="Ignore a run", auth=_ADMIN
)
def ignore_run(request: HttpRequest, run_id: RunId, body: Ignoring) -> HttpResponse:
    """Hide the prices of a promoted run from every reader; products show the prices from before.

    Pages that it read are fetched in full again. If it is the newest promoted run of a feed, titles, links and presence
    return to their state before it as well, and its file is refused until it changes. A run over pages also needs the
    scope `scrape:admin`.
    """
    return _set_ignored(request, run_id, body.reason)


@router.post(
    "/runs/{run_id}/undo-ignore",
    response=IgnoredRun,
    operation_id="undo_ignore_run",
    summary="Undo ignoring a run",
    auth=_ADMIN,
)
def undo_ignore_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Restore the prices of an ignored run and accept its file again. A run over pages also needs `scrape:admin`."""
    return _set_ignored(request, run_id, None)


@router.get(
    "/runs/{run_id}/file",
    operation_id="get_run_file",
    summary="Download the file of a run",
    auth=_OPERATE,
    openapi_extra={
        "responses": {
            200: {"description": "The file.", "content": {responses.FILE_TYPE: {"schema": {"type": "string"}}}},
        }
    },
)
def get_run_file(request: HttpRequest, run_id: RunId) -> HttpResponseBase:
    """The file of a run as the partner wrote it, of a failed run too. Audited.

    Files are deleted with their runs, after HARVESTER_KEEP_RUNS_DAYS days (30 by default).

    404 if the run has downloaded none (NO_FILE), or if it is not kept any more (ARTIFACT_MISSING).
    """
    try:
        kept = files.hand_out(key_of(request).actor, queries.run(run_id).pk)
    except ArtifactMissing as problem:
        raise Refused(404, problem.code, str(problem)) from None
    except Conflict as problem:
        raise Refused(404, "NO_FILE", str(problem)) from None
    return responses.file(request, kept.content, kept.name)


def run_shape(run: models.Run) -> Run:
    [described] = queries.described([run])
    is_held, kind = run.outcome == RunOutcome.HELD, holding_kind(run.kind)
    labels = described.kind.figure_labels if described.kind else ()
    shape = {
        **_summary(described),
        **{name: getattr(run, name) for name in _MORE_OF_RUN},
        "advice": described.advice,
        "expected": kind.figures(run) if is_held and kind else None,
        "figures": {name: described.figures.get(name) for name in labels},
        "parts": queries.part_counts(run),
        "gates": run.verdict,
        **_OF_OTHER_RUN,
    }
    if figures := FeedRun.objects.filter(pk=run.pk).select_related("feed").first():
        source_id = figures.feed.source_id
        shape |= {name: getattr(figures, name) for name in _OF_FEED_RUN}
        shape["file"] = f"/api/v1/runs/{run.id}/file" if files.is_kept(run) else None
        shape["choices"] = asdict(choices(source_id, run.no)) if is_held else None
        shape["disappearing"] = asdict(missed_by(source_id, run.no)) if run.outcome in PROMOTED else None
    return Run.model_validate(shape)


def _summary(described: queries.DescribedRun) -> dict[str, Any]:
    run, name, subject = described.run, described.subject_name, described.subject_type
    return {
        **{field: getattr(run, field) for field in _OF_RUN},
        "subject": {"id": run.subject_id, "name": name, "type": subject},
        "feed_id": run.subject_id if subject == "feed" else None,
        "feed": name if subject == "feed" else None,
        "products": described.column("products"),
        "prices_written": described.column("prices"),
    }


def _decide(
    request: HttpRequest, run_id: UUID | int, body: Decision, request_decision: Callable[..., Enqueued]
) -> HttpResponse:
    """Request a decision, which has to name every figure that it depends on."""

    def act() -> tuple[Job, Mapping[str, str]]:
        run = queries.run(run_id)
        kind = holding_kind(run.kind)
        lacking = [name for name in kind.decision_figures if name not in body.expected] if kind else []
        if lacking:
            raise WrongField("expected", f"{', '.join(lacking)} not given; send `expected` of the run.")
        return enqueued(request_decision(key_of(request).actor, run.pk, expected=body.expected))

    return responses.write(request, 202, act)


def _set_ignored(request: HttpRequest, run_id: UUID | int, reason: str | None) -> HttpResponse:
    """Ignore a run, or undo that if there is no reason."""
    run = queries.run(run_id)
    is_of_pages = run.kind == RUN_KIND
    if is_of_pages:
        require(request, Scope.SCRAPE_ADMIN)
    verbs: Any = page_decisions if is_of_pages else feed_decisions

    def act(actor: Actor) -> int:
        count: int = verbs.undo_ignore(actor, run.pk) if reason is None else verbs.ignore(actor, run.pk, reason)
        run.refresh_from_db(fields=["ignored_at"])
        return count

    return responses.change(
        request, 200, act, lambda count: IgnoredRun(id=run.pk, no=run.no, ignored_at=run.ignored_at, products=count)
    )
