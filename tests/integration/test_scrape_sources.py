"""The switches of scraping a source, its settings, and its readiness card."""

import datetime as dt
from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from tests.support import catalog, scrape_world, scraping
from tests.support.feed_world import OLGA
from tests.support.scripted_shop import ScriptedShop
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle

from harvester.catalog.models import Retailer, Source
from harvester.engine.models import Job
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops.alerts import raise_alert
from harvester.ops.models import Alert, AuditEvent
from harvester.runs.models import Run, RunPart
from harvester.scraping import fetching, verbs
from harvester.scraping.models import AdapterState, KeptPage, RobotsFile, ScrapeTarget
from harvester.scraping.readiness import longest_gap, readiness, summary, warnings
from harvester.scraping.robots_cache import ROBOTS_DISALLOWED
from harvester.scraping.settings import SETTINGS, InvalidSettings, effective, read_settings
from harvester.scraping.verbs.sources import NotReady

pytestmark = pytest.mark.usefixtures("database")
CONTACT = {"scrape_contact_url": "https://prices.example/bot", "scrape_contact_mail": "bot@prices.example"}


@pytest.fixture
def contact(settings):
    settings.CONFIG = replace(django_settings.CONFIG, **CONTACT)


def robots(origin: str, state: str = "NONE", hours: float = 1) -> None:
    now = catalog.now()
    RobotsFile.objects.create(origin=origin, state=state, fetched_at=now, expires_at=now + catalog.hours(hours))


def ready(**values) -> Source:
    """A source with all that enabling needs, still off."""
    source = scraping.shop(
        "bigshop.com", is_read=False, adapter_id="structured", expiry_hours=None, upc_trusted=False, **values
    )
    robots("https://bigshop.com")
    verbs.record_review(OLGA, source.pk, "Terms of May: prices may be read.")
    return source


def fresh(source) -> Source:
    return Source.objects.select_related("retailer").get(pk=source.pk)


def audited(verb) -> list:
    return list(AuditEvent.objects.filter(verb=verb).order_by("id"))


def test_enabling_needs_review_robots_adapter_and_contact(settings):
    source = scraping.shop("bigshop.com", is_read=False)
    with pytest.raises(NotReady) as caught:
        verbs.enable(OLGA, source.pk)
    assert [step.name for step in caught.value.steps] == ["terms", "robots", "adapter", "contact"]
    verbs.record_review(OLGA, source.pk, "Allowed.")
    robots("https://bigshop.com")
    verbs.choose_adapter(OLGA, source.pk, "structured")
    with pytest.raises(NotReady, match="HARVESTER_SCRAPE_CONTACT_URL") as caught:
        verbs.enable(OLGA, source.pk)
    assert [step.name for step in caught.value.steps] == ["contact"]
    assert fresh(source).scrape_enabled is False
    settings.CONFIG = replace(django_settings.CONFIG, **CONTACT)
    assert verbs.enable(OLGA, source.pk).scrape_enabled is True
    with pytest.raises(Conflict, match="enabled for scraping already"):
        verbs.enable(OLGA, source.pk)


@pytest.mark.usefixtures("contact")
@pytest.mark.parametrize(("state", "hours"), [("UNAVAILABLE", 1), ("NONE", -1), (None, 0)])
def test_enabling_needs_a_robots_check_that_succeeded_recently(state, hours):
    source = scraping.shop("bigshop.com", is_read=False, adapter_id="structured")
    verbs.record_review(OLGA, source.pk, "Allowed.")
    if state:
        robots("https://bigshop.com", state, hours)
    with pytest.raises(NotReady, match="Check robots") as caught:
        verbs.enable(OLGA, source.pk)
    assert [step.name for step in caught.value.steps] == ["robots"]


@pytest.mark.usefixtures("contact")
def test_every_origin_of_its_pages_needs_a_robots_check():
    source = ready()
    catalog.target(source, "https://bigshop.com/p")
    catalog.target(source, "https://outlet.bigshop.com/p")
    with pytest.raises(NotReady, match=r"outlet\.bigshop\.com"):
        verbs.enable(OLGA, source.pk)
    robots("https://outlet.bigshop.com")
    verbs.enable(OLGA, source.pk)


@pytest.mark.usefixtures("contact")
def test_enabling_hides_what_is_scraped_unless_an_admin_confirms():
    source = ready(visibility="ELIGIBLE")
    done = verbs.enable(OLGA, source.pk)
    assert (done.visibility, done.expiry_hours, done.upc_trusted) == ("INELIGIBLE", 72, False)
    verbs.stop(OLGA, source.pk)
    Source.objects.filter(pk=source.pk).update(visibility="ELIGIBLE")
    assert verbs.enable(OLGA, source.pk, keep_visibility=True).visibility == "ELIGIBLE"
    assert [event.detail["keep_visibility"] for event in audited("SCRAPE_ENABLED")] == [False, True]


@pytest.mark.usefixtures("contact")
def test_an_expiry_that_somebody_chose_stays():
    source = ready()
    Source.objects.filter(pk=source.pk).update(expiry_hours=24)
    assert verbs.enable(OLGA, source.pk).expiry_hours == 24


@pytest.mark.usefixtures("contact")
def test_a_source_with_a_feed_gets_a_shorter_expiry():
    source = ready()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO feeds (id, source_id, network, created_by) VALUES (gen_random_uuid(), %s, 'impact', 'Olga')",
            [source.pk],
        )
    assert verbs.enable(OLGA, source.pk).expiry_hours == 48


def test_a_review_has_who_when_and_a_note():
    source = scraping.shop("bigshop.com", is_read=False)
    with pytest.raises(InvalidInput, match="note"):
        verbs.record_review(OLGA, source.pk, " ")
    done = verbs.record_review(OLGA, source.pk, "Terms of May\nallow it.")
    assert (done.tos_approved_by, done.tos_note) == ("Olga", "Terms of May allow it.")
    assert abs((done.tos_reviewed_at - catalog.now()).total_seconds()) < 3600
    assert audited("SCRAPE_TERMS_REVIEWED")[0].actor_name == "Olga"


def test_an_adapter_must_exist_and_be_of_the_shop_and_its_pages_follow():
    source = scraping.shop("bigshop.com")
    [page] = scraping.pages(source, 1)
    with pytest.raises(InvalidInput, match="There is no adapter nonsense"):
        verbs.choose_adapter(OLGA, source.pk, "nonsense")
    with pytest.raises(InvalidInput, match=r"reads sgammo\.com only, not bigshop\.com"):
        verbs.choose_adapter(OLGA, source.pk, "sgammo")
    verbs.choose_adapter(OLGA, source.pk, "woocommerce")
    page.refresh_from_db()
    assert page.adapter_id == "woocommerce"
    assert audited("SCRAPE_ADAPTER_CHOSEN")[0].detail["from"] == {"adapter_id": "structured"}
    sgammo = scraping.shop("sgammo.com")
    assert verbs.choose_adapter(OLGA, sgammo.pk, "sgammo").adapter_id == "sgammo"


def test_stopping_cancels_open_pages_in_the_same_transaction():
    source, other = scraping.shop("bigshop.com"), scraping.shop("othershop.com")
    for one in (source, other):
        scraping.pages(one, 3)
        verbs.request(OLGA, one.pk)
    assert verbs.stop(OLGA, source.pk, "The shop complained.") == 3
    assert fresh(source).scrape_enabled is False
    states = dict(rows("SELECT lane, min(state) FROM jobs WHERE kind = 'scraping.page' GROUP BY lane"))
    assert states == {"bigshop.com": "cancelled", "othershop.com": "pending"}
    assert audited("SCRAPE_STOPPED")[0].detail == {"reason": "The shop complained.", "cancelled": 3}
    assert verbs.stop(OLGA, source.pk) == 0, "it is stopped already"
    assert len(audited("SCRAPE_STOPPED")) == 1


def test_everything_stops_with_one_call():
    sources = [scraping.shop(f"shop{place}.com") for place in range(3)]
    for one in sources:
        scraping.pages(one, 2)
        verbs.request(OLGA, one.pk)
    assert verbs.stop_all(OLGA) == {one.pk: 2 for one in sources}
    assert not Source.objects.filter(scrape_enabled=True).exists()
    assert not Job.objects.filter(kind="scraping.page", state="pending").exists()


def test_robots_compliance_that_a_person_set_is_audited_and_cancels_pages():
    source = scraping.shop("bigshop.com")
    scraping.pages(source, 2)
    verbs.request(OLGA, source.pk)
    done = verbs.set_robots_compliant(OLGA, source.pk, False, "Legal says no.")
    assert (done.robots_compliant, done.robots_set_by) == (False, "Olga")
    assert not Job.objects.filter(kind="scraping.page", state="pending").exists()
    [event] = audited("SCRAPE_ROBOTS_SET")
    assert (event.detail["to"], event.detail["note"], event.detail["cancelled"]) == (False, "Legal says no.", 2)
    with transaction.atomic():
        raise_alert(ROBOTS_DISALLOWED, f"{ROBOTS_DISALLOWED}:{source.pk}", "All forbidden", "By robots.txt.")
    done = verbs.set_robots_compliant(OLGA, source.pk, True, "Legal says yes.")
    assert (done.robots_compliant, done.robots_set_by) == (True, None)
    assert not Alert.objects.filter(resolved_at=None).exists()
    with pytest.raises(InvalidInput, match="note"):
        verbs.set_robots_compliant(OLGA, source.pk, False, "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("requests_per_second", 0), ("requests_per_second", 5.1), ("requests_per_second", "nan"),
        ("requests_per_second", True), ("requests_per_second", "fast"), ("headers", {"User-Agent": "Chrome"}),
        ("headers", {"cookie": "a=b"}), ("headers", {"Authorization": "x"}), ("headers", {"HOST": "x"}),
        ("headers", {"X-A": "b\r\nHost: evil"}), ("headers", {"X A": "b"}), ("headers", "no colon"), ("headers", [1]),
        ("headers", {"X-A": "1", "x-a": "2"}), ("headers", {"X-A": "é"}), ("default_currency", "XXL"),
        ("default_currency", 5), ("pace_by_host", "a b"), ("pace_by_host", ["x"] * 3 + [5]), ("pace_by_host", "a/b"),
        ("cache", "perhaps"), ("cache_seconds", 1), ("cache_seconds", 1e9), ("conditional", 7), ("nonsense", 1),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(name, value):
    with pytest.raises(InvalidSettings) as caught:
        read_settings({name: value, "cache": "no" if name != "cache" else value})
    assert list(caught.value.problems) == [name]


def test_good_settings_are_stored_as_they_are_read():
    given = {
        "requests_per_second": " 0.25 ", "headers": "Accept-Language: de\nX-Shop: 1", "default_currency": "eur",
        "pace_by_host": "B.bigshop.com, a.bigshop.com", "cache": "yes", "cache_seconds": "60", "conditional": False,
    }  # fmt: skip
    assert read_settings(given) == {
        "requests_per_second": 0.25, "headers": {"Accept-Language": "de", "X-Shop": "1"}, "default_currency": "EUR",
        "pace_by_host": ["a.bigshop.com", "b.bigshop.com"], "cache": True, "cache_seconds": 60, "conditional": False,
    }  # fmt: skip
    assert effective({"cache": True})["cache"] is True
    assert effective({})["conditional"] is True
    for name, setting in SETTINGS.items():
        assert all((setting.label, setting.help, setting.section)), name
        assert setting.default is None or setting.read(name, setting.default) == setting.default, name


def test_settings_are_changed_one_by_one_and_header_values_stay_out_of_the_audit_log():
    source = scraping.shop("bigshop.com")
    verbs.update_settings(OLGA, source.pk, {"requests_per_second": 0.1, "headers": {"X-Shop-Key": "opensesame"}})
    done = verbs.update_settings(OLGA, source.pk, {"requests_per_second": None, "cache": True})
    assert done.scrape_config == {"headers": {"X-Shop-Key": "opensesame"}, "cache": True}
    verbs.update_settings(OLGA, source.pk, {"cache": True})
    assert len(audited("SCRAPE_SETTINGS_UPDATED")) == 2, "nothing was changed the third time"
    assert "opensesame" not in str(rows("SELECT detail FROM audit_events"))


@pytest.mark.parametrize(("lines", "number"), [(["0 */4 * * *"], 0), (["0 0 * * 1-5", "0 0 * * *"], 1), ([None], 0)])
def test_an_expiry_shorter_than_twice_a_schedule_is_a_warning(lines, number):
    source = scraping.shop("bigshop.com", expiry_hours=72)
    for line in lines:
        scraping.pages(source, 1, schedule=line, due_at=None)
    found = warnings(source)
    assert len(found) == number
    if found:
        assert "`0 0 * * 1-5` reads pages only every 72 h" in found[0], "the weekend counts"


def test_the_longest_gap_of_a_schedule():
    assert longest_gap("0 */4 * * *") == dt.timedelta(hours=4)
    assert longest_gap("0 8,20 * * *") == dt.timedelta(hours=12)
    assert longest_gap("0 9-17 * * *") == dt.timedelta(hours=16)


def steps(source) -> dict:
    return {step.name: step for step in readiness(fresh(source))}


@pytest.mark.usefixtures("contact")
def test_the_readiness_card_says_what_is_done_and_what_comes_next():
    source = scraping.shop("bigshop.com", is_read=False)
    card = readiness(fresh(source))
    names = ["terms", "robots", "adapter", "contact", "samples", "first_run", "comparison", "visible"]
    assert [step.name for step in card] == names
    assert [step.name for step in card if step.is_done] == ["contact"]
    assert all(step.next_step for step in card)
    source = ready_pages(source)
    card = steps(source)
    assert [name for name, step in card.items() if not step.is_done] == ["comparison", "visible"]
    assert card["terms"].detail.startswith("Olga on ")
    assert len(card["samples"].examples) == 5
    assert card["first_run"].detail.endswith(": 3 read, 1 gone, 1 no agreement.")


def ready_pages(source) -> Source:
    """Five pages that were read in a run of an enabled source."""
    robots("https://bigshop.com")
    verbs.record_review(OLGA, source.pk, "Allowed.")
    verbs.choose_adapter(OLGA, source.pk, "structured")
    verbs.enable(OLGA, source.pk)
    now = catalog.now()
    for page in scraping.pages(fresh(source), 5):
        KeptPage.objects.create(
            hash="x", source=source, target=page, url=page.url, status=200, content_type="text/html", bytes=1,
            stored_bytes=1, fetched_at=now, keep_until=now, found={"title": "A"}, outcome="OFFER",
        )  # fmt: skip
    run = verbs.request(OLGA, source.pk).run
    for part, outcome in zip(RunPart.objects.filter(run=run), ["OFFER"] * 3 + ["GONE", "NO_AGREEMENT"], strict=True):
        RunPart.objects.filter(pk=part.pk).update(outcome=outcome, ended_at=now)
    Run.objects.filter(pk=run.pk).update(status="SUCCEEDED", outcome="PROMOTED", finished_at=now)
    return fresh(source)


@pytest.mark.usefixtures("contact")
def test_prices_are_shown_after_samples_and_a_first_run_or_when_an_admin_insists():
    source = scraping.shop("bigshop.com", is_read=False)
    with pytest.raises(NotReady) as caught:
        verbs.show(OLGA, source.pk)
    assert [step.name for step in caught.value.steps] == ["samples", "first_run"]
    assert fresh(source).visibility == "INELIGIBLE"
    ready_pages(source)
    assert verbs.show(OLGA, source.pk).visibility == "ELIGIBLE"
    assert steps(source)["visible"].is_done
    assert verbs.hide(OLGA, source.pk).visibility == "INELIGIBLE"
    other = scraping.shop("othershop.com")
    assert verbs.show(OLGA, other.pk, anyway=True).visibility == "ELIGIBLE"


@pytest.mark.usefixtures("contact")
def test_a_shop_with_few_pages_needs_no_more_samples_than_it_has():
    source = ready_pages(scraping.shop("bigshop.com", is_read=False))
    first, second, *others = ScrapeTarget.objects.filter(source=source)
    ScrapeTarget.objects.filter(pk__in=[page.pk for page in others]).update(enabled=False)
    KeptPage.objects.exclude(target=first).delete()
    assert (steps(source)["samples"].is_done, steps(source)["samples"].detail) == (False, "1 of 2 pages were read.")
    ScrapeTarget.objects.filter(pk=second.pk).update(enabled=False)
    assert steps(source)["samples"].is_done
    assert verbs.show(OLGA, source.pk).visibility == "ELIGIBLE"


def test_prices_of_pages_are_compared_with_those_of_the_feed(world):
    world.put(*range(100, 140))
    assert world.run().outcome == "PROMOTED"
    products = rows(
        "SELECT p.id, o.amount FROM source_products p JOIN offers o ON o.source_id = p.source_id "
        "AND o.product_id = p.id ORDER BY p.id LIMIT 3"
    )
    for place, (number, amount) in enumerate(products):
        price = f"{amount if place else amount + 1:.2f} USD"
        catalog.target(
            world.source, f"https://shop.example/{number}", product_id=number, last_seen={"offer": {"price": price}}
        )
    step = steps(world.source)["comparison"]
    assert step.detail == "2 prices equal those of the feed, 1 differ."
    [example] = step.examples
    assert (example["url"], step.is_done) == (f"https://shop.example/{products[0][0]}", False)
    assert example["page"] != example["feed"]


def test_a_summary_of_a_run_is_a_phrase():
    assert summary([("OFFER", 38), ("NOT_MODIFIED", 2), ("AMBIGUOUS_PRICE", 1), ("GONE", 1)]) == (
        "40 read, 1 ambiguous price, 1 gone"
    )
    assert summary([]) == "0 read"


def test_a_stopped_source_has_no_backoff_left():
    source = scraping.shop("bigshop.com")
    AdapterState.objects.create(
        source=source, adapter_id="structured", backoff_seconds=3600, backoff_until=catalog.now()
    )
    verbs.stop(OLGA, source.pk)
    assert AdapterState.objects.get().backoff_seconds == 0
    assert ScrapeTarget.objects.count() == 0


def test_a_robots_check_is_a_request_to_the_shop_and_lets_a_source_be_enabled(settings):
    scrape_world.allow_scraping(settings)
    with ScriptedShop() as shop:
        source = scraping.shop("127.0.0.1", is_read=False, url=f"{shop.url}/", adapter_id="structured")
        Retailer.objects.filter(pk=source.retailer_id).update(website=f"{shop.url}/")
        verbs.record_review(OLGA, source.pk, "Allowed.")
        with pytest.raises(NotReady, match="Not known for"):
            verbs.enable(OLGA, source.pk)
        [request] = verbs.check_robots(OLGA, source.pk)
        assert verbs.check_robots(OLGA, source.pk) == [], "it is on its way"

        def has_ended() -> bool:
            run_until_idle(queues=("pages",))
            request.refresh_from_db()
            return request.outcome is not None

        wait_for(has_ended)
        assert shop.asked() == ["/robots.txt"]
        assert verbs.enable(OLGA, source.pk).scrape_enabled is True
    fetching.close()
