"""kill -9 of the worker anywhere between the request of a page and its end: the same result, one more request at most,
and a page that was kept is never requested again.
"""

import pytest
from tests.support import catalog
from tests.support import scrape_world as world
from tests.support.feed_twins import take_over
from tests.support.feed_worker import wait_at_point
from tests.support.scrape_worker import scrape_worker
from tests.support.scripted_shop import ScriptedShop, html, moved, product_page
from tests.support.tables import rows

from harvester.runs.models import RunPart
from harvester.scraping import fetching

#: Before the page is kept: it may be requested once more.
BEFORE = {
    "before robots.txt is requested": ["STEP _send"],
    "before robots.txt is stored": ["INSERT INTO robots_files"],
    "before the first hop": ["INSERT INTO robots_files", "COMMITTED", "STEP _send"],
    "before the hop is stored": ["UPDATE run_parts SET detail"],
    "when the hop is stored": ["UPDATE run_parts SET detail", "COMMITTED"],
    "before the page": ["UPDATE run_parts SET detail", "STEP _send"],
    "when the page is there": ["STEP _keep"],
    "before its file": ["STEP store_body"],
    "before its row": ["INSERT INTO kept_pages"],
    "before the part has it": ["UPDATE run_parts SET page"],
    "before the commit": ["UPDATE run_parts SET page", "COMMIT"],
}
#: Afterwards it never is.
AFTER = {
    "when it is kept": ["UPDATE run_parts SET page", "COMMITTED"],
    "before it is read": ["STEP end_of"],
    "before the part ends": ["STEP end_of", "UPDATE run_parts SET outcome"],
    "before its target": ["STEP note_end"],
    "before prices": ["STEP note_end", "INSERT INTO prices"],
    "before it was judged": ["STEP note_end", 'SET "judged_at"'],
    "before what was read is noted": ["UPDATE kept_pages"],
    "before the run ends": ["STEP note_end", 'UPDATE "runs"'],
    "before the end of the job": ["STEP note_end", "WITH ending"],
    "before the last commit": ["STEP note_end", "WITH ending", "COMMIT"],
    "after the last commit": ["STEP note_end", "WITH ending", "COMMITTED"],
}
#: What a run leaves behind, apart from ids and times.
TABLES = {
    "run_parts": "outcome, found, page, version, detail - 'fetch_ms' - 'extract_ms' - 'wait_ms', judged_at IS NULL",
    "kept_pages": "hash, url, status, content_type, outcome, found, importance",
    "scrape_targets": "last_status, page, moved_to, consecutive_failures, last_seen -> 'offer', pinned, etag",
    "prices": "amount, currency, in_stock, run_type",
    "offers": "amount, in_stock",
    "source_products": "title, sku, identity_value",
    "runs": "kind, status, outcome",
    "scrape_runs": "pages, offers, prices_written, products_new",
    "quarantine": "reason",
}


@pytest.fixture
def shop(database, settings):
    world.allow_scraping(settings)
    replies = {"/p": moved(301, "/q"), "/q": html(product_page(), ETag='"1"')}
    with ScriptedShop(replies) as running:
        yield running
    fetching.close()


def left() -> dict[str, list[tuple]]:
    return {name: sorted(rows(f"SELECT {columns} FROM {name}"), key=str) for name, columns in TABLES.items()}


def begin(shop):
    of = world.source()
    return world.begin(of, [catalog.target(of, f"{shop.url}/p")])


@pytest.fixture
def undisturbed(shop, empty_database):
    world.work(begin(shop))
    found = left()
    empty_database()
    shop.log.clear()
    return found


@pytest.fixture
def empty_database():
    from tests.support.tables import empty_all

    return empty_all


def killed_at(path, run) -> None:
    """A worker reads the page, whose waits are over, and is killed at the end of the path."""
    job = RunPart.objects.get(run=run).job_id
    with scrape_worker(*path, threads=1) as victim:
        backend = wait_at_point()
        victim.kill()
    take_over(job, backend)


@pytest.mark.parametrize("path", [*BEFORE.values(), *AFTER.values()], ids=[*BEFORE, *AFTER])
def test_a_page_whose_worker_was_killed_ends_like_any_other(shop, undisturbed, path):
    run = begin(shop)
    killed_at(path, run)
    asked = list(shop.asked())
    world.work(run)
    assert undisturbed["prices"] != [], "there is something to compare"
    assert left() == undisturbed
    again = len(shop.asked()) - len(["/robots.txt", "/p", "/q"])
    assert again <= 1, shop.asked()
    if path in AFTER.values():
        assert shop.asked() == asked == ["/robots.txt", "/p", "/q"], "nothing was requested again"
