"""`python -m tests.bench.pages`: how fast each page is with 1,000 feeds, 100,000 runs and 1,000,000 offers."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tests.bench.contender import ROOT
from tests.bench.page_report import bars, show
from tests.bench.server import own_server

JSON_FILE = ROOT / "build" / "bench" / "pages.json"
#: Columns: addresses are long, and cut off they say nothing.
WIDTH = 150
#: Waiting jobs, so that their lists are long too.
JOBS = 25_000


def main() -> int:
    options = _options()
    with _server(options.home), Progress(transient=True) as progress:
        _prepare(options, progress)
        pages = _measure(options, progress)
    asked = bars(pages)
    show(Console(width=WIDTH), pages, asked)
    JSON_FILE.parent.mkdir(parents=True, exist_ok=True)
    JSON_FILE.write_text(json.dumps([page.as_dict() for page in pages], indent=2) + "\n")
    return 0 if all(bar.reached for bar in asked) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pages", description=__doc__)
    parser.add_argument("--feeds", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--offers", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=40, help="how often each page is asked for")
    parser.add_argument("--depth", type=int, default=100, help="how many pages deep lists are followed")
    parser.add_argument("--home", type=Path, help="seed once and keep it here, for the next time")
    parser.add_argument("--only", default="", help="only addresses that begin so")
    return parser.parse_args()


@contextmanager
def _server(home: Path | None) -> Iterator[None]:
    if home is None:
        with own_server():
            yield
        return
    os.environ |= {"HARVESTER_HOME": str(home), "DJANGO_SETTINGS_MODULE": "harvester.settings"}
    import django

    django.setup()
    from django.conf import settings

    from harvester.engine.embedded import Cluster
    from harvester.guards.logs import configure_logging
    from harvester.ops.database import migrate

    configure_logging("warning")
    with Cluster(settings.CONFIG.home, os_user=settings.CONFIG.database_os_user).hold():
        migrate()
        yield


def _prepare(options: argparse.Namespace, progress: Progress) -> None:
    from tests.bench.seeding.fill import fill, has_data
    from tests.bench.seeding.plan import Plan

    if not has_data():
        task = progress.add_task("seeding", total=options.offers)
        plan = Plan(feeds=options.feeds, runs=options.runs, offers=options.offers)
        fill(plan, lambda done, _total, note: progress.update(task, completed=done, description=note))
        progress.remove_task(task)
    _add_jobs()
    _add_what_people_make()
    _add_a_test()


def _add_jobs() -> None:
    from harvester.catalog.offers import CHECK_OFFERS
    from harvester.engine.enqueue import NewJob, enqueue_many
    from harvester.engine.models import Job

    missing = JOBS - Job.objects.count()
    if missing > 0:
        enqueue_many(NewJob(kind=CHECK_OFFERS) for _ in range(missing))


def _add_what_people_make() -> None:
    """A correction, revoked so that it changes no offer, and an API key."""
    from django.db.models.functions import Now

    from harvester.catalog.models import PriceCorrection, Retailer
    from harvester.ops.models import ApiKey
    from tests.support.api import stored_key

    if not ApiKey.objects.exists():
        stored_key()
    retailer = Retailer.objects.first()
    if retailer and not PriceCorrection.objects.exists():
        PriceCorrection.objects.create(
            scope="RETAILER",
            retailer=retailer,
            action="IGNORE",
            reason="measured",
            created_by="bench",
            revoked_by="bench",
            revoked_at=Now(),
        )


def _add_a_test() -> None:
    """What a test run of the largest feed found."""
    from harvester.feeds.jobs import TEST
    from harvester.feeds.models import Feed
    from tests.support.portal import job
    from tests.support.portal_feeds import FOUND

    largest = Feed.objects.order_by("-source__last_promoted_count").exclude(source__last_promoted_count=None).first()
    if largest is not None:
        job("succeeded", TEST, args={"feed_id": str(largest.pk)}, result=json.dumps(FOUND))


def _measure(options: argparse.Namespace, progress: Progress) -> list:
    from tests.bench.page_visits import measure

    return measure(rounds=options.rounds, depth=options.depth, only=options.only, progress=progress)


if __name__ == "__main__":
    raise SystemExit(main())
