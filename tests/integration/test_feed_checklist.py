"""The checklist that the specification of feeds ends with, item by item."""

import pytest
from django.db import DatabaseError
from tests.support.catalog import now
from tests.support.feed_world import OLGA, count
from tests.support.feeds import row
from tests.support.sftp_server import PASSWORD
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.models import Job
from harvester.feeds import jobs, verbs
from harvester.feeds.models import Feed
from harvester.feeds.runs import FEED_LOCK
from harvester.guards import secrets
from harvester.runs import decisions as run_decisions
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
HTML = b"<!doctype html><html><body>Please log in</body></html>"


@pytest.mark.parametrize("status", ["DRAFT", "ENABLED", "PAUSED", "DISABLED"])
def test_eligibility_is_enforced(world, status):
    """A feed that may not run does not, neither by its schedule nor by a job that was waiting."""
    is_eligible = status == "ENABLED"
    world.put(100)
    world.ask()
    world.change(status=status, schedule_hours=1, next_run_at=now() if is_eligible else None)
    world.job(jobs.TICK, {})
    run_until_idle(threads=1)
    assert [run.outcome for run in Run.objects.order_by("no")] == (["PROMOTED", "SKIPPED"] if is_eligible else [])
    assert (world.server.connections > 0) is is_eligible


def test_prices_are_only_appended(world):
    world.put(100, 101)
    world.run()
    before = rows("SELECT * FROM prices ORDER BY source_product_id")
    world.put(row(100, Price="9.99"), 101)
    world.run()
    after = rows("SELECT * FROM prices")
    assert set(before) < set(after)
    assert len(after) == 3
    for statement in ("UPDATE prices SET amount = 1", "DELETE FROM prices"):
        with pytest.raises(DatabaseError):
            rows(statement)


@pytest.mark.parametrize("file", [HTML, b"", b"\xff\xfe\x00broken", b"SKU\tName\n1\t2\n"])
def test_parse_errors_fail_closed(world, file):
    world.put(*range(100, 110))
    world.run()
    shown, prices = world.shown(), count("prices")
    world.put_bytes(file)
    assert world.run().status == "FAILED"
    assert (world.shown(), count("prices")) == (shown, prices)


def test_products_expire_after_successful_runs_only(world):
    """S-109 is not in the file any more; only a promotion says so, and only time takes it away."""
    world.put(*range(100, 110))
    world.run()
    world.pass_time(30)
    world.put_bytes(HTML)
    world.run()
    assert rows("SELECT count(*) FROM offers WHERE seen_until IS NOT NULL") == [(0,)]
    world.put(*range(100, 109))
    assert world.run().outcome == "PROMOTED"
    assert rows("SELECT count(*) FROM offers WHERE seen_until IS NOT NULL") == [(1,)]
    assert "S-109" in world.shown()
    world.pass_time(19)
    assert world.names() == {f"S-{number}" for number in range(100, 109)}


def test_the_third_failure_in_a_row_stops_the_feed(world):
    for failures in (1, 2, 3):
        world.put_bytes(HTML)
        world.run()
        assert (Feed.objects.get().status == "DISABLED") is (failures == 3)
    assert world.run() is None


def test_credentials_are_opened_in_workers_only(world, monkeypatch):
    """Whatever people do with a feed opens nothing; the job of a run carries the feed's id, and its worker opens."""
    opened = []
    real = secrets.open_document

    def watched(kind, owner, **more):
        opened.append(Job.objects.filter(state="running").values_list("kind", flat=True).first())
        return real(kind, owner, **more)

    monkeypatch.setattr(secrets, "open_document", watched)
    world.put(*range(100, 140))
    world.run()
    run = world.shrink()
    opened.clear()
    verbs.pause(OLGA, world.feed.id)
    verbs.resume(OLGA, world.feed.id)
    verbs.update(OLGA, world.feed.id, {"schedule_hours": 4})
    run_decisions.request_rejection(OLGA, run.id, "no")
    verbs.run_now(OLGA, world.feed.id)
    assert opened == []
    run_until_idle(threads=1)
    assert set(opened) == {"feeds.run"}
    assert PASSWORD not in str(list(Job.objects.values_list("args", flat=True)))


def test_the_advisory_lock_keeps_runs_apart(world):
    """The second job comes while the first one reads: it ends, without a run of its own."""

    def run_meanwhile():
        [[is_free]] = rows("SELECT pg_try_advisory_lock(%s, %s)", FEED_LOCK, world.feed.lock_no)
        return is_free, world.run()

    world.put(*range(100, 110))
    world.meanwhile(run_meanwhile)
    first = world.ask()
    world.work(first)
    assert world.happened == (False, None)
    assert [run.job_id for run in Run.objects.all()] == [first]
    assert set(Job.objects.filter(kind="feeds.run").values_list("state", flat=True)) == {"succeeded"}


def test_a_session_with_the_advisory_lock_keeps_a_run_from_beginning(world):
    world.put(*range(100, 110))
    with world.locked():
        assert world.run() is None
    assert (world.server.connections, Run.objects.count()) == (0, 0)


@pytest.mark.parametrize(("missing", "outcome"), [(12, "PROMOTED"), (13, "HELD")])
def test_a_spike_of_more_than_thirty_percent_is_held(world, missing, outcome):
    world.put(*range(100, 140))
    world.run()
    world.put(*range(100 + missing, 140))
    assert world.run().outcome == outcome


@pytest.mark.parametrize(("missing", "outcome"), [(9, "PROMOTED"), (10, "HELD")])
def test_a_spike_of_fewer_than_ten_is_none(world, missing, outcome):
    world.put(*range(100, 112))
    world.run()
    world.put(*range(100 + missing, 112))
    assert world.run().outcome == outcome


@pytest.mark.parametrize(("missing", "outcome"), [(499, "PROMOTED"), (500, "HELD")])
def test_a_spike_of_five_hundred_is_held_whatever_its_share(world, missing, outcome):
    world.put(*range(100, 2100))
    world.run()
    world.put(*range(100 + missing, 2100))
    assert world.run().outcome == outcome
