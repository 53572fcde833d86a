"""Figures of pages for Prometheus."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from harvester.catalog.named_rows import fetch_tuples
from harvester.ops import metrics
from harvester.scraping.states import DROPPED, QUARANTINED, READ, PageOutcome, rule_of
from harvester.scraping.totals import DISABLED, DURATIONS, MORE, OUTCOME, RANGES, REJECTED, SUM

_TOTALS = "SELECT figure, adapter_id, source_id::text, word, total FROM scrape_totals ORDER BY 1, 2, 3, 4"
_PENDING = """
SELECT s.adapter_id, r.source_id::text, count(*) FROM runs r JOIN scrape_runs s ON s.run_id = r.id
JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at
WHERE r.kind = 'SCRAPE' AND r.status = 'RUNNING' AND p.outcome IS NULL AND s.adapter_id IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2
"""
_ENABLED = """
SELECT s.adapter_id, s.id::text, (coalesce(a.enabled, true))::int
FROM sources s LEFT JOIN adapter_states a ON a.source_id = s.id AND a.adapter_id = s.adapter_id
WHERE s.adapter_id IS NOT NULL ORDER BY 1, 2
"""
_TARGETS = """
SELECT adapter_id, source_id::text, status, count(*) FROM scrape_targets WHERE enabled GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_WAITING = """
SELECT adapter_id, source_id::text, count(*) FROM quarantine WHERE status = 'OPEN' GROUP BY 1, 2 ORDER BY 1, 2
"""
_SOURCE: Final = ["adapter_id", "source_id"]
_SUCCEEDED: Final = frozenset({*READ, PageOutcome.NOT_MODIFIED, PageOutcome.OOS_NO_PRICE} - {PageOutcome.WRONG_PRODUCT})
#: Counter -> its meaning, the name of the label with the outcome (none: only a sum), and which outcomes it counts.
_COUNTERS: Final = (
    ("urls_attempted", "Pages by outcome.", "status", None),
    ("urls_succeeded", "Pages that were read well, or had not changed.", None, _SUCCEEDED),
    ("urls_failed", "Pages that the adapter could not read.", "reason", lambda outcome: rule_of(outcome).is_drift),
    ("offers_extracted", "Offers that were read.", None, frozenset({*READ, *DROPPED})),
    ("offers_valid", "Offers that passed all checks.", None, frozenset({PageOutcome.OFFER})),
    ("offers_dropped", "Offers that were left out.", "reason", frozenset(DROPPED)),
    ("offers_quarantined", "Pages that were put into quarantine.", "reason", frozenset(QUARANTINED)),
    ("oos_no_price", "Pages that were sold out and showed no price.", None, frozenset({PageOutcome.OOS_NO_PRICE})),
)


def register() -> None:
    metrics.add_collector(ScrapeCollector())


class ScrapeCollector(Collector):
    """Pages, offers, adapters and targets by adapter and source."""

    def collect(self) -> Iterator[Metric]:
        totals: dict[str, list[tuple[str, str, str, int]]] = defaultdict(list)
        for figure, *row in fetch_tuples(_TOTALS):
            totals[figure].append(tuple(row))
        for name, meaning, label, counted in _COUNTERS:
            yield _counter(name, meaning, label, counted, totals[OUTCOME])
        disabled = CounterMetricFamily(
            "harvester_scrape_adapter_disabled", "Times that an adapter was switched off.", labels=[*_SOURCE, "reason"]
        )
        for adapter, source, reason, total in totals[DISABLED]:
            disabled.add_metric([adapter, source, reason], total)
        yield disabled
        rejected = CounterMetricFamily(
            "harvester_scrape_queue_rejected", "Pages that the queue did not accept.", labels=[*_SOURCE, "reason"]
        )
        for adapter, source, reason, total in totals[REJECTED]:
            rejected.add_metric([adapter, source, reason], total)
        yield rejected
        for name in DURATIONS:
            yield _histogram(name, totals[name])
        for name, meaning, query in (
            ("queue_pending", "Pages that wait in the queue or are being read.", _PENDING),
            ("adapter_enabled", "Whether the adapter may read the source: 1 or 0.", _ENABLED),
            ("quarantine_open", "Pages that wait for a person.", _WAITING),
        ):
            gauge = GaugeMetricFamily(f"harvester_scrape_{name}", meaning, labels=_SOURCE)
            for adapter, source, value in fetch_tuples(query):
                gauge.add_metric([adapter, source], value)
            yield gauge
        targets = {
            word: GaugeMetricFamily(f"harvester_scrape_targets_{word}", f"Pages that are {word}.", labels=_SOURCE)
            for word in ("active", "paused", "broken", "stale")
        }
        for adapter, source, status, number in fetch_tuples(_TARGETS):
            targets[status.lower()].add_metric([adapter, source], number)
        yield from targets.values()


def _counter(
    name: str, meaning: str, label: str | None, counted: Any, totals: list[tuple[str, str, str, int]]
) -> CounterMetricFamily:
    """Return a counter over those outcomes that it counts."""
    family = CounterMetricFamily(f"harvester_scrape_{name}", meaning, labels=[*_SOURCE, *([label] if label else [])])
    found: dict[tuple[str, ...], int] = defaultdict(int)
    for adapter, source, outcome, total in totals:
        is_counted = counted is None or (counted(outcome) if callable(counted) else outcome in counted)
        if is_counted:
            found[(adapter, source, outcome) if label else (adapter, source)] += total
    for labels, total in found.items():
        family.add_metric(list(labels), total)
    return family


def _histogram(name: str, totals: list[tuple[str, str, str, int]]) -> HistogramMetricFamily:
    what = {"fetch_ms": "fetch_duration", "extract_ms": "extract_duration", "wait_ms": "rate_limit_wait"}[name]
    family = HistogramMetricFamily(
        f"harvester_scrape_{what}_ms", "Milliseconds that pages took, or waited.", labels=_SOURCE
    )
    by_source: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for adapter, source, word, total in totals:
        by_source[adapter, source][word] = total
    for (adapter, source), words in by_source.items():
        buckets, reached = [], 0
        for end in (*map(str, RANGES), MORE):
            reached += words.get(end, 0)
            buckets.append((end, reached))
        family.add_metric([adapter, source], buckets, sum_value=words.get(SUM, 0))
    return family
