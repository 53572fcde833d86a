"""Sources whose pages may be read, runs over them, and workers that bring them to an end without waiting."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.conf import settings as django_settings
from django.db import connection, transaction

from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.runs import parts
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunTrigger
from harvester.scraping import lane_pace
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.runs import SCRAPE_RUNS
from tests.support import catalog
from tests.support.feed_world import LOOPBACK
from tests.support.workers import run_until_idle

CONTACT = {
    "scrape_contact_url": "https://bot.harvester.example/",
    "scrape_contact_mail": "bot@harvester.example",
}
#: So fast that no test waits for its turn.
FAST = {"requests_per_second": 10_000}
LANE = "127.0.0.1"


def allow_scraping(fixture: Any, **more: Any) -> None:
    """Let this process read pages of this machine; `fixture` is pytest-django's `settings`."""
    lane_pace.forget()
    fixture.CONFIG = replace(django_settings.CONFIG, egress_allow=LOOPBACK, **CONTACT, **more)


def source(config: dict[str, Any] | None = None, **values: Any) -> Source:
    """A source that may be read, at full speed."""
    given = {
        "scrape_enabled": True, "tos_reviewed_at": catalog.now(), "tos_approved_by": "olga", "adapter_id": "structured",
        "kind": "DIRECT", "last_promoted_at": None, "expiry_hours": 72, "scrape_config": {**FAST, **(config or {})},
    }  # fmt: skip
    return catalog.source(**{**given, **values})


def begin(
    of: Source, targets: Iterable[ScrapeTarget], trigger: RunTrigger = RunTrigger.MANUAL, lane: str = LANE
) -> Run:
    new = [parts.NewPart(target_id=each.pk, lane=lane, dedupe_key=f"scrape:{each.pk}") for each in targets]
    with transaction.atomic():
        return parts.begin(SCRAPE_RUNS, of, trigger, new)


def work(run: Run, most: int = 200, **options: Any) -> Run:
    """Work until all pages of the run have ended; nobody waits for a turn, a rest or a retry."""
    for _ in range(most):
        run_until_idle(queues=("pages",), **options)
        if not RunPart.objects.filter(run=run, outcome=None).exists():
            break
        hurry()
    run.refresh_from_db()
    return run


def hurry() -> None:
    """As if every wait were over."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET run_at = clock_timestamp() WHERE state IN ('pending', 'retryable')")
        cursor.execute("UPDATE job_lane_wakeups SET not_before = NULL, wake_at = clock_timestamp()")
        cursor.execute("UPDATE job_lanes SET not_before = NULL, wake_at = clock_timestamp()")
        cursor.execute("UPDATE rate_limits SET not_before = NULL, due = clock_timestamp() - interval '1 hour'")


def read_once(of: Source, url: str, *, trigger: RunTrigger = RunTrigger.MANUAL, **values: Any) -> RunPart:
    """Read one new page, and return its part."""
    target = catalog.target(of, url, **values)
    return part_of(work(begin(of, [target], trigger)))


def part_of(run: Run) -> RunPart:
    return RunPart.objects.get(run=run)


def job_of(part: RunPart) -> Job:
    return Job.objects.get(pk=part.job_id)
