"""What a correction would do to offers, before anybody makes it. Nothing is written and nothing locked."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from harvester.catalog import corrections
from harvester.catalog.models import PriceCorrection, Source
from harvester.catalog.rows import fetch

#: Offers that are counted; whoever is about to change more has to know no more than that.
MOST_COUNTED = 100_000
SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Change:
    """One offer before and after."""

    source_id: UUID
    product_id: int
    title: str
    currency: str
    before: Decimal
    after_currency: str | None
    after: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a correction would do.

    Attributes:
        offers: how many offers show a price that it is about.
        is_more: there are more than were counted.
        samples: some of them.
    """

    offers: int
    is_more: bool
    samples: list[Change]


# An offer changes exactly when the price that it shows is one that the correction is about.
_SHOWING = """
SELECT o.source_id, o.product_id FROM offers o
WHERE o.source_id = ANY (%(sources)s)
  AND (%(product)s::bigint IS NULL OR o.product_id = %(product)s)
  AND (%(run)s::bigint IS NULL OR o.run_no = %(run)s)
  AND o.observed_at >= coalesce(%(since)s, '-infinity'::timestamptz)
  AND o.observed_at < coalesce(%(until)s, 'infinity'::timestamptz)
LIMIT %(most)s
"""
_COUNT = f"SELECT count(*) AS offers FROM ({_SHOWING}) x"  # noqa: S608 - constants only
# The prices are read as the corrections in force say, and then as this one would have it.
_SAMPLES = f"""
WITH chosen AS MATERIALIZED ({_SHOWING})
SELECT o.source_id, o.product_id, p.title, o.currency, trim_scale(o.amount) AS before,
       t.currency AS after_currency, trim_scale(t.amount) AS after
FROM chosen JOIN offers o USING (source_id, product_id)
JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id
LEFT JOIN LATERAL (
    SELECT r.currency, CASE WHEN h.hit THEN corrected(r.raw_amount, f.factor) ELSE r.amount END AS amount
    FROM readable_prices r CROSS JOIN LATERAL (SELECT
        (%(run)s::bigint IS NULL OR r.run_no = %(run)s)
        AND r.observed_at >= coalesce(%(since)s, '-infinity'::timestamptz)
        AND r.observed_at < coalesce(%(until)s, 'infinity'::timestamptz) AS hit) h
    CROSS JOIN LATERAL (SELECT usable_factor(r.raw_amount, %(multiplier)s * correction_factor(
        r.source_id, r.product_id, r.run_no, r.observed_at)) AS factor) f
    WHERE r.source_id = o.source_id AND r.product_id = o.product_id AND NOT (h.hit AND f.factor IS NULL)
    ORDER BY r.observed_at DESC, r.run_no DESC LIMIT 1
) t ON true
ORDER BY o.product_id
"""  # noqa: S608 - constants only


def preview(**given: Any) -> Preview:
    """What `corrections.create` with the same values would do; it refuses what that refuses."""
    correction = corrections.checked(**given)
    return _preview(correction, _concerned(correction))


def _concerned(correction: PriceCorrection) -> list[UUID]:
    if correction.source_id is not None:
        return [correction.source_id]
    return list(Source.objects.filter(retailer_id=str(correction.retailer_id)).values_list("pk", flat=True))


def _preview(correction: PriceCorrection, sources: list[UUID]) -> Preview:
    values: Mapping[str, Any] = {
        "sources": sources,
        "product": correction.product_id,
        "run": correction.run_no,
        "since": correction.observed_from,
        "until": correction.observed_to,
        "multiplier": correction.multiplier,
    }
    [counted] = fetch(_COUNT, {**values, "most": MOST_COUNTED + 1})
    samples = fetch(_SAMPLES, {**values, "most": SAMPLES})
    return Preview(
        offers=min(counted["offers"], MOST_COUNTED),
        is_more=counted["offers"] > MOST_COUNTED,
        samples=[Change(**row) for row in samples],
    )
