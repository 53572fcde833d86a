"""Deadlines raise alerts before they pass, and the alerts end when they no longer apply."""

from datetime import timedelta

import pytest
from django.utils import timezone
from tests.support.catalog_rows import make_feed, make_run
from tests.support.jobs import job
from tests.support.workers import run_until_idle

from harvester.catalog.models import Source
from harvester.engine.enqueue import enqueue
from harvester.engine.registry import all_periodic
from harvester.feeds.jobs import WATCH
from harvester.ops.models import Alert

pytestmark = pytest.mark.usefixtures("database")
HOUR = timedelta(hours=1)


def watch() -> list[str]:
    """The keys, without the feed, of what is open after a look."""
    made = enqueue(WATCH).job_id
    run_until_idle()
    assert job(made).state == "succeeded", job(made).error
    return [alert.kind for alert in Alert.objects.filter(resolved_at=None).order_by("kind")]


def ago(hours: float):
    return timezone.now() - hours * HOUR


def point(feed, **fields):
    Source.objects.filter(pk=feed.source_id).update(**fields)


@pytest.mark.parametrize(
    ("held_hours", "frozen_hours", "max_hold_hours", "is_raised"),
    [
        (143.9, 0, 168, False),
        (144.1, 0, 168, True),
        (100, 43.9, 168, False),
        (100, 44.1, 168, True),
        (200, 0, 168, True),
        (0, 0, 24, True),
        (0, 0, 25, False),
    ],
)
def test_the_end_of_a_hold_raises_an_alert_a_day_before(held_hours, frozen_hours, max_hold_hours, is_raised):
    feed = make_feed()
    run = make_run(feed, outcome="HELD")
    point(
        feed,
        held_run_no=run.no,
        held_since=ago(held_hours),
        frozen=frozen_hours * HOUR,
        max_hold_hours=max_hold_hours,
    )
    assert watch() == (["HOLD_ENDS_SOON"] if is_raised else [])


def test_the_end_of_a_hold_raises_one_alert_that_ends_with_the_decision():
    feed = make_feed()
    run = make_run(feed, outcome="HELD")
    point(feed, held_run_no=run.no, held_since=ago(150))
    watch()
    assert watch() == ["HOLD_ENDS_SOON"]
    alert = Alert.objects.get()
    assert (alert.times, alert.severity, alert.detail) == (
        2,
        "critical",
        {"feed_id": str(feed.id), "run_no": run.no},
    )
    point(feed, held_run_no=None, held_since=None)
    assert watch() == []
    assert Alert.objects.get().resolved_at


@pytest.mark.parametrize(
    ("promoted_hours", "frozen_hours", "expiry_hours", "is_raised"),
    [
        (35.9, 0, 48, False),
        (36.1, 0, 48, True),
        (60, 0, 48, True),
        (45.9, 10, 48, False),
        (46.1, 10, 48, True),
        (1000, 0, None, False),
    ],
)
def test_products_that_expire_because_the_file_is_unchanged_raise_an_alert_twelve_hours_before(
    promoted_hours, frozen_hours, expiry_hours, is_raised
):
    feed = make_feed()
    make_run(feed, days=1)
    make_run(feed, outcome="SKIPPED")
    point(feed, last_promoted_at=ago(promoted_hours), frozen=frozen_hours * HOUR, expiry_hours=expiry_hours)
    assert watch() == (["PRODUCTS_EXPIRE_SOON"] if is_raised else [])


def test_a_held_run_stops_the_clock_of_expiry():
    feed = make_feed()
    held = make_run(feed, days=2, outcome="HELD")
    make_run(feed, outcome="SKIPPED")
    point(feed, last_promoted_at=ago(80), held_run_no=held.no, held_since=ago(50))
    assert watch() == []


def test_a_held_feed_near_expiry_gets_the_alert_about_its_hold_alone():
    feed = make_feed()
    held = make_run(feed, days=2, outcome="HELD")
    make_run(feed, outcome="SKIPPED")
    point(feed, last_promoted_at=ago(70), held_run_no=held.no, held_since=ago(30), max_hold_hours=24)
    assert watch() == ["HOLD_ENDS_SOON"]
    assert "If nobody decides, they disappear on" in Alert.objects.get().body


@pytest.mark.parametrize(
    ("outcome", "fields", "said"),
    [
        (None, {"status": "ENABLED"}, "The last run failed."),
        ("PROMOTED", {"status": "PAUSED"}, "The feed is paused."),
        ("PROMOTED", {"status": "ENABLED", "schedule_hours": None}, "The feed runs only manually."),
        ("REJECTED", {"status": "ENABLED", "schedule_hours": 6}, "The last run was rejected."),
    ],
)
def test_offers_that_no_run_will_confirm_raise_an_alert_before_they_expire(outcome, fields, said):
    feed = make_feed()
    make_run(feed, days=0.1, status="SUCCEEDED" if outcome else "FAILED", outcome=outcome)
    type(feed).objects.update(**fields)
    point(feed, last_promoted_at=ago(35))
    assert watch() == []
    point(feed, last_promoted_at=ago(37))
    assert watch() == ["PRODUCTS_EXPIRE_SOON"]
    assert said in Alert.objects.get().body
    assert "Otherwise its offers disappear on" in Alert.objects.get().body


def test_a_feed_whose_next_run_comes_in_time_raises_no_alert():
    feed = make_feed()
    make_run(feed, days=0.1)
    type(feed).objects.update(status="ENABLED", schedule_hours=24, next_run_at=ago(-5))
    point(feed, last_promoted_at=ago(40))
    assert watch() == []
    type(feed).objects.update(next_run_at=ago(-9))
    assert watch() == ["PRODUCTS_EXPIRE_SOON"]


def test_a_running_run_changes_nothing_and_a_promotion_ends_it():
    feed = make_feed()
    make_run(feed, days=0.1, outcome="SKIPPED")
    make_run(feed, status="RUNNING", outcome=None)
    point(feed, last_promoted_at=ago(40))
    assert watch() == ["PRODUCTS_EXPIRE_SOON"]
    point(feed, last_promoted_at=ago(0))
    assert watch() == []


def test_the_watch_looks_every_ten_minutes():
    [often] = [item for item in all_periodic().values() if item.kind == WATCH]
    assert often.cron == "*/10 * * * *"
