"""Products, their prices and their offers, a batch of sources at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, transaction

from harvester.kernel.errors import Conflict
from tests.bench.seeding.shops import Shop
from tests.bench.seeding.words import BRANDS, COLOURS, MODELS, SIZES, THINGS

#: Products written by one transaction.
BATCH = 25_000

_BLOCK = "SELECT min(id), max(id) FROM (SELECT nextval('source_products_id') AS id FROM generate_series(1, %s)) b"

# A GTIN of the range for examples: 952, nine digits, and the check digit.
_DIGITS = " + ".join(f"{1 if place % 2 else 3} * (g / {10 ** (8 - place)} %% 10)" for place in range(9))
_GTIN = f"'952' || lpad((g %% 1000000000)::text, 9, '0') || (10 - (9 + 3 * 5 + 2 + {_DIGITS}) %% 10) %% 10"

# The content hash is not a hash of the content, so the first real run of such a feed would count all as changed.
_PRODUCTS = f"""
INSERT INTO source_products (source_id, id, identity_type, identity_value, content_hash, title, url, image_url, brand,
    category, description, item_id, sku, gtin, mpn, url_hash, created_run_no, updated_run_no, created_at, updated_at)
SELECT s.source_id, %(base)s + g, CASE WHEN s.network = 'impact' THEN 3 ELSE 1 END, w.sku,
    hashint8extended(g, 5),
    format('%%s %%s %%s %%s, %%s, %%s', w.brand, w.model, w.thing, 100 + pg_temp.draw(g, 15, 900), w.colour, w.size),
    'https://' || w.page, 'https://' || s.domain || '/images/' || w.sku || '.jpg', w.brand,
    w.category, format('%%s of the %%s line by %%s, %%s.', w.thing, w.model, w.brand, w.colour),
    CASE WHEN s.network <> 'impact' THEN w.sku END, w.sku, {_GTIN}, upper(left(w.brand, 3)) || g,
    encode(sha256(w.page::bytea), 'hex'), o.nos[array_length(o.nos, 1)], o.nos[array_length(o.nos, 1)],
    o.finished[array_length(o.nos, 1)], o.finished[array_length(o.nos, 1)]
FROM seed_shops s JOIN seed_origins o USING (number)
CROSS JOIN LATERAL generate_series(s.first, s.first + s.products - 1) g
CROSS JOIN LATERAL (SELECT pg_temp.draw(g, 10, %(kinds)s)::int + 1 AS kind) k
CROSS JOIN LATERAL (SELECT
    'SKU-' || (100000 + g) AS sku, s.domain || '/p/' || (100000 + g) AS page,
    (%(brands)s::text[])[pg_temp.draw(g, 11, %(brand_count)s) + 1] AS brand,
    (%(models)s::text[])[pg_temp.draw(g, 12, %(model_count)s) + 1] AS model,
    (%(colours)s::text[])[pg_temp.draw(g, 13, %(colour_count)s) + 1] AS colour,
    (%(sizes)s::text[])[pg_temp.draw(g, 14, %(size_count)s) + 1] AS size,
    (%(things)s::text[])[k.kind] AS thing, (%(categories)s::text[])[k.kind] AS category) w
WHERE s.number BETWEEN %(low)s AND %(high)s ORDER BY s.number, g
"""

# The newest price of a product came with one of the newest runs that promoted, the others with every so manieth run
# before; runs older than those that are kept have no row, and their prices number 0. Three of a hundred products went
# missing some runs ago, and no price of theirs is younger than that.
_PRICES_AND_OFFERS = """
WITH product AS MATERIALIZED (
    SELECT s.source_id, g, o.nos, o.observed, o.finished, m.kept, m.step, m.gone,
        CASE WHEN m.gone > 0 THEN m.gone ELSE pg_temp.draw(g, 21, least(m.step, m.kept))::int END AS newest,
        (%(cents)s::int[])[pg_temp.draw(g, 10, %(kinds)s)::int + 1] * (60 + pg_temp.draw(g, 22, 120)) / 100 AS cents
    FROM seed_shops s JOIN seed_origins o USING (number)
    CROSS JOIN LATERAL generate_series(s.first, s.first + s.products - 1) g
    CROSS JOIN LATERAL (SELECT array_length(o.nos, 1) AS kept,
        greatest(1, array_length(o.nos, 1) / %(prices)s) AS step,
        CASE WHEN array_length(o.nos, 1) > 1 AND pg_temp.draw(g, 20, 100) < 3
             THEN 1 + pg_temp.draw(g, 23, least(12, array_length(o.nos, 1) - 1))::int ELSE 0 END AS gone) m
    WHERE s.number BETWEEN %(low)s AND %(high)s
), price AS MATERIALIZED (
    SELECT p.source_id, %(base)s + g AS product_id, k, gone, finished,
        CASE WHEN r.rank < kept THEN nos[r.rank + 1] ELSE 0 END AS run_no,
        CASE WHEN r.rank < kept THEN observed[r.rank + 1]
             ELSE observed[kept] - (r.rank - kept + 1) * interval '1 day' END AS observed_at,
        CASE WHEN r.rank < kept THEN finished[r.rank + 1]
             ELSE observed[kept] - (r.rank - kept + 1) * interval '1 day' + interval '1 minute' END AS created_at,
        a.amount, CASE WHEN pg_temp.draw(g + k, 25, 6) = 0 THEN round(a.amount * 1.25, 2) END AS original,
        pg_temp.draw(g + k, 26, 17) > 0 AS in_stock
    FROM product p CROSS JOIN LATERAL generate_series(0, %(prices)s - 1) k
    CROSS JOIN LATERAL (SELECT newest + k * step AS rank) r
    CROSS JOIN LATERAL (SELECT round((cents + cents * (pg_temp.draw(g * 31 + k, 24, 21) - 10) / 100) / 100.0, 2)
                        AS amount) a
), signed AS MATERIALIZED (
    SELECT *, left(encode(sha256((amount || '|USD|' || coalesce(original::text, '') || '|'
        || CASE WHEN in_stock THEN 'in' ELSE 'out' END || '|')::bytea), 'hex'), 32)::uuid AS signature
    FROM price
), appended AS (
    INSERT INTO prices (source_id, source_product_id, observed_at, run_no, signature, run_type, amount, currency,
        original_amount, in_stock, created_at)
    SELECT source_id, product_id, observed_at, run_no, signature, 'AFFILIATE_FEED', amount, 'USD', original, in_stock,
        created_at
    FROM signed
)
INSERT INTO offers (source_id, product_id, currency, amount, original_amount, in_stock, observed_at, run_no,
    last_run_type, last_signature, last_amount, last_currency, last_priced_at, seen_until)
SELECT n.source_id, n.product_id, 'USD', n.amount, n.original, n.in_stock, n.observed_at, n.run_no, 'AFFILIATE_FEED',
    n.signature, n.amount, 'USD', n.created_at, CASE WHEN n.gone > 0 THEN n.finished[n.gone + 1] END
FROM signed n WHERE n.k = 0
"""

_WORDS_OF_OFFERS = """
INSERT INTO offer_words (source_id, product_id, words)
SELECT p.source_id, p.id, words_of(p.title, p.brand, p.category)
FROM seed_shops s JOIN source_products p ON p.source_id = s.source_id WHERE s.number BETWEEN %(low)s AND %(high)s
"""

# The held runs: two fifths of the products are not in the file, and a tenth has another price.
_HELD = """
INSERT INTO held_changes (source_id, run_no, line, is_new, is_content, is_price, is_back, is_missing, has_offer,
    product_id, amount, currency, in_stock, signature)
SELECT s.source_id, r.no, CASE WHEN m.missing THEN -(g - s.first) - 1 ELSE g - s.first + 2 END, false, false,
    NOT m.missing, false, m.missing, true, o.product_id, CASE WHEN NOT m.missing THEN round(o.amount * 0.9, 2) END,
    CASE WHEN NOT m.missing THEN 'USD' END, CASE WHEN NOT m.missing THEN true END,
    CASE WHEN NOT m.missing THEN md5(o.product_id::text)::uuid END
FROM seed_shops s JOIN seed_runs r ON r.number = s.number AND r.ending = 'HELD'
CROSS JOIN LATERAL generate_series(s.first, s.first + s.products - 1) g
CROSS JOIN LATERAL (SELECT g - s.first < s.products * 2 / 5 AS missing) m
JOIN offers o ON o.source_id = s.source_id AND o.product_id = %(base)s + g
WHERE m.missing OR g - s.first >= s.products * 9 / 10
"""
_COUNTED = """
UPDATE feed_runs f SET prices_written = c.written FROM (
    SELECT r.id, count(*) AS written FROM prices p JOIN seed_runs r ON r.no = p.run_no AND r.source_id = p.source_id
    GROUP BY r.id) c
WHERE f.run_id = c.id
"""


def write_products(made: Sequence[Shop], prices: int) -> Iterator[int]:
    """Write them all; yields how many products there are after each batch."""
    base = _block(sum(shop.products for shop in made))
    values = {"base": base, "prices": prices, **_words()}
    done = 0
    for low, high, count in _batches(made):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL work_mem = '128MB'")
            cursor.execute("SET LOCAL jit = off")
            for statement in (_PRODUCTS, _PRICES_AND_OFFERS, _WORDS_OF_OFFERS):
                cursor.execute(statement, {**values, "low": low, "high": high})
        done += count
        yield done
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_HELD, values)
        cursor.execute(_COUNTED)


def _block(count: int) -> int:
    """The first of so many numbers that belong to nobody else."""
    with connection.cursor() as cursor:
        cursor.execute(_BLOCK, [count])
        lowest, highest = cursor.fetchone()
    if highest - lowest + 1 != count:
        raise Conflict("Somebody else is writing products. No product was made; stop the workers and start again.")
    return int(lowest)


def _words() -> dict[str, Any]:
    lists = {"brand": BRANDS, "model": MODELS, "colour": COLOURS, "size": SIZES}
    words: dict[str, Any] = {f"{name}s": list(values) for name, values in lists.items()}
    words |= {f"{name}_count": len(values) for name, values in lists.items()}
    things, categories, cents = (list(column) for column in zip(*THINGS, strict=True))
    return {**words, "things": things, "categories": categories, "cents": cents, "kinds": len(THINGS)}


def _batches(made: Sequence[Shop]) -> Iterator[tuple[int, int, int]]:
    """The numbers of the first and the last shop of each batch, and how many products they have."""
    low, count = made[0].number, 0
    for shop in made:
        count += shop.products
        if count >= BATCH or shop is made[-1]:
            yield low, shop.number, count
            low, count = shop.number + 1, 0
