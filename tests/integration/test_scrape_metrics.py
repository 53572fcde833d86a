"""Figures of pages for Prometheus, and the events in the log."""

import re
from pathlib import Path

import pytest
from django.db import connection, transaction
from tests.support.page_runs import begin, end, offer, read_all, shop

from harvester.kernel.actor import system
from harvester.ops import metrics
from harvester.scraping import adapters, log_events, totals
from harvester.scraping.models import ScrapeTarget

pytestmark = pytest.mark.usefixtures("database")


def sample(source, name: str, **labels: str) -> float | None:
    """The value of a metric of a source."""
    for line in metrics.exposition().decode().splitlines():
        wanted = {"source_id": str(source.pk), "adapter_id": "structured", **labels}
        if line.startswith(f"harvester_scrape_{name}{{") and all(
            f'{key}="{value}"' in line for key, value in wanted.items()
        ):
            return float(line.rsplit(" ", 1)[1])
    return None


def test_pages_are_counted_by_adapter_and_source():
    source, other = shop(4), shop(1)
    read_all(source, [offer("1.00", sku="A"), "OOS_NO_PRICE", "TITLE_NOT_FOUND", "AMBIGUOUS_PRICE"])
    read_all(other, ["GONE"])
    assert sample(source, "urls_attempted_total", status="OFFER") == 1
    assert sample(source, "urls_attempted_total", status="GONE") is None
    assert sample(other, "urls_attempted_total", status="GONE") == 1
    assert sample(source, "urls_succeeded_total") == 2
    assert sample(source, "urls_failed_total", reason="TITLE_NOT_FOUND") == 1
    assert sample(source, "offers_extracted_total") == 2
    assert sample(source, "offers_valid_total") == 1
    assert sample(source, "offers_dropped_total", reason="OOS_NO_PRICE") == 1
    assert sample(source, "offers_quarantined_total", reason="AMBIGUOUS_PRICE") == 1
    assert sample(source, "oos_no_price_total") == 1
    assert sample(source, "quarantine_open") == 1


def test_adapters_and_targets_are_shown_as_they_are():
    source = shop(3)
    begin(source)
    ScrapeTarget.objects.filter(pk=ScrapeTarget.objects.filter(source=source).first().pk).update(status="BROKEN")
    assert (sample(source, "adapter_enabled"), sample(source, "queue_pending")) == (1, 3)
    assert (sample(source, "targets_active"), sample(source, "targets_broken")) == (2, 1)
    adapters.disable(system("test"), source.pk, reason="MANUAL", note="for a moment")
    assert sample(source, "adapter_enabled") == 0
    assert sample(source, "adapter_disabled_total", reason="MANUAL") == 1


def test_pages_that_the_queue_did_not_accept_are_counted():
    source = shop(1)
    with transaction.atomic(), connection.cursor() as cursor:
        for _ in range(2):
            totals.add(cursor, source.pk, "structured", {totals.REJECTED: {"queue_full": 3}})
    assert sample(source, "queue_rejected_total", reason="queue_full") == 6


def test_durations_are_counted_in_ranges():
    source = shop(2)
    first, second = begin(source)
    end(first, "NETWORK", detail={"fetch_ms": 80, "wait_ms": 2000})
    end(second, "NETWORK", detail={"fetch_ms": 500_000, "wait_ms": "?"})
    assert [sample(source, "fetch_duration_ms_bucket", le=end) for end in ("50", "100", "120000", "+Inf")] == [
        0,
        1,
        1,
        2,
    ]
    assert sample(source, "fetch_duration_ms_sum") == 500_080
    assert sample(source, "rate_limit_wait_ms_count") == 1


def test_the_page_about_events_lists_them_all():
    page = (Path(__file__).parents[2] / "docs" / "scrape-events.md").read_text()
    events = {value for name, value in vars(log_events).items() if name.isupper()}
    assert set(re.findall(r"^\| `([A-Z_]+)`", page, re.MULTILINE)) == events
