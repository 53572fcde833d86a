"""The kind AFFILIATE_FEED: what `harvester.runs` needs to know about runs of feeds. See docs/architecture.md."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final
from uuid import UUID

import structlog
from django.core.exceptions import ValidationError

from harvester.engine.job import RunningJob
from harvester.feeds import run_endings
from harvester.feeds.advice import advice_for
from harvester.feeds.change_detection import expect_a_file
from harvester.feeds.fetch import Fetched, fetch
from harvester.feeds.findings import header_of
from harvester.feeds.gates import GATES
from harvester.feeds.ingest import ingest, promotion_of
from harvester.feeds.jobs import RETRY, RUN
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.reader.errors import HeaderUnreadable
from harvester.feeds.run_context import FeedRunContext, log_fields
from harvester.feeds.run_details import FIGURES
from harvester.feeds.run_endings import (
    ACTOR,
    REJUDGED,
    apply_held,
    drop_lost_request,
    end_skipped,
    lock_feed_and_source,
    settle_failed_feed,
)
from harvester.feeds.states import FeedStatus, SkipReason
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.hold import drop_held
from harvester.runs import lifecycle
from harvester.runs.kinds import Applied, HoldingKind, JobRunKind
from harvester.runs.models import Run
from harvester.runs.states import RunTrigger

log = structlog.get_logger(__name__)

#: The first half of the key of a feed's lock; "feed". The second half is `lock_no` of the feed.
FEED_LOCK: Final = 0x66656564  # mutant: lock-class
_DELETE_ABSENCES = """
DELETE FROM run_absences a USING unnest(%s::uuid[], %s::bigint[]) AS gone (source_id, run_no)
WHERE a.source_id = gone.source_id AND a.run_no = gone.run_no
"""


class FeedRuns(JobRunKind, HoldingKind):
    """A run fetches the catalog of one feed and compares it with what consumers see."""

    name = "AFFILIATE_FEED"
    label = "Feed run"
    subject = "feed"
    actor = ACTOR
    context_class = FeedRunContext
    job_kind = RUN
    retry = RETRY
    gates = GATES
    decision_figures = ("products_upserted", "products_new", "products_missing", "prices_due")
    failure_alerts = ("RUN_FAILED", "LIMIT_EXCEEDED", "FEED_AUTO_DISABLED")
    stages: ClassVar = {
        "download": "Download",
        "parse": "Read",
        "circuit_breaker": "Compare and judge",
        "upsert": "Copy products",
        "promote": "Promote or hold",
    }
    figure_labels = FIGURES
    list_columns: ClassVar = {
        "rows": "rows_read",
        "products": "products_upserted",
        "prices": "prices_written",
        "missing": "products_missing",
        "remark": "skipped_reason",
    }
    # The last promoted and last ingested run of a source, the promoted one before it, and what a correction names.
    needed_sql = """
        EXISTS (SELECT FROM sources s WHERE s.id = r.source_id AND s.last_promoted_run_no = r.no)
        OR EXISTS (SELECT FROM replaced_promotions i
                   WHERE i.source_id = r.source_id AND i.last_promoted_run_no = r.no)
        OR EXISTS (SELECT FROM feeds f WHERE f.source_id = r.source_id AND f.last_ingested_run_no = r.no)
        OR EXISTS (SELECT FROM price_corrections c WHERE c.run_no = r.no)
    """  # mutant: needed-runs

    def find_or_none(self, subject_id: UUID | str) -> Feed | None:
        try:
            return Feed.objects.select_related("source").filter(pk=subject_id).first()
        except ValidationError:
            return None

    def lock(self, cursor: Any, subject: Feed) -> tuple[Feed, Baseline]:
        return lock_feed_and_source(cursor, subject)

    def lock_key(self, subject: Feed) -> tuple[int, int]:
        return FEED_LOCK, subject.lock_no

    def log_fields(self, subject: Feed) -> dict[str, str]:
        return log_fields(subject)

    def source_id(self, subject: Feed) -> UUID:
        return subject.source_id

    def subject_names(self, subject_ids: Collection[UUID]) -> dict[UUID, str]:
        return dict(Feed.objects.filter(pk__in=subject_ids).values_list("pk", "source__name"))

    def shown_figures(self, run_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
        found = FeedRun.objects.filter(pk__in=run_ids).values("run_id", "skipped_reason", *FIGURES)
        return {figures.pop("run_id"): figures for figures in found}

    def advice(self, code: str | None) -> str | None:
        found = advice_for(code)
        return found.action if found else None

    def runs_deleted(self, cursor: Any, runs: Sequence[tuple[int, UUID | None]]) -> None:
        numbers, sources = zip(*runs, strict=True)
        cursor.execute(_DELETE_ABSENCES, [list(sources), list(numbers)])

    def is_wanted(self, subject: Feed, trigger: RunTrigger) -> bool:
        if subject.status != FeedStatus.ENABLED:  # mutant: feed-enabled
            log.debug("FEED_SKIPPED_STATUS", status=subject.status)
            return False
        # mutant: request-open
        return trigger is RunTrigger.SCHEDULED or subject.manual_run_requested_at is not None

    def begin(self, run: Run, subject: Feed, **more: Any) -> None:  # noqa: ARG002 - for kinds with parts
        subject.save(update_fields=expect_a_file(subject))
        FeedRun.objects.create(run=run, feed=subject)

    def attempt(self, context: FeedRunContext) -> None:
        if context.run.artifact_hash:  # mutant: proven-file
            figures = FeedRun.objects.get(pk=context.run.pk)
            ingest(context, context.run.artifact_hash, manifest_rows=figures.manifest_rows)
            return
        with context.step("download"):
            fetched = fetch(context)
        if isinstance(fetched, SkipReason):
            end_skipped(context, fetched)
        elif isinstance(fetched, Fetched):
            ingest(context, fetched.sha256, manifest_rows=fetched.manifest_rows, end=fetched.end)

    def note_error(self, context: FeedRunContext, error: Exception, wait: float | None) -> None:
        if wait is not None:
            event = "DOWNLOAD_RETRY" if context.stage == "download" else "RUN_RETRY"
            context.log_retry(event, error, wait)  # mutant: attempt-failed
            return
        if context.stage == "download":
            attempts = context.job.attempt
            context.log.error("DOWNLOAD_FAILED", error=str(error), attempts=attempts, will_retry=False)
        if isinstance(error, HeaderUnreadable) and error.missing:
            with context.job.transaction():
                context.note(dialect=header_of(error))

    def alert_for(self, code: str) -> str:
        return "LIMIT_EXCEEDED" if code in run_endings.LIMITS else "RUN_FAILED"

    def failed(self, subject: Feed, run: Run, *, is_counted: bool, run_follows: bool) -> None:
        settle_failed_feed(subject, run, is_counted=is_counted, run_follows=run_follows)

    def job_failed(self, subject: Feed) -> None:
        drop_lost_request(subject)

    def figures(self, run: Run) -> dict[str, int]:
        found = FeedRun.objects.filter(pk=run.pk).values(*self.decision_figures).get()
        return {name: value or 0 for name, value in found.items()}

    def write_figures(self, run: Run, figures: Mapping[str, Any]) -> None:
        FeedRun.objects.filter(pk=run.pk).update(**figures)

    def apply(self, context: FeedRunContext, cursor: Any, subject: Feed, state: Baseline) -> Applied:
        """Promote a held run now. Missing products expire, and no gate counts them again."""
        products = FeedRun.objects.get(pk=context.run.pk).products_upserted or 0
        # mutant: approve-missing
        promotion = promotion_of(context, products, accept_absence=True)
        return apply_held(context, cursor, subject, state, promotion)

    def discard(self, context: FeedRunContext, cursor: Any, state: Baseline) -> Applied:
        drop_held(cursor, state, context.run.no)
        return Applied(moment=state.moment)

    def judge_again(self, context: FeedRunContext) -> None:
        assert context.run.artifact_hash is not None, "a held run has read a file"  # noqa: S101 - for the type checker
        ingest(context, context.run.artifact_hash, manifest_rows=None, endings=REJUDGED)


FEED_RUNS: Final = FeedRuns()


def run_feed(job: RunningJob, feed_id: str, trigger: str) -> dict[str, Any] | None:
    """Run a feed once."""
    return lifecycle.execute(FEED_RUNS, job, feed_id, trigger)
