"""Runs over pages of a source: what `harvester.runs` needs to know about them. Each page is a part with its own job."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connection

from harvester.catalog.models import Source
from harvester.engine.job import RunningJob
from harvester.kernel.actor import Actor
from harvester.ops import audit
from harvester.pipeline.baseline import Baseline, read_baseline
from harvester.runs import parts
from harvester.runs.context import RunContext
from harvester.runs.kinds import PartEnd, PartsKind
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunOutcome
from harvester.scraping import alerts, judging, kept_pages, totals
from harvester.scraping.endings import note_end
from harvester.scraping.fetching import fetch_and_read
from harvester.scraping.figures import fields_found, outcomes_of, version_of
from harvester.scraping.jobs import PAGE
from harvester.scraping.models import ScrapeRun, ScrapeTarget
from harvester.scraping.states import RUN_KIND, PageOutcome

#: The first half of the key of a source's lock for pages; "page". The second is a hash of its id.
PAGE_LOCK: Final = 0x70616765
_CHECK_RUNS: Final = """
UPDATE adapter_states a SET check_run_no = i.no
FROM (SELECT source_id, adapter_id, min(no) AS no
      FROM unnest(%(sources)s::uuid[], %(adapters)s::text[], %(numbers)s::bigint[]) AS u(source_id, adapter_id, no)
      GROUP BY source_id, adapter_id) i
WHERE a.source_id = i.source_id AND a.adapter_id = i.adapter_id AND a.check_next_run AND a.check_run_no IS NULL
"""


class ScrapeRuns(PartsKind):
    """A run reads pages of one source and promotes their products; it says nothing about other products."""

    name = RUN_KIND
    label = "Page run"
    subject = "source"
    actor = judging.ACTOR
    part_job_kind = PAGE
    part = "page"
    stages: ClassVar = {"promote": "Judge and promote"}
    figure_labels: ClassVar = {
        "pages": "pages",
        "urls_succeeded": "read well",
        "urls_failed": "could not be read",
        "not_modified": "not changed",
        "oos_no_price": "sold out without a price",
        "offers": "offers",
        "offers_valid": "offers that passed",
        "offers_dropped": "offers left out",
        "quarantined": "in quarantine",
        "zero_prices": "prices of zero",
        "batches_refused": "batches refused",
        "products_new": "new products",
        "prices_written": "prices written",
    }
    list_columns: ClassVar = {"rows": "pages", "products": "offers", "prices": "prices_written"}
    needed_sql = "EXISTS (SELECT FROM price_corrections c WHERE c.run_no = r.no)"

    def find_or_none(self, subject_id: UUID | str) -> Source | None:
        try:
            return Source.objects.filter(pk=subject_id).first()
        except ValidationError:
            return None

    def lock(self, cursor: Any, subject: Source) -> tuple[Source, Baseline]:
        baseline = read_baseline(cursor, subject.pk, lock=True)
        return Source.objects.get(pk=subject.pk), baseline

    def lock_key(self, subject: Source) -> tuple[int, int]:
        return PAGE_LOCK, subject.pk.int % 2**31

    def log_fields(self, subject: Source) -> dict[str, str]:
        return {"source_id": str(subject.pk)}

    def source_id(self, subject: Source) -> UUID:
        return subject.pk

    def subject_names(self, subject_ids: Collection[UUID]) -> dict[UUID, str]:
        return dict(Source.objects.filter(pk__in=subject_ids).values_list("pk", "name"))

    def shown_figures(self, run_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
        found = ScrapeRun.objects.filter(pk__in=run_ids).values("run_id", *self.figure_labels)
        return {figures.pop("run_id"): figures for figures in found}

    def part_names(self, target_ids: Collection[UUID]) -> dict[UUID, str]:
        return dict(ScrapeTarget.objects.filter(pk__in=target_ids).values_list("pk", "url"))

    def begin(self, run: Run, subject: Source, **more: Any) -> None:
        self.begin_all([(run, subject)], **more)

    def begin_all(self, begun: Sequence[tuple[Run, Source]], **more: Any) -> None:
        """Create the rows with the figures; the first run after an adapter was enabled again is to be checked."""
        made = ScrapeRun.objects.bulk_create(
            ScrapeRun(
                run=run, source=source, **{"adapter_id": source.adapter_id, "retailer_id": source.retailer_id, **more}
            )
            for run, source in begun
        )
        values: dict[str, Any] = {
            "sources": [figures.source_id for figures in made],
            "adapters": [figures.adapter_id for figures in made],
            "numbers": [run.no for run, _ in begun],
        }
        with connection.cursor() as cursor:
            cursor.execute(_CHECK_RUNS, values)

    def write_figures(self, run: Run, figures: Mapping[str, Any]) -> None:
        ScrapeRun.objects.filter(pk=run.pk).update(**figures)

    def failed(self, subject: Source, run: Run, *, is_counted: bool, run_follows: bool) -> None:
        """Nothing follows: every page has its own outcome."""

    def more_for_retry(self, actor: Actor) -> dict[str, Any]:
        return {"requested_by": actor.name}

    def do_part(self, job: RunningJob, subject: Source, part: RunPart) -> PartEnd:
        return fetch_and_read(job, subject, part)

    def part_ended(self, context: RunContext, cursor: Any, state: Baseline, part: RunPart) -> None:
        adapter_id = _adapter_of(context.run)
        counts = totals.durations(part.detail)
        if not note_end(cursor, state, adapter_id, part).in_batch:
            # It does not wait for a batch; the others are counted with the outcome that their batch gives them.
            RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at).update(judged_at=state.moment)
            kept_pages.note_readings(cursor, [part])
            counts[totals.OUTCOME] = {part.outcome or "": 1}
        totals.add(cursor, state.source_id, adapter_id, counts)

    def judge_batch(self, context: RunContext, cursor: Any, state: Baseline) -> None:
        judging.judge_batch(cursor, state, context.subject, _adapter_of(context.run))

    def judge_rest(self, cursor: Any, subject: Source, state: Baseline) -> None:
        for adapter_id in judging.adapters_that_wait(subject.pk):
            judging.judge_waiting(cursor, state, subject, adapter_id)

    def end(self, context: RunContext, cursor: Any, state: Baseline) -> RunOutcome:
        run = context.run
        judging.judge_waiting(cursor, state, context.subject, _adapter_of(run))
        run.refresh_from_db()
        outcomes = outcomes_of(run)
        figures = {**outcomes.figures(), "fields_found": fields_found(run), "adapter_version": version_of(run)}
        context.note(**figures)
        shown = {"pages": figures["pages"], "offers": figures["offers"], "quarantined": figures["quarantined"]}
        detail = {"source": str(context.subject.pk), **shown, "failure_rate": figures["failure_rate"]}
        audit.record(self.actor, "RUN_PROMOTED", "run", run.id, detail=detail)
        # A batch that was refused counts for all of its runs; so do pages that nobody can believe.
        if ScrapeRun.objects.get(pk=run.pk).batches_refused:
            return RunOutcome.QUARANTINED
        if outcomes.count(PageOutcome.OFFER, PageOutcome.NOT_MODIFIED, PageOutcome.OOS_NO_PRICE):
            return RunOutcome.PROMOTED
        return RunOutcome.QUARANTINED if outcomes.quarantined else RunOutcome.EMPTY


SCRAPE_RUNS: Final = ScrapeRuns()


def _adapter_of(run: Run) -> str:
    """Return the adapter that reads the pages of a run; it never changes."""
    figures: ScrapeRun = run.scrape_run
    return figures.adapter_id or "structured"


def judge_rests(job: RunningJob) -> int:
    """Judge what waits of sources of which no page has ended for 15 minutes; return the number of sources.

    Alerts whose cause is over since are resolved, too.
    """
    with job.transaction():
        alerts.resolve_ended()
    return parts.judge_waiting(job, SCRAPE_RUNS)
