"""Tables of the specification about whole runs, row by row. Numbers are its sections."""

import datetime as dt
from uuid import uuid4

import pytest
from structlog.testing import capture_logs
from tests.support.feed_world import OLGA, World, allow_loopback, count
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.sftp_server import SftpServer, reports
from tests.support.tables import rows

from harvester.feeds import ingest
from harvester.feeds.fetch import is_unchanged
from harvester.feeds.models import Feed
from harvester.guards.remote import RemoteStat
from harvester.kernel.errors import HarvesterError, TerminalError
from harvester.runs import decisions as run_decisions
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
ALL = range(100, 140)
HTML = b"<!doctype html><html><body>Please log in</body></html>"


def state_of(name):
    """When a product was last seen by a promoted run, whether it is active, and at which price consumers see it."""
    found = rows(
        "SELECT s.last_seen_success_at, a.product_id IS NOT NULL, v.amount::float FROM source_products p "
        "LEFT JOIN source_product_presence s ON s.source_id = p.source_id AND s.source_product_id = p.id "
        "LEFT JOIN active_offers a ON a.source_id = p.source_id AND a.product_id = p.id "
        "LEFT JOIN visible_offers v ON v.source_id = p.source_id AND v.product_id = p.id WHERE p.identity_value = %s",
        name,
    )
    return found[0] if found else (None, False, None)


# 2.7: the states of an offer. None of them is stored.


def test_an_offer_that_only_a_held_run_saw_is_pending(world):
    world.put(*ALL)
    world.run()
    world.shrink(100, 500)
    assert state_of("S-500") == (None, False, None)
    assert rows("SELECT identity_value FROM held_changes WHERE is_new") == [("S-500",)]


def test_an_offer_whose_run_came_to_no_promotion_is_pending_and_no_gate_counts_it(world, monkeypatch):
    def broken(*_):
        raise TerminalError("on fire")

    world.put(*ALL)
    world.run()
    with monkeypatch.context() as patched:
        patched.setattr(ingest, "promote", broken)
        world.put(*ALL, *range(500, 540))
        assert world.run().status == "FAILED"
    assert rows("SELECT count(*) FROM source_products") == [(80,)]
    assert state_of("S-500") == (None, False, None)
    world.put(*reversed(ALL))
    run = world.run()
    assert (run.outcome, world.figures(run).active_count_before) == ("PROMOTED", 40)


def test_an_offer_that_a_held_run_saw_again_stays_as_it_was_until_the_decision(world):
    world.put(*ALL)
    world.run()
    promoted = world.look().last_promoted_at
    world.put(row(100, Price="7.77"))
    run = world.run()
    assert run.outcome == "HELD"
    assert state_of("S-100") == (promoted, True, 1.00)
    world.approve(run)
    assert state_of("S-100") == (world.look().last_promoted_at, True, 7.77)


def test_an_offer_is_active_while_its_hours_last_and_stale_afterwards(world):
    world.put(*ALL)
    world.run()
    for hours, is_active in ((0, True), (47.9, True), (0.2, False)):
        world.pass_time(hours)
        assert state_of("S-100") == (world.look().last_promoted_at, is_active, 1.00 if is_active else None)


# 7.6: which ends of a run count as having seen what stands in its file.


def promoted(world):
    world.put(*reversed(ALL))
    return world.run()


def held(world):
    return world.shrink()


def approved(world):
    run = held(world)
    world.approve(run)
    return run


def rejected(world):
    run = held(world)
    world.reject(run)
    return run


def skipped(world):
    return world.run()


def failed(world):
    world.put_bytes(HTML)
    return world.run()


@pytest.mark.parametrize(
    ("end", "counts"),
    [(promoted, True), (held, False), (approved, True), (rejected, False), (skipped, False), (failed, False)],
)
def test_what_a_run_saw_counts_from_its_promotion_on(world, end, counts):
    world.put(*ALL)
    world.run()
    world.pass_time(1)
    before = world.look().last_promoted_at
    run = end(world)
    run.refresh_from_db()
    assert (run.outcome or run.status).lower() == end.__name__
    after = world.look().last_promoted_at
    assert (after > before) is counts
    assert state_of("S-100")[0] == after
    logged = rows("SELECT DISTINCT last_seen_at = last_seen_success_at FROM source_product_presence")
    assert logged == [(True,)], "nothing is written before the verdict, so neither is the first without the second"


# 8.7: who may be approved, and what a decision sets.


def no_run(_world):
    return uuid4()


def failed_run(world):
    return failed(world).id


def running_run(world):
    return world.running().id


def promoted_run(world):
    return promoted(world).id


def skipped_run(world):
    world.hold()
    return skipped(world).id


def run_during_another_one(world):
    run = world.hold()
    world.running()
    return run.id


@pytest.mark.parametrize(
    ("situation", "code"),
    [
        (no_run, "RUN_NOT_FOUND"),
        (failed_run, "RUN_NOT_SUCCEEDED"),
        (running_run, "RUN_NOT_SUCCEEDED"),
        (promoted_run, "NOT_BLOCKED"),
        (skipped_run, "NOT_BLOCKED"),
        (run_during_another_one, "FEED_BUSY"),
    ],
)
def test_what_cannot_be_decided_is_refused_by_its_code_and_nothing_changes(world, situation, code):
    run_id = situation(world)
    before = rows("SELECT * FROM runs ORDER BY no"), rows("SELECT * FROM sources"), count("jobs")
    for decide in (run_decisions.request_approval, lambda who, run: run_decisions.request_rejection(who, run, "no")):
        with capture_logs() as logged, pytest.raises(HarvesterError) as refusal:
            decide(OLGA, run_id)
        assert refusal.value.code == code
        if situation is not no_run:
            assert [(line["event"].split("_")[0], line["reason"]) for line in logged] == [("ACTIVATION", code)]
    assert (rows("SELECT * FROM runs ORDER BY no"), rows("SELECT * FROM sources"), count("jobs")) == before


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_decision_has_one_moment_and_keeps_why_the_run_was_held(world, verdict):
    run = world.hold()
    since = world.look().held_since
    figures = world.figures(run)
    getattr(world, verdict)(run)
    run.refresh_from_db()
    source = world.look()
    assert run.decided_by == OLGA.name
    if verdict == "approve":
        assert run.decided_at == source.last_promoted_at == state_of("S-100")[0]
    else:
        assert run.decided_at - since == source.frozen
    again = world.figures(run)
    assert (again.run.verdict, again.would_expire_count) == (figures.run.verdict, figures.would_expire_count)


# 9.5: which file is taken for the one that is known.

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


@pytest.mark.parametrize(
    ("known", "shown", "is_same", "event"),
    [
        ((NOON, 5), (None, None), False, "STAT_INCOMPLETE"),
        ((NOON, 5), (NOON, None), False, "STAT_INCOMPLETE"),
        ((NOON, 5), (None, 5), False, "STAT_INCOMPLETE"),
        ((NOON, 5), (NOON, 5), True, "STAT_UNCHANGED"),
        ((NOON, 5), (NOON + SECOND, 5), False, None),
        ((NOON, 5), (NOON - SECOND, 5), False, None),
        ((NOON, 5), (NOON, 6), False, None),
        ((NOON, 5), (NOON, 4), False, None),
        ((None, None), (NOON, 5), False, None),
        ((None, 5), (NOON, 5), False, None),
        ((NOON, None), (NOON, 5), False, None),
        ((NOON, 0), (NOON, 0), True, "STAT_UNCHANGED"),
    ],
)
def test_a_file_is_known_by_time_and_size_together(known, shown, is_same, event):
    feed = Feed(last_content_hash="ab", last_remote_mtime=known[0], last_remote_size=known[1])
    said = []
    stat = RemoteStat(mtime=shown[0], size=shown[1])
    assert is_unchanged(feed, stat, lambda name, **_: said.append(name)) is is_same
    assert said == ([event] if event else [])


SIZE = len(written(*map(row, ALL)).encode())
TIMES = {"atime": 1, "mtime": 1_700_000_000}


@pytest.mark.parametrize(
    ("figures", "same_file", "another_file"),
    [
        ({}, "UNCHANGED_HASH", None),
        ({"size": SIZE}, "UNCHANGED_HASH", None),
        (TIMES, "UNCHANGED_HASH", None),
        ({"size": SIZE, **TIMES}, "UNCHANGED_MTIME", "UNCHANGED_MTIME"),
    ],
    ids=["nothing", "size", "time", "both"],
)
def test_the_size_and_time_from_the_server_decide_whether_the_file_is_downloaded(
    settings, tmp_path, figures, same_file, another_file
):
    """Another file of the same size is distinguished by its content alone, and so only where it is downloaded."""
    allow_loopback(settings)
    with SftpServer(tmp_path, behaviour=reports(**figures)) as server:
        world = World(server)
        world.put(*ALL)
        assert world.run().outcome == "PROMOTED"
        for numbers, reason in ((ALL, same_file), (reversed(ALL), another_file)):
            downloads = len(server.files)
            world.put(*numbers)
            run = world.run()
            assert world.figures(run).skipped_reason == reason
            assert run.outcome == ("SKIPPED" if reason else "PROMOTED")
            assert (len(server.files) > downloads) is (reason != "UNCHANGED_MTIME")
        world.check()


# 11.1: every end of a run is one transaction over everything about it.


def written_by(table, where, *values):
    """The transactions that wrote these rows last."""
    return [number for (number,) in rows(f"SELECT xmin::text FROM {table} WHERE {where}", *values)]


@pytest.mark.parametrize("end", [promoted, held, skipped, failed])
def test_a_run_its_feed_and_its_job_end_in_one_transaction(world, end):
    world.put(*ALL)
    world.run()
    Feed.objects.update(consecutive_failures=2)
    run = end(world)
    [at_the_end] = written_by("runs", "no = %s", run.no)
    assert abs(run.duration_ms - (run.finished_at - run.started_at) / dt.timedelta(milliseconds=1)) < 1
    assert Feed.objects.get().last_run_at == run.finished_at
    assert written_by("feeds", "true") == [at_the_end]
    assert written_by("feed_runs", "run_id = %s", run.id) == [at_the_end]
    if end is failed:
        # The job's own failure is the engine's to write; the run is over by then, for every reader.
        assert (Feed.objects.get().consecutive_failures, Feed.objects.get().status) == (3, "DISABLED")
        assert written_by("alerts", "kind IN ('RUN_FAILED', 'FEED_AUTO_DISABLED')") == [at_the_end] * 2
    else:
        assert (Feed.objects.get().consecutive_failures, Feed.objects.get().status) == (0, "ENABLED")
        assert written_by("jobs", "id = %s", run.job_id) == [at_the_end]
        assert written_by("alerts", "kind = 'RUN_HELD'") == ([at_the_end] if end is held else [])
    assert Run.objects.filter(status="RUNNING").count() == 0
