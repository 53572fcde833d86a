"""Runs with a row cache are faster and have the same results."""

import pytest
from django.db import connections
from tests.support import feed_oracle
from tests.support.dirty_feeds import seeded
from tests.support.feed_world import World, allow_loopback
from tests.support.feeds import row
from tests.support.log_lines import logged
from tests.support.sftp_server import SftpServer
from tests.support.small_disk import files_no_larger_than
from tests.support.tables import rows

from harvester.engine.enqueue import enqueue
from harvester.feeds.jobs import CLEAN_UP
from harvester.feeds.reader.row_cache.store import DIRECTORY, SUFFIX, cache_path

pytestmark = pytest.mark.usefixtures("database")
NUMBERS = range(1000, 1040)


@pytest.fixture
def disturbed(database, settings, tmp_path):
    """A feed whose catalog is changed by the test."""
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        yield World(server)


def kept(world):
    path = cache_path(world.source.id)
    return path.read_bytes() if path.exists() else None


def run(world):
    """Run once; return the run, how many rows were cached at each read, and the events about the cache."""
    with logged() as lines:
        ended = world.run()
        events = lines()
    known = [line["known_rows"] for line in events if line["event"] == "PARSE_COMPLETE"]
    return ended, known, [line["event"] for line in events if line["event"].startswith("KNOWN_ROWS")]


def change(statement):
    """Change the catalog without a run, as the owner of the tables."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statement)
        cursor.execute("SET session_replication_role = origin")


def edition(chance, number):
    """Return rows of all sorts: constant, with new prices or names, rejected, with warnings, by address, doubled."""
    made = []
    for item in range(2000, 2060):
        kind = chance.random()
        changed = {"Price": f"{chance.randint(2000, 2200) / 100:.2f}"} if kind < 0.1 else {}
        changed |= {"Name": f"Thing {item} of {number}"} if 0.1 < kind < 0.2 else {}
        changed |= {"Name": ""} if item % 20 == 1 else {}
        changed |= {"Availability": "perhaps"} if item % 20 == 2 else {}
        changed |= {"SKU": ""} if item % 20 == 3 else {}
        made += [row(item, **changed)] if kind < 0.97 else []
        made += [row(item, Price="9.00")] if item % 20 == 4 and kind < 0.5 else []
    return [*made, row(3000 + number)]


def test_a_feed_that_knows_comes_to_the_same_as_one_that_forgets(world):
    world.change(accepts_url_identity=True)
    forgetful = World(world.server, "Forgetful")
    forgetful.change(accepts_url_identity=True)
    chance, found = seeded(7), []
    for number in range(5):
        world.put(*edition(chance, number))
        cache_path(forgetful.source.id).unlink(missing_ok=True)
        _, known, _ = run(world)
        assert run(forgetful)[1] == [0]
        assert feed_oracle.differences(world, forgetful) == []
        found += known
    assert found[0] == 0
    assert all(count > 20 for count in found[1:])
    forgetful.check()


def test_only_a_promoted_run_is_remembered(world):
    world.put(*NUMBERS)
    assert run(world)[1:] == ([0], [])
    first = kept(world)
    held = world.shrink(1000, 1001, 1002)
    assert kept(world) == first
    world.approve(held)
    assert kept(world) == first
    world.put_bytes(b"Name\tUrl\n")
    world.run()
    assert kept(world) == first
    world.put(*NUMBERS, 1050)
    assert run(world)[1:] == ([len(NUMBERS)], [])
    assert kept(world) != first


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE source_products SET title = 'wrong', content_hash = content_hash + 1 WHERE sku = 'S-1007'",
        "DELETE FROM source_products WHERE sku = 'S-1007'",
    ],
    ids=["content", "product"],
)
def test_content_that_the_catalog_lacks_is_read_from_the_file(disturbed, statement):
    disturbed.put(*NUMBERS)
    disturbed.run()
    shown = disturbed.shown()
    change(statement)
    disturbed.put(*NUMBERS, compressed=True)
    ended, known, events = run(disturbed)
    assert (ended.outcome, known, events) == ("PROMOTED", [len(NUMBERS), 0], ["KNOWN_ROWS_NOT_ENOUGH"])
    assert disturbed.shown() == shown
    figures = disturbed.figures(ended)
    assert (figures.rows_read, figures.rows_parsed, figures.products_upserted) == (40, 40, 40)
    disturbed.put(*reversed(NUMBERS))
    assert run(disturbed)[1:] == ([len(NUMBERS)], [])


def test_a_held_run_has_the_content_that_the_catalog_lacks(disturbed):
    disturbed.put(*NUMBERS)
    disturbed.run()
    change("UPDATE source_products SET title = 'wrong', content_hash = content_hash + 1 WHERE sku = 'S-1000'")
    disturbed.put(1000, 1001, 1002)
    ended, known, _ = run(disturbed)
    assert (ended.outcome, known) == ("HELD", [3, 0])
    assert rows("SELECT title FROM held_changes WHERE is_content") == [("Thing 1000",)]


def test_products_without_an_offer_are_looked_at_again_when_there_are_new_ones(disturbed):
    """A better identity is looked for in whatever was not shown before."""
    disturbed.put(row(1000, SKU=""), *NUMBERS[1:])
    disturbed.run()
    change("DELETE FROM offers WHERE product_id = (SELECT id FROM source_products WHERE sku = 'S-1007')")
    disturbed.put(*NUMBERS)
    ended, known, events = run(disturbed)
    assert (known, events) == ([39, 0], ["KNOWN_ROWS_NOT_ENOUGH"])
    assert disturbed.figures(ended).identity_upgrades == 1


def test_what_is_kept_may_be_damaged_or_of_another_source(world):
    other = World(world.server, "Other")
    world.put(*NUMBERS)
    for each in (world, other):
        each.run()
    whole = kept(world)
    for number, wrong in enumerate([b"", whole[:-1], whole[:100] + b"x" + whole[101:], kept(other)]):
        cache_path(world.source.id).write_bytes(wrong)
        world.put(*NUMBERS, 1050 + number)
        assert run(world)[1] == [0]
        assert f"S-{1050 + number}" in world.names()


def test_no_room_for_what_is_kept_is_no_failure(world):
    world.put(*NUMBERS, *range(5000, 6500))
    world.run()
    before = kept(world)
    world.put(*NUMBERS, *range(5000, 6501))
    with files_no_larger_than(150_000):
        ended, known, events = run(world)
    assert (ended.outcome, known, events) == ("PROMOTED", [1540], ["KNOWN_ROWS_NOT_KEPT"])
    assert kept(world) == before
    assert "S-6500" in world.names()


def test_another_setting_of_the_feed_makes_everything_unknown(world):
    world.put(*NUMBERS)
    world.run()
    world.change(default_currency="EUR")
    world.put(*NUMBERS, 1050)
    assert run(world)[1] == [0]


def test_what_is_kept_for_a_source_without_a_feed_is_cleared_away(world):
    world.put(*NUMBERS)
    world.run()
    stranger = cache_path(world.source.id).with_name(f"2b0c7a1e-8f0a-4a51-9f43-1a2b3c4d5e6f{SUFFIX}")
    stranger.write_bytes(b"x")
    world.work(enqueue(CLEAN_UP).job_id)
    assert [path.stem for path in stranger.parent.glob("*")] == [str(world.source.id)]
    assert stranger.parent.name == DIRECTORY
    assert kept(world) is not None
