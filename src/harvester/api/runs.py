"""Runs of feeds, and the decisions about those that are held."""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Path, Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.jobs import enqueued
from harvester.api.keys import BearerKey, key_of
from harvester.api.problems import Refused
from harvester.api.schemas import HIGHEST, Approval, Filters, Job, Rejection, Run, Runs, RunSummary
from harvester.catalog.exposure import missed_by
from harvester.catalog.holds import choices
from harvester.feeds import files, queries
from harvester.feeds.advice import advice_for
from harvester.feeds.models import FeedRun
from harvester.feeds.runs import FEED_RUNS
from harvester.guards.artifacts import ArtifactMissing
from harvester.kernel.errors import Conflict
from harvester.ops.scopes import Scope
from harvester.runs import decisions
from harvester.runs.states import PROMOTED, RunOutcome, RunStatus, RunTrigger

RunId = Annotated[
    UUID | Annotated[int, Field(ge=1, le=HIGHEST)], Path(description="as `id` or `no` of a run: people call it by `no`")
]

router = Router(tags=["runs"], auth=BearerKey(Scope.FEEDS_READ))
_OPERATE = BearerKey(Scope.FEEDS_OPERATE)

_OF_RUN = (
    "id", "no", "trigger", "status", "outcome", "started_at", "finished_at", "duration_ms", "job_id", "error_code",
)  # fmt: skip
_MORE_OF_RUN = (
    "attempt", "stage", "error", "decided_at", "decided_by", "decision_reason", "ignored_at",
)  # fmt: skip
_FIGURES = (
    "download_bytes", "rows_read", "rows_parsed", "products_rejected", "duplicate_key_count", "products_upserted",
    "products_new", "products_changed", "products_missing", "products_back", "prices_due", "prices_written",
    "would_expire_count", "url_hash_fallback_count", "identity_upgrades",
)  # fmt: skip


class RunFilters(Filters):
    """Which runs."""

    feed: UUID | None = Field(None, description="only of this feed, by id")
    status: RunStatus | None = Field(None, description="only in this state")
    outcome: RunOutcome | None = Field(None, description="only those of which this became, such as HELD")
    trigger: RunTrigger | None = Field(None, description="only those that began for this reason")
    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the page before")
    page_size: int = Field(20, ge=1, le=queries.LARGEST_PAGE)


@router.get("/runs", response=Runs, operation_id="list_runs", summary="List runs")
def list_runs(request: HttpRequest, filters: Query[RunFilters]) -> HttpResponse:
    """Runs of feeds, newest first."""
    query = queries.RunQuery(
        feed_id=filters.feed,
        status=filters.status,
        outcome=filters.outcome,
        trigger=filters.trigger,
        before=cursors.number(filters.cursor, filters) if filters.cursor else None,
        most=filters.page_size + 1,
    )
    found = queries.runs(query)
    shown = found[: filters.page_size]
    cursor = cursors.after(filters, shown[-1].run.no) if len(found) > len(shown) else None
    items = [RunSummary.model_validate(_summary(run)) for run in shown]
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
    actor, seen = key_of(request).actor, body.expected.model_dump()
    return responses.write(
        request, 202, lambda: enqueued(decisions.request_approval(actor, queries.run_id(run_id), seen))
    )


@router.post(
    "/runs/{run_id}/reject", response={202: Job}, operation_id="reject_run", summary="Reject a run", auth=_OPERATE
)
def reject_run(request: HttpRequest, run_id: RunId, body: Rejection) -> HttpResponse:
    """Have a held run dropped; what consumers see stays as it is. It is a job, like an approval."""
    actor, seen = key_of(request).actor, body.expected.model_dump()
    return responses.write(
        request, 202, lambda: enqueued(decisions.request_rejection(actor, queries.run_id(run_id), body.reason, seen))
    )


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
        kept = files.hand_out(key_of(request).actor, queries.run_id(run_id))
    except ArtifactMissing as problem:
        raise Refused(404, problem.code, str(problem)) from None
    except Conflict as problem:
        raise Refused(404, "NO_FILE", str(problem)) from None
    return responses.file(request, kept.content, kept.name)


def run_shape(figures: FeedRun) -> Run:
    run, source_id = figures.run, figures.feed.source_id
    is_held = run.outcome == RunOutcome.HELD
    advice = advice_for(run.error_code) if run.status == RunStatus.FAILED else None
    return Run.model_validate(
        {
            **_summary(figures),
            **{name: getattr(run, name) for name in _MORE_OF_RUN},
            "skipped_reason": figures.skipped_reason,
            "advice": advice.action if advice else None,
            "file": f"/api/v1/runs/{run.id}/file" if files.is_kept(run) else None,
            "expected": FEED_RUNS.figures(run) if is_held else None,
            "choices": asdict(choices(source_id, run.no)) if is_held else None,
            "disappearing": asdict(missed_by(source_id, run.no)) if run.outcome in PROMOTED else None,
            "figures": {name: getattr(figures, name) for name in _FIGURES},
            "gates": run.verdict,
            "rejects": figures.rejects,
            "warnings": figures.warnings,
            "notices": figures.notices,
        }
    )


def _summary(figures: FeedRun) -> dict[str, Any]:
    told = {name: getattr(figures.run, name) for name in _OF_RUN}
    feed = {"feed_id": figures.feed_id, "feed": str(figures.feed)}
    return {**told, **feed, "products": figures.products_upserted, "prices_written": figures.prices_written}
