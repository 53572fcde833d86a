"""Promotion: one transaction over a difference, and the only code that changes what consumers see.

The difference is in a run's staging tables if every gate passed, or in `held_changes` if a person approved.
The statements are the same for both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from harvester.catalog import before_images, page_products
from harvester.catalog.before_images import CONTENT_COLUMNS
from harvester.catalog.offers import Comparison, recompute
from harvester.catalog.search_index import add_words, come_later, lock_words
from harvester.kernel.signature import CONTENT_VERSION
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.staging import Slot, prepare_session


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The location of a difference.

    Attributes:
        changes: the changes of each product; SQL that can follow FROM.
        contents: the new content of products, by line; SQL that can follow FROM.
    """

    changes: str
    contents: str

    @classmethod
    def staged(cls, slot: Slot) -> "Difference":
        return cls(changes=slot.changes, contents=slot.contents)


#: A difference that a person approved. The parameters are those of `_values`.
HELD = Difference(
    changes="(SELECT * FROM held_changes WHERE source_id = %(source)s AND run_no = %(run)s)",
    contents="(SELECT * FROM held_changes WHERE source_id = %(source)s AND run_no = %(run)s)",
)


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """Which run is promoted, and how.

    Attributes:
        run_no: the run.
        run_type: its kind, stored with each price.
        accept_absence: whether a person accepted that the missing products are gone.
        products: number of products that the run saw.
        artifact_hash: hash of the file that it read.
        fetched_at: when it fetched that file, if it was held since: its prices are that old. A page that was read
            meanwhile is newer and stays shown.
    """

    run_no: int
    run_type: str
    accept_absence: bool
    products: int
    artifact_hash: str | None
    fetched_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Promoted:
    """The numbers of rows that a promotion wrote.

    Attributes:
        observed_at: the time of its prices.
        prices: price rows.
        changed: products whose content changed.
        missing: products that are missing now.
        expired: products that expired since the last promotion.
        lacks_words: whether so many products are new that another job writes their search words.
    """

    observed_at: datetime
    prices: int
    changed: int
    missing: int
    expired: int
    lacks_words: bool


_CONTENT_SET = ", ".join(f"{name} = k.{name}" for name in CONTENT_COLUMNS)

# The source's clock makes up for the time of the hold at once, so the missing products are shifted by the same time:
# otherwise they would expire at this moment.
# Pages go on while a run is held, so the products that only they show may have been seen since.
_SHIFT = """
UPDATE offers SET seen_until = CASE WHEN by_pages THEN greatest(least(seen_until + %(lost)s, %(moment)s), seen_until)
                               ELSE seen_until + %(lost)s END
WHERE source_id = %(source)s AND seen_until IS NOT NULL
"""
_SHIFT_HIDDEN = """
UPDATE hidden_offers SET seen_until = seen_until + %(lost)s, last_promoted_at = last_promoted_at + %(lost)s
WHERE source_id = %(source)s
"""

# No ON CONFLICT: a run that is promoted twice must fail here as a whole.
_PRICES = """
INSERT INTO prices (source_id, source_product_id, observed_at, run_no, signature, run_type, amount, currency,
    original_amount, promotion, in_stock, created_at)
SELECT %(source)s, c.product_id, %(observed)s, %(run)s, c.signature, %(run_type)s, c.amount, c.currency,
    c.original_amount, c.promotion, c.in_stock, %(moment)s
FROM {changes} c WHERE c.is_price
"""  # mutant: promoted-prices

_CONTENTS = f"""
UPDATE source_products p SET content_hash = c.content_hash, updated_run_no = %(run)s, updated_at = %(moment)s,
    {_CONTENT_SET}
FROM {{changes}} c JOIN {{contents}} k ON k.line = c.line
WHERE p.source_id = %(source)s AND p.id = c.product_id AND c.is_content
"""
# Created by a run without a promotion and shown by this one first. They count as changed by this run, because the job
# that links products looks only at those that a run created or changed.
_IS_LEFT_BEHIND = "c.is_price AND NOT c.has_offer AND NOT c.is_new AND NOT c.is_content"
_ANY_LEFT_BEHIND = f"SELECT EXISTS (SELECT FROM {{changes}} c WHERE {_IS_LEFT_BEHIND})"
_LEFT_BEHIND = f"""
UPDATE source_products p SET updated_run_no = %(run)s
FROM {{changes}} c
WHERE p.source_id = %(source)s AND p.id = c.product_id AND p.created_run_no <> %(run)s AND {_IS_LEFT_BEHIND}
  AND NOT EXISTS (SELECT FROM product_links l WHERE l.source_id = %(source)s AND l.source_product_id = p.id)
"""

_OFFERS = """
INSERT INTO offers (source_id, product_id, currency, amount, original_amount, in_stock, observed_at, run_no,
    last_run_type, last_signature, last_amount, last_currency, last_priced_at)
SELECT %(source)s, c.product_id, c.currency, c.amount, c.original_amount, c.in_stock, %(observed)s, %(run)s,
    %(run_type)s, c.signature, c.amount, c.currency, %(moment)s
FROM {changes} c WHERE c.is_price AND NOT c.has_offer
"""
# A correction may have been revoked since the match: then an offer exists that did not. To check for it always would
# cost a fifth of the time, so this statement runs only after a conflict.
_OFFERS_OVER_OTHERS = f"""{_OFFERS}
ON CONFLICT (source_id, product_id) DO UPDATE SET
    currency = excluded.currency, amount = excluded.amount, original_amount = excluded.original_amount,
    in_stock = excluded.in_stock, observed_at = excluded.observed_at, run_no = excluded.run_no,
    last_run_type = excluded.last_run_type, last_signature = excluded.last_signature,
    last_amount = excluded.last_amount, last_currency = excluded.last_currency,
    last_priced_at = excluded.last_priced_at, on_backorder = false, by_pages = false, ended_at = NULL,
    seen_until = NULL, absence_accepted = false
"""
_NEWLY_OFFERED = "SELECT c.product_id FROM {changes} c WHERE c.is_price AND NOT c.has_offer"
_CHANGED_WORDS = """
UPDATE offer_words w SET words = n.words
FROM (SELECT c.product_id, words_of(k.title, k.brand, k.category) AS words
      FROM {changes} c JOIN {contents} k ON k.line = c.line WHERE c.is_content) n
WHERE w.source_id = %(source)s AND w.product_id = n.product_id AND w.words <> n.words
"""
_KNOWN_OFFERS = """
UPDATE offers o SET
    currency = CASE WHEN c.is_price THEN c.currency ELSE o.currency END,
    amount = CASE WHEN c.is_price THEN c.amount ELSE o.amount END,
    original_amount = CASE WHEN c.is_price THEN c.original_amount ELSE o.original_amount END,
    in_stock = CASE WHEN c.is_price THEN c.in_stock ELSE o.in_stock END,
    on_backorder = o.on_backorder AND NOT c.is_price,
    observed_at = CASE WHEN c.is_price THEN %(observed)s ELSE o.observed_at END,
    run_no = CASE WHEN c.is_price THEN %(run)s ELSE o.run_no END,
    last_run_type = CASE WHEN c.is_price THEN %(run_type)s ELSE o.last_run_type END,
    last_signature = CASE WHEN c.is_price THEN c.signature ELSE o.last_signature END,
    last_amount = CASE WHEN c.is_price THEN c.amount ELSE o.last_amount END,
    last_currency = CASE WHEN c.is_price THEN c.currency ELSE o.last_currency END,
    last_priced_at = CASE WHEN c.is_price THEN %(moment)s ELSE o.last_priced_at END,
    by_pages = false, ended_at = NULL, seen_until = NULL, absence_accepted = false
FROM {changes} c
WHERE o.source_id = %(source)s AND o.product_id = c.product_id AND c.has_offer AND (c.is_price OR c.is_back)
"""  # mutant: known-offers
_MISSING_OFFERS = """
UPDATE offers o SET seen_until = coalesce(o.seen_until, %(promoted_at)s::timestamptz + %(lost)s),
    absence_accepted = o.absence_accepted OR %(accept)s
FROM {changes} c WHERE o.source_id = %(source)s AND o.product_id = c.product_id AND c.is_missing
"""  # mutant: missing-offers
# An offer that did not exist at the match may exist again, with the presence that it had before the run.
_SEEN_AGAIN = """
UPDATE offers o SET by_pages = false, ended_at = NULL, seen_until = NULL, absence_accepted = false
FROM {changes} c
WHERE o.source_id = %(source)s AND o.product_id = c.product_id AND o.seen_until IS NOT NULL AND NOT c.is_missing
"""
# Products without a readable price were seen too; this counts once a price of theirs can be read again.
_SEEN_HIDDEN = """
UPDATE hidden_offers h SET seen_until = NULL, absence_accepted = false, last_promoted_run_no = %(run)s,
    last_promoted_at = %(moment)s
FROM {changes} c WHERE h.source_id = %(source)s AND h.product_id = c.product_id AND NOT c.is_missing
"""
#: Ids in one array: a value of some hundred kilobytes.
_ABSENT_PART = 50_000
_ABSENCES = f"""
INSERT INTO run_absences (source_id, run_no, part, product_ids)
SELECT %(source)s, %(run)s, part, array_agg(product_id ORDER BY product_id) FROM (
    SELECT c.product_id, (row_number() OVER (ORDER BY c.product_id) - 1) / {_ABSENT_PART} AS part
    FROM {{changes}} c WHERE c.is_missing) m
GROUP BY part
"""

# Offers that expired between the last promotion and this one.
_EXPIRED = """
SELECT count(*) FROM offers WHERE source_id = %(source)s AND seen_until IS NOT NULL AND NOT by_pages
  AND seen_until < %(moment)s - %(expiry)s * interval '1 hour'
  AND seen_until >= %(promoted_at)s - %(expiry)s * interval '1 hour'
"""
_SOURCE = """
UPDATE sources SET last_promoted_run_no = %(run)s, last_promoted_at = %(moment)s, last_promoted_count = %(products)s,
    last_promoted_hash = %(hash)s, last_observed_at = %(observed)s, content_hash_version = %(content_version)s,
    held_run_no = NULL, held_since = NULL, frozen = '0', last_success_at = %(moment)s
WHERE id = %(source)s
"""  # mutant: source-promoted
# Corrections are rare; where one is valid, the offers are recomputed, which is slow and certain. So are offers that
# show the price of another kind of run, unless this run just wrote their price.
_CORRECTED = """
SELECT EXISTS (SELECT FROM price_corrections WHERE revoked_at IS NULL AND extent = 'WINDOW'
               AND (source_id = %(source)s OR retailer_id = %(retailer)s))
    OR EXISTS (SELECT FROM {changes} c JOIN offers o ON o.source_id = %(source)s AND o.product_id = c.product_id
               WHERE NOT c.is_missing AND NOT c.is_price AND o.last_run_type <> %(run_type)s)
"""
# A held run may be approved after pages of its products were read.
_OLDER_THAN_OTHERS = """
SELECT c.product_id FROM {changes} c WHERE c.is_price AND EXISTS (
    SELECT FROM prices l WHERE l.source_id = %(source)s AND l.source_product_id = c.product_id
      AND l.observed_at > %(observed)s AND l.run_type <> %(run_type)s)
"""
# Where a page leads, the price of the feed that was just written is history. Nearly no source has such products.
_HAS_PAGES = """
SELECT EXISTS (SELECT FROM page_products g JOIN sources s ON s.id = g.source_id
               WHERE g.source_id = %(source)s AND s.visibility = 'ELIGIBLE')
"""
_LED = """
SELECT c.product_id FROM {changes} c
JOIN page_products g ON g.source_id = %(source)s AND g.product_id = c.product_id
WHERE c.is_price AND g.leads_until IS NOT NULL
"""  # mutant: led-products
_TOUCHED = "SELECT c.product_id FROM {changes} c WHERE NOT c.is_missing"
# A correction for observed prices concerns its own products, and ends with the next different price of each; its rows
# stay until it is revoked. Recomputing an offer is slow, so it is done only where the price just written is the one
# that was corrected. An offer that a correction removed after the difference was found was not there to update; it is
# recomputed too.
_TOUCHED_OBSERVED = """
SELECT DISTINCT c.product_id
FROM corrected_prices k JOIN price_corrections v ON v.id = k.correction_id
JOIN {changes} c ON c.product_id = k.product_id
WHERE k.source_id = %(source)s AND v.revoked_at IS NULL AND c.is_price
  AND ((k.run_type, k.amount, k.currency) = (%(run_type)s, c.amount, c.currency)
       OR NOT EXISTS (SELECT FROM offers o WHERE o.source_id = %(source)s AND o.product_id = c.product_id))
"""
# A file other than that of an ignored run is promoted: the refused file may come again, and is judged like any other.
_REFUSES_NO_MORE = """
UPDATE runs SET refuses_file = false WHERE source_id = %(source)s AND ignored_at IS NOT NULL AND refuses_file
"""
# A person approved prices that an ignored run had; they are not held again.
_REPEATS_ACCEPTED = """
DELETE FROM ignored_prices i USING {changes} c
WHERE i.source_id = %(source)s AND c.product_id = i.product_id AND c.is_price
  AND (c.amount, c.currency) = (i.amount, i.currency)
"""
_DROP_HELD = "DELETE FROM held_changes WHERE source_id = %(source)s"


def promote(cursor: Any, difference: Difference, baseline: Baseline, promotion: Promotion) -> Promoted:
    """Make a difference visible, in the open transaction, in which `baseline` was read with the lock."""
    values = _values(baseline, promotion)

    def run(statement: str) -> int:
        cursor.execute(statement.format(**vars(difference)), values)
        return int(cursor.rowcount)

    prepare_session(cursor)
    if baseline.lost_time:
        run(_SHIFT)
        run(_SHIFT_HIDDEN)
    prices = run(_PRICES)
    before_images.keep(cursor, difference.changes, values)  # mutant: replaced-kept
    changed = run(_CONTENTS)
    if changed:
        lock_words(cursor, baseline.source_id)
        run(_CHANGED_WORDS)
    run(_ANY_LEFT_BEHIND)
    if cursor.fetchone()[0]:
        run(_LEFT_BEHIND)
    offered = _add_offers(run)
    lacks_words = come_later(offered)
    if offered and not lacks_words:
        run(_NEWLY_OFFERED)
        add_words(cursor, baseline.source_id, [row[0] for row in cursor.fetchall()])
    run(_KNOWN_OFFERS)
    missing = run(_MISSING_OFFERS)
    run(_ABSENCES)
    expired = _expired(cursor, values) if baseline.last_promoted_at and baseline.expiry_hours else 0
    _apply_corrections(cursor, difference, values)  # mutant: corrections-applied
    _follow_pages(cursor, difference, values)
    if promotion.fetched_at:
        run(_OLDER_THAN_OTHERS)
        older = [row[0] for row in cursor.fetchall()]
        recompute(baseline.source_id, older, comparison=Comparison.NEWEST)  # mutant: older-than-others
    run(_SEEN_AGAIN)
    run(_SEEN_HIDDEN)
    run(_SOURCE)
    run(_REFUSES_NO_MORE)
    if promotion.accept_absence:
        run(_REPEATS_ACCEPTED)
    run(_DROP_HELD)
    return Promoted(
        observed_at=values["observed"],
        prices=prices,
        changed=changed,
        missing=missing,
        expired=expired,
        lacks_words=lacks_words,
    )


def _add_offers(run: Callable[[str], int]) -> int:
    try:
        with transaction.atomic():
            return run(_OFFERS)
    except IntegrityError:
        return run(_OFFERS_OVER_OTHERS)


def _values(baseline: Baseline, promotion: Promotion) -> dict[str, Any]:
    return {
        "source": baseline.source_id,
        "retailer": baseline.retailer_id,
        "run": promotion.run_no,
        "run_type": promotion.run_type,
        "moment": baseline.moment,
        "observed": baseline.observed_at(promotion.fetched_at),
        "promoted_at": baseline.last_promoted_at,
        "lost": baseline.lost_time,
        "expiry": baseline.expiry_hours,
        "accept": promotion.accept_absence,
        "products": promotion.products,
        "hash": promotion.artifact_hash,
        "content_version": CONTENT_VERSION,
        "held": baseline.held_run_no,
    }


def _expired(cursor: Any, values: dict[str, Any]) -> int:
    cursor.execute(_EXPIRED, values)
    return int(cursor.fetchone()[0])


def _follow_pages(cursor: Any, difference: Difference, values: dict[str, Any]) -> None:
    """Show the prices of pages that lead, and those of the feed again where a lead is over."""
    ended = page_products.end_leads(cursor, values["source"], values["moment"])
    cursor.execute(_HAS_PAGES, values)
    if not cursor.fetchone()[0]:
        return
    cursor.execute(_LED.format(changes=difference.changes), values)
    if touched := [*ended, *(row[0] for row in cursor.fetchall())]:
        cursor.execute("SET LOCAL enable_nestloop = on")
        recompute(values["source"], touched, comparison=Comparison.NEWEST)
        prepare_session(cursor)


def _apply_corrections(cursor: Any, difference: Difference, values: dict[str, Any]) -> None:
    cursor.execute(_CORRECTED.format(changes=difference.changes), values)
    touched_by = _TOUCHED if cursor.fetchone()[0] else _TOUCHED_OBSERVED
    cursor.execute(touched_by.format(changes=difference.changes), values)
    if touched := [row[0] for row in cursor.fetchall()]:
        cursor.execute("SET LOCAL enable_nestloop = on")
        recompute(values["source"], touched)
