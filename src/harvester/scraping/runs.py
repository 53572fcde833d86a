"""Runs over pages of a source: what `harvester.runs` needs to know about them. Each page is a part with its own job."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Final
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connection

from harvester.catalog.models import Source
from harvester.engine.job import RunningJob
from harvester.guards.egress import EgressPolicy
from harvester.guards.http import request
from harvester.kernel.actor import system
from harvester.kernel.errors import TransientError
from harvester.kernel.identity import identity_of
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.money import parse_price
from harvester.kernel.signature import Content
from harvester.kernel.stock import Availability
from harvester.kernel.urls import identity_url, url_hash
from harvester.ops import audit
from harvester.pipeline.baseline import Baseline, read_baseline
from harvester.pipeline.observations import Observation, promote_observations
from harvester.runs.context import RunContext
from harvester.runs.kinds import PartEnd, PartsKind
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunOutcome
from harvester.scraping.jobs import PAGE
from harvester.scraping.models import ScrapeRun, ScrapeTarget
from harvester.scraping.pages import NoAgreement, Product, read_product
from harvester.scraping.states import QUARANTINED, PageOutcome

#: The first half of the key of a source's lock for pages; "page". The second is a hash of its id.
PAGE_LOCK: Final = 0x70616765
#: Statuses after which the page is tried again.
RETRYABLE: Final = frozenset({429, 500, 502, 503, 504})
GONE: Final = frozenset({404, 410})
OK: Final = 200


class ServerBusy(TransientError):
    """The shop's server cannot serve the page now."""

    code = "SERVER_BUSY"


class ScrapeRuns(PartsKind):
    """A run reads pages of one source and promotes their products; it says nothing about other products."""

    name = "SCRAPE"
    label = "Page run"
    subject = "source"
    actor = system("scraping")
    part_job_kind = PAGE
    part = "page"
    stages: ClassVar = {"promote": "Judge and promote"}
    figure_labels: ClassVar = {
        "pages": "pages",
        "offers": "offers",
        "quarantined": "in quarantine",
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
        ScrapeRun.objects.create(run=run, source=subject, **more)

    def write_figures(self, run: Run, figures: Mapping[str, Any]) -> None:
        ScrapeRun.objects.filter(pk=run.pk).update(**figures)

    def failed(self, subject: Source, run: Run, *, is_counted: bool, run_follows: bool) -> None:
        """Nothing follows: every page has its own outcome."""

    def do_part(self, job: RunningJob, subject: Source, part: RunPart) -> PartEnd:
        target = ScrapeTarget.objects.get(pk=part.target_id)
        answer = request("GET", target.url, policy=EgressPolicy.from_config(settings.CONFIG))
        with connection.cursor() as cursor:
            observed_at = read_baseline(cursor, subject.pk).moment
        if answer.status in RETRYABLE:
            raise ServerBusy(f"{target.url} answered {answer.status}. It will be tried again.")
        if answer.status != OK:
            outcome = PageOutcome.GONE if answer.status in GONE else PageOutcome.NETWORK
            return PartEnd(outcome=outcome, detail={"status": answer.status}, observed_at=observed_at)
        job.check()
        try:
            product = read_product(answer.body.decode(errors="replace"))
        except NoAgreement as problem:
            return PartEnd(outcome=problem.code, detail={"error": str(problem)}, observed_at=observed_at)
        found = {**asdict(product), "price": str(product.price)}
        return PartEnd(outcome=PageOutcome.OFFER, detail=found, observed_at=observed_at)

    def end(self, context: RunContext, cursor: Any, state: Baseline, parts: Sequence[RunPart]) -> RunOutcome:
        run = context.run
        offers = [part for part in parts if part.outcome == PageOutcome.OFFER]
        targets = ScrapeTarget.objects.in_bulk([part.target_id for part in offers])
        observations = [_observation(targets[part.target_id], part) for part in offers]
        promoted = promote_observations(cursor, state, observations, run_no=run.no, run_type=self.name)
        superseded = [offers[place].pk for place in promoted.superseded]
        RunPart.objects.filter(pk__in=superseded).update(outcome=PageOutcome.SUPERSEDED)
        quarantined = sum(part.outcome in QUARANTINED for part in parts)
        figures = {
            "pages": len(parts),
            "offers": len(offers),
            "quarantined": quarantined,
            "prices_written": promoted.prices,
            "products_new": promoted.new,
        }
        context.note(**figures)
        audit.record(self.actor, "RUN_PROMOTED", "run", run.id, detail={"source": str(context.subject.pk), **figures})
        if offers:
            return RunOutcome.PROMOTED
        return RunOutcome.QUARANTINED if quarantined else RunOutcome.EMPTY


SCRAPE_RUNS: Final = ScrapeRuns()


def _observation(target: ScrapeTarget, part: RunPart) -> Observation:
    assert part.observed_at is not None, "a page with an offer was observed"  # noqa: S101 - for the type checker
    found, rules = part.detail, LinkRules(allowed_networks=settings.CONFIG.egress_networks)
    price = parse_price(found["price"])
    product = Product(**{**found, "price": price, "availability": Availability(found["availability"])})
    content = Content(
        title=product.title,
        url=target.url,
        image=product.image,
        brand=product.brand,
        sku=product.sku,
        gtin=product.gtin,
        url_hash=url_hash(identity_url(target.url, rules)),
    )
    return Observation(
        identity=identity_of(sku=product.sku, url=target.url, rules=rules),
        content=content,
        price=price,
        availability=product.availability,
        observed_at=part.observed_at,
        product_id=target.product_id,
    )
