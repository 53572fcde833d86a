"""Shops that accept and never answer keep no page of another shop from being read."""

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
from harvester.scraping.states import PageOutcome

SILENT = [f"silent{number}.urn.arpa" for number in range(7)]
DRIPPING = [f"dripping{number}.urn.arpa" for number in range(3)]
OTHERS = [f"other{number}.urn.arpa" for number in range(4)]
PAGES = 5
#: Sessions that handlers write with or have left idle, without the engine's own ones.
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND application_name NOT IN ('harvester dispatch', 'harvester heartbeat', 'harvester listen', 'harvester maintenance')
"""


@pytest.fixture
def shops(database, settings, tmp_path):
    world.allow_scraping(settings)
    with page_server(tmp_path / "requests") as server:
        for host in SILENT:
            server.behave(host, pages="hang", robots="hang")
        for host in DRIPPING:
            server.behave(host, pages="drip", robots="drip")
        yield server


def begin(shops, hosts: list[str]):
    sources = {host: world.source(owner=catalog.retailer(domain=host)) for host in hosts}
    lane_pace.forget()
    return [
        world.begin(of, [catalog.target(of, shops.url(host, f"/{number}")) for number in range(PAGES)], lane=host)
        for host, of in sources.items()
    ]


def test_two_threads_read_all_pages_of_other_shops_while_ten_shops_do_not_answer(shops):
    [(before,)] = rows(SESSIONS)
    slow = begin(shops, SILENT + DRIPPING)
    with scrape_worker(threads=2, urgent_slots=0):

        def asked() -> set[str]:
            return {seen.host for seen in shops.seen() if seen.end is None}

        wait_for(lambda: asked() == {*SILENT, *DRIPPING}, "ten requests at the same time")
        wait_for(lambda: rows(SESSIONS)[0][0] <= before + 2, "who waits has no session")
        others = begin(shops, OTHERS)
        wait_for(lambda: not RunPart.objects.filter(run__in=others, outcome=None).exists(), "the pages of the others")
    assert set(RunPart.objects.filter(run__in=others).values_list("outcome", flat=True)) == {PageOutcome.OFFER}
    assert set(RunPart.objects.filter(run__in=slow).values_list("outcome", flat=True)) == {None}
    found = politeness([seen for seen in shops.seen() if seen.end is not None], 0.0, registrable_domain)
    assert {one.most_at_once for one in found.values()} <= {1}
