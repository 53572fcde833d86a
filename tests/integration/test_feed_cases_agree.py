"""A dirty catalog through its whole life: after each step the tables equal a slow reference, row for row.

`CASE_ROWS=20000 GENERATED_TIMES=10` runs it with as many rows and ten times the seeds.
"""

import os
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db import connections
from tests.support.dirty_feeds import dirty_row, seeded, write_feed
from tests.support.feed_world import World, allow_loopback
from tests.support.generated import seeds
from tests.support.sftp_server import SftpServer
from tests.support.slow_catalog import CONTENT, PRICE, SlowCatalog
from tests.support.tables import rows

from harvester.catalog.offers import differences
from harvester.feeds import ingest
from harvester.pipeline.match import SHARED_FROM, match

ROWS = int(os.environ.get("CASE_ROWS", "600"))
SEEDS = seeds(1, 2)
HEADER = [
    "Unique Merchant SKU",
    "Product Name",
    "Product URL",
    "Image URL",
    "Current Price",
    "Original Price",
    "Currency",
    "Stock Availability",
    "EAN",
    "MPN",
    "Manufacturer",
    "Category",
    "Description",
    "Promotions",
]
SKU, TITLE, PRICE_CELL, LAST = 0, 1, 4, len(HEADER) - 2
#: Only what is missing may hold a run here.
THRESHOLDS = {"reject_share": 1.0, "shock_share": 1.0, "url_hash_share": 1.0, "expiry_share": 0.15}


@pytest.fixture
def world(database, settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        made = World(server)
        made.change(thresholds=THRESHOLDS, accepts_url_identity=True)
        yield made


def catalog(chance):
    """Dirty rows, most of them products of their own, some a product that stood above already."""
    made = [dirty_row(chance, HEADER) for _ in range(ROWS)]
    return [[_sku(chance, number) or row[SKU], *row[1:]] for number, row in enumerate(made)]


def _sku(chance, number):
    kind = chance.random()
    return f"N-{number}" if kind < 0.7 else f"N-{chance.randint(0, number)}" if kind < 0.85 else None


def more_expensive(cells):
    """Another price, where it is a plain number."""
    text = cells[PRICE_CELL]
    is_plain = text.replace(".", "", 1).isdigit() and text.isascii() and float(text) > 0
    return [*cells[:PRICE_CELL], f"{float(text) * 1.01 + 0.01:.2f}", *cells[PRICE_CELL + 1 :]] if is_plain else cells


def retitled(cells):
    return [*cells[:TITLE], f"{cells[TITLE]} renewed", *cells[TITLE + 1 :]] if cells[TITLE].strip() else cells


def byte_more(table):
    first = table[0]
    return [[*first[:LAST], f"{first[LAST]} ", *first[LAST + 1 :]], *table[1:]]


class Life:
    def __init__(self, world, seed):
        self.world, self.seed = world, seed
        self.slow = SlowCatalog(datetime.now(UTC))
        self.delimiter, self.quoting = ((",", "needed"), ("\t", "none"), ("|", "all"))[seed % 3]

    def read(self, table, outcome="PROMOTED"):
        """One run; what the slow reference makes of the same bytes."""
        chance = seeded(self.seed)
        data = write_feed(chance, HEADER, table, delimiter=self.delimiter, quoting=self.quoting)
        self.world.put_bytes(data, compressed=True)
        run = self.world.run()
        assert (run.outcome, run.error) == (outcome, None)
        self.run = run
        return self.slow.read(data, delimiter=self.delimiter, quoted=self.quoting != "none")

    def check(self):
        assert stored_contents() == self.slow.contents
        assert stored_prices() == self.slow.prices
        assert stored_offers() == self.slow.offers()
        assert differences() == []


def stored_contents():
    found = rows(f"SELECT identity_type, identity_value, {', '.join(CONTENT)} FROM source_products")
    return {tuple(row[:2]): tuple(row[2:]) for row in found}


def stored_prices():
    columns = ", ".join(f"r.{name}" for name in PRICE)
    found = rows(
        f"SELECT p.identity_type, p.identity_value, {columns} FROM prices r "
        "JOIN source_products p ON p.source_id = r.source_id AND p.id = r.source_product_id ORDER BY r.run_no"
    )
    stored = {}
    for row in found:
        stored.setdefault(tuple(row[:2]), []).append((*row[2:-1], UUID(str(row[-1])).hex))
    return stored


def stored_offers():
    found = rows(
        "SELECT p.identity_type, p.identity_value, o.amount, o.currency, o.original_amount, o.in_stock, "
        "o.seen_until IS NULL FROM offers o JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id"
    )
    return {tuple(row[:2]): tuple(row[2:]) for row in found}


def make_all_due():
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE offers SET last_priced_at = last_priced_at - interval '30 days'")


@pytest.fixture
def _compared_both_ways(monkeypatch):
    """Every run is compared by one session, and again by two, as catalogs of that size are."""

    def both_ways(job, cursor, slot, baseline, *, rows, **more):
        by_one = match(job, cursor, slot, baseline, rows=rows, **more)
        difference = staged(cursor, slot)
        cursor.execute(f"DELETE FROM {slot.changes}")
        by_two = match(job, cursor, slot, baseline, rows=SHARED_FROM, **more)
        assert by_two == by_one
        assert staged(cursor, slot) == difference
        return by_two

    assert ROWS < SHARED_FROM
    monkeypatch.setattr(ingest, "match", both_ways)


def staged(cursor, slot):
    """What a run would change, without the numbers of new products, which differ each time."""
    cursor.execute(f"SELECT * FROM {slot.changes} ORDER BY line")
    names = [column.name for column in cursor.description]
    changes = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [{**change, "product_id": None} if change["is_new"] else change for change in changes]


@pytest.mark.usefixtures("_compared_both_ways")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_case_leaves_what_the_slow_reference_says(world, seed):
    chance, life = seeded(seed), Life(world, seed)
    table = catalog(chance)
    life.slow.promote(life.read(table))
    life.check()
    steps = {
        "unchanged": byte_more,
        "5 % of prices": lambda t: [more_expensive(cells) if n % 20 == 0 else cells for n, cells in enumerate(t)],
        "all prices": lambda t: [more_expensive(cells) for cells in t],
        "half of the titles": lambda t: [retitled(cells) if n % 2 else cells for n, cells in enumerate(t)],
    }
    for change in steps.values():
        table = change(table)
        life.slow.promote(life.read(table))
        life.check()
    make_all_due()
    table = byte_more(table)
    life.slow.promote(life.read(table), every_price=True)
    life.check()
    shrunk = life.read(table[: len(table) * 3 // 5], outcome="HELD")
    life.check()
    world.approve(life.run)
    life.slow.promote(shrunk)
    life.check()
