"""Figures of feeds for Prometheus."""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from harvester.catalog.named_rows import fetch_tuples
from harvester.feeds.states import FeedStatus
from harvester.ops import metrics
from harvester.runs.states import RunOutcome, RunStatus

_BY_STATUS = "SELECT status, count(*) FROM feeds WHERE retired_at IS NULL GROUP BY status"
#: The outcome of a run that succeeded, otherwise its status.
_OUTCOMES = (RunStatus.RUNNING, RunStatus.FAILED, *RunOutcome)
_RUNS = """
SELECT CASE WHEN status = 'SUCCEEDED' THEN outcome ELSE status END, count(*) FROM runs
WHERE kind = 'AFFILIATE_FEED' AND started_at > clock_timestamp() - interval '24 hours' GROUP BY 1
"""
_HELD = "SELECT count(*) FROM feeds f JOIN sources s ON s.id = f.source_id WHERE s.held_run_no IS NOT NULL"
_AGES = """
SELECT f.id::text, s.name, extract(epoch FROM clock_timestamp() - s.last_promoted_at)::float8
FROM feeds f JOIN sources s ON s.id = f.source_id
WHERE s.last_promoted_at IS NOT NULL AND f.retired_at IS NULL ORDER BY f.id
"""


def register() -> None:
    metrics.add_collector(FeedCollector())


class FeedCollector(Collector):
    """The numbers of feeds and runs by status, and the age of each feed's last promotion."""

    def collect(self) -> Iterator[Metric]:
        yield _counted("harvester_feeds", "Feeds in each status.", "status", FeedStatus, _BY_STATUS)
        yield _counted(
            "harvester_feed_runs_last_day",
            "Runs of feeds that began in the last 24 hours.",
            "outcome",
            _OUTCOMES,
            _RUNS,
        )
        yield GaugeMetricFamily(
            "harvester_feeds_held", "Feeds with a run that waits for a person.", value=fetch_tuples(_HELD)[0][0]
        )
        ages = GaugeMetricFamily(
            "harvester_feed_last_promotion_age_seconds",
            "How long ago what consumers see of a feed was confirmed by a run.",
            labels=["feed_id", "feed"],
        )
        for feed_id, name, age in fetch_tuples(_AGES):
            ages.add_metric([feed_id, name], age)
        yield ages


def _counted(name: str, meaning: str, label: str, words: Any, query: str) -> GaugeMetricFamily:
    """Return the count of each label, zeros included."""
    found = dict(fetch_tuples(query))
    gauge = GaugeMetricFamily(name, meaning, labels=[label])
    for word in words:
        gauge.add_metric([word.value], found.get(word.value, 0))
    return gauge
