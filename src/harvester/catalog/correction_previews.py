"""Previews of corrections: their effects on offers, on the history and on later prices.

The correction is created and rolled back in one transaction, so that the preview uses the same views.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction

from harvester.catalog import corrections
from harvester.catalog.models import PriceCorrection, Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.states import CorrectionAction, CorrectionExtent, CorrectionScope
from harvester.kernel.errors import Conflict

#: Offers and prices are counted up to this; more would not change a decision.
MOST_COUNTED = 100_000
SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Change:
    """An offer before and after."""

    source_id: UUID
    product_id: int
    title: str
    currency: str
    before: Decimal
    after_currency: str | None
    after: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The effects of a correction.

    Attributes:
        offers: number of offers whose shown price it changes.
        is_more: there are more than were counted.
        samples: some of them.
        prices: number of recorded prices that it changes, including the history.
        prices_are_more: there are more than were counted.
        since: when the first of the counted prices was observed.
        future: a sentence about later prices.
        state: the state of these prices; a correction that expects it is refused if they have changed.
    """

    offers: int
    is_more: bool
    samples: list[Change]
    prices: int
    prices_are_more: bool
    since: datetime | None
    future: str
    state: str


# An offer changes exactly when the correction applies to the price that it shows.
_SHOWING_WINDOW = """
SELECT o.source_id, o.product_id FROM offers o
WHERE o.source_id = ANY (%(sources)s)
  AND (%(product)s::bigint IS NULL OR o.product_id = %(product)s)
  AND (%(run)s::bigint IS NULL OR o.run_no = %(run)s)
  AND o.observed_at >= coalesce(%(since)s, '-infinity'::timestamptz)
  AND o.observed_at < coalesce(%(until)s, 'infinity'::timestamptz)
  AND (%(currency)s::text IS NULL OR o.currency = %(currency)s)
LIMIT %(most)s
"""
# For statements with the prices that the correction is made for as `x`: whether another price of the product is one of
# them, or confirms one.
_IS_SAME = """
{price}.source_id = x.source_id AND {price}.source_product_id = x.product_id AND {price}.run_type = x.run_type
  AND {price}.amount = x.amount AND {price}.currency = x.currency AND {price}.observed_at > x.after_at
  AND NOT EXISTS (
      SELECT FROM prices d
      WHERE d.source_id = x.source_id AND d.source_product_id = x.product_id AND d.run_type = x.run_type
        AND d.observed_at > x.anchored_at AND d.observed_at < {price}.observed_at
        AND (d.amount, d.currency) IS DISTINCT FROM (x.amount, x.currency)
        AND NOT EXISTS (SELECT FROM runs r WHERE r.no = d.run_no AND r.ignored_at IS NOT NULL))
"""
_SHOWING_OBSERVED = f"""
SELECT o.source_id, o.product_id FROM ({corrections.OBSERVED_PRICES}) x
JOIN offers o ON o.source_id = x.source_id AND o.product_id = x.product_id
JOIN prices q ON q.source_id = o.source_id AND q.source_product_id = o.product_id AND q.observed_at = o.observed_at
    AND q.run_no = o.run_no
WHERE {_IS_SAME.format(price="q")}
LIMIT %(most)s
"""  # noqa: S608 - constants only
_PRICES_OF_WINDOW = """
SELECT h.observed_at FROM prices h
WHERE h.source_id = ANY (%(sources)s)
  AND (%(product)s::bigint IS NULL OR h.source_product_id = %(product)s)
  AND (%(run)s::bigint IS NULL OR h.run_no = %(run)s)
  AND h.observed_at >= coalesce(%(since)s, '-infinity'::timestamptz)
  AND h.observed_at < coalesce(%(until)s, 'infinity'::timestamptz)
  AND (%(currency)s::text IS NULL OR h.currency = %(currency)s)
  AND NOT EXISTS (SELECT FROM runs r WHERE r.no = h.run_no AND r.ignored_at IS NOT NULL)
LIMIT %(most)s
"""
_PRICES_OBSERVED = f"""
SELECT h.observed_at FROM ({corrections.OBSERVED_PRICES}) x JOIN prices h ON {_IS_SAME.format(price="h")}
WHERE NOT EXISTS (SELECT FROM runs r WHERE r.no = h.run_no AND r.ignored_at IS NOT NULL)
LIMIT %(most)s
"""  # noqa: S608 - constants only
_CHOSEN = "SELECT y.source_id, y.product_id FROM ({showing}) y ORDER BY 2"
_AFTER = """
SELECT o.source_id, o.product_id, p.title, o.currency, trim_scale(o.amount) AS before,
       t.currency AS after_currency, trim_scale(t.amount) AS after
FROM unnest(%(chosen_sources)s::uuid[], %(chosen_products)s::bigint[]) AS c (source_id, product_id)
JOIN offers o ON o.source_id = c.source_id AND o.product_id = c.product_id
JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id
LEFT JOIN LATERAL (
    SELECT r.currency, r.amount FROM readable_prices r
    WHERE r.source_id = o.source_id AND r.product_id = o.product_id
    ORDER BY r.observed_at DESC, r.run_no DESC LIMIT 1
) t ON true
ORDER BY o.product_id
"""
#: A promotion locks its source until it ends; a page must not wait for that.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '3s'"


def preview(**given: Any) -> Preview:
    """Return the effects of `corrections.create` with the same values, or raise the same errors."""
    correction = corrections.checked(**given)
    if correction.source_id is not None:
        sources = [correction.source_id]
    else:
        sources = list(Source.objects.filter(retailer_id=str(correction.retailer_id)).values_list("pk", flat=True))
    observed = correction.extent == CorrectionExtent.OBSERVED
    values: Mapping[str, Any] = {
        "sources": sources,
        "product": correction.product_id,
        "run": correction.run_no,
        "since": correction.observed_from,
        "until": correction.observed_to,
        "currency": correction.set_currency,
    }
    showing, prices = (_SHOWING_OBSERVED, _PRICES_OBSERVED) if observed else (_SHOWING_WINDOW, _PRICES_OF_WINDOW)
    state = corrections.state_of(correction, sources)
    most = {**values, "most": MOST_COUNTED + 1}
    [shown] = fetch(f"SELECT count(*) AS offers FROM ({showing}) y", most)  # noqa: S608 - constants only
    [history] = fetch(f"SELECT count(*) AS prices, min(observed_at) AS since FROM ({prices}) y", most)  # noqa: S608
    chosen = fetch(_CHOSEN.format(showing=showing), {**values, "most": SAMPLES})
    samples = _samples(correction, sources, [(row["source_id"], row["product_id"]) for row in chosen])
    return Preview(
        offers=min(shown["offers"], MOST_COUNTED),
        is_more=shown["offers"] > MOST_COUNTED,
        samples=samples,
        prices=min(history["prices"], MOST_COUNTED),
        prices_are_more=history["prices"] > MOST_COUNTED,
        since=history["since"],
        future=_future(correction, samples),
        state=state,
    )


def _samples(correction: PriceCorrection, sources: list[UUID], chosen: list[tuple[UUID, int]]) -> list[Change]:
    """Create the correction for the chosen products, read their prices, and roll it back."""
    products = [product for _, product in chosen]
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_LOCK_TIMEOUT)
            correction.created_by = "preview"
            correction.save(force_insert=True)
            if correction.extent == CorrectionExtent.OBSERVED:
                corrections.keep_observed(correction, sources, products)
            values = {"chosen_sources": [source for source, _ in chosen], "chosen_products": products}
            found = [Change(**row) for row in fetch(_AFTER, values)]
            transaction.set_rollback(True)
    except OperationalError:
        raise Conflict("A run of this source is being promoted. Nothing was changed; try again in a moment.") from None
    return found


def _future(correction: PriceCorrection, samples: list[Change]) -> str:
    if correction.extent == CorrectionExtent.OBSERVED:
        return "For each product it ends with the next different price; later prices are shown as observed."
    if correction.scope == CorrectionScope.RUN:
        return f"Only prices of run {correction.run_no} are changed; later prices are shown as observed."
    if correction.observed_to is not None:
        return f"Prices observed from {correction.observed_to:%Y-%m-%d %H:%M} UTC on are shown as observed."
    effect = {
        CorrectionAction.IGNORE.value: "hidden",
        CorrectionAction.MULTIPLIER.value: "multiplied",
        CorrectionAction.SET.value: f"shown as {correction.set_amount} {correction.set_currency}",
    }[correction.action]
    text = f"Every later price is {effect} as well, until the correction is revoked"
    right = next((one.after for one in samples if one.after is not None), None)
    if right is None or correction.multiplier is None:
        return f"{text}."
    wrong = round(right * correction.multiplier, 2)
    return f"{text}: if the partner then sends {right:.2f} {samples[0].currency}, consumers see {wrong:.2f}."
