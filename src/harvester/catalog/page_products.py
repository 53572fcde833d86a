"""What pages say about products: when a page last showed one, that it ended, and until when it leads over a feed.

Every product that a page showed has a row, whether its source is ELIGIBLE or not. Of a product that only pages show,
the row is the presence of its offer. Of a product of a feed it is only the lead: the page's price and stock are shown
for 48 h after its last success, and what the feed records meanwhile is history. The lead is over when the row says so
and not when the time has come: the first promotion of the feed after that ends it, so that nothing changes without a
write.

The caller has locked the row of the source.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from harvester.catalog import offers

#: Hours after its last success for which a page leads; two runs of a daily feed.
LEAD_HOURS: Final = 48

# What is older than what is known changes nothing. An end that was observed after this success stays.
# mutant: page-seen
_SEEN: Final = f"""
INSERT INTO page_products AS g (source_id, product_id, seen_at, run_no, leads_until)
SELECT %(source)s, n.product_id, n.at, %(run)s,
    CASE WHEN n.at + interval '{LEAD_HOURS} hours' > clock_timestamp() THEN n.at + interval '{LEAD_HOURS} hours' END
FROM unnest(%(products)s::bigint[], %(moments)s::timestamptz[]) AS n (product_id, at)
ON CONFLICT (source_id, product_id) DO UPDATE SET
    seen_at = excluded.seen_at, run_no = coalesce(excluded.run_no, g.run_no),
    leads_until = greatest(g.leads_until, excluded.leads_until),
    ended_at = CASE WHEN g.ended_at > excluded.seen_at THEN g.ended_at END
WHERE excluded.seen_at >= g.seen_at
"""  # noqa: S608 - constants only
# Those whose page begins to lead again: another price is shown then.
_FOLLOWERS: Final = """
SELECT product_id FROM page_products
WHERE source_id = %(source)s AND product_id = ANY (%(products)s) AND leads_until IS NULL
"""
_PRESENCE: Final = """
UPDATE offers o SET seen_until = greatest(o.seen_until, g.seen_at), ended_at = g.ended_at
FROM page_products g
WHERE o.source_id = %(source)s AND o.product_id = ANY (%(products)s) AND o.by_pages
  AND g.source_id = %(source)s AND g.product_id = ANY (%(products)s) AND g.product_id = o.product_id
"""  # mutant: page-presence
_ENDED: Final = """
UPDATE page_products SET ended_at = coalesce(ended_at, %(at)s)
WHERE source_id = %(source)s AND product_id = ANY (%(products)s) AND seen_at < %(at)s
"""  # mutant: page-ended
_END_LEADS: Final = """
UPDATE page_products SET leads_until = NULL
WHERE source_id = %(source)s AND leads_until <= coalesce(%(moment)s, clock_timestamp())
RETURNING product_id
"""  # mutant: leads-end
_DROP_LEADS: Final = """
UPDATE page_products SET leads_until = NULL WHERE source_id = %(source)s AND product_id = ANY (%(products)s)
"""
_RESTORE_LEADS: Final = f"""
UPDATE page_products SET leads_until = seen_at + interval '{LEAD_HOURS} hours'
WHERE source_id = %(source)s AND product_id = ANY (%(products)s)
  AND seen_at + interval '{LEAD_HOURS} hours' > clock_timestamp()
"""  # noqa: S608 - constants only


def record_seen(
    cursor: Any, source_id: UUID, product_ids: Sequence[int], moments: Sequence[datetime], run_no: int | None = None
) -> None:
    """Note when the pages of these products were read. The caller recomputes their offers."""
    cursor.execute(_SEEN, {"source": source_id, "products": list(product_ids), "moments": list(moments), "run": run_no})


def confirm_observed(cursor: Any, source_id: UUID, product_ids: Sequence[int], at: datetime) -> None:
    """Note that the pages of these products are unchanged: their offers stay, and their pages lead for longer."""
    values: dict[str, Any] = {"source": source_id, "products": sorted(set(product_ids))}
    cursor.execute(_FOLLOWERS, values)
    followers = [row[0] for row in cursor.fetchall()]
    record_seen(cursor, source_id, values["products"], [at] * len(values["products"]))
    cursor.execute(_PRESENCE, values)
    if followers:
        offers.recompute(source_id, followers, comparison=offers.Comparison.NEWEST)


def end_presence(cursor: Any, source_id: UUID, product_ids: Sequence[int], at: datetime) -> None:
    """End the offers of products whose pages are gone or sold out without a price, unless a feed has them.

    The next success brings them back. A page that was read well at this time or later is not ended.
    """
    values = {"source": source_id, "products": sorted(set(product_ids)), "at": at}
    cursor.execute(_ENDED, values)
    cursor.execute(_PRESENCE, values)


def end_leads(cursor: Any, source_id: UUID, moment: datetime | None = None) -> list[int]:
    """End the leads whose time is over, and return their products. The caller recomputes their offers."""
    cursor.execute(_END_LEADS, {"source": source_id, "moment": moment})
    return [row[0] for row in cursor.fetchall()]


def drop_leads(cursor: Any, source_id: UUID, product_ids: Sequence[int]) -> None:
    """End the leads of products whose page was read wrongly. The caller recomputes their offers."""
    cursor.execute(_DROP_LEADS, {"source": source_id, "products": list(product_ids)})


def restore_leads(cursor: Any, source_id: UUID, product_ids: Sequence[int]) -> None:
    """Undo `drop_leads`, for those pages whose time is not over. The caller recomputes their offers."""
    cursor.execute(_RESTORE_LEADS, {"source": source_id, "products": list(product_ids)})


def products_of_pages(cursor: Any, source_id: UUID) -> list[int]:
    """Return the products of a source that a page showed."""
    cursor.execute("SELECT product_id FROM page_products WHERE source_id = %s", [source_id])
    return [row[0] for row in cursor.fetchall()]
