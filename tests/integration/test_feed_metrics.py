"""The figures of a run with any outcome, and those of feeds for Prometheus."""

import pytest
from tests.support.feed_world import World, allow_loopback
from tests.support.feeds import row
from tests.support.sftp_server import SftpServer

from harvester.feeds.models import Feed
from harvester.ops import metrics

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(database, settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        yield World(server)


#: What the contract requires of each run, in addition to its duration.
METRICS = (
    *("download_bytes", "rows_read", "rows_parsed", "products_upserted", "products_expired", "products_rejected"),
    *("prices_written", "error_count", "duplicate_key_count"),
)


def figures(world, run):
    found = world.figures(run)
    assert run.duration_ms >= 0
    assert found.is_partial is False
    assert found.run.timings
    return {name: getattr(found, name) for name in METRICS}


def test_a_promoted_run_has_all_its_figures(world):
    world.put(*range(100, 140), row(100, Price="9.99"), row(141, Price="none"))
    assert figures(world, world.run()) == {
        "download_bytes": world.file.stat().st_size,
        "rows_read": 42,
        "rows_parsed": 41,
        "products_upserted": 40,
        "products_expired": 0,
        "products_rejected": 1,
        "prices_written": 40,
        "error_count": 1,
        "duplicate_key_count": 1,
    }


def test_what_expired_since_the_last_promotion_is_counted(world):
    world.put(*range(100, 140))
    world.run()
    expired = []
    for number in range(4):
        world.pass_time(30)
        world.put(*range(101, 140), 500 + number)
        expired.append(figures(world, world.run())["products_expired"])
    # Each run but the first misses the one product that only the run before saw, and finds the one before expired.
    assert expired == [0, 1, 1, 1]


def test_a_held_run_has_all_its_figures_and_has_written_nothing(world):
    world.put(*range(100, 140))
    world.run()
    world.put(row(100, Price="7.77"), row(101, Price="none"))
    held = world.run()
    assert held.outcome == "HELD"
    found = figures(world, held)
    assert None not in found.values()
    assert (found["rows_read"], found["products_upserted"], found["prices_written"]) == (2, 1, 0)
    assert (world.figures(held).prices_due, world.figures(held).products_missing) == (1, 39)
    assert world.figures(held).run.verdict[0]["gate"] == "EXPIRY_SPIKE"


def test_a_skipped_run_has_read_and_written_nothing(world):
    world.put(100)
    world.run()
    found = figures(world, world.run())
    written = ("prices_written", "products_expired", "error_count", "duplicate_key_count")
    assert found == {name: 0 if name in written else None for name in METRICS}


def test_a_run_skipped_by_its_content_has_downloaded(world):
    world.put(100)
    world.run()
    world.put(100)
    again = world.run()
    assert world.figures(again).skipped_reason == "UNCHANGED_HASH"
    assert figures(world, again)["download_bytes"] == world.file.stat().st_size


def test_a_failed_run_keeps_what_it_found_until_then(world):
    Feed.objects.update(max_rows=3)
    world.put(100, row(101, Price="none"), 102, 103)
    run = world.run()
    assert (run.error_code, run.stage) == ("ROW_COUNT_LIMIT_EXCEEDED", "parse")
    found = figures(world, run)
    assert (found["prices_written"], found["products_expired"], found["products_upserted"]) == (0, 0, None)
    assert found["download_bytes"] == world.file.stat().st_size


def test_a_file_of_bad_rows_fails_with_their_counts(world):
    world.put(row(100, Price="none"), row(101, Name=""))
    run = world.run()
    assert run.error_code == "NO_VALID_PRODUCTS"
    found = figures(world, run)
    assert (found["rows_read"], found["rows_parsed"], found["error_count"]) == (2, 0, 2)
    assert world.figures(run).rejects == {"INVALID_PRICE": 1, "MISSING_TITLE": 1}


def figures_of(name):
    """What the page says, by its labels."""
    lines = metrics.exposition().decode().splitlines()
    found = [line.rpartition(" ") for line in lines if line.startswith((f"{name}{{", f"{name} "))]
    return {labels.removeprefix(name): float(value) for labels, _, value in found}


def test_prometheus_gets_the_figures_of_feeds(world):
    assert figures_of("harvester_feeds")['{status="ENABLED"}'] == 1
    assert figures_of("harvester_feeds")['{status="DISABLED"}'] == 0
    assert figures_of("harvester_feed_last_promotion_age_seconds") == {}
    world.put(*range(100, 140))
    world.run()
    world.pass_time(2)
    world.run()
    world.put(100)
    world.run()
    world.put_bytes(b"nothing of use")
    world.run()
    runs = figures_of("harvester_feed_runs_last_day")
    assert {labels: count for labels, count in runs.items() if count} == {
        '{outcome="PROMOTED"}': 1, '{outcome="SKIPPED"}': 1, '{outcome="HELD"}': 1, '{outcome="FAILED"}': 1,
    }  # fmt: skip
    assert figures_of("harvester_feeds_held") == {"": 1}
    [(labels, age)] = figures_of("harvester_feed_last_promotion_age_seconds").items()
    assert labels == f'{{feed="Shop by Impact",feed_id="{world.feed.id}"}}'
    assert 7_200 <= age < 7_800
