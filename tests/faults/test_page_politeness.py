"""Several workers read pages of a few shops and their subdomains, and some are killed: measured in the shops' log."""

import itertools
from contextlib import ExitStack

import pytest
from tests.support import catalog
from tests.support import scrape_world as world
from tests.support.page_server import page_server, politeness
from tests.support.scrape_worker import scrape_worker
from tests.support.tables import rows
from tests.support.waiting import wait_for

from harvester.kernel.domains import registrable_domain
from harvester.runs.models import RunPart
from harvester.scraping import lane_pace

INTERVAL = 0.5
#: Requests made, of those allowed. The times of the log are only as exact as the machine is idle: if the first request
#: is noted late, all of them seem to be faster. `make bench-scrape` measures the gaps.
TOO_FAST = 1.5
SHOPS = [f"shop{number}.home.arpa" for number in range(3)]
PAGES = 12


@pytest.fixture
def shops(database, settings, tmp_path):
    world.allow_scraping(settings)
    with page_server(tmp_path / "requests") as server:
        server.behave(seconds=0.02)
        yield server


def begin(shops) -> int:
    """A run over the pages of each shop, half of them on a subdomain; return the number of pages."""
    sources = {}
    for shop in SHOPS:
        owner = catalog.retailer(domain=shop)
        sources[shop] = world.source({"requests_per_second": 1 / INTERVAL}, owner=owner)
    lane_pace.forget()
    for shop, of in sources.items():
        hosts = itertools.cycle((shop, f"www.{shop}"))
        urls = [shops.url(next(hosts), f"/{number}") for number in range(PAGES)]
        world.begin(of, [catalog.target(of, url) for url in urls], lane=shop)
    return PAGES * len(SHOPS)


def ended() -> int:
    return RunPart.objects.exclude(outcome=None).count()


def measured(shops):
    return politeness(shops.seen(), INTERVAL, registrable_domain)


def test_several_workers_together_keep_the_pace_of_each_shop(shops):
    pages = begin(shops)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(scrape_worker(threads=4))
        wait_for(lambda: ended() == pages, "all pages")
    found = measured(shops)
    # Two files of robots.txt for each shop: that of the domain, and that of its subdomain.
    assert {shop: one.requests for shop, one in found.items()} == dict.fromkeys(SHOPS, PAGES + 2)
    assert {one.most_at_once for one in found.values()} == {1}
    assert max(one.budget_used for one in found.values()) < TOO_FAST
    [(claims,)] = rows("SELECT count(*) FROM job_events WHERE state = 'running'")
    assert claims <= 1.05 * (PAGES + 2) * len(SHOPS) + len(SHOPS), "who waits for a turn is not claimed"
    assert rows("SELECT DISTINCT attempt FROM jobs WHERE kind = 'scraping.page'") == [(1,)]


def test_killed_workers_cost_a_shop_no_more_than_time(shops):
    pages = begin(shops)
    with ExitStack() as stack:
        first, second, _ = (stack.enter_context(scrape_worker(threads=4)) for _ in range(3))
        wait_for(lambda: ended() >= pages // 4, "some pages")
        first.kill()
        wait_for(lambda: ended() >= pages // 2, "more pages")
        second.kill()
        wait_for(lambda: ended() == pages, "all pages")
    found = measured(shops)
    assert {one.most_at_once for one in found.values()} == {1}
    assert max(one.budget_used for one in found.values()) < TOO_FAST
    # Each killed worker had one page of each shop at most.
    assert sum(one.requests for one in found.values()) <= pages + 2 * len(SHOPS) + 2 * len(SHOPS)
    shown = rows("SELECT DISTINCT outcome FROM run_parts")
    assert len(shown) == 1, shown
