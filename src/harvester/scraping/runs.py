"""Runs over pages of a source: what `harvester.runs` needs to know about them. Each page is a part with its own job.

The figures of a run are computed from its parts by the database when it ends:

attempts      pages whose outcome counts in a batch; sold out without a price, robots.txt and the network do not
failure rate  pages that the adapter could not read / attempts
yield rate    offers that passed, and pages that had not changed / attempts
drop rate     offers that were left out / offers that were read, those without a price included
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connection

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch_tuples
from harvester.engine.job import RunningJob
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.actor import Actor
from harvester.ops import audit
from harvester.pipeline.baseline import Baseline, read_baseline
from harvester.runs import parts
from harvester.runs.context import RunContext
from harvester.runs.gates import share
from harvester.runs.kinds import PartEnd, PartsKind
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunOutcome
from harvester.scraping import alerts, judging, kept_pages, totals
from harvester.scraping.endings import note_end
from harvester.scraping.fetching import fetch_and_read
from harvester.scraping.jobs import PAGE
from harvester.scraping.models import ScrapeRun, ScrapeTarget
from harvester.scraping.states import DROPPED, QUARANTINED, READ, RUN_KIND, PageOutcome, rule_of

#: Of pages that were fetched and read well, or had not changed.
_SUCCEEDED: Final = (
    *(outcome for outcome in READ if outcome is not PageOutcome.WRONG_PRODUCT),
    *(PageOutcome.NOT_MODIFIED, PageOutcome.OOS_NO_PRICE),
)
_BY_OUTCOME = """
SELECT outcome, count(*), count(found) FROM run_parts WHERE run_id = %(run)s AND begun_at = %(begun)s GROUP BY outcome
"""
_VERSION = """
SELECT version FROM run_parts WHERE run_id = %(run)s AND begun_at = %(begun)s AND version IS NOT NULL
ORDER BY ended_at DESC, id DESC LIMIT 1
"""
_FIELDS = """
SELECT f.name, count(*) FROM run_parts p CROSS JOIN LATERAL jsonb_object_keys(p.found) f (name)
WHERE p.run_id = %(run)s AND p.begun_at = %(begun)s AND jsonb_typeof(p.found) = 'object'
GROUP BY f.name ORDER BY f.name
"""


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The parts of a run, counted.

    Attributes:
        pages: outcome -> parts.
        found: outcome -> of these, the parts with an offer.
    """

    pages: Mapping[str, int]
    found: Mapping[str, int]

    def count(self, *outcomes: str) -> int:
        return sum(self.pages.get(outcome, 0) for outcome in outcomes)

    @property
    def attempts(self) -> int:
        return sum(number for outcome, number in self.pages.items() if rule_of(outcome).in_batch)

    @property
    def failures(self) -> int:
        return sum(number for outcome, number in self.pages.items() if rule_of(outcome).is_drift)

    @property
    def quarantined(self) -> int:
        return self.count(*QUARANTINED)

    @property
    def extracted(self) -> int:
        """Offers that were read: those in doubt only if they were read in full."""
        doubtful = (outcome for outcome in QUARANTINED if outcome not in READ)
        return self.count(*READ, *DROPPED) + sum(self.found.get(outcome, 0) for outcome in doubtful)

    def figures(self) -> dict[str, Any]:
        """Return the columns of `scrape_runs` that follow from the outcomes."""
        valid, dropped, unchanged = self.count(PageOutcome.OFFER), self.count(*DROPPED), PageOutcome.NOT_MODIFIED
        rates = {"failure_rate": self.failures, "yield_rate": valid + self.count(unchanged)}
        return {
            "pages": sum(self.pages.values()),
            "urls_succeeded": self.count(*_SUCCEEDED),
            "urls_failed": self.failures,
            "offers": self.extracted,
            "offers_valid": valid,
            "offers_dropped": dropped,
            "quarantined": self.quarantined,
            "zero_prices": self.count(PageOutcome.ZERO_PRICE_EXTRACTED),
            "oos_no_price": self.count(PageOutcome.OOS_NO_PRICE),
            "not_modified": self.count(unchanged),
            **{name: round(share(part, self.attempts), 4) for name, part in rates.items()},
            "drop_rate": round(share(dropped, self.extracted), 4),
        }


def outcomes_of(run: Run) -> Outcomes:
    """Count the parts of a run by outcome."""
    rows = fetch_tuples(_BY_OUTCOME, _of_run(run))
    return Outcomes(
        pages={outcome: number for outcome, number, _ in rows}, found={outcome: found for outcome, _, found in rows}
    )


def fields_found(run: Run) -> dict[str, int]:
    """Return field -> on how many pages of a run it was found."""
    return dict(fetch_tuples(_FIELDS, _of_run(run)))


def version_of(run: Run) -> str | None:
    """Return the version of the adapter that read the newest page of a run."""
    found = fetch_tuples(_VERSION, _of_run(run))
    return found[0][0] if found else None


def _of_run(run: Run) -> dict[str, Any]:
    return {"run": run.pk, "begun": run.started_at}


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

    def subject_of(self, run: Run) -> Source:
        return Source(pk=run.subject_id)

    def lock(self, cursor: Any, subject: Source) -> tuple[Source, Baseline]:  # noqa: ARG002 - its own is prepared
        with prepared_cursor() as prepared:
            baseline = read_baseline(prepared, subject.pk, lock=True)
        # Its columns are read if something needs them: most pages end neither a batch nor a run.
        return Source.from_db("default", ["id"], [subject.pk]), baseline

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

    def do_part(self, job: RunningJob, part: RunPart) -> PartEnd:
        return fetch_and_read(job, part)

    def part_ended(self, context: RunContext, cursor: Any, state: Baseline, part: RunPart) -> None:
        adapter_id = _adapter_of(context.run.pk)
        counts = totals.durations(part.detail)
        if not note_end(cursor, state, adapter_id, part).in_batch:
            # It does not wait for a batch; the others are counted with the outcome that their batch gives them.
            RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at).update(judged_at=state.moment)
            kept_pages.note_readings(cursor, [part])
            counts[totals.OUTCOME] = {part.outcome or "": 1}
        with prepared_cursor() as prepared:
            totals.add(prepared, state.source_id, adapter_id, counts)

    def has_batch(self, context: RunContext, cursor: Any, state: Baseline) -> bool:  # noqa: ARG002 - counts only
        return judging.has_batch(state.source_id, _adapter_of(context.run.pk))

    def judge_batch(self, context: RunContext, cursor: Any, state: Baseline) -> None:
        judging.judge_waiting(cursor, state, context.subject, _adapter_of(context.run.pk))

    def judge_rest(self, cursor: Any, subject: Source, state: Baseline) -> None:
        for adapter_id in judging.adapters_that_wait(subject.pk):
            judging.judge_waiting(cursor, state, subject, adapter_id)

    def end(self, context: RunContext, cursor: Any, state: Baseline) -> RunOutcome:
        run = context.run
        judging.judge_waiting(cursor, state, context.subject, _adapter_of(run.pk))
        run.refresh_from_db()
        outcomes = outcomes_of(run)
        figures = {**outcomes.figures(), "fields_found": fields_found(run), "adapter_version": version_of(run)}
        context.note(**figures)
        shown = {"pages": figures["pages"], "offers": figures["offers"], "quarantined": figures["quarantined"]}
        detail = {"source": str(context.subject.pk), **shown, "failure_rate": figures["failure_rate"]}
        audit.record(self.actor, "RUN_PROMOTED", "run", run.id, detail=detail)
        alerts.run_ended(run, context.subject, outcomes.pages)
        # A batch that was refused counts for all of its runs; so do pages that nobody can believe.
        if ScrapeRun.objects.get(pk=run.pk).batches_refused:
            return RunOutcome.QUARANTINED
        if outcomes.count(PageOutcome.OFFER, PageOutcome.NOT_MODIFIED, PageOutcome.OOS_NO_PRICE):
            return RunOutcome.PROMOTED
        return RunOutcome.QUARANTINED if outcomes.quarantined else RunOutcome.EMPTY


SCRAPE_RUNS: Final = ScrapeRuns()


@lru_cache(maxsize=10_000)
def _adapter_of(run_id: UUID) -> str:
    """Return the adapter that reads the pages of a run; it never changes."""
    with prepared_cursor() as cursor:
        cursor.execute("SELECT adapter_id FROM scrape_runs WHERE run_id = %(run)s", {"run": run_id})
        return cursor.fetchone()[0] or "structured"


def judge_rests(job: RunningJob) -> int:
    """Judge what waits of sources of which no page has ended for 15 minutes; return the number of sources.

    Alerts whose cause is over since are resolved, too.
    """
    with job.transaction():
        alerts.resolve_ended()
        if kept_pages.has_room():
            alerts.resolve_no_room()
    return parts.judge_waiting(job, SCRAPE_RUNS)
