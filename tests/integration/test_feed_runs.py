"""Whole runs: from a partner's server to what consumers see."""

import pytest
from tests.support.catalog import audited
from tests.support.feed_world import OLGA, count
from tests.support.feeds import row
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.offers import differences
from harvester.engine.connections import connect
from harvester.engine.models import Job
from harvester.feeds import ingest, verbs
from harvester.kernel.errors import TerminalError
from harvester.ops.models import Alert
from harvester.pipeline.staging import SLOTS

pytestmark = pytest.mark.usefixtures("database")


def test_the_first_run_shows_every_product(world):
    world.put(1999, 2499, 350)
    run = world.run()
    assert (run.status, run.outcome, run.trigger) == ("SUCCEEDED", "PROMOTED", "SCHEDULED")
    assert world.shown() == {
        "S-1999": ("Thing 1999", 19.99, True),
        "S-2499": ("Thing 2499", 24.99, True),
        "S-350": ("Thing 350", 3.50, True),
    }
    figures = world.figures(run)
    assert (figures.rows_read, figures.products_upserted, figures.products_new, figures.prices_written) == (3, 3, 3, 3)
    assert [verb for verb, *_ in audited()] == ["RUN_PROMOTED"]
    assert differences() == []


def test_people_see_that_the_longest_step_is_running(world):
    """Promotion is one transaction: until it ends there is nothing to count."""
    world.put(100, 200)
    run = world.run()
    assert Job.objects.get(pk=run.job_id).progress["note"] == "promoting"


def test_a_feed_that_is_disabled_once_more_is_news_again(world):
    """The alert ends when the feed is re-enabled, not at its next success, which may never come."""
    alerts = Alert.objects.filter(kind="FEED_AUTO_DISABLED").order_by("id")
    for _ in range(2):
        for _ in range(3):
            world.run()
        assert [alert.resolved_at is None for alert in alerts.all()][-1]
        verbs.re_enable(OLGA, world.feed.id, acknowledged=True)
    assert [alert.resolved_at is None for alert in alerts.all()] == [False, False]


def test_an_unchanged_catalog_writes_nothing(world):
    world.put(1999, 2499)
    world.run()
    world.put(2499, 1999)
    run = world.run()
    assert run.outcome == "PROMOTED"
    figures = world.figures(run)
    assert (figures.products_new, figures.products_changed, figures.prices_written) == (0, 0, 0)
    assert count("prices") == 2


def test_changed_prices_titles_and_missing_products(world):
    world.put(*range(100, 120))
    world.run()
    world.put(row(100, Price="5.55"), row(101, Name="Another name"), *range(102, 119), 300)
    run = world.run()
    shown = world.shown()
    assert run.outcome == "PROMOTED"
    assert shown["S-100"] == ("Thing 100", 5.55, True)
    assert shown["S-101"] == ("Another name", 1.01, True)
    assert "S-300" in shown
    assert "S-119" in shown, "what is missing shows until it expires"
    figures = world.figures(run)
    assert (figures.products_changed, figures.prices_written, figures.products_missing) == (1, 2, 1)
    world.pass_time(49)
    assert world.shown() == {}
    assert differences() == []


def test_a_shrunk_file_is_held_and_changes_nothing(world):
    world.put(*range(100, 140))
    world.run()
    before = world.shown()
    world.put(row(100, Price="77.77"), row(101, Name="Another name"), 500)
    run = world.run()
    assert (run.status, run.outcome) == ("SUCCEEDED", "HELD")
    assert world.shown() == before
    assert count("held_changes") == 41
    world.pass_time(72)
    assert world.shown() == before, "the clock stops while a run is held"


def test_an_approved_run_is_promoted_whole(world):
    world.put(*range(100, 140))
    world.run()
    world.put(row(100, Price="77.77"), row(101, Name="Another name"), 500)
    run = world.run()
    world.approve(run)
    run.refresh_from_db()
    assert (run.outcome, run.decided_by) == ("APPROVED", "Olga")
    shown = world.shown()
    assert shown["S-100"] == ("Thing 100", 77.77, True)
    assert shown["S-101"][0] == "Another name"
    assert "S-500" in shown
    assert "S-139" in shown, "what is missing still shows until it expires"
    world.put(500, row(100, Price="77.77"), row(101, Name="Another name"))
    assert world.run().outcome == "PROMOTED", "an approved shrink is not held again by the same file"
    assert differences() == []
    world.pass_time(47)
    assert "S-139" in world.shown()
    world.pass_time(2)
    assert "S-139" not in world.shown()


def test_a_rejected_run_leaves_everything_and_is_remembered(world):
    world.put(*range(100, 140))
    world.run()
    before = world.shown()
    world.put(row(100, Price="77.77"))
    run = world.run()
    world.reject(run)
    run.refresh_from_db()
    assert (run.outcome, run.decision_reason) == ("REJECTED", "not whole")
    assert world.shown() == before
    assert count("held_changes") == 0
    again = world.run()
    assert (again.outcome, world.figures(again).skipped_reason) == ("SKIPPED", "UNCHANGED_REJECTED")
    world.put(row(100, Price="77.77"), *range(101, 140))
    assert world.run().outcome == "PROMOTED"
    assert world.shown()["S-100"] == ("Thing 100", 77.77, True), "a price first seen in a rejected run is written"


def test_a_dump_that_reads_the_staging_tables_holds_up_no_run(world):
    world.put(1999)
    with connect("test") as reader, reader.transaction():
        for slot in range(SLOTS):
            for name in ("rows", "changes", "contents"):
                reader.execute(f"LOCK TABLE staged_{name}_{slot} IN ACCESS SHARE MODE")
        assert world.run().outcome == "PROMOTED"
        world.put(2499)
        assert world.run().outcome == "PROMOTED"
    assert set(world.shown()) == {"S-1999", "S-2499"}


def test_products_that_a_failed_run_left_behind_are_linked_by_the_run_that_shows_them(world, monkeypatch):
    def broken(*_):
        raise TerminalError("on fire")

    world.put(100)
    world.run()
    monkeypatch.setattr(ingest, "promote", broken)
    world.put(100, 101)
    assert world.run().status == "FAILED"
    monkeypatch.undo()
    world.put(100, 102)
    world.run()
    world.put(100, 101, 102)
    world.run()
    run_until_idle()
    assert world.names() == {"S-100", "S-101", "S-102"}
    assert rows("SELECT count(*) FROM product_links") == [(3,)]
