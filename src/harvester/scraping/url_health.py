"""Pages of one shop that write the price of the same product."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import connection

# The product that a page refreshes, or the one that its first price was of.
_SAME: Final = """
SELECT source_id, coalesce(product_id, pinned_product_id) AS product, array_agg(id ORDER BY created_at, id),
    count(*) OVER ()
FROM scrape_targets WHERE enabled AND coalesce(product_id, pinned_product_id) IS NOT NULL
GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 1, 2 LIMIT %(most)s
"""


@dataclass(frozen=True, kw_only=True)
class SameProduct:
    """A product of a source with more than one page, the oldest page first."""

    source_id: UUID
    product_id: int
    target_ids: list[UUID]


@dataclass(frozen=True, kw_only=True)
class SameProducts:
    """Some products with more than one page, and the number of all."""

    groups: list[SameProduct]
    total: int


def same_products(most: int) -> SameProducts:
    """Return products that have more than one page, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_SAME, {"most": most})
        rows = cursor.fetchall()
    groups = [SameProduct(source_id=source, product_id=product, target_ids=ids) for source, product, ids, _ in rows]
    return SameProducts(groups=groups, total=rows[0][3] if rows else 0)
