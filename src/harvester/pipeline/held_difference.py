"""The summary of the difference of a held run: counts, in all and by category and brand, and sample products.

A difference may have half a million rows, so it is summarized once, when the run is held or judged again, in a few
statements over all of it. Pages read one row. The summary remains after the decision, which deletes the difference.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from harvester.catalog.before_images import CONTENT_COLUMNS
from harvester.kernel.currencies import MINOR_UNITS
from harvester.pipeline.staging import prepare_session

#: Kinds of change, in the order in which they are shown. One product may have several.
KINDS: Final = ("missing", "prices", "new", "content", "back")
#: Products of each kind, and categories and brands, that are kept; the counts include all.
SAMPLES, GROUPS = 20, 12
#: Characters shown of a text; categories are grouped by as many.
SHOWN_CHARACTERS: Final = 200
_COUNTED: Final = (*KINDS, "more_expensive", "cheaper", "other_currency", "out_of_stock", "into_stock", "changes")

# A product that an earlier attempt left behind is as new to consumers as one that does not exist yet; `match` counts it
# as new too. Amounts are compared without corrections.
_CHANGES = """
SELECT h.line, h.product_id, h.amount, h.currency, h.is_content AS content, h.is_missing AS missing, h.is_back AS back,
    NOT h.has_offer AND NOT h.is_missing AND (h.is_new OR p.created_run_no > coalesce(s.last_promoted_run_no, 0))
        AS new,
    moved AND (h.currency <> o.last_currency OR h.amount <> o.last_amount) AS prices,
    moved AND h.currency = o.last_currency AND h.amount > o.last_amount AS more_expensive,
    moved AND h.currency = o.last_currency AND h.amount < o.last_amount AS cheaper,
    moved AND h.currency <> o.last_currency AS other_currency,
    h.is_price AND o.in_stock AND NOT h.in_stock AS out_of_stock,
    h.is_price AND NOT o.in_stock AND h.in_stock AS into_stock,
    left(CASE WHEN h.title IS NULL THEN p.category ELSE h.category END, 200) AS category,
    left(CASE WHEN h.title IS NULL THEN p.brand ELSE h.brand END, 200) AS brand,
    o.last_amount, o.last_currency
FROM held_changes h
JOIN sources s ON s.id = h.source_id
LEFT JOIN source_products p ON p.source_id = %(source)s AND p.id = h.product_id
LEFT JOIN offers o ON o.source_id = %(source)s AND o.product_id = h.product_id
CROSS JOIN LATERAL (SELECT h.is_price AND o.last_amount IS NOT NULL AS moved) m
WHERE h.source_id = %(source)s AND h.run_no = %(run)s
"""
# One pass over all changes: the totals, the largest groups, and the products with the largest price changes. A price
# change is measured as a factor, up or down; prices in another currency cannot be compared and come first.
_COUNTS = f"""
WITH change AS MATERIALIZED ({_CHANGES}), grouped AS (
    SELECT grouping(category, brand) AS which, category, brand, count(*) AS changes,
        {", ".join(f"count(*) FILTER (WHERE {name}) AS {name}" for name in _COUNTED[:-1])}
    FROM change GROUP BY GROUPING SETS ((), (category), (brand))
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY which ORDER BY missing + prices + new + content + back DESC,
                                 category, brand) AS place,
        count(*) FILTER (WHERE missing + prices + new + content + back > 0) OVER (PARTITION BY which) AS groups
    FROM grouped
)
SELECT which, coalesce(category, brand), groups, {", ".join(_COUNTED)},
    CASE WHEN which = 3 THEN (SELECT array_agg(line) FROM (
        SELECT line FROM change WHERE prices
        ORDER BY other_currency DESC,
            greatest(amount::float8 / last_amount::float8, last_amount::float8 / amount::float8) DESC, line
        LIMIT %(samples)s) m) END
FROM ranked
WHERE place <= %(groups)s AND (which = 3 OR missing + prices + new + content + back > 0)
ORDER BY which, place
"""  # noqa: S608 - constants only
#: The value of `grouping` for the totals, for categories and for brands.
_WHOLE, _CATEGORIES, _BRANDS = 3, 1, 2

_FIRST = "SELECT line FROM held_changes WHERE source_id = %(source)s AND run_no = %(run)s AND {kind} ORDER BY line"
_PICKS: Final = {"missing": "is_missing", "new": "is_new", "content": "is_content", "back": "is_back"}
_OLD, _NEW = (", ".join(f"{table}.{name}" for name in CONTENT_COLUMNS) for table in "ph")
_PRODUCTS = f"""
SELECT h.line, h.product_id, h.title IS NOT NULL, h.amount, h.currency, o.last_amount, o.last_currency, {_NEW}, {_OLD}
FROM held_changes h
LEFT JOIN source_products p ON p.source_id = %(source)s AND p.id = h.product_id
LEFT JOIN offers o ON o.source_id = %(source)s AND o.product_id = h.product_id
WHERE h.source_id = %(source)s AND h.run_no = %(run)s AND h.line = ANY (%(lines)s)
"""  # noqa: S608 - constants only
_KEEP = """
INSERT INTO run_differences (run_no, summary) VALUES (%(run)s, %(summary)s::jsonb)
ON CONFLICT (run_no) DO UPDATE SET summary = excluded.summary, computed_at = clock_timestamp()
"""


def save_summary(cursor: Any, source_id: UUID, run_no: int) -> None:
    """Summarize the difference that was just held, and keep the summary with the run."""
    summary = json.dumps(summarize(cursor, source_id, run_no), ensure_ascii=False)
    cursor.execute(_KEEP, {"run": run_no, "summary": summary})


def read_summary(cursor: Any, run_no: int) -> dict[str, Any] | None:
    """Return the summary of a run that is or was held, if there is one."""
    cursor.execute("SELECT summary FROM run_differences WHERE run_no = %s", [run_no])
    found = cursor.fetchone()
    return json.loads(found[0]) if found else None


def summarize(cursor: Any, source_id: UUID, run_no: int) -> dict[str, Any]:
    """Return the summary of the difference of a held run. The transaction is the caller's."""
    values = {"source": source_id, "run": run_no, "samples": SAMPLES, "groups": GROUPS}
    prepare_session(cursor)
    cursor.execute(_COUNTS, values)
    rows = cursor.fetchall()
    cursor.execute("SET LOCAL enable_nestloop = on")
    [whole] = [row for row in rows if row[0] == _WHOLE]
    lines = {"prices": list(whole[-1] or ())}
    for kind, condition in _PICKS.items():
        cursor.execute(f"{_FIRST.format(kind=condition)} LIMIT %(samples)s", values)
        lines[kind] = [line for (line,) in cursor.fetchall()]
    return {
        "counts": _counts(whole),
        "categories": _groups(rows, _CATEGORIES),
        "brands": _groups(rows, _BRANDS),
        "samples": _samples(cursor, values, lines),
    }


def _counts(row: Sequence[Any]) -> dict[str, int]:
    return dict(zip(_COUNTED, row[3:-1], strict=True))


def _groups(rows: Sequence[Sequence[Any]], which: int) -> dict[str, Any]:
    """Return the largest groups; the group without a name has the products without a category or brand."""
    found = [row for row in rows if row[0] == which]
    shown = [{"name": row[1], **{kind: _counts(row)[kind] for kind in KINDS}} for row in found]
    return {"shown": shown, "all": found[0][2] if found else 0}


def _samples(cursor: Any, values: dict[str, Any], lines: Mapping[str, list[int]]) -> dict[str, list[dict[str, Any]]]:
    wanted = sorted({line for found in lines.values() for line in found})
    cursor.execute(_PRODUCTS, {**values, "lines": wanted})
    products = {row[0]: _product(row) for row in cursor.fetchall()}
    return {kind: [products[line] for line in lines[kind]] for kind in KINDS}


def _product(row: Sequence[Any]) -> dict[str, Any]:
    line, product_id, has_content, amount, currency, last_amount, last_currency, *contents = row
    size = len(CONTENT_COLUMNS)
    new = dict(zip(CONTENT_COLUMNS, contents[:size], strict=True))
    old = dict(zip(CONTENT_COLUMNS, contents[size:], strict=True))
    shown = new if has_content else old
    return {
        "line": line if line > 0 else None,
        "product_id": product_id,
        **{name: _cut(shown[name]) for name in ("title", "brand", "category", "sku", "item_id")},
        "price": _money(amount, currency),
        "price_before": _money(last_amount, last_currency),
        "factor": float(amount / last_amount) if amount and last_amount and currency == last_currency else None,
        "changed": _changed(old, new) if has_content and old["title"] is not None else {},
    }


def _changed(old: Mapping[str, str | None], new: Mapping[str, str | None]) -> dict[str, list[str | None]]:
    """Return the name of each changed column with its old and its new value."""
    return {name: [_cut(old[name]), _cut(new[name])] for name in CONTENT_COLUMNS if old[name] != new[name]}


def _money(amount: Any, currency: str | None) -> str | None:
    return f"{amount:.{MINOR_UNITS.get(currency, 2)}f} {currency}" if amount is not None and currency else None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 4]} ..."
