"""Runs over pages whose parts end as a test says, without any request: the judging, with the real tables."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction

from harvester.catalog.models import Source
from harvester.kernel.money import Price
from harvester.kernel.stock import Availability
from harvester.ops.models import Alert
from harvester.runs import parts
from harvester.runs.kinds import PartEnd
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunTrigger
from harvester.scraping import judging
from harvester.scraping.models import AdapterState, QuarantineEntry, ScrapeRun, ScrapeTarget
from harvester.scraping.offers import ScrapedOffer, offer_to_json
from harvester.scraping.runs import SCRAPE_RUNS
from tests.support import catalog
from tests.support.tables import rows


def shop(pages: int = 1, **values: Any) -> Source:
    """A source whose pages are shown, with some targets: /0, /1 and so on."""
    given = {
        "kind": "DIRECT", "visibility": "ELIGIBLE", "is_display_primary": True, "expiry_hours": 72,
        "last_promoted_at": None, **values,
    }  # fmt: skip
    made = catalog.source(**given)
    for number in range(pages):
        catalog.target(made, f"https://shop.example/{number}")
    return made


def targets(source: Source) -> list[ScrapeTarget]:
    return list(ScrapeTarget.objects.filter(source=source).order_by("created_at", "pk"))


def begin(source: Source, which: Sequence[ScrapeTarget] | None = None, trigger: str = "MANUAL") -> list[RunPart]:
    """A run over some targets, all if not given; its parts in their order."""
    chosen = targets(source) if which is None else which
    with transaction.atomic():
        run = parts.begin(SCRAPE_RUNS, source, RunTrigger(trigger), [parts.NewPart(target_id=one.pk) for one in chosen])
    order = {one.pk: place for place, one in enumerate(chosen)}
    return sorted(RunPart.objects.filter(run=run), key=lambda part: order[part.target_id])


def offer(price: str = "19.99", *, currency: str = "USD", title: str = "", sku: str | None = None, **more: Any) -> Any:
    """The stored form of an offer."""
    stock = more.pop("availability", Availability.IN_STOCK)
    amount = Price(amount=Decimal(price), currency=currency)
    return offer_to_json(ScrapedOffer(title=title or f"Thing {sku}", price=amount, availability=stock, sku=sku, **more))


def end(part: RunPart, outcome: str = "OFFER", found: Any = None, *, after: float = 0.0, **more: Any) -> str:
    """End a part, as if it had been observed so many minutes after now; return its outcome."""
    observed = catalog.now() + timedelta(minutes=after)
    detail = more.pop("detail", {})
    ended = PartEnd(outcome=outcome, found=found, detail=detail, observed_at=observed, version="1.0.0", **more)
    with transaction.atomic():
        parts.end_part(SCRAPE_RUNS, RunPart.objects.select_related("run").get(pk=part.pk), ended)
    return RunPart.objects.get(pk=part.pk).outcome


def read(source: Source, outcome: str = "OFFER", found: Any = None, *, after: float = 0.0, **more: Any) -> ScrapeTarget:
    """One run over the only page of a source; return its target afterwards."""
    [part] = begin(source)
    end(part, outcome, found, after=after, **more)
    return targets(source)[0]


def read_all(source: Source, ends: Sequence[Any]) -> Run:
    """One run over all pages, each of which ends with an outcome, or with an offer."""
    begun = begin(source)
    for part, one in zip(begun, ends, strict=True):
        if isinstance(one, str):
            end(part, one)
        else:
            end(part, "OFFER", one)
    return Run.objects.get(pk=begun[0].run_id)


def judge_rest(source: Source) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        locked, state = SCRAPE_RUNS.lock(cursor, source)
        for adapter_id in judging.adapters_that_wait(source.pk):
            judging.judge_waiting(cursor, state, locked, adapter_id)


def outcomes(run: Run) -> list[str | None]:
    return list(RunPart.objects.filter(run=run).order_by("ended_at", "pk").values_list("outcome", flat=True))


def figures(run: Run) -> ScrapeRun:
    return ScrapeRun.objects.get(pk=run.pk)


def state_of(source: Source) -> AdapterState:
    return AdapterState.objects.get(source=source)


def prices(source: Source) -> list[float]:
    found = rows(
        "SELECT amount::float FROM prices WHERE source_id = %s ORDER BY observed_at, source_product_id", source.pk
    )
    return [amount for (amount,) in found]


def shown() -> list[float]:
    return sorted(amount for (amount,) in rows("SELECT amount::float FROM visible_offers"))


def waiting_entries(source: Source) -> list[str]:
    open_ones = QuarantineEntry.objects.filter(source=source, status="OPEN")
    return sorted(open_ones.values_list("reason", flat=True))


def open_alerts() -> list[str]:
    return sorted(Alert.objects.filter(resolved_at=None).values_list("kind", flat=True))
