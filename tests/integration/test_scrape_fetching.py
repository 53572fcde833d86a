"""A page over real HTTP: what each answer of a shop becomes, and what is asked of it."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from tests.support import catalog
from tests.support import scrape_world as world
from tests.support.api import Application
from tests.support.commands_inside import harvester
from tests.support.feed_world import OLGA
from tests.support.portal import person
from tests.support.scripted_shop import ScriptedShop, acting, html, moved, status, text
from tests.support.scripted_shop import product_page as page
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.models import Retailer, Source
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.kernel.errors import Conflict
from harvester.ops.models import Alert, Role
from harvester.runs.models import RunPart
from harvester.runs.states import RunTrigger
from harvester.scraping import alerts, fetching, kept_pages, page_review, verbs
from harvester.scraping.jobs import JUDGE
from harvester.scraping.models import AdapterState, KeptPage, QuarantineEntry, ScrapeOverride, ScrapeTarget


@pytest.fixture
def shop(database, settings):
    world.allow_scraping(settings)
    with ScriptedShop() as running:
        yield running
    fetching.close()


def test_a_page_is_fetched_once_kept_and_read(shop):
    shop.replies["/p"] = html(page("Hammer", "19.99"))
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert (part.outcome, part.found["price"]) == ("OFFER", "19.99 USD")
    assert shop.asked() == ["/robots.txt", "/p"]
    kept = KeptPage.objects.get()
    assert (kept.hash, kept.target_id, kept.url, kept.fetched_at) == (
        part.page, part.target_id, f"{shop.url}/p", part.observed_at,
    )  # fmt: skip
    assert kept_pages.read_body(part.page).decode() == page("Hammer", "19.99")
    assert ScrapeTarget.objects.get().page == part.page


@pytest.mark.parametrize(
    ("reply", "outcome", "words"),
    [
        (status(404), "GONE", "no such page"),
        (status(410), "GONE", "no such page"),
        (status(403), "BLOCKED_PAGE", "refused"),
        (status(401), "BLOCKED_PAGE", "refused"),
        (status(418), "NETWORK", "status 418"),
        (status(505), "NETWORK", "status 505"),
        (status(304), "NETWORK", "status 304"),
        (text("plain"), "PAGE_STRUCTURE_CHANGED", "'text/plain', which is not a page"),
        (moved(302, "https://other-shop.example/p"), "WRONG_DOMAIN", "another shop"),
        (moved(302, "ftp://127.0.0.1/p"), "WRONG_DOMAIN", "not a web address"),
        (moved(302, "http://olga:secret@127.0.0.1/p"), "WRONG_DOMAIN", "not a web address"),
        (moved(302, "http://10.0.0.1/p"), "WRONG_DOMAIN", "another shop"),
        (moved(302, "/p"), "NETWORK", "redirects more than 5 times"),
    ],
)
def test_each_answer_has_one_clear_outcome(shop, reply, outcome, words):
    shop.replies["/p"] = reply
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert part.outcome == outcome
    assert words in part.detail["error"]
    assert part.observed_at is not None
    assert not KeptPage.objects.exists()
    assert len(shop.asked("/p")) == (6 if "more than 5" in words else 1), "only busy servers are asked again"


@pytest.mark.parametrize("number", [429, 500, 502, 503, 504])
def test_a_busy_shop_is_asked_three_times(shop, number):
    shop.replies["/p"] = status(number)
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert part.outcome == ("RATE_LIMITED" if number == 429 else "NETWORK")
    assert len(shop.asked("/p")) == 3
    assert world.job_of(part).attempt == 3


def test_a_shop_that_recovers_is_read(shop):
    shop.replies["/p"] = [status(503), status(500), html(page())]
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert (part.outcome, world.job_of(part).attempt) == ("OFFER", 3)


def rest_of_lane() -> float:
    """Seconds for which nothing of the lane is claimed, and nothing is granted."""
    [(postponed,)] = rows(
        "SELECT extract(epoch FROM not_before - clock_timestamp())::float8 FROM rate_limits "
        "WHERE name = 'page:127.0.0.1'"
    )
    return min(rest_of_lane_seconds(), postponed)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ({"Retry_After": "7200"}, 7000, 7200),
        ({"Retry_After": "Thu, 01 Jan 2026 10:30:00 GMT", "Date": "Thu, 01 Jan 2026 10:00:00 GMT"}, 1500, 1800),
        ({"Retry_After": "999999999"}, 86_000, 86_400),
        ({"Retry_After": "soon"}, 30, 60),
        ({}, 30, 60),
    ],
)
def test_a_lane_rests_until_the_shop_wants_to_be_asked_again(shop, header, least, most):
    shop.replies["/p"] = status(429, **header)
    of = world.source()
    one, two = (catalog.target(of, f"{shop.url}/{name}") for name in ("p", "q"))
    world.begin(of, [one, two])
    for _ in range(20):
        run_until_idle(queues=("pages",))
        if shop.asked("/p") or shop.asked("/q"):
            break
        world.hurry()
    run_until_idle(queues=("pages",))
    assert len(shop.asked("/p")) + len(shop.asked("/q")) == 1
    assert least < rest_of_lane() <= most
    first = Job.objects.get(state="retryable")
    assert first.attempt == 1
    assert least - 1 < (first.run_at - catalog.now()).total_seconds() <= most * 1.3, "so is the job itself"


def test_a_redirect_is_followed_with_a_turn_of_its_own_and_remembered(shop):
    shop.replies |= {
        "/p": moved(301, "/q#buy"),
        "/q": moved(308, f"{shop.url}/r"),
        "/r": moved(302, "/s"),
        "/s": html(page()),
    }
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert (part.outcome, part.detail["moved_to"], part.detail["url"]) == ("OFFER", f"{shop.url}/r", f"{shop.url}/s")
    assert shop.asked() == ["/robots.txt", "/p", "/q", "/r", "/s"]
    assert world.job_of(part).attempt == 1


def test_a_temporary_redirect_is_not_remembered(shop):
    shop.replies |= {"/p": moved(302, "/q"), "/q": moved(301, "/r"), "/r": html(page())}
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert part.outcome == "OFFER"
    assert "moved_to" not in part.detail


def test_every_hop_is_checked_by_robots(shop):
    shop.replies |= {"/robots.txt": text("User-agent: *\nDisallow: /private"), "/p": moved(302, "/private/p")}
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert part.outcome == "BLOCKED_BY_ROBOTS_TXT"
    assert "line 2 for *: Disallow: /private" in part.detail["error"]
    assert shop.asked() == ["/robots.txt", "/p"]


def test_the_address_is_requested_as_given_and_says_who_asks(shop):
    path = "/p?utm_source=x&b=2&a=1&sku=&c=%7E"
    shop.replies[path] = html(page())
    of = world.source({"headers": {"Accept-Language": "de", "X-Partner": "7", "Cookie": "a=b", "Host": "evil"}})
    part = world.read_once(of, f"{shop.url}{path}", canonical_url="https://127.0.0.1/p")
    assert part.outcome == "OFFER"
    [robots, asked] = shop.log
    assert asked.path == path
    assert asked.host == f"127.0.0.1:{shop.port}"
    sent = asked.headers
    assert re.fullmatch(
        r"Harvester/[0-9.]+ \(\+https://bot\.harvester\.example/; bot@harvester\.example\)", sent["user-agent"]
    )
    assert (sent["accept"], sent["accept-language"], sent["x-partner"]) == (
        "text/html,application/xhtml+xml",
        "de",
        "7",
    )
    assert "cookie" not in sent
    assert robots.headers["user-agent"] == sent["user-agent"]


def test_without_a_contact_nothing_is_requested(shop, settings):
    settings.CONFIG = replace(settings.CONFIG, scrape_contact_mail="")
    part = world.read_once(world.source(), f"{shop.url}/p")
    assert (part.outcome, part.detail["code"]) == ("FAILED", "CONFIG")
    assert "HARVESTER_SCRAPE_CONTACT_MAIL" in part.detail["error"]
    assert shop.asked() == []


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ({"scrape_enabled": False}, "is switched off"),
        ({"enabled": False}, "is switched off"),
        ({"robots_compliant": False}, "robots.txt"),
    ],
)
def test_a_source_that_is_switched_off_is_not_asked(shop, switch, words):
    of = world.source()
    run = world.begin(of, [catalog.target(of, f"{shop.url}/p")])
    Source.objects.filter(pk=of.pk).update(**switch)
    part = world.part_of(world.work(run))
    assert part.outcome == "CANCELLED"
    assert words in part.detail["error"]
    assert shop.asked() == []


def test_an_adapter_that_is_switched_off_reads_nothing(shop):
    of = world.source()
    run = world.begin(of, [catalog.target(of, f"{shop.url}/p")])
    AdapterState.objects.create(source=of, adapter_id="structured", enabled=False, disabled_reason="MANUAL")
    assert world.part_of(world.work(run)).outcome == "CANCELLED"
    assert shop.asked() == []


def test_switches_are_read_again_before_each_request(shop):
    of = world.source()

    def switch_off(handler):
        Source.objects.filter(pk=of.pk).update(scrape_enabled=False)
        connection.close()
        handler.send_response(302)
        handler.send_header("Location", "/q")
        handler.end_headers()

    shop.replies |= {"/p": acting(switch_off), "/q": html(page())}
    assert world.read_once(of, f"{shop.url}/p").outcome == "CANCELLED"
    assert shop.asked() == ["/robots.txt", "/p"]


@pytest.mark.parametrize(
    ("trigger", "values", "outcome"),
    [
        ("SCHEDULED", {"enabled": False}, "CANCELLED"),
        ("SCHEDULED", {"status": "BROKEN"}, "CANCELLED"),
        ("RECHECK", {"status": "BROKEN"}, "OFFER"),
        ("RECHECK", {"status": "PAUSED"}, "CANCELLED"),
        ("MANUAL", {"status": "PAUSED"}, "CANCELLED"),
        ("MANUAL", {"robots_path_blocked": True}, "BLOCKED_BY_ROBOTS_TXT"),
    ],
)
def test_the_state_of_a_page_counts_as_its_run_allows(shop, trigger, values, outcome):
    shop.replies["/p"] = html(page())
    part = world.read_once(world.source(), f"{shop.url}/p", trigger=RunTrigger(trigger), **values)
    assert part.outcome == outcome
    assert bool(shop.asked("/p")) == (outcome == "OFFER")


def test_a_page_that_has_not_changed_is_not_sent_again(shop):
    shop.replies["/p"] = [html(page(), ETag='"a"', Last_Modified="Thu, 01 Jan 2026 10:00:00 GMT"), status(304)]
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    first = world.part_of(world.work(world.begin(of, [target])))
    assert first.outcome == "OFFER"
    # As the end of the page writes it.
    ScrapeTarget.objects.update(last_status="OFFER")
    second = world.part_of(world.work(world.begin(of, [target])))
    assert (second.outcome, second.page) == ("NOT_MODIFIED", None)
    assert second.observed_at > first.observed_at
    sent = shop.log[-1].headers
    assert (sent["if-none-match"], sent["if-modified-since"]) == ('"a"', "Thu, 01 Jan 2026 10:00:00 GMT")


@pytest.mark.parametrize(
    ("values", "config", "trigger"),
    [
        ({"last_status": "PRICE_MOVE"}, {}, "MANUAL"),
        ({"last_status": "PRICE_NOT_FOUND"}, {}, "MANUAL"),
        ({"last_full_fetch_at": "2026-01-01T00:00Z"}, {}, "MANUAL"),
        ({}, {"conditional": False}, "MANUAL"),
        ({}, {}, "RECHECK"),
    ],
    ids=["moved", "failed", "a day ago", "switched off", "second look"],
)
def test_a_full_page_is_requested_where_it_is_needed(shop, values, config, trigger):
    shop.replies["/p"] = html(page())
    given = {"etag": '"a"', "last_status": "OFFER", "last_full_fetch_at": catalog.now(), **values}
    part = world.read_once(world.source(config), f"{shop.url}/p", trigger=RunTrigger(trigger), **given)
    assert part.outcome == "OFFER"
    assert "if-none-match" not in shop.log[-1].headers


def test_a_page_behind_a_redirect_is_always_requested_in_full(shop):
    shop.replies |= {"/p": moved(302, "/q"), "/q": html(page(), ETag='"b"')}
    given = {"etag": '"a"', "last_status": "OFFER", "last_full_fetch_at": catalog.now()}
    part = world.read_once(world.source(), f"{shop.url}/p", **given)
    assert (part.outcome, shop.asked()) == ("OFFER", ["/robots.txt", "/p", "/q"])
    assert shop.log[1].headers["if-none-match"] == '"a"'
    assert "if-none-match" not in shop.log[2].headers, "it was said by another page"
    assert ScrapeTarget.objects.get().etag is None, "and what this one says is not asked of the first"


def test_reading_the_page_of_a_successor_again_does_not_write_its_price(shop):
    shop.replies |= {"/p": moved(302, "/q"), "/q": html(page("New saw", "24.00", sku="S-2"))}
    of = world.source()
    number = catalog.product(of, identity_value="S-1", sku="S-1", title="Old saw")
    part = world.read_once(of, f"{shop.url}/p", product_id=number)
    assert part.outcome == "WRONG_PRODUCT"
    with pytest.raises(Conflict, match=r"redirects to .*/q, and neither a number nor the title"):
        page_review.reprocess_entry(OLGA, QuarantineEntry.objects.get().pk)
    assert QuarantineEntry.objects.get().status == "OPEN"
    assert rows("SELECT count(*) FROM prices") == [(0,)]


def test_a_host_without_its_robots_does_not_hold_up_the_other_hosts_of_a_shop(shop):
    with ScriptedShop({"/robots.txt": status(503)}) as outlet:
        shop.replies["/p"] = html(page())
        of = world.source()
        first = world.read_once(of, f"{shop.url}/p")
        run = world.begin(of, [catalog.target(of, f"{outlet.url}/p"), *ScrapeTarget.objects.filter(pk=first.target_id)])
        for _ in range(20):
            run_until_idle(queues=("pages",))
            if RunPart.objects.filter(run=run, outcome="OFFER"):
                break
            # Turns come; the rest of the host without its file stays.
            with connection.cursor() as cursor:
                cursor.execute("UPDATE rate_limits SET due = clock_timestamp() - interval '1 hour'")
                for table in ("job_lanes", "job_lane_wakeups"):
                    cursor.execute(
                        f"UPDATE {table} SET not_before = NULL, wake_at = clock_timestamp() "
                        "WHERE not_before < clock_timestamp() + interval '1 minute'"
                    )
        assert sorted(RunPart.objects.filter(run=run).values_list("outcome", flat=True), key=str) == [None, "OFFER"]
        assert outlet.asked("/p") == []


def test_a_new_override_needs_a_full_page(shop):
    shop.replies["/p"] = html(page())
    of = world.source()
    ScrapeOverride.objects.create(
        source=of, version=1, places={}, status="ACTIVE", backtest={}, created_by="olga", activated_at=catalog.now()
    )
    hour = catalog.now() - catalog.hours(1)
    world.read_once(of, f"{shop.url}/p", etag='"a"', last_status="OFFER", last_full_fetch_at=hour)
    assert "if-none-match" not in shop.log[-1].headers


def test_the_response_cache_costs_no_request_and_keeps_the_time(shop):
    shop.replies["/p"] = html(page())
    of = world.source({"cache": True})
    target = catalog.target(of, f"{shop.url}/p")
    first = world.part_of(world.work(world.begin(of, [target])))
    second = world.part_of(world.work(world.begin(of, [target], RunTrigger.SCHEDULED)))
    assert second.outcome in {"OFFER", "SUPERSEDED"}, "the observation is the old one"
    assert (second.page, second.observed_at) == (first.page, first.observed_at)
    assert len(shop.asked("/p")) == 1
    third = world.part_of(world.work(world.begin(of, [target], RunTrigger.RECHECK)))
    assert third.observed_at > first.observed_at, "a second look never uses it"
    KeptPage.objects.update(fetched_at=catalog.now() - catalog.hours(2))
    world.work(world.begin(of, [target]))
    assert len(shop.asked("/p")) == 3


def test_the_response_cache_is_not_used_for_another_address(shop):
    shop.replies |= {"/p": html(page()), "/q": html(page("Saw", "20.50", sku="S-1"))}
    of = world.source({"cache": True})
    first = world.read_once(of, f"{shop.url}/p")
    Retailer.objects.filter(pk=of.retailer_id).update(domain="127.0.0.1")
    verbs.update_target(OLGA, first.target_id, url=f"{shop.url}/q")
    second = world.part_of(world.work(world.begin(of, ScrapeTarget.objects.all())))
    assert (second.outcome, second.found["title"], len(shop.asked("/q"))) == ("OFFER", "Saw", 1)


def test_nothing_is_requested_while_the_disk_has_no_room_for_pages(shop, monkeypatch):
    shop.replies["/p"] = html(page())
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    world.work(world.begin(of, [target]))
    asked = shop.asked()
    run = world.begin(of, [target])
    with monkeypatch.context() as patch:
        patch.setattr(kept_pages, "LEAST_FREE", 2**80)
        run_until_idle(queues=("pages",))
        job = world.job_of(world.part_of(run))
        assert (job.state, job.attempt) == ("pending", 0)
        assert shop.asked() == asked
        assert rest_of_lane_seconds() > 30, "the other pages wait too"
        alert = Alert.objects.get(resolved_at=None)
        assert (alert.kind, alert.severity) == (alerts.NO_ROOM, "critical")
        enqueue(JUDGE)
        run_until_idle(queues=("maintenance",))
        alert.refresh_from_db()
        assert alert.resolved_at is None, "there is still no room"
    enqueue(JUDGE)
    run_until_idle(queues=("maintenance",))
    alert.refresh_from_db()
    assert alert.resolved_at is not None
    assert world.part_of(world.work(run)).outcome == "OFFER"


def test_a_job_that_waits_again_says_why_everywhere(shop, monkeypatch, client):
    shop.replies["/p"] = html(page())
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    world.work(world.begin(of, [target]))
    run = world.begin(of, [target])
    job = world.job_of(world.part_of(run))
    assert Application().read(f"/jobs/{job.pk}")["waits_for"] is None
    with monkeypatch.context() as patch:
        patch.setattr(kept_pages, "LEAST_FREE", 2**80)
        run_until_idle(queues=("pages",))
    client.force_login(person("vera", Role.VIEWER))
    why = "the disk has no room for more pages; free some space"
    assert Application().read(f"/jobs/{job.pk}")["waits_for"] == why
    assert harvester("jobs", "show", str(job.pk), "--json").json["waits_for"] == why
    assert "waits for" in harvester("jobs", "show", str(job.pk)).out
    assert f"waits: {why}" in client.get(f"/jobs/{job.pk}/").content.decode()
    world.work(run)
    assert Application().read(f"/jobs/{job.pk}")["waits_for"] is None
    assert "waits:" not in client.get(f"/jobs/{job.pk}/").content.decode()


def rest_of_lane_seconds() -> float:
    [(rest,)] = rows(
        "SELECT extract(epoch FROM greatest((SELECT max(not_before) FROM job_lanes),"
        " (SELECT max(not_before) FROM job_lane_wakeups)) - clock_timestamp())::float8"
    )
    return rest


def test_without_the_cache_each_run_fetches(shop):
    shop.replies["/p"] = html(page())
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    for _ in range(2):
        world.work(world.begin(of, [target]))
    assert len(shop.asked("/p")) == 2
    assert KeptPage.objects.count() == 1, "the same bytes are one page"


def test_a_kept_page_whose_file_is_gone_is_fetched_again(shop):
    shop.replies["/p"] = html(page())
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    first = world.part_of(world.work(world.begin(of, [target])))
    run = world.begin(of, [target])
    RunPart.objects.filter(run=run).update(page=first.page, observed_at=first.observed_at)
    kept_pages._path(first.page).unlink()
    again = world.part_of(world.work(run))
    assert (again.outcome, again.page) == ("OFFER", first.page)
    assert len(shop.asked("/p")) == 2


def test_a_part_that_has_its_page_asks_nothing(shop):
    shop.replies["/p"] = html(page())
    of = world.source()
    target = catalog.target(of, f"{shop.url}/p")
    first = world.part_of(world.work(world.begin(of, [target])))
    run = world.begin(of, [target])
    RunPart.objects.filter(run=run).update(page=first.page, observed_at=first.observed_at)
    shop.log.clear()
    again = world.part_of(world.work(run))
    assert again.outcome in {"OFFER", "SUPERSEDED"}, "the observation is the old one"
    assert (again.found, again.observed_at, shop.asked()) == (first.found, first.observed_at, [])


def test_a_limiter_that_is_down_counts_no_attempt(shop, settings, tmp_path):
    shop.replies["/p"] = html(page())
    of = world.source()
    run = world.begin(of, [catalog.target(of, f"{shop.url}/p")])
    working = settings.CONFIG
    settings.CONFIG = replace(working, redis_url=f"unix://{tmp_path}/nobody.sock")
    run_until_idle(queues=("pages",))
    job = world.job_of(world.part_of(run))
    assert (job.state, job.attempt, shop.asked()) == ("pending", 0, [])
    settings.CONFIG = working
    world.hurry()
    assert world.part_of(world.work(run)).outcome == "OFFER"


def test_connections_are_reused(shop):
    of = world.source()
    connections = set()

    def serve(handler):
        connections.add(handler.client_address)
        body = page().encode()
        handler.close_connection = False
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    targets = []
    for number in range(6):
        shop.replies[f"/{number}"] = acting(serve)
        targets.append(catalog.target(of, f"{shop.url}/{number}"))
    world.work(world.begin(of, targets))
    assert len(shop.asked()) == 7
    assert len(connections) == 1
