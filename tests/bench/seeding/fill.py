"""Filling a database according to a plan."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, connections

from harvester.catalog.models import Source
from harvester.feeds.figures import keep_days
from tests.bench.seeding.aftermath import write_aftermath
from tests.bench.seeding.plan import Plan
from tests.bench.seeding.products import write_products
from tests.bench.seeding.runs import write_runs
from tests.bench.seeding.shops import shops, write_shops

#: Progress: done, total, step.
Log = Callable[[int, int, str], None]
#: The planner and the visibility map must know of the new rows, as they would in a database that has grown by itself.
TABLES = (
    *("retailers", "sources", "feeds", "runs", "feed_runs", "feed_run_samples", "source_products", "prices"),
    *("offers", "offer_words", "held_changes", "run_differences", "products", "product_links", "feed_days", "alerts"),
    *("audit_events", "jobs", "sealed_secrets"),
)


@dataclass(frozen=True, kw_only=True)
class Filled:
    """What was made."""

    feeds: int
    runs: int
    offers: int
    prices: int


def has_data() -> bool:
    """Whether somebody's catalog is in this database already."""
    return Source.objects.exists()


def fill(plan: Plan, log: Log = lambda _done, _total, _note: None) -> Filled:
    """Add the plan's rows to the database. Stop workers and scheduler first."""
    made = shops(plan, Source.objects.count())
    moment = _now()
    log(0, plan.offers, "feeds and runs")
    write_shops(made, moment)
    write_runs(made, moment, plan.seed)
    for done in write_products(made, plan.prices_per_offer):
        log(done, plan.offers, "products, prices and offers")
    log(plan.offers, plan.offers, "tidying up")
    write_aftermath()
    keep_days()
    _tidy()
    return Filled(feeds=plan.feeds, runs=plan.runs, offers=plan.offers, prices=plan.offers * plan.prices_per_offer)


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def _tidy() -> None:
    """Only the owner of tables may."""
    with connections["owner"].cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"VACUUM ANALYZE {table}")
