"""Lanes, limits and the client together, measured in the log of the shops."""

from contextlib import ExitStack

import pytest
from tests.support.page_server import page_server, politeness
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import ended_at_last, start_worker_process

from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.models import Job

INTERVAL = 0.5
#: Requests made, of those allowed. The times of the log are only as exact as the machine is idle: if the first request
#: is noted late, all of them seem to be faster. `make bench-scrape` measures the gaps.
TOO_FAST = 1.5
DOMAINS = [f"shop{number}.home.arpa" for number in range(3)]
PAGES = 16


def domain_of(host: str) -> str:
    return host.removeprefix("www.")


@pytest.fixture
def shops(tmp_path):
    with page_server(tmp_path / "requests") as server:
        server.behave(seconds=0.02)
        yield server


def enqueue_visits(shops, pages: int = PAGES) -> None:
    """Pages of each domain, half of them on its subdomain."""
    enqueue_many(
        NewJob(
            kind="test.visit",
            lane=domain,
            args={"url": shops.url(host, f"/{number}"), "domain": domain, "interval": INTERVAL},
        )
        for number in range(pages // 2)
        for domain in DOMAINS
        for host in (domain, f"www.{domain}")
    )


def done() -> int:
    return Job.objects.filter(state="succeeded").count()


def test_several_workers_visit_each_domain_at_its_pace(database, shops):
    enqueue_visits(shops)
    every = PAGES * len(DOMAINS)
    with ended_at_last([start_worker_process("threads=4", TEST_LOCAL_NAMES="1") for _ in range(3)]):
        wait_for(lambda: done() == every, "all pages")
    measured = politeness(shops.seen(), INTERVAL, domain_of)
    assert {domain: one.requests for domain, one in measured.items()} == dict.fromkeys(DOMAINS, PAGES)
    assert {one.most_at_once for one in measured.values()} == {1}
    assert max(one.budget_used for one in measured.values()) < TOO_FAST
    [(claims,)] = rows("SELECT count(*) FROM job_events WHERE state = 'running'")
    # The first visit of each domain waits, because the limits have just begun.
    assert claims <= 1.05 * every + len(DOMAINS)


def test_a_killed_worker_costs_its_domain_no_more_than_time(database, shops):
    enqueue_visits(shops)
    every = PAGES * len(DOMAINS)
    with ExitStack() as stack:
        first, second = (start_worker_process("threads=4", TEST_LOCAL_NAMES="1") for _ in range(2))
        stack.enter_context(ended_at_last([first, second]))
        wait_for(lambda: done() >= every // 4, "some pages")
        first.kill()
        wait_for(lambda: done() == every, "all pages")
    measured = politeness(shops.seen(), INTERVAL, domain_of)
    assert {one.most_at_once for one in measured.values()} == {1}
    assert max(one.budget_used for one in measured.values()) < TOO_FAST
    assert sum(one.requests for one in measured.values()) <= every + 4
