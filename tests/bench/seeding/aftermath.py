"""What comes after promotion and hold: canonical products, the review queue, and what held runs would change."""

from django.db import connection, transaction

from harvester.pipeline.held_difference import save_summary

# Of fifty products one is known by its GTIN, and of a hundred one waits for a person.
_PRODUCTS = """
INSERT INTO products (id, gtin, title, brand)
SELECT md5('product' || p.gtin)::uuid, lpad(p.gtin, 14, '0'), p.title, p.brand
FROM source_products p JOIN seed_shops s ON s.source_id = p.source_id WHERE mod(p.id, 50) = 0
ON CONFLICT DO NOTHING
"""
_LINKS = """
INSERT INTO product_links (source_id, source_product_id, product_id, status, match_type, evidence, updated_at)
SELECT p.source_id, p.id, c.id, CASE WHEN c.id IS NULL THEN 'NEEDS_REVIEW' ELSE 'LINKED' END,
    CASE WHEN c.id IS NOT NULL THEN 'GTIN' END,
    CASE WHEN c.id IS NULL THEN jsonb_build_object('reason', 'brand, title and pack are not complete')
         ELSE jsonb_build_object('gtin', c.gtin) END,
    p.created_at + mod(p.id, 86400) * interval '1 second'
FROM source_products p JOIN seed_shops s ON s.source_id = p.source_id
LEFT JOIN products c ON mod(p.id, 50) = 0 AND c.gtin = lpad(p.gtin, 14, '0')
WHERE mod(p.id, 50) = 0 OR mod(p.id, 100) = 1
"""
_HELD = "SELECT source_id, no FROM seed_runs WHERE ending = 'HELD' ORDER BY no"


def write_aftermath() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_PRODUCTS)
        cursor.execute(_LINKS)
        cursor.execute(_HELD)
        for source_id, run_no in cursor.fetchall():
            save_summary(cursor, source_id, run_no)
