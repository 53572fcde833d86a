"""Twenty pages next to a large catalog cost what twenty products cost: nothing is read as a whole."""

import datetime as dt
import json
from decimal import Decimal

import pytest
from django.db import connection, transaction
from tests.support import catalog

from harvester.catalog.offers import differences
from harvester.kernel.identity import Identity, IdentityType
from harvester.kernel.money import Price
from harvester.kernel.signature import Content
from harvester.pipeline import observations
from harvester.pipeline.baseline import read_baseline
from harvester.pipeline.observations import Availability, Observation, promote_observations

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
    return made


def plans(nodes):
    for node in nodes:
        yield node
        yield from plans(node.get("Plans", []))


def test_no_statement_of_a_small_batch_reads_a_whole_table(source, monkeypatch):
    statements = []

    class Explaining:
        """Runs each statement of a promotion after it was explained."""

        def __init__(self, cursor):
            self._cursor = cursor

        def execute(self, query, values=None):
            self._cursor.execute(f"EXPLAIN (FORMAT json) {query}", values)
            [(explained,)] = self._cursor.fetchall()
            found = json.loads(explained) if isinstance(explained, str) else explained
            statements.extend((node["Node Type"], node.get("Relation Name")) for node in plans([found[0]["Plan"]]))
            self._cursor.execute(query, values)

        def __getattr__(self, name):
            return getattr(self._cursor, name)

    monkeypatch.setattr(observations, "lock_words", lambda *_: None)
    with transaction.atomic(), connection.cursor() as cursor:
        baseline = read_baseline(cursor, source.pk, lock=True)
        given = [observation(number, baseline.moment) for number in range(1, BATCH + 1)]
        written = promote_observations(Explaining(cursor), baseline, given, run_no=2, run_type="SCRAPE")
    assert (written.prices, written.new, written.superseded) == (BATCH, 0, [])
    large = {"source_products", "offers", "offer_words"}
    touched = {table for _, table in statements if table}
    assert touched & large == large, "the plans were looked at"
    assert [(kind, table) for kind, table in statements if kind == "Seq Scan" and table in large] == []
    assert not any(kind == "Seq Scan" and (table or "").startswith("prices_2") for kind, table in statements)
    assert len(catalog.fetch("SELECT product_id FROM offers WHERE amount = 12.5")) == BATCH
    assert {number for _, number in differences()} <= set(range(BATCH + 1, PRODUCTS + 1)), (
        "those of the batch are right"
    )
