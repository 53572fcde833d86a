"""The number of prices of ignored runs that are in a file again."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from harvester.pipeline.staging import Slot

_ANY = "SELECT EXISTS (SELECT FROM ignored_prices WHERE source_id = %(source)s)"
# Of several ignored runs, the one of which the largest share is repeated.
_COUNT = """
SELECT i.run_no, count(*) AS changed, count(r.line) AS repeated,
    count(r.line) FILTER (WHERE (o.last_amount, o.last_currency) IS DISTINCT FROM (i.amount, i.currency)) AS returning
FROM ignored_prices i
LEFT JOIN source_products p ON p.source_id = %(source)s AND p.id = i.product_id
LEFT JOIN {rows} r ON r.identity_type = p.identity_type AND r.identity_value = p.identity_value
    AND r.amount = i.amount AND r.currency = i.currency
LEFT JOIN offers o ON o.source_id = %(source)s AND o.product_id = i.product_id
WHERE i.source_id = %(source)s
GROUP BY i.run_no
ORDER BY count(r.line)::float8 / count(*) DESC, i.run_no DESC
"""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The prices of an ignored run that a run repeats; see the same names in `RunFacts`."""

    ignored_run_no: int = 0
    ignored_prices: int = 0
    repeated_prices: int = 0
    returning_prices: int = 0


def count_repeats(cursor: Any, slot: Slot, source_id: UUID) -> Repeats:
    """Compare the staged rows with the prices that ignored runs had changed."""
    values = {"source": source_id}
    cursor.execute(_ANY, values)
    if not cursor.fetchone()[0]:
        return Repeats()
    cursor.execute(_COUNT.format(rows=slot.rows), values)
    counted = cursor.fetchall()
    # An ignored run whose repeated prices are all live already must not hide one whose prices would come back.
    run_no, changed, repeated, returning = next((row for row in counted if row[3]), counted[0])
    return Repeats(ignored_run_no=run_no, ignored_prices=changed, repeated_prices=repeated, returning_prices=returning)
