"""Holding: the whole difference is kept in `held_changes`, and nothing that consumers see is written."""

from typing import Any

from harvester.catalog.before_images import CONTENT_COLUMNS
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.held_difference import save_summary
from harvester.pipeline.staging import Slot, prepare_session

_CONTENT_LIST = ", ".join(CONTENT_COLUMNS)
_CONTENT_FROM_K = ", ".join(f"k.{name}" for name in CONTENT_COLUMNS)
_DROP = "DELETE FROM held_changes WHERE source_id = %(source)s"
_KEEP = f"""
INSERT INTO held_changes (source_id, run_no, line, is_new, is_content, is_price, is_back, is_missing, has_offer,
    product_id, identity_type, identity_value, content_hash, amount, currency, original_amount, promotion, in_stock,
    signature, {_CONTENT_LIST})
SELECT %(source)s, %(run)s, c.line, c.is_new, c.is_content, c.is_price, c.is_back, c.is_missing, c.has_offer,
    c.product_id, c.identity_type, c.identity_value, c.content_hash, c.amount, c.currency, c.original_amount,
    c.promotion, c.in_stock, c.signature, {_CONTENT_FROM_K}
FROM {{changes}} c LEFT JOIN {{contents}} k ON k.line = c.line
"""
# The clock of the offers stopped when the first of them was held; a newer held run does not start it.
_SOURCE = """
UPDATE sources SET held_run_no = %(run)s, held_since = coalesce(held_since, %(moment)s) WHERE id = %(source)s
"""  # mutant: source-held
# Another run may have created the same products in the meantime and ended without promoting them.
_KNOWN_MEANWHILE = """
UPDATE held_changes h SET product_id = p.id, is_new = false, is_content = true
FROM source_products p
WHERE h.source_id = %(source)s AND h.run_no = %(run)s AND h.is_new
  AND p.source_id = %(source)s AND p.identity_type = h.identity_type AND p.identity_value = h.identity_value
"""
_NEW_PRODUCTS = f"""
INSERT INTO source_products (source_id, id, identity_type, identity_value, content_hash, created_run_no,
    updated_run_no, created_at, updated_at, {_CONTENT_LIST})
SELECT h.source_id, h.product_id, h.identity_type, h.identity_value, h.content_hash, h.run_no, h.run_no,
    %(moment)s, %(moment)s, {", ".join(f"h.{name}" for name in CONTENT_COLUMNS)}
FROM held_changes h WHERE h.source_id = %(source)s AND h.run_no = %(run)s AND h.is_new
"""
_RELEASE = """
UPDATE sources SET held_run_no = NULL, held_since = NULL, frozen = frozen + (%(moment)s - held_since)
WHERE id = %(source)s
"""  # mutant: source-released


def hold(cursor: Any, slot: Slot, baseline: Baseline, run_no: int) -> None:
    """Keep the difference, in place of that of a run that was held before. `baseline` was read under the lock."""
    values = _values(baseline, run_no)
    prepare_session(cursor)
    cursor.execute(_DROP, values)
    cursor.execute(_KEEP.format(changes=slot.changes, contents=slot.contents), values)
    save_summary(cursor, baseline.source_id, run_no)
    cursor.execute(_SOURCE, values)


def make_held_products(cursor: Any, baseline: Baseline, run_no: int) -> None:
    """Create the new products of a held run, before it is promoted."""
    values = _values(baseline, run_no)
    prepare_session(cursor)
    cursor.execute(_KNOWN_MEANWHILE, values)
    cursor.execute(_NEW_PRODUCTS, values)


def drop_held(cursor: Any, baseline: Baseline, run_no: int) -> None:
    """Delete the difference of a rejected run. Its offers do not get back the time for which the run was held."""
    values = _values(baseline, run_no)
    cursor.execute(_DROP, values)  # mutant: reject-drops
    cursor.execute(_RELEASE, values)


def _values(baseline: Baseline, run_no: int) -> dict[str, Any]:
    return {"source": baseline.source_id, "run": run_no, "moment": baseline.moment}
