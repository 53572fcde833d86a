"""Twenty pages next to a large catalog cost what twenty products cost: nothing is read as a whole."""

import datetime as dt
import json
from decimal import Decimal

import pytest
from django.db import connection, connections, transaction
from tests.support import catalog

from harvester.catalog import offers, page_products
from harvester.catalog.offers import differences
from harvester.kernel.identity import Identity, IdentityType
from harvester.kernel.money import Price
from harvester.kernel.signature import Content
from harvester.kernel.stock import Availability
from harvester.pipeline import observations
from harvester.pipeline.baseline import read_baseline
from harvester.pipeline.observations import Observation, promote_observations

PRODUCTS, BATCH = 20_000, 20
_PRODUCTS = """
INSERT INTO source_products (source_id, id, identity_type, identity_value, content_hash, title, url, created_run_no,
    updated_run_no)
SELECT %s, i, 3, 'S-' || i, 1, 'Thing ' || i, 'https://shop.example/' || i, 1, 1 FROM generate_series(1, %s) i
"""
_PRICES = """
INSERT INTO prices (source_id, source_product_id, observed_at, run_no, signature, run_type, amount, currency, in_stock,
    created_at)
SELECT %s, i, now() - interval '2 days', 1, md5(i::text)::uuid, 'SCRAPE', 10, 'USD', true, now()
FROM generate_series(1, %s) i
"""
_PAGE_PRODUCTS = """
INSERT INTO page_products (source_id, product_id, seen_at)
SELECT %s, i, now() - interval '2 days' FROM generate_series(1, %s) i
"""
_OFFERS = """
INSERT INTO offers (source_id, product_id, currency, amount, in_stock, observed_at, run_no, last_run_type, seen_until,
    by_pages)
SELECT %s, i, 'USD', 10, true, now() - interval '2 days', 1, 'SCRAPE', now() - interval '2 days', true
FROM generate_series(1, %s) i
"""


def observation(number: int, observed_at: dt.datetime) -> Observation:
    return Observation(
        identity=Identity(type=IdentityType.SKU, value=f"S-{number}"),
        content=Content(title=f"New thing {number}", url=f"https://shop.example/{number}"),
        price=Price(amount=Decimal("12.50"), currency="USD"),
        availability=Availability.IN_STOCK,
        observed_at=observed_at,
    )


@pytest.fixture
def source(database):
    made = catalog.source(kind="DIRECT", visibility="ELIGIBLE", last_promoted_at=None)
    for statement in (_PRODUCTS, _PRICES):
        catalog.fetch(statement, made.pk, PRODUCTS)
    # As autovacuum does after so many new rows. Statistics of a table that was empty a moment ago say that any index is
    # as good as any other.
    with connections["owner"].cursor() as owner:
        owner.execute("ANALYZE source_products, prices, offers, offer_words")
    return made


class Explaining:
    """Runs each statement of a promotion after it was explained; `read` has table -> most rows that a scan read."""

    def __init__(self, cursor):
        self._cursor = cursor
        self.read = {}

    def execute(self, query, values=None):
        if not query.startswith("SET"):
            with transaction.atomic():
                self._cursor.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}", values)
                [(explained,)] = self._cursor.fetchall()
                transaction.set_rollback(True)
            found = json.loads(explained) if isinstance(explained, str) else explained
            self._note([found[0]["Plan"]])
        self._cursor.execute(query, values)

    def _note(self, nodes):
        for node in nodes:
            if (table := node.get("Relation Name")) and node["Node Type"] != "ModifyTable":
                rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
                self.read[table] = max(self.read.get(table, 0), rows)
            self._note(node.get("Plans", []))

    def __getattr__(self, name):
        return getattr(self._cursor, name)


@pytest.fixture
def explained(monkeypatch):
    """Explains what it is given, and what recomputes the offers; the transaction is open."""
    with transaction.atomic(), connection.cursor() as cursor:
        made = Explaining(cursor)

        def recompute(source_id, products, *, comparison):
            made.execute(offers._RECOMPUTE, {"source": source_id, "products": products, "comparison": comparison})

        for module in (observations, offers):
            monkeypatch.setattr(module, "recompute", recompute)
        yield made


def test_no_statement_of_a_small_batch_reads_more_than_its_products(source, explained):
    baseline = read_baseline(explained, source.pk, lock=True)
    given = [observation(number, baseline.moment) for number in range(1, BATCH + 1)]
    written = promote_observations(explained, baseline, given, run_no=2, run_type="SCRAPE")
    assert (written.prices, written.new, written.superseded) == (BATCH, 0, [])
    assert {"source_products", "offers", "offer_words", "page_products"} <= explained.read.keys(), (
        "plans were looked at"
    )
    assert too_many(explained) == {}


@pytest.mark.parametrize("say_so", [page_products.confirm_observed, page_products.end_presence])
def test_what_pages_say_about_presence_reads_only_their_products(source, explained, say_so):
    with connections["owner"].cursor() as owner:
        for statement in (_PAGE_PRODUCTS, _OFFERS):
            owner.execute(statement, [source.pk, PRODUCTS])
        owner.execute("ANALYZE offers, page_products")
    say_so(explained, source.pk, range(1, BATCH + 1), catalog.now())
    assert {"offers", "page_products"} <= explained.read.keys(), "the plans were looked at"
    assert too_many(explained) == {}


def too_many(explained):
    return {table: rows for table, rows in explained.read.items() if rows > 2 * BATCH}


def test_the_offers_of_a_small_batch_are_right(source):
    with transaction.atomic(), connection.cursor() as cursor:
        baseline = read_baseline(cursor, source.pk, lock=True)
        given = [observation(number, baseline.moment) for number in range(1, BATCH + 1)]
        promote_observations(cursor, baseline, given, run_no=2, run_type="SCRAPE")
    assert len(catalog.fetch("SELECT product_id FROM offers WHERE amount = 12.5")) == BATCH
    assert {number for _, number in differences()} <= set(range(BATCH + 1, PRODUCTS + 1)), (
        "those of the batch are right"
    )
