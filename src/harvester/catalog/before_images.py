"""Before-images of the newest promoted run of a source: content, presence, and what the gates compare with.

Promotion keeps them. Ignoring the run exchanges them with the current state, so that undoing is the same exchange
once more. The next promotion replaces them: for older runs there are none.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import connection

from harvester.catalog.search_index import lock_words

CONTENT_COLUMNS: Final = (
    *("title", "url", "tracked_url", "image_url", "brand", "category", "description"),
    *("item_id", "sku", "gtin", "mpn", "url_hash"),
)
_CONTENT: Final = ("content_hash", *CONTENT_COLUMNS)
_LAST_PROMOTED: Final = ("last_promoted_run_no", "last_promoted_at", "last_promoted_count", "last_promoted_hash")

_FORGET: Final = (
    "DELETE FROM replaced_contents WHERE source_id = %(source)s",
    "DELETE FROM replaced_presence WHERE source_id = %(source)s",
)
_KEEP_CONTENTS: Final = f"""
INSERT INTO replaced_contents (source_id, product_id, run_no, {", ".join(_CONTENT)})
SELECT p.source_id, p.id, %(run)s, {", ".join(f"p.{name}" for name in _CONTENT)}
FROM {{changes}} c JOIN source_products p ON p.source_id = %(source)s AND p.id = c.product_id
WHERE c.is_content
"""  # noqa: S608 - constants only
# Only offers whose presence changes: those that go missing or whose absence is accepted now, and those that come back.
_KEEP_PRESENCE: Final = """
INSERT INTO replaced_presence (source_id, product_id, run_no, seen_until, absence_accepted, was_hidden)
SELECT o.source_id, o.product_id, %(run)s, o.seen_until, o.absence_accepted, false
FROM {changes} c JOIN offers o ON o.source_id = %(source)s AND o.product_id = c.product_id
WHERE
"""
_KEEP_MISSING: Final = (
    f"{_KEEP_PRESENCE} c.is_missing AND (o.seen_until IS NULL OR %(accept)s AND NOT o.absence_accepted)"
)
_KEEP_BACK: Final = f"{_KEEP_PRESENCE} NOT c.is_missing AND o.seen_until IS NOT NULL"
_KEEP_HIDDEN: Final = """
INSERT INTO replaced_presence
SELECT h.source_id, h.product_id, %(run)s, h.seen_until, h.absence_accepted, true, h.last_promoted_run_no,
    h.last_promoted_at
FROM {changes} c JOIN hidden_offers h ON h.source_id = %(source)s AND h.product_id = c.product_id
WHERE NOT c.is_missing
ON CONFLICT (source_id, product_id) DO NOTHING
"""
# The source's clock makes up for lost time with the promotion, and so does the moment that may be restored.
_KEEP_SOURCE: Final = """
INSERT INTO replaced_promotions
SELECT id, %(run)s, last_promoted_run_no, last_promoted_at + %(lost)s, last_promoted_count, last_promoted_hash
FROM sources WHERE id = %(source)s
ON CONFLICT (source_id) DO UPDATE SET run_no = excluded.run_no,
    last_promoted_run_no = excluded.last_promoted_run_no, last_promoted_at = excluded.last_promoted_at,
    last_promoted_count = excluded.last_promoted_count, last_promoted_hash = excluded.last_promoted_hash
"""


def keep(cursor: Any, changes: str, values: Mapping[str, Any]) -> None:
    """Keep what a promotion is about to replace. The source's row is locked.

    Args:
        cursor: of the promotion's transaction.
        changes: the difference; SQL that can stand behind FROM.
        values: source, run, lost (how far the source's clock is behind; offers have made up for it already), and
            accept (whether absences are accepted).
    """
    # mutant: before-images
    for statement in (*_FORGET, _KEEP_CONTENTS, _KEEP_MISSING, _KEEP_BACK, _KEEP_HIDDEN, _KEEP_SOURCE):
        cursor.execute(statement.format(changes=changes), values)


# Each statement exchanges two tables: both of its updates see the rows as they were before it.
_SWAP_SOURCE: Final = f"""
WITH restored AS (
    UPDATE sources s SET {", ".join(f"{name} = r.{name}" for name in _LAST_PROMOTED)}
    FROM replaced_promotions r WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND s.id = r.source_id
)
UPDATE replaced_promotions r SET {", ".join(f"{name} = s.{name}" for name in _LAST_PROMOTED)}
FROM sources s WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND s.id = r.source_id
"""  # noqa: S608 - constants only
_SWAP_CONTENTS: Final = f"""
WITH restored AS (
    UPDATE source_products p SET updated_at = clock_timestamp(), {", ".join(f"{name} = r.{name}" for name in _CONTENT)}
    FROM replaced_contents r
    WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND p.source_id = %(source)s AND p.id = r.product_id
)
UPDATE replaced_contents r SET {", ".join(f"{name} = p.{name}" for name in _CONTENT)}
FROM source_products p
WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND p.source_id = %(source)s AND p.id = r.product_id
"""  # noqa: S608 - constants only
_WORDS: Final = """
UPDATE offer_words w SET words = words_of(p.title, p.brand, p.category)
FROM replaced_contents r JOIN source_products p ON p.source_id = %(source)s AND p.id = r.product_id
WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND w.source_id = %(source)s AND w.product_id = r.product_id
"""
# A product that was hidden before and has an offer now was seen no longer than its presence from then says. One that
# only pages show now has the presence that they give it.
_SWAP_OFFERS: Final = """
WITH restored AS (
    UPDATE offers o SET absence_accepted = r.absence_accepted, by_pages = false, ended_at = NULL, seen_until = CASE
        WHEN r.was_hidden AND r.last_promoted_run_no IS DISTINCT FROM s.last_promoted_run_no
        THEN coalesce(r.seen_until, r.last_promoted_at) ELSE r.seen_until END
    FROM replaced_presence r JOIN sources s ON s.id = r.source_id
    WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND o.source_id = %(source)s AND o.product_id = r.product_id
      AND NOT EXISTS (SELECT FROM page_presence g WHERE g.source_id = o.source_id AND g.product_id = o.product_id
                      AND g.is_page_only)
)
UPDATE replaced_presence r SET seen_until = o.seen_until, absence_accepted = o.absence_accepted, was_hidden = false,
    last_promoted_run_no = NULL, last_promoted_at = NULL
FROM offers o
WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND o.source_id = %(source)s AND o.product_id = r.product_id
"""
_SWAP_HIDDEN: Final = """
WITH restored AS (
    UPDATE hidden_offers h SET seen_until = r.seen_until, absence_accepted = r.absence_accepted,
        last_promoted_run_no = CASE WHEN r.was_hidden THEN r.last_promoted_run_no ELSE s.last_promoted_run_no END,
        last_promoted_at = CASE WHEN r.was_hidden THEN r.last_promoted_at ELSE s.last_promoted_at END
    FROM replaced_presence r JOIN sources s ON s.id = r.source_id
    WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND h.source_id = %(source)s AND h.product_id = r.product_id
      AND NOT EXISTS (SELECT FROM offers o WHERE o.source_id = %(source)s AND o.product_id = r.product_id)
)
UPDATE replaced_presence r SET seen_until = h.seen_until, absence_accepted = h.absence_accepted, was_hidden = true,
    last_promoted_run_no = h.last_promoted_run_no, last_promoted_at = h.last_promoted_at
FROM hidden_offers h
WHERE r.source_id = %(source)s AND r.run_no = %(run)s AND h.source_id = %(source)s AND h.product_id = r.product_id
  AND NOT EXISTS (SELECT FROM offers o WHERE o.source_id = %(source)s AND o.product_id = r.product_id)
"""
# Hidden while the run was the newest: their presence refers to it, and from now on to the one before.
_REFER_TO_RESTORED: Final = """
WITH restored AS (
    UPDATE hidden_offers h SET last_promoted_run_no = s.last_promoted_run_no, last_promoted_at = s.last_promoted_at
    FROM sources s WHERE s.id = %(source)s AND h.source_id = %(source)s AND h.last_promoted_run_no = %(run)s
      AND s.last_promoted_run_no IS DISTINCT FROM %(run)s
    RETURNING h.product_id
)
INSERT INTO replaced_presence
SELECT h.source_id, h.product_id, %(run)s, h.seen_until, h.absence_accepted, true, h.last_promoted_run_no,
    h.last_promoted_at
FROM hidden_offers h JOIN restored USING (product_id) WHERE h.source_id = %(source)s
ON CONFLICT (source_id, product_id) DO NOTHING
"""


def are_kept(source_id: UUID | None, run_no: int) -> bool:
    """Return whether there are before-images of a run: only of the last one that was promoted, ignored or not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM replaced_promotions WHERE source_id = %s AND run_no = %s",
            [source_id, run_no],
        )
        return bool(cursor.rowcount)


def swap(cursor: Any, source_id: UUID, run_no: int) -> bool:
    """Exchange the before-images of a run with the current state; false if there are none. The source is locked."""
    values = {"source": source_id, "run": run_no}
    cursor.execute(_SWAP_SOURCE, values)
    if not cursor.rowcount:
        return False
    lock_words(cursor, source_id)
    for statement in (_SWAP_CONTENTS, _WORDS, _SWAP_OFFERS, _SWAP_HIDDEN, _REFER_TO_RESTORED):
        cursor.execute(statement, values)
    return True
