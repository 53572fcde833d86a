"""Shops and their pages for tests of the portal, made without fetching anything."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from harvester.catalog.models import Retailer, Source
from harvester.kernel.ids import uuid7
from harvester.runs.models import Run, RunPart
from harvester.scraping.models import (
    AdapterState,
    FetchRequest,
    QuarantineEntry,
    ScrapeBatch,
    ScrapeImport,
    ScrapeOverride,
    ScrapeRun,
    ScrapeTarget,
)
from tests.support import catalog
from tests.support.feed_rows import make_feed

SCRIPT = "<script>alert(1)</script>"
OFFER = {
    "title": "Federal 9mm Luger 115 gr FMJ, 50 rounds",
    "price": "18.99 USD",
    "original": "21.99 USD",
    "availability": "IN_STOCK",
    "sku": "FED-AE9DP",
    "gtin": "00029465088453",
    "brand": "Federal",
    "caliber": "9mm Luger",
    "grain_weight": 115,
    "round_count": 50,
}
EVIDENCE = [
    {"field": "price", "value": "18.99", "syntax": "json-ld", "place": "json:offers.price", "is_used": True,
     "note": ""},
    {"field": "price", "value": "$21.99", "syntax": "page text", "place": ".price del::text", "is_used": False,
     "note": "crossed out"},
    {"field": "price", "value": f"19.99 {SCRIPT}", "syntax": "meta", "is_used": False, "note": "differs",
     "place": "meta[property='og:price']::attr(content)"},
    {"field": "availability", "value": "In stock", "syntax": "page text", "place": ".stock::text", "is_used": True,
     "note": ""},
]  # fmt: skip
BASELINE = {
    "baseline_failure_rate": Decimal("0.0400"),
    "baseline_yield_rate": Decimal("0.9500"),
    "baseline_sample_size": 12,
}


def shop(name: str = "", *, domain: str = "", **values: Any) -> Source:
    """A shop that is read, with a reviewed ToS; off or not set up if the values say so."""
    name = name or f"Shop {uuid7().hex[-6:]}"
    domain = domain or f"{uuid7().hex[-12:]}.example"
    retailer = Retailer.objects.create(name=f"{name} Inc", domain=domain, website=f"https://{domain}/")
    given = {
        "kind": "DIRECT", "adapter_id": "structured", "scrape_enabled": True, "tos_reviewed_at": timezone.now(),
        "tos_approved_by": "ada", "tos_note": "Price comparison is allowed.", "expiry_hours": 72,
        **values,
    }  # fmt: skip
    made = Source.objects.create(retailer=retailer, name=name, **given)
    made.refresh_from_db()
    return made


def page(of: Source, path: str = "", **values: Any) -> ScrapeTarget:
    """A page that was read well an hour ago, unless the values say otherwise."""
    url = f"https://{of.retailer.domain}/{path or uuid7().hex}"
    hour_ago = timezone.now() - timedelta(hours=1)
    given = {
        "schedule": "0 */4 * * *", "due_at": timezone.now() + timedelta(hours=3), "last_scraped_at": hour_ago,
        "last_success_at": hour_ago, "last_status": "OFFER", "last_seen": {"offer": OFFER}, **values,
    }  # fmt: skip
    return catalog.target(of, url, **given)


def never_read(of: Source, path: str = "", **values: Any) -> ScrapeTarget:
    nothing = {"last_scraped_at": None, "last_success_at": None, "last_status": None, "last_seen": None}
    return page(of, path, **{**nothing, **values})


def page_run(of: Source, outcome: str = "PROMOTED", *, hours_ago: float = 1.0, **figures: Any) -> Run:
    """A run over pages that nobody has run."""
    began = timezone.now() - timedelta(hours=hours_ago)
    made = Run.objects.create(
        kind="SCRAPE", subject_id=of.pk, source_id=of.pk, trigger="SCHEDULED", status="SUCCEEDED", outcome=outcome,
        started_at=began, finished_at=began + timedelta(seconds=84), duration_ms=84_000,
    )  # fmt: skip
    made.refresh_from_db()
    given = {
        "pages": 42, "offers": 40, "offers_valid": 40, "urls_succeeded": 40, "urls_failed": 1, "quarantined": 1,
        "prices_written": 7, "adapter_id": "structured", "adapter_version": "1.0.0", "requested_by": "scheduler",
        "failure_rate": Decimal("0.0244"), "yield_rate": Decimal("0.9756"), "drop_rate": Decimal(0),
        "fields_found": {"title": 41, "price": 40, "availability": 40, "sku": 38, "gtin": 12, "brand": 30}, **figures,
    }  # fmt: skip
    ScrapeRun.objects.create(run=made, source=of, **given)
    return made


def part(of: Run, target: ScrapeTarget, outcome: str = "OFFER", **values: Any) -> RunPart:
    given = {
        "detail": {"evidence": EVIDENCE}, "found": OFFER if outcome == "OFFER" else None, "version": "1.0.0",
        "observed_at": of.finished_at, "ended_at": of.finished_at, "judged_at": of.finished_at, **values,
    }  # fmt: skip
    return RunPart.objects.create(run=of, begun_at=of.started_at, target_id=target.pk, outcome=outcome, **given)


def entry(target: ScrapeTarget, reason: str = "NO_AGREEMENT", **values: Any) -> QuarantineEntry:
    given = {
        "detail": "Structured data says 18.99 USD, the page shows 19.99 USD.", "adapter_id": "structured",
        "version": "1.0.0", "found": OFFER, "evidence": EVIDENCE, "observed_at": timezone.now(), "run_no": 1,
        "part_id": uuid7(), **values,
    }  # fmt: skip
    return QuarantineEntry.objects.create(source_id=target.source_id, target=target, reason=reason, **given)


def batch(of: Source, run: Run, *, failures: int = 1, is_refused: bool = False, hours_ago: float = 1.0) -> ScrapeBatch:
    reason = f"{failures} of 20 pages failed."
    verdict = [{"gate": "DRIFT", "holds": is_refused, "reason": reason, "figures": {}}]
    return ScrapeBatch.objects.create(
        source=of, adapter_id="structured", adapter_version="1.0.0", run_no=run.no,
        judged_at=timezone.now() - timedelta(hours=hours_ago), attempts=20, new_attempts=20, failures=failures,
        offers=20 - failures, zero_prices=0, verdict=verdict, is_refused=is_refused,
    )  # fmt: skip


def adapter_state(of: Source, **values: Any) -> AdapterState:
    return AdapterState.objects.create(source=of, adapter_id="structured", **{**BASELINE, **values})


def disabled_adapter(of: Source) -> AdapterState:
    return adapter_state(
        of, enabled=False, disabled_reason="DRIFT_DETECTED", disabled_at=timezone.now(), disabled_by="scraping",
        failed_batches=2,
    )  # fmt: skip


def override(of: Source, version: int = 1, **values: Any) -> ScrapeOverride:
    given = {"places": {"places": {"price": ["json:offers.price"]}}, "created_by": "ada", **values}
    return ScrapeOverride.objects.create(source=of, version=version, **given)


def tried(of: Source | None = None, **values: Any) -> FetchRequest:
    given = {
        "purpose": "TRY", "url": "https://shop.example/9mm", "requested_by": "otto", "outcome": "OFFER",
        "finished_at": timezone.now(), "observed_at": timezone.now(),
        "result": {"offer": OFFER, "evidence": EVIDENCE, "status": 200, "text": "Federal $21.99 now 18.99 In stock"},
        **values,
    }  # fmt: skip
    return FetchRequest.objects.create(source=of, **given)


def an_import(**values: Any) -> ScrapeImport:
    who = {"kind": "person", "id": "1", "name": "otto"}
    rows = {"pages": [], "not_read": [], "actor": who}
    given = {"name": "monday.csv", "rows": rows, "created_by": "otto", **values}
    return ScrapeImport.objects.create(**given)


def scraping_pages() -> list[str]:
    """Addresses of every kind of page about scraping, with long words on them."""
    long = "W" * 120
    of = shop(f"Ammunition and Outdoor Supplies of Europe {long}", domain="supplies.example")
    target = page(of, long, notes=long, moved_to=f"https://supplies.example/{long}{long}", pinned={"sku": long})
    twins = [page(of, pinned_product_id=7) for _ in range(2)]
    page(of, "gone", last_status="GONE", last_detail=long)
    never_read(of, status="STALE")
    waits = entry(target, detail=f"{long} differs. " * 3)
    adapter_state(of, check_next_run=True)
    run = page_run(of)
    part(run, target, "NO_AGREEMENT", detail={"error": long, "evidence": EVIDENCE})
    part(run, twins[0])
    batch(of, run)
    batch(of, run, failures=14, is_refused=True)
    change = {
        "target_id": str(target.pk), "url": target.url, "page": "x", "kind": "changed", "then": "OFFER",
        "now": "OFFER", "fields": {"price": ["18.99 USD", "19.99 USD"], "title": [long, long]}, "detail": "",
    }  # fmt: skip
    report = {"pages": 2, "same": 1, "changed": 1, "fields": {"price": 1}, "version": "1.0.0+1", "changes": [change]}
    override(of, note=long, backtest=report)
    about = {"domain": "supplies.example", "twin": None, "sku": "", "gtin": "", "product": "", "schedule": None,
             "priority": 0, "notes": "", "product_id": None}  # fmt: skip
    listed = [
        {"line": number, "url": f"https://supplies.example/{number}{long}", "canonical": str(number), **about}
        for number in (1, 2)
    ]
    preview = an_import(
        name=long, rows={"pages": listed, "not_read": [], "actor": {"kind": "person", "id": "1", "name": "otto"}},
        refused=[{"line": 3, "text": long, "reason": f"{long}."}],
    )  # fmt: skip
    fed = make_feed(Source.objects.create(retailer=of.retailer, name=f"Feed {long}", kind="AFFILIATE_FEED")).source
    catalog.product(fed, title=long, url=f"https://supplies.example/tent{long}?color=1")
    choice = {"source_id": str(fed.pk), "adapter_id": "structured", "schedule": None, "skip": False, "name": ""}
    unlinked = [
        {"line": number, "url": f"https://supplies.example/{path}{long}", "canonical": path, **about}
        for number, path in enumerate(("tent", "unknown"), 1)
    ]
    to_link = an_import(
        name=long, choices={"supplies.example": choice},
        rows={"pages": unlinked, "not_read": [], "actor": {"kind": "person", "id": "1", "name": "otto"}},
    )  # fmt: skip
    lines = [{"line": 9, "text": long, "state": "UNLINKED", "reason": f"{long}."}]
    results = {"done": 2, "added": 1, "skipped": 0, "refused": 1, "lines": lines}
    done = an_import(status="DONE", finished_at=timezone.now(), results=results)
    shops = f"/shops/{of.pk}/"
    return [
        *("/shops/", "/shops/?show=all", shops, f"{shops}coverage/", f"{shops}settings/", f"{shops}overrides/"),
        *(f"{shops}overrides/1/", "/pages/", "/pages/?trouble=GONE&q=supplies", "/pages/add/", f"/pages/{target.pk}/"),
        *(f"/pages/{target.pk}/edit/", "/quarantine/", f"/quarantine/{waits.pk}/", "/url-health/?view=moved"),
        *("/url-health/?view=gone", "/url-health/?view=twice", "/imports/", f"/imports/{preview.pk}/"),
        *(f"/imports/{to_link.pk}/links/", f"/imports/{done.pk}/links/"),
        *(f"/imports/{done.pk}/", "/adapters/", f"/adapters/{of.pk}/structured/", "/try-url/"),
        *(f"/try-url/{tried(of).pk}/", f"/runs/{run.no}/"),
    ]
