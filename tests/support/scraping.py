"""Sources that may be scraped, and their pages, written directly."""

import datetime as dt
from dataclasses import replace
from typing import Any

from django.conf import settings

from harvester.catalog.models import Retailer, Source
from harvester.scraping.models import ScrapeTarget
from tests.support import catalog


def shop(domain: str = "shop.example", *, is_read: bool = True, **values: Any) -> Source:
    """A source whose pages are on this domain; with `is_read`, all switches are on."""
    owner = Retailer.objects.filter(domain=domain).first()
    owner = owner or Retailer.objects.create(name=domain, website=f"https://{domain}/", domain=domain)
    switched_on = {
        "adapter_id": "structured", "scrape_enabled": True, "tos_reviewed_at": catalog.now(),
        "tos_approved_by": "Olga", "expiry_hours": 72,
    }  # fmt: skip
    given = {"visibility": "INELIGIBLE", **(switched_on if is_read else {}), **values}
    if not Source.objects.filter(name=domain).exists():
        given.setdefault("name", domain)
    return catalog.source(owner, "DIRECT", **given)


def pages(of: Source, number: int, **values: Any) -> list[ScrapeTarget]:
    """So many pages of a source, `/1` and on, due an hour ago unless the values say otherwise."""
    due = catalog.now() - dt.timedelta(hours=1)
    given = {"schedule": "0 */4 * * *", "due_at": due, "adapter_id": of.adapter_id or "structured", **values}
    base = f"https://{of.retailer.domain}"
    first = ScrapeTarget.objects.filter(source=of).count() + 1
    return ScrapeTarget.objects.bulk_create(
        ScrapeTarget(
            source=of, url=f"{base}/{place}", canonical_url=f"{base}/{place}", created_by="test", **given
        )
        for place in range(first, first + number)
    )  # fmt: skip


def limit(fixture: Any, *, per_source: int = 1_000, total: int = 10_000) -> None:
    """Let so many pages wait; `fixture` is pytest-django's `settings`."""
    fixture.CONFIG = replace(settings.CONFIG, scrape_pending_per_source=per_source, scrape_pending=total)


def rejections() -> dict[str, int]:
    """How many pages were rejected, by reason."""
    return dict(catalog.fetch("SELECT word, total::int FROM scrape_totals WHERE figure = 'rejected'"))
