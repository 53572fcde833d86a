"""Writes to pages by people. Every verb is audited."""

from uuid import UUID

from django.db import IntegrityError, transaction

from harvester.catalog import sources
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.urls import is_web_url
from harvester.ops import audit
from harvester.runs import parts
from harvester.runs.models import Run
from harvester.runs.states import RunTrigger
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.runs import SCRAPE_RUNS


@transaction.atomic
def add_target(actor: Actor, source_id: UUID, url: str, *, product_id: int | None = None) -> ScrapeTarget:
    """Add a page of a source. With `product_id`, it changes only price and stock of this existing product."""
    if not is_web_url(url):
        raise InvalidInput("it must look like https://shop.example/product.", field="url")
    source = sources.locked(source_id)
    if source.adapter_id is None:
        source.adapter_id = "structured"
        source.save(update_fields=["adapter_id"])
    try:
        with transaction.atomic():
            made = ScrapeTarget.objects.create(
                source=source, adapter_id=source.adapter_id, url=url, canonical_url=url, product_id=product_id,
                created_by=actor.name,
            )  # fmt: skip
    except IntegrityError:
        raise Conflict(f"{source} has this page already. Nothing was changed.", field="url") from None
    audit.record(actor, "SCRAPE_TARGET_ADDED", "scrape_target", made.pk, detail={"source": str(source.pk), "url": url})
    return made


@transaction.atomic
def run_now(actor: Actor, source_id: UUID) -> Run:
    """Read all pages of a source once."""
    source = SCRAPE_RUNS.find_or_none(source_id)
    if source is None:
        raise NotFound(f"There is no source {source_id}; `harvester source list` shows them all.")
    targets = ScrapeTarget.objects.filter(source=source).order_by("id").values_list("pk", flat=True)
    new = [parts.NewPart(target_id=target, dedupe_key=f"scrape:{target}") for target in targets]
    run = parts.begin(SCRAPE_RUNS, source, RunTrigger.MANUAL, new)
    audit.record(actor, "SCRAPE_RUN_REQUESTED", "run", run.id, detail={"source": str(source.pk)})
    return run
