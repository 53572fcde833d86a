"""Price histories of products: observed prices after corrections, and hidden prices."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from harvester.kernel.errors import InvalidInput

MOST_POINTS = 10_000

_HISTORY = """
SELECT observed_at, currency, trim_scale(amount), trim_scale(original_amount), in_stock, promotion, run_no, run_type,
       trim_scale(raw_amount),
       CASE WHEN in_stock THEN 'IN_STOCK' WHEN on_backorder THEN 'BACKORDER' ELSE 'OUT_OF_STOCK' END
FROM readable_prices
WHERE source_id = %(source)s AND product_id = %(product)s
  AND observed_at >= coalesce(%(since)s::timestamptz, '-infinity')
ORDER BY observed_at DESC, run_no DESC LIMIT %(most)s
"""


@dataclass(frozen=True)
class PricePoint:
    """An observed price.

    Attributes:
        observed_at: when.
        currency: ISO 4217.
        amount: the corrected price.
        original_amount: the corrected price before a discount.
        in_stock: whether it was in stock.
        promotion: the shop's text about a discount.
        run_no: the run that observed it.
        run_type: the kind of that run.
        raw_amount: the price before corrections.
        availability: IN_STOCK, OUT_OF_STOCK or BACKORDER.
    """

    observed_at: datetime
    currency: str
    amount: Decimal
    original_amount: Decimal | None
    in_stock: bool
    promotion: str | None
    run_no: int
    run_type: str
    raw_amount: Decimal
    availability: str


def price_history(
    source_id: UUID, product_id: int, *, since: datetime | None = None, most: int = 1_000
) -> list[PricePoint]:
    """Return the prices of a product, newest first, without those of ignored runs and ignored prices."""
    if not 1 <= most <= MOST_POINTS:
        raise InvalidInput(f"use 1 to {MOST_POINTS:,}.", field="most")
    values: dict[str, Any] = {"source": source_id, "product": product_id, "since": since, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_HISTORY, values)
        return [PricePoint(*row) for row in cursor.fetchall()]


@dataclass(frozen=True)
class HiddenPrice:
    """A promoted price that is hidden.

    Attributes:
        observed_at: when it was observed.
        currency: ISO 4217.
        amount: the price before corrections.
        run_no: the run that observed it.
        ignored_reason: why that run is ignored; None if it is not.
        is_scraped: it is hidden only because scraped prices of its source do not count.
    """

    observed_at: datetime
    currency: str
    amount: Decimal
    run_no: int
    ignored_reason: str | None
    is_scraped: bool


# A price hidden neither by an ignored run nor by a correction is a scraped one: readable_prices has no other rule.
_HIDDEN = """
SELECT p.observed_at, p.currency, trim_scale(p.amount), p.run_no, i.ignored_reason,
       i.no IS NULL AND read_price(p.source_id, p.source_product_id, p.run_no, p.observed_at, p.run_type, p.amount,
                                   p.currency, p.original_amount) IS NOT NULL
FROM prices p
LEFT JOIN runs i ON i.no = p.run_no AND i.ignored_at IS NOT NULL
WHERE p.source_id = %(source)s AND p.source_product_id = %(product)s AND NOT EXISTS (
    SELECT FROM readable_prices r WHERE r.source_id = p.source_id AND r.product_id = p.source_product_id
    AND r.observed_at = p.observed_at AND r.run_no = p.run_no)
ORDER BY p.observed_at DESC, p.run_no DESC LIMIT %(most)s
"""


def hidden_prices(source_id: UUID, product_id: int, *, most: int = 50) -> list[HiddenPrice]:
    """Return the hidden prices of a product, newest first: of ignored runs, ignored by a correction, or scraped."""
    with connection.cursor() as cursor:
        cursor.execute(_HIDDEN, {"source": source_id, "product": product_id, "most": most})
        return [HiddenPrice(*row) for row in cursor.fetchall()]
