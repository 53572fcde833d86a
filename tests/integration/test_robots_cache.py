"""robots.txt over real HTTP: nothing is requested without it, and what it forbids."""

import pytest
from tests.support import catalog
from tests.support import scrape_world as world
from tests.support.scripted_shop import ScriptedShop, acting, html, moved, product_page, status, text
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.models import Source
from harvester.engine.enqueue import enqueue
from harvester.kernel.urls import split_url
from harvester.ops.models import Alert
from harvester.runs.models import RunPart
from harvester.scraping import fetching, robots_cache
from harvester.scraping.jobs import CHECK_ROBOTS
from harvester.scraping.models import FetchRequest, RobotsFile

FORBID_ALL = text("User-agent: *\nDisallow: /")


@pytest.fixture
def shop(database, settings):
    world.allow_scraping(settings)
    with ScriptedShop({"/p": html(product_page())}) as running:
        yield running
    fetching.close()


def age(hours: float) -> None:
    """Let time pass for all files."""
    catalog.fetch(f"UPDATE robots_files SET expires_at = expires_at - interval '{hours} hours'")


@pytest.mark.parametrize(
    ("robots", "outcome", "words"),
    [
        (status(404), "OFFER", ""),
        (status(403), "OFFER", ""),
        (text(""), "OFFER", ""),
        (text("User-agent: *\nDisallow: /q"), "OFFER", ""),
        (text("User-agent: *\nDisallow: /p"), "BLOCKED_BY_ROBOTS_TXT", "line 2 for *: Disallow: /p"),
        (text("User-agent: harvester\nDisallow: /p"), "BLOCKED_BY_ROBOTS_TXT", "line 2 for harvester"),
        (text("User-agent: harvester\nAllow: /\nUser-agent: *\nDisallow: /"), "BLOCKED_BY_ROBOTS_TXT", "line 4 for *"),
        (text("<html>not a file of rules</html>"), "OFFER", ""),
    ],
)
def test_a_page_is_requested_only_if_its_file_allows_it(shop, robots, outcome, words):
    shop.replies["/robots.txt"] = robots
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert part.outcome == outcome
    assert words in part.detail.get("error", "")
    assert shop.asked("/robots.txt") == ["/robots.txt"]
    assert bool(shop.asked("/p")) == (outcome == "OFFER")


def hang_up(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-")


UNAVAILABLE = [status(500), status(503), status(429), status(304), acting(hang_up), moved(302, "/robots.txt")]


@pytest.mark.parametrize("robots", UNAVAILABLE, ids=["500", "503", "429", "304", "cut", "a circle"])
def test_without_the_file_nothing_is_requested_and_no_attempt_counts(shop, robots):
    shop.replies["/robots.txt"] = robots
    of = world.source()
    targets = [catalog.target(of, f"{shop.url}/p{number}") for number in range(20)]
    run = world.begin(of, targets)
    for _ in range(40):
        run_until_idle(queues=("pages",))
        if RobotsFile.objects.filter(failures=1).exists():
            break
        world.hurry()
    run_until_idle(queues=("pages",))
    assert set(shop.asked()) == {"/robots.txt"}
    assert len(shop.asked()) == (18 if robots is UNAVAILABLE[-1] else 3), "three tries"
    [(left,)] = rows("SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM robots_files")
    assert 800 < left <= 900
    assert not RunPart.objects.filter(run=run).exclude(outcome=None).exists()
    assert rows("SELECT DISTINCT attempt FROM jobs WHERE kind = 'scraping.page'") == [(0,)]
    [(rest,)] = rows("SELECT extract(epoch FROM max(not_before) - clock_timestamp())::float8 FROM job_lanes")
    assert 700 < rest <= 900, "one look for all pages of the lane"


def test_the_wait_doubles_up_to_a_day_and_pages_stop_waiting(shop):
    shop.replies["/robots.txt"] = status(500)
    of = world.source()
    run = world.begin(of, [catalog.target(of, f"{shop.url}/p")])
    waits = []
    for _ in range(60):
        run_until_idle(queues=("pages",))
        world.hurry()
        found = rows("SELECT failures, extract(epoch FROM expires_at - clock_timestamp())::int FROM robots_files")
        if found and found[0][0] > len(waits):
            waits.append(found[0][1])
            age(48)
        if RunPart.objects.get(run=run).outcome:
            break
    assert RunPart.objects.get(run=run).outcome == "ROBOTS_UNAVAILABLE"
    assert [round(wait / 900, 1) for wait in waits] == [1, 2, 4, 8]
    for _ in range(12):
        with catalog.connection.cursor() as cursor:
            robots_cache.failed(cursor, shop.url, 500, "status 500")
    [(most,)] = rows("SELECT extract(epoch FROM expires_at - clock_timestamp())::int FROM robots_files")
    assert 28_000 < most <= 86_400
    assert shop.asked("/p") == []


def test_the_file_counts_for_a_day_and_never_longer(shop):
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    world.work(world.begin(of, [target]))
    age(23)
    world.work(world.begin(of, [target]))
    assert len(shop.asked("/robots.txt")) == 1
    age(2)
    shop.replies["/robots.txt"] = status(503)
    run = world.begin(of, [target])
    for _ in range(10):
        run_until_idle(queues=("pages",))
        if RobotsFile.objects.filter(failures=1).exists():
            break
        world.hurry()
    assert len(shop.asked("/p")) == 2, "rules that are out of date allow nothing"
    assert RunPart.objects.get(run=run).outcome is None


def test_a_file_is_found_behind_redirects_of_the_same_scheme_host_and_port(shop):
    with ScriptedShop({"/rules": text("User-agent: *\nDisallow: /p")}) as other:
        shop.replies |= {"/robots.txt": moved(301, "/a"), "/a": moved(302, f"{other.url}/rules")}
        part = world.read_once(world.source(), f"{shop.url}/p")
        assert part.outcome == "BLOCKED_BY_ROBOTS_TXT"
        assert other.asked() == ["/rules"]
    assert shop.asked() == ["/robots.txt", "/a"]


def test_each_port_has_a_file_of_its_own(shop):
    with ScriptedShop({"/robots.txt": FORBID_ALL, "/p": html(product_page())}) as other:
        assert world.read_once(world.source(), f"{shop.url}/p").outcome == "OFFER"
        assert world.read_once(world.source(), f"{other.url}/p").outcome == "BLOCKED_BY_ROBOTS_TXT"


def test_a_crawl_delay_slows_the_lane(shop):
    shop.replies["/robots.txt"] = text("User-agent: *\nCrawl-delay: 30")
    of = world.source()
    run = world.begin(of, [catalog.target(of, f"{shop.url}/p"), catalog.target(of, f"{shop.url}/q")])
    for _ in range(10):
        run_until_idle(queues=("pages",))
        if shop.asked("/p") or shop.asked("/q"):
            break
        world.hurry()
    run_until_idle(queues=("pages",))
    assert len(shop.asked()) == 2
    [(rest,)] = rows("SELECT extract(epoch FROM max(not_before) - clock_timestamp())::float8 FROM job_lanes")
    assert 20 < rest <= 30
    assert run


def refresh(shop, of, times: int) -> None:
    """The source is read each time the file is out of date."""
    for _ in range(times):
        target = of.targets.order_by("id").first()
        world.work(world.begin(of, [target]))
        age(25)


def test_three_refusals_in_a_row_switch_the_source_off_and_an_answer_switches_it_on(shop):
    of = world.source()
    for name in ("p", "q"):
        catalog.target(of, f"{shop.url}/{name}")
    catalog.target(of, f"{shop.url}/allowed", enabled=False)
    shop.replies["/robots.txt"] = text("User-agent: *\nDisallow: /p\nDisallow: /q")
    refresh(shop, of, 2)
    of.refresh_from_db()
    assert (of.robots_refusals, of.robots_compliant) == (2, True)
    refresh(shop, of, 1)
    of.refresh_from_db()
    assert (of.robots_refusals, of.robots_compliant, of.robots_set_by) == (3, False, None)
    assert Alert.objects.get(key=f"ROBOTS_DISALLOWED:{of.pk}").resolved_at is None
    assert rows("SELECT actor_kind, actor_name FROM audit_events WHERE verb = 'ROBOTS_REFUSES_SOURCE'") == [
        ("system", "robots")
    ]
    check_again()
    of.refresh_from_db()
    assert not of.robots_compliant, "nothing has changed"
    age(25)
    shop.replies["/robots.txt"] = text("User-agent: *\nDisallow: /p")
    check_again()
    of.refresh_from_db()
    assert (of.robots_refusals, of.robots_compliant) == (0, True)
    assert Alert.objects.get(key=f"ROBOTS_DISALLOWED:{of.pk}").resolved_at is not None
    assert len(rows("SELECT FROM audit_events WHERE verb = 'ROBOTS_ALLOWS_SOURCE'")) == 1


def check_again() -> None:
    enqueue(CHECK_ROBOTS)
    for _ in range(5):
        run_until_idle(queues=("maintenance", "pages"))
        world.hurry()
        if not FetchRequest.objects.filter(outcome=None).exists():
            return


def test_one_page_that_is_allowed_keeps_the_source_on(shop):
    of = world.source()
    for name in ("p", "q"):
        catalog.target(of, f"{shop.url}/{name}")
    shop.replies["/robots.txt"] = text("User-agent: *\nDisallow: /p")
    refresh(shop, of, 4)
    of.refresh_from_db()
    assert (of.robots_refusals, of.robots_compliant) == (0, True)


def test_what_a_person_switched_off_stays_off(shop):
    of = world.source(robots_compliant=False)
    catalog.target(of, f"{shop.url}/p")
    Source.objects.filter(pk=of.pk).update(robots_set_by="olga")
    check_again()
    assert shop.asked() == [], "there is nothing to check"
    refresh_of = robots_cache.fetched(shop.url, 200, b"User-agent: *\nAllow: /")
    assert refresh_of.allowing == [of.pk]
    with catalog.connection.cursor() as cursor:
        refresh_of.write(cursor)
    of.refresh_from_db()
    assert not of.robots_compliant


def test_the_answer_names_the_line(database):
    with catalog.connection.cursor() as cursor:
        robots_cache.fetched("https://shop.example", 200, b"User-agent: *\n\nDisallow: /*?sort=").write(cursor)
    answers = {path: robots_cache.check(split_url(f"https://shop.example{path}")) for path in ("/p?sort=a", "/p", "")}
    assert [answer.is_allowed for answer in answers.values()] == [False, True, True]
    assert answers["/p?sort=a"].why == "https://shop.example/robots.txt forbids it in line 3 for *: Disallow: /*?sort=."
    assert robots_cache.check(split_url("https://www.shop.example/p")).is_allowed is None
    assert robots_cache.check(split_url("http://shop.example/p")).is_allowed is None
