"""The upper half of the dashboard: what needs attention, running runs, the last 30 days."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone
from tests.support.catalog import fetch
from tests.support.catalog_rows import make_feed, make_run, write
from tests.support.portal import MOMENTS_AGO, job, person

from harvester.catalog.models import Source
from harvester.feeds import attention
from harvester.feeds import figures as feed_figures
from harvester.feeds.attention import NeedKind
from harvester.feeds.models import Feed, FeedRun
from harvester.ops.alerts import raise_alert
from harvester.ops.models import Role
from harvester.runs.models import Run

pytestmark = pytest.mark.django_db
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINUSEa7ErcQzSKxlLFbtfOP1RFWhiCjMRRbnHmZtZmtH"
VERDICT = [{"gate": "EXPIRY_SPIKE", "holds": True, "reason": "37 of 40 are missing.", "figures": {}}]


@pytest.fixture
def viewer(client):
    cache.clear()
    client.force_login(person("vera", Role.VIEWER))
    return client


def words(client) -> str:
    cache.clear()
    return " ".join(re.sub(r"<[^>]+>", " ", client.get("/").content.decode()).split())


def enabled(name: str = "Shop", **fields) -> Feed:
    """A feed that runs well, with offers that consumers see."""
    feed = make_feed(name, is_display_primary=True, last_promoted_at=timezone.now(), last_promoted_count=40)
    Feed.objects.filter(pk=feed.pk).update(status="ENABLED", schedule_hours=6, **fields)
    return Feed.objects.get(pk=feed.pk)


def needed() -> dict[NeedKind, list[str]]:
    return {each.kind: [need.feed for need in each.named] for each in attention.needs()}


def held(feed: Feed, **source) -> None:
    run = make_run(feed, outcome="HELD")
    Run.objects.filter(pk=run.pk).update(verdict=VERDICT)
    values = {"held_run_no": run.no, "held_since": timezone.now(), **source}
    Source.objects.filter(pk=feed.source_id).update(**values)


def test_nothing_needs_attention_while_all_is_well(viewer):
    enabled()
    assert attention.needs() == []
    shown = words(viewer)
    assert "All clear" in shown
    assert "1 feed: 1 enabled." in shown
    assert "No runs in progress." in shown


def test_the_page_says_that_there_are_no_feeds(viewer):
    assert "No feeds yet." in words(viewer)


def test_a_held_run_shows_why_and_when_its_offers_disappear(viewer):
    feed = enabled()
    promoted = timezone.now() - timedelta(hours=1)
    held(feed, last_promoted_at=promoted, max_hold_hours=24)
    [need] = attention.needs()[0].named
    assert (need.kind, need.feed, need.reason) == (NeedKind.HELD, "Shop", "37 of 40 are missing.")
    assert need.at == promoted + timedelta(hours=48 + 24)
    shown = words(viewer)
    assert "Held Shop 37 of 40 are missing. offers disappear in 2 d" in shown
    assert "All clear" not in shown


def test_offers_disappear_at_the_moment_that_visibility_says():
    """Just before it the database still calls the offers active, just after it no more."""
    feed = enabled()
    held(feed)
    now = timezone.now()
    for minutes, active in ((5, True), (-5, False)):
        promoted = now - timedelta(hours=48 + 24) + timedelta(minutes=minutes)
        Source.objects.filter(pk=feed.source_id).update(
            last_promoted_at=promoted, max_hold_hours=24, held_since=promoted + timedelta(hours=2)
        )
        query = "SELECT last_promoted_at >= active_since FROM source_windows WHERE source_id = %s"
        assert fetch(query, feed.source_id) == [(active,)]
        assert (attention.needs()[0].named[0].at > now) is active


def test_the_most_urgent_held_run_comes_first():
    later, sooner = enabled("Later"), enabled("Sooner")
    held(later, max_hold_hours=168)
    held(sooner, max_hold_hours=24)
    assert needed() == {NeedKind.HELD: ["Sooner", "Later"]}


@pytest.mark.parametrize(
    ("status", "kind"),
    [("DISABLED", NeedKind.DISABLED), ("ENABLED", NeedKind.FAILING), ("PAUSED", NeedKind.FAILING)],
)
def test_a_feed_whose_runs_fail_shows_its_last_error(viewer, status, kind):
    feed = enabled(consecutive_failures=2)
    Feed.objects.filter(pk=feed.pk).update(status=status)
    make_run(feed, days=1, status="FAILED", outcome=None, error="An older reason.")
    make_run(feed, status="FAILED", outcome=None, error="The server did not answer.")
    assert needed() == {kind: ["Shop"]}
    assert f"{kind.value.capitalize()} Shop The server did not answer. failed" in words(viewer)


def test_a_feed_is_late_when_its_run_does_not_start():
    past = timezone.now() - timedelta(minutes=attention.LATE_MINUTES)
    enabled("Late", next_run_at=past - timedelta(minutes=1))
    enabled("Soon", next_run_at=past + timedelta(minutes=1))
    assert needed() == {NeedKind.LATE: ["Late"]}


def test_a_feed_whose_offers_expired_needs_attention_unless_another_source_is_shown():
    gone = timezone.now() - timedelta(hours=49)
    expired, hidden = enabled("Expired"), enabled("Hidden")
    Source.objects.update(last_promoted_at=gone)
    Source.objects.filter(pk=hidden.source_id).update(is_display_primary=False)
    make_source_of(hidden, is_display_primary=True)
    assert needed() == {NeedKind.OFFERS_EXPIRED: ["Expired"]}
    assert attention.needs()[0].named[0].at == gone + timedelta(hours=48)
    assert expired.pk == attention.needs()[0].named[0].feed_id


def make_source_of(feed: Feed, **fields) -> None:
    """Another source of the same retailer."""
    values = {"name": "Other", "kind": "AFFILIATE_FEED", "expiry_hours": 48, **fields}
    Source.objects.create(retailer_id=feed.source.retailer_id, **values)


@pytest.mark.parametrize("state", ["held", "paused", "failing", "disabled"])
def test_expired_offers_need_attention_whatever_state_the_feed_is_in(state):
    feed = enabled()
    Source.objects.update(last_promoted_at=timezone.now() - timedelta(hours=100))
    if state == "held":
        held(feed)
    elif state == "failing":
        Feed.objects.update(consecutive_failures=1)
    else:
        Feed.objects.update(status=state.upper())
    assert needed()[NeedKind.OFFERS_EXPIRED] == ["Shop"]


@pytest.mark.parametrize(
    ("fields", "outcome", "said"),
    [
        ({"schedule_hours": None}, "PROMOTED", "The feed runs only manually. Run it now."),
        ({"consecutive_failures": 1}, None, "The last run failed. Fix the problem and run the feed again."),
        ({"status": "PAUSED"}, "PROMOTED", "The feed is paused. Resume it if its offers should stay visible."),
    ],
)
def test_offers_that_no_run_will_confirm_need_attention_before_they_expire(viewer, fields, outcome, said):
    feed = enabled()
    make_run(feed, status="SUCCEEDED" if outcome else "FAILED", outcome=outcome, error=None if outcome else "No.")
    Feed.objects.update(**fields)
    Source.objects.update(last_promoted_at=timezone.now() - timedelta(hours=35))
    assert NeedKind.EXPIRES_SOON not in needed()
    Source.objects.update(last_promoted_at=timezone.now() - timedelta(hours=37))
    assert needed()[NeedKind.EXPIRES_SOON] == ["Shop"]
    assert f"Expires soon Shop {said} offers disappear in" in words(viewer)


def test_promoted_offers_that_consumers_do_not_see_need_attention_with_the_reason(viewer):
    forgotten, second = enabled("Forgotten"), enabled("Second")
    Source.objects.update(is_display_primary=False)
    make_source_of(second, is_display_primary=True)
    assert needed() == {NeedKind.NOT_VISIBLE: ["Forgotten"]}
    said = "Not visible because Forgotten is not the display primary of Forgotten. Make it primary."
    assert f"Not visible Forgotten {said} promoted" in words(viewer)
    assert said in words_of(viewer, f"/feeds/{forgotten.pk}/")
    assert said in words_of(viewer, "/feeds/")
    assert "Not visible because Other is the display primary of Second." in words_of(viewer, "/feeds/")


def test_a_display_primary_whose_prices_are_all_hidden_needs_attention(viewer):
    feed = enabled()
    Source.objects.update(last_promoted_run_no=7, last_promoted_count=2)
    for product in (1, 2):
        write(
            "INSERT INTO hidden_offers (source_id, product_id, absence_accepted, last_promoted_run_no, "
            "last_promoted_at) VALUES (%s, %s, false, 7, now())",
            *(feed.source_id, product),
        )
    assert needed() == {NeedKind.NOT_VISIBLE: ["Shop"]}
    assert "Not visible because corrections or ignored runs hide all prices." in words(viewer)


def words_of(client, path: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", client.get(path).content.decode()).split())


def test_a_host_key_that_is_not_approved_is_shown_by_its_fingerprint(viewer):
    enabled("Approved", seen_host_key=KEY, host_keys=f"{KEY}\n")
    enabled("Waiting", seen_host_key=KEY, consecutive_failures=1)
    assert needed() == {NeedKind.HOST_KEY: ["Waiting"]}
    assert "nobody has approved: SHA256:" in words(viewer)


def test_a_changed_host_key_is_shown_as_such_and_so_is_a_feed_that_it_disabled(viewer):
    changed = enabled("Changed", seen_host_key=KEY, host_keys=f"{KEY[:-4]}AAAA\n", consecutive_failures=3)
    assert "another host key than the approved one" in words(viewer)
    assert "The feed is disabled." not in words(viewer)
    Feed.objects.filter(pk=changed.pk).update(status="DISABLED")
    assert "The feed is disabled." in " ".join(need.reason for each in attention.needs() for need in each.named)


def test_of_many_needs_some_are_named_and_all_are_counted(viewer):
    for number in range(attention.NAMED + 3):
        enabled(f"Shop {number}", consecutive_failures=1)
    [found] = attention.needs()
    assert (len(found.named), found.total, found.more) == (attention.NAMED, attention.NAMED + 3, 3)
    shown = words(viewer)
    assert "3 more failing feeds" in shown
    assert f"Needs attention {attention.NAMED + 3}" in shown


def test_the_other_needs_are_found_in_a_filtered_list(viewer):
    for number in range(attention.NAMED + 1):
        feed = enabled(f"Shop {number}", consecutive_failures=3)
        Feed.objects.filter(pk=feed.pk).update(status="DISABLED")
    cache.clear()
    link = re.search(r'href="([^"]+)">1 more disabled feeds', viewer.get("/").content.decode())[1]
    page = viewer.get(link).content.decode()
    assert all(f"Shop {number}" in page for number in range(attention.NAMED + 1))


def test_each_row_links_to_the_page_where_people_can_act(viewer):
    failing, late = (
        enabled("Failing", consecutive_failures=1),
        enabled("Late", next_run_at=timezone.now() - timedelta(1)),
    )
    run = make_run(failing, status="FAILED", outcome=None, error="No answer.")
    cache.clear()
    page = viewer.get("/").content.decode()
    assert f'href="/runs/{run.no}/"' in page
    assert f'href="/feeds/{late.pk}/"' in page


def test_alerts_are_named_unless_a_row_shows_the_same(viewer):
    raise_alert("RUN_HELD", "RUN_HELD:feed:1", "Shop: run 12 is held", "Decide.")
    number = raise_alert("OFFERS_DIFFER", "offers:1", "Offers are wrong", "Look.\nMore.", severity="critical")
    cache.clear()
    page = viewer.get("/").content.decode()
    assert f'href="/alerts/{number}/"' in page
    assert re.search(rf"Critical Offers are wrong Look\. since {MOMENTS_AGO}", words(viewer))
    assert "Shop: run 12 is held" not in page


def test_running_runs_show_their_progress(viewer):
    feed = enabled()
    job_id = job("running", progress='{"done": 30, "total": 40, "note": "parsed 30 rows"}')
    run = make_run(feed, status="RUNNING", outcome=None, job_id=job_id, stage="parse")
    ended = make_run(feed)
    shown = words(viewer)
    assert f"Shop Run {run.no}, parse: parsed 30 rows" in shown
    assert f"Run {ended.no}" not in shown
    assert "75%" in shown


def figures(run, **values) -> None:
    FeedRun.objects.filter(pk=run.pk).update(**values)


def test_each_day_counts_its_runs_prices_and_rejects(viewer):
    feed = enabled()
    figures(make_run(feed, days=2), prices_written=7, products_rejected=2, products_upserted=40)
    make_run(feed, days=2, status="FAILED", outcome=None)
    make_run(feed, days=2, outcome="SKIPPED")
    make_run(feed, days=2, outcome="REJECTED")
    figures(make_run(feed), prices_written=5, products_upserted=41)
    month = [*feed_figures.past_days(29), feed_figures.today()]
    assert len(month) == 30
    day = month[-3]
    assert (day.promoted, day.failed, day.skipped, day.held, day.prices, day.rejects) == (1, 1, 1, 1, 7, 2)
    assert (month[-1].promoted, month[-1].prices, month[-1].visible) == (1, 5, 40)
    cache.clear()
    drawn = re.search(r'<script id="days-data"[^>]*>(.*?)</script>', viewer.get("/").content.decode(), re.DOTALL)[1]
    data = json.loads(drawn)
    assert {len(values) for values in data.values()} == {30}
    assert sum(data["prices"]) == 12


def test_offers_are_visible_from_a_promotion_to_the_next_or_until_they_expire():
    feed = enabled()
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    for back, count in ((10, 100), (9, 90), (3, 30)):
        run = make_run(feed)
        moment = noon - timedelta(days=back)
        type(run).objects.filter(pk=run.pk).update(started_at=moment, finished_at=moment)
        figures(run, products_upserted=count)
    visible = [day.visible for day in feed_figures.past_days(11)]
    assert visible == [0, 100, 90, 90, 0, 0, 0, 0, 30, 30, 0]


def test_past_days_are_stored_and_recent_days_are_computed_again():
    feed = enabled()
    old, young = make_run(feed, days=20), make_run(feed, days=2)
    figures(old, prices_written=1)
    figures(young, prices_written=2)
    assert feed_figures.keep_days() == feed_figures.HISTORY_DAYS
    figures(old, prices_written=100)
    figures(young, prices_written=200)
    assert feed_figures.keep_days() == feed_figures.CHANGING_DAYS
    by_day = {day.day: day.prices for day in feed_figures.past_days(25)}
    today = datetime.now(UTC).date()
    assert by_day[today - timedelta(days=20)] == 1
    assert by_day[today - timedelta(days=2)] == 200
