"""How long the promotion of 20 pages takes, into a source that has very many products."""

import statistics
import time
from decimal import Decimal
from typing import Any

BATCH = 20
#: Of a batch, how many products are new.
NEW = 2
_FILL = """
INSERT INTO retailers (id, name, website, domain)
VALUES ('00000000-0000-4000-8000-000000000001', 'large', 'https://large.com', 'large.com');
INSERT INTO sources (id, retailer_id, name, kind, url, adapter_id, scrape_enabled, tos_reviewed_at, tos_approved_by,
    expiry_hours, visibility)
VALUES ('00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000001', 'large', 'DIRECT',
    'https://large.com', 'structured', true, now(), 'bench', 72, 'ELIGIBLE');
INSERT INTO source_products (source_id, id, title, url, sku, identity_type, identity_value, content_hash,
    created_run_no, updated_run_no, created_at, updated_at)
SELECT '00000000-0000-4000-8000-000000000002', nextval('source_products_id'), 'thing ' || n,
    'https://large.com/' || n, 'sku-' || n, 3, 'sku-' || n, n, 0, 0, now(), now()
FROM generate_series(1, %(products)s) n;
INSERT INTO prices (source_id, source_product_id, observed_at, created_at, run_no, signature, run_type, amount,
    currency, in_stock)
SELECT source_id, id, now() - interval '1 day', now() - interval '1 day', 0, gen_random_uuid(), 'SCRAPE', 10, 'USD',
    true FROM source_products WHERE source_id = '00000000-0000-4000-8000-000000000002';
ANALYZE;
"""
SOURCE = "00000000-0000-4000-8000-000000000002"


def measure(connection: Any, *, products: int, batches: int) -> float:
    """Return the 95th percentile of milliseconds, from the lock of the source to the commit."""
    import psycopg

    with psycopg.ClientCursor(connection) as cursor:
        cursor.execute(_FILL, {"products": products})
    connection.execute("VACUUM ANALYZE")
    taken = [_promote(number, products) for number in range(batches + 1)]
    # The first one prepares the connection.
    return statistics.quantiles(taken[1:], n=20)[-1]


def _promote(number: int, products: int) -> float:
    from django.db import connection, transaction

    from harvester.pipeline.baseline import read_baseline
    from harvester.pipeline.observations import promote_observations

    began = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        baseline = read_baseline(cursor, SOURCE, lock=True)
        observations = [_observation(number, place, products, baseline.moment) for place in range(BATCH)]
        done = promote_observations(cursor, baseline, observations, run_no=number + 1, run_type="SCRAPE")
    seconds = time.perf_counter() - began
    if (done.prices, done.new) != (BATCH, NEW):
        raise RuntimeError(f"{done.prices} prices and {done.new} new products were promoted")
    return seconds * 1000


def _observation(number: int, place: int, products: int, moment: Any) -> Any:
    from harvester.kernel.identity import Identity, IdentityType
    from harvester.kernel.money import Price
    from harvester.kernel.signature import Content
    from harvester.kernel.stock import Availability
    from harvester.pipeline.observations import Observation

    # Spread over the whole source.
    product = (number * BATCH + place) * 7_919 % products + 1
    name = f"sku-new-{number}-{place}" if place < NEW else f"sku-{product}"
    return Observation(
        identity=Identity(type=IdentityType.SKU, value=name),
        content=Content(title=f"thing {name}", url=f"https://large.com/{name}", sku=name),
        price=Price(amount=Decimal(f"{11 + number % 50}.{place:02}"), currency="USD"),
        availability=Availability.IN_STOCK,
        observed_at=moment,
    )
