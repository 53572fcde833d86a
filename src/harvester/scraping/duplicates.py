"""Pages of one source that name one product: one of them leads, and the others write nothing.

Shops give one SKU to several sizes, or the same word to all products. If each of their pages wrote, the product would
get the price of whichever page was read last.
"""

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from harvester.guards.prepared import prepared_cursor
from harvester.kernel.identity import NUMBERS
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.promotion import Reading, identity_in
from harvester.scraping.states import GONE_AFTER

#: A page whose attempts failed for so long leads no longer; the next one of its product takes over.
LEAD_HOURS: Final = 48

# The page that leads a product. One that was gone leads no longer unless a later look found it there: the second look
# confirms that it is gone, and when a third one finds nothing out, that stays so.
_LEADER: Final = """
    SELECT t.id, t.url, t.last_seen FROM scrape_targets t
    WHERE t.source_id = %(source)s AND t.pinned_product_id = {product}
      AND coalesce(t.product_id, t.pinned_product_id) = t.pinned_product_id
      AND t.enabled AND t.status = 'ACTIVE' AND t.last_success_at > t.last_scraped_at - %(hours)s * interval '1 hour'
      AND (t.waiting ->> 'reason' = 'GONE' AND (t.waiting ->> 'at')::timestamptz <= t.last_scraped_at - %(gone)s)
          IS NOT TRUE
    ORDER BY t.created_at, t.id LIMIT 1
"""
# Each reading with the page that leads its product. A product is found by the page that wrote it, or by its identity.
_LEADING = f"""
SELECT r.place, coalesce(r.product_id, p.id), l.id, l.url
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS r (place integer, product_id bigint, identity_type smallint, identity_value text)
LEFT JOIN LATERAL (
    SELECT k.id FROM source_products k
    WHERE k.source_id = %(source)s AND k.identity_type = r.identity_type AND k.identity_value = r.identity_value LIMIT 1
) p ON true
LEFT JOIN LATERAL ({_LEADER.format(product="coalesce(r.product_id, p.id)")}) l ON true
"""  # noqa: S608 - constants only
_OTHER_LEADER = f"""
SELECT FROM ({_LEADER.format(product="%(product)s")}) l JOIN scrape_targets t ON t.id = %(target)s
WHERE l.id <> t.id
  AND ((l.last_seen ->> 'observed_at')::timestamptz <= (t.last_seen ->> 'observed_at')::timestamptz) IS NOT TRUE
"""


def duplicates_of(cursor: Any, source_id: UUID, readings: Sequence[Reading]) -> dict[int, str]:
    """Return the places of readings that may not be written, each with the reason."""
    rows = []
    for place, reading in enumerate(readings):
        identity = identity_in(reading.target, reading.offer)
        known = reading.target.product_id or reading.target.pinned_product_id
        rows.append(
            {
                "place": place,
                "product_id": known,
                "identity_type": NUMBERS[identity.type],
                "identity_value": identity.value,
            }
        )
    values = {"source": source_id, "hours": LEAD_HOURS, "gone": GONE_AFTER}
    cursor.execute(_LEADING, {"rows": json.dumps(rows), **values})
    leads: dict[Any, tuple[UUID, str]] = {}
    products: dict[int, Any] = {}
    for place, product, target_id, url in cursor.fetchall():
        row = rows[place]
        products[place] = product or (row["identity_type"], row["identity_value"])
        if target_id is not None:
            leads[products[place]] = target_id, url
    # Of pages that are read for the first time, the one that was added first leads.
    for place in sorted(products, key=lambda each: (readings[each].target.created_at, readings[each].target.pk)):
        leads.setdefault(products[place], (readings[place].target.pk, readings[place].target.url))
    return {
        place: f"{leads[product][1]} is the page of this product already. Delete one of them if they show the same; if "
        "they show different products, the shop gives them one number: link each to its product or use a site file."
        for place, product in sorted(products.items())
        if leads[product][0] != readings[place].target.pk
    }


def is_led_by_another(target: ScrapeTarget, product_id: int) -> bool:
    """Return whether another page leads the product of a target and has written it later than the target."""
    values: dict[str, Any] = {"source": target.source_id, "hours": LEAD_HOURS, "gone": GONE_AFTER}
    with prepared_cursor() as cursor:
        cursor.execute(_OTHER_LEADER, {"target": target.pk, "product": product_id, **values})
        return cursor.fetchone() is not None
