"""Match: compare the rows of a run with the catalog and write the difference, which nobody sees, to staging."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.engine.side_session import MAY_WAIT, in_side_session
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.staging import Slot, analyse, prepare_session, share

#: The share of the heartbeat by which prices of some products are due earlier, so that not all are due at once.
HEARTBEAT_SPREAD = 24
#: Groups of products, by their numbers, that are due together.
DUE_GROUPS = 60
#: Rows from which on two sessions share the comparison; with fewer, a second session is not faster.
SHARED_FROM = 50_000

# Which rows and products are compared, as `{of}` says: all, or one half of the hashes of their identities. The planner
# takes an inequality for a third, which is near enough.
_WHOLE, _HALVES = "true", ("hashtext({of}.identity_value) < 0", "hashtext({of}.identity_value) >= 0")
# The time before which the newest price of a product must have been recorded to be due again.
_DUE = f"(%(due)s::timestamptz[])[{{product}} %% {DUE_GROUPS} + 1]"
#: Factors by which a price changes when a decimal separator is lost or added, and the tolerance.
TENFOLD_FACTORS, TENFOLD_MARGIN = (10, 100, 1000), Decimal("0.1")
#: Examples of such prices.
TENFOLD_SHOWN = 10
# Changed by about such a factor, up or down; within one currency only, because currencies have different levels.
_IS_TENFOLD = "({last}.last_currency = {row}.currency AND ({moved}))".replace(
    "{moved}",
    " OR ".join(
        "greatest({row}.amount, {last}.last_amount) BETWEEN "
        f"{factor * (1 - TENFOLD_MARGIN)} * least({{row}}.amount, {{last}}.last_amount) AND "
        f"{factor * (1 + TENFOLD_MARGIN)} * least({{row}}.amount, {{last}}.last_amount)"
        for factor in TENFOLD_FACTORS
    ),
)
# Joins what was read with products and offers, once. Rows that change nothing are only counted. A product is back
# when the last promoted run had not seen it. `is_unsure`: known, but the offer does not say which price was released
# last for this kind of run; the few of them are looked up afterwards.
_MATCH = """
WITH matched AS MATERIALIZED (
    SELECT r.*, p.id AS product_id, p.id IS NULL AS is_new,
        coalesce(p.content_hash <> r.content_hash, false) AS is_content,
        o.product_id IS NOT NULL AS has_offer,
        coalesce(o.seen_until IS NOT NULL, false) AS is_back,
        p.id IS NOT NULL AND (o.product_id IS NULL OR o.last_run_type <> %(run_type)s) AS is_unsure,
        o.last_run_type <> %(run_type)s OR o.last_signature IS DISTINCT FROM r.signature
            OR o.last_priced_at <= {due_of_product} AS is_price,
        o.last_amount, o.last_currency, o.last_signature,
        o.product_id IS NOT NULL AND NOT o.absence_accepted AND NOT o.by_pages AND (%(since)s::timestamptz IS NULL
            OR coalesce(o.seen_until, %(promoted_at)s) >= %(since)s) AS is_active
    FROM {rows} r
    LEFT JOIN source_products p ON p.source_id = %(source)s
        AND p.identity_type = r.identity_type AND p.identity_value = r.identity_value AND {some_products}
    LEFT JOIN offers o ON o.source_id = %(source)s AND o.product_id = p.id
    WHERE {some_rows}
), difference AS (
    INSERT INTO {changes}
    SELECT line, coalesce(product_id, nextval('source_products_id')), is_new, is_content, is_price, is_back,
        false, has_offer, is_unsure, identity_type, identity_value, content_hash, amount, currency, original_amount,
        promotion, in_stock, signature
    FROM matched WHERE is_new OR is_content OR is_price OR is_back OR is_unsure
)
SELECT count(*), count(*) FILTER (WHERE identity_type = 4), count(*) FILTER (WHERE is_new),
    count(*) FILTER (WHERE is_content), count(*) FILTER (WHERE is_back), count(*) FILTER (WHERE is_unsure),
    count(*) FILTER (WHERE last_amount IS NOT NULL),
    count(*) FILTER (WHERE last_amount IS NOT NULL AND last_signature IS DISTINCT FROM signature
        AND (last_currency <> currency OR abs(amount - last_amount) > %(shock_move)s * last_amount)),
    count(*) FILTER (WHERE is_active), count(*) FILTER (WHERE has_offer AND (is_active OR NOT is_back)),
    count(*) FILTER (WHERE is_new AND identity_type = 4),
    count(*) FILTER (WHERE is_price AND NOT is_unsure AND last_signature = signature),
    count(*) FILTER (WHERE last_amount IS NOT NULL AND last_signature IS DISTINCT FROM signature AND {is_tenfold})
FROM matched
""".replace("{is_tenfold}", _IS_TENFOLD.format(row="matched", last="matched"))  # mutant: match-rows

# The offers before the run: the active ones, and those that would be missing if the run had not seen them. What only
# pages show is neither.
_BEFORE = """
SELECT count(*) FILTER (WHERE is_active), count(*) FILTER (WHERE is_active OR seen_until IS NULL)
FROM (SELECT seen_until, NOT absence_accepted AND NOT by_pages AND (%(since)s::timestamptz IS NULL
          OR coalesce(seen_until, %(promoted_at)s) >= %(since)s) AS is_active
      FROM offers WHERE source_id = %(source)s) o
"""

# Where the offer does not say whether a price is due, the newest released price of the same kind of run does.
_SETTLE_UNSURE = """
UPDATE {changes} c SET is_price = false
FROM {changes} u CROSS JOIN LATERAL (
    SELECT l.signature, l.created_at FROM prices l
    WHERE l.source_id = %(source)s AND l.source_product_id = u.product_id AND l.run_type = %(run_type)s
      AND NOT EXISTS (SELECT FROM runs g WHERE g.no = l.run_no AND g.ignored_at IS NOT NULL)
    ORDER BY l.observed_at DESC, l.run_no DESC LIMIT 1
) n
WHERE u.is_unsure AND c.line = u.line AND n.signature = c.signature AND n.created_at > {due_of_change}
"""  # mutant: settle-unsure

# Products that an attempt without a promotion created: as new to consumers as a product that does not exist. Not a part
# of the large join, which reads the index of identities only.
_LEFT_BEHIND = """
SELECT count(*), count(*) FILTER (WHERE c.identity_type = 4)
FROM {changes} c JOIN source_products p ON p.source_id = %(source)s AND p.id = c.product_id
WHERE c.is_unsure AND NOT c.has_offer AND p.created_run_no > coalesce(%(promoted_run)s, 0)
"""

# Products that the run did not see and that were present at the last promotion or are still active.
_MISSING = """
INSERT INTO {changes} (line, product_id, is_new, is_content, is_price, is_back, is_missing, has_offer, is_unsure)
SELECT -o.product_id, o.product_id, false, false, false, false, true, true, false
FROM offers o
JOIN source_products p ON p.source_id = %(source)s AND p.id = o.product_id
LEFT JOIN {rows} r ON r.identity_type = p.identity_type AND r.identity_value = p.identity_value
WHERE o.source_id = %(source)s AND r.line IS NULL AND NOT o.by_pages
  AND (o.seen_until IS NULL OR NOT o.absence_accepted AND (%(since)s::timestamptz IS NULL
       OR o.seen_until >= %(since)s))
  AND (p.identity_type, p.identity_value) IS DISTINCT FROM (%(seen_type)s::smallint, %(seen_value)s::text)
"""
# A product whose record may be cut: it counts as seen, unless another row of the file is about it.
_SEEN_ONLY = """
SELECT count(*), count(*) FILTER (WHERE is_active), count(*) FILTER (WHERE is_active OR seen_until IS NULL)
FROM (SELECT o.seen_until, NOT o.absence_accepted AND NOT o.by_pages AND (%(since)s::timestamptz IS NULL
          OR coalesce(o.seen_until, %(promoted_at)s) >= %(since)s) AS is_active
      FROM source_products p JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id
      WHERE p.source_id = %(source)s AND p.identity_type = %(seen_type)s AND p.identity_value = %(seen_value)s
        AND NOT EXISTS (SELECT FROM {rows} r WHERE r.identity_type = %(seen_type)s
                        AND r.identity_value = %(seen_value)s)) s
"""
_TENFOLD = """
SELECT p.title, o.last_amount, c.amount, c.currency
FROM {changes} c
JOIN offers o ON o.source_id = %(source)s AND o.product_id = c.product_id
JOIN source_products p ON p.source_id = %(source)s AND p.id = c.product_id
WHERE NOT c.is_missing AND o.last_signature IS DISTINCT FROM c.signature AND {is_tenfold}
ORDER BY c.line LIMIT %(most)s
""".replace("{is_tenfold}", _IS_TENFOLD.format(row="c", last="o"))
_PRICES_DUE = "SELECT count(*) FROM {changes} WHERE is_price"


@dataclass(frozen=True, kw_only=True)
class Match:
    """The counts of a difference.

    Attributes:
        products: different products that the run saw.
        url_hash: of them, those without an ID or SKU.
        new_url_hash: of those, never shown before.
        new: never shown before.
        content: known, with other content.
        back: known, and not seen by the last promoted run.
        known: those that have had a price.
        shocked: of those, the ones whose price changed too much.
        active_seen: active products that the run saw.
        active_before: active products.
        absent: products that promotion would mark as missing.
        prices_due: prices that promotion would write.
        heartbeats: of them, unchanged prices that are recorded again.
        tenfold: prices that changed by a factor near 10, 100 or 1000, up or down, within their currency.
    """

    products: int
    url_hash: int
    new_url_hash: int
    new: int
    content: int
    back: int
    known: int
    shocked: int
    active_seen: int
    active_before: int
    absent: int
    prices_due: int
    heartbeats: int
    tenfold: int


def match(
    job: RunningJob,
    cursor: Any,
    slot: Slot,
    baseline: Baseline,
    *,
    rows: int,
    run_type: str,
    shock_move: float,
    seen_only: tuple[int, str] | None = None,
) -> Match:
    """Write the difference to the slot's table of changes.

    `rows` is the approximate number of staged rows. The product with the identity `seen_only` counts as seen and does
    not change, unless a staged row is about it.
    """
    values: dict[str, Any] = {
        "source": baseline.source_id,
        "run_type": run_type,
        "moment": baseline.moment,
        "since": baseline.active_since,
        "promoted_at": baseline.last_promoted_at,
        "promoted_run": baseline.last_promoted_run_no,
        "due": _due(baseline),
        "shock_move": Decimal(str(shock_move)),
        "seen_type": seen_only and seen_only[0],
        "seen_value": seen_only and seen_only[1],
    }
    prepare_session(cursor)
    seen = _compared(job, cursor, slot, values, rows)
    products, url_hash, new, content, back, unsure, known, shocked, active_seen, expected_seen, *more = seen
    if unsure:
        cursor.execute("SET LOCAL enable_nestloop = on")
        cursor.execute(_filled(_SETTLE_UNSURE, slot), values)
        prepare_session(cursor)
        left = _one(cursor, slot, _LEFT_BEHIND, values)
        new, more[0] = new + left[0], more[0] + left[1]
    if seen_only:
        there, is_active, is_expected = _one(cursor, slot, _SEEN_ONLY, values)
        products, active_seen, expected_seen = products + there, active_seen + is_active, expected_seen + is_expected
    active_before, expected = _one(cursor, slot, _BEFORE, values)
    if expected > expected_seen:
        cursor.execute(_filled(_MISSING, slot), values)
    (due,) = _one(cursor, slot, _PRICES_DUE, values)
    analyse(cursor, slot, "changes")
    return Match(
        products=products, url_hash=url_hash, new=new, content=content, back=back, known=known, shocked=shocked,
        active_seen=active_seen, active_before=active_before, absent=expected - expected_seen, prices_due=due,
        new_url_hash=more[0], heartbeats=more[1], tenfold=more[2],
    )  # fmt: skip


class TenfoldPrice(NamedTuple):
    """A price that changed by a factor near a power of ten."""

    title: str
    before: Decimal
    now: Decimal
    currency: str


def tenfold_prices(cursor: Any, slot: Slot, source_id: UUID) -> list[TenfoldPrice]:
    """Return the first of the prices that `Match.tenfold` counts, in the order of the file."""
    cursor.execute(_filled(_TENFOLD, slot), {"source": source_id, "most": TENFOLD_SHOWN})
    return [TenfoldPrice(*row) for row in cursor.fetchall()]


def _compared(job: RunningJob, cursor: Any, slot: Slot, values: dict[str, Any], rows: int) -> tuple[int, ...]:
    """Write the difference and count; many rows are compared by two sessions, each with its half of the identities."""
    if rows < SHARED_FROM:
        return _one(cursor, slot, _part_of_match(_WHOLE), values)
    ours, theirs = (_part_of_match(half) for half in _HALVES)
    cursor.execute(MAY_WAIT)
    holder = connection.connection.info.backend_pid
    counted: list[tuple[int, ...]] = []

    def other_half() -> Iterator[None]:
        with job.transaction(), connection.cursor() as own:
            share(own, slot, holder)
            prepare_session(own)
            counted.append(_one(own, slot, theirs, values))
        yield

    with in_side_session(other_half()) as other_half_is_there:
        counted.append(_one(cursor, slot, ours, values))
        other_half_is_there()
    return tuple(map(sum, zip(*counted, strict=True)))


def _part_of_match(some: str) -> str:
    return _MATCH.replace("{some_rows}", some.format(of="r")).replace("{some_products}", some.format(of="p"))


def _due(baseline: Baseline) -> list[datetime]:
    """Return for each group of products the time before which a price must have been recorded to be due now."""
    heartbeat = timedelta(hours=baseline.heartbeat_hours)  # mutant: heartbeat
    parts = DUE_GROUPS * HEARTBEAT_SPREAD
    # mutant: heartbeat-spread
    return [baseline.moment - heartbeat * (parts - group) / parts for group in range(DUE_GROUPS)]


def _one(cursor: Any, slot: Slot, statement: str, values: dict[str, Any]) -> tuple[int, ...]:
    cursor.execute(_filled(statement, slot), values)
    row: tuple[int, ...] = cursor.fetchone()
    return row


def _filled(statement: str, slot: Slot) -> str:
    return statement.format(
        rows=slot.rows,
        changes=slot.changes,
        due_of_product=_DUE.format(product="p.id"),
        due_of_change=_DUE.format(product="c.product_id"),
    )


# How many prices of ignored runs are in the staged rows again.
_ANY_IGNORED = "SELECT EXISTS (SELECT FROM ignored_prices WHERE source_id = %(source)s)"
# Of several ignored runs, the one of which the largest share is repeated.
_REPEATS = """
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
    cursor.execute(_ANY_IGNORED, values)
    if not cursor.fetchone()[0]:
        return Repeats()
    cursor.execute(_REPEATS.format(rows=slot.rows), values)
    counted = cursor.fetchall()
    # An ignored run whose repeated prices are all live already must not hide one whose prices would come back.
    run_no, changed, repeated, returning = next((row for row in counted if row[3]), counted[0])
    return Repeats(ignored_run_no=run_no, ignored_prices=changed, repeated_prices=repeated, returning_prices=returning)
