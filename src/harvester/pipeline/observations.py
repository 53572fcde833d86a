"""Promoting a few products that were observed one by one, such as pages (coverage PARTIAL).

A catalog is the whole of a source: what it lacks is missing. A page says nothing about other products, so promoting it
changes neither their presence nor what the next catalog is compared with (`sources.last_promoted_*`, the hold's clock,
before-images). Products are found by index and there is no staging, so the size of the source does not matter.

Of a product that a feed has, a page changes price and stock only, linked or not; how long it leads over the feed is in
`catalog.page_products`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from harvester.catalog import page_products
from harvester.catalog.before_images import CONTENT_COLUMNS
from harvester.catalog.offers import Comparison, recompute
from harvester.catalog.resolver import ask_for_links
from harvester.catalog.search_index import lock_words
from harvester.catalog.states import Visibility
from harvester.kernel.identity import NUMBERS, Identity
from harvester.kernel.money import Price
from harvester.kernel.signature import Content, content_hash, price_signature
from harvester.kernel.stock import Availability
from harvester.pipeline.baseline import Baseline


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One product as it was observed.

    Attributes:
        identity: by which it is found again.
        content: title, address and so on.
        price: what it costs.
        original: the crossed-out price.
        availability: whether it can be bought.
        observed_at: when, by the database's clock.
        product_id: a product of the source that it was linked to; only its price and stock are taken then.
        attributes: what no column has, such as caliber; name -> JSON value.
    """

    identity: Identity
    content: Content
    price: Price
    availability: Availability
    observed_at: datetime
    original: Price | None = None
    product_id: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ObservationsPromoted:
    """What was written.

    Attributes:
        prices: how many prices.
        new: how many products.
        superseded: places of observations for which a newer one, or the same, was promoted before.
        products: place -> product of each of the others.
        unlinked: places whose linked product does not exist; their identity was used instead.
        overruled: places whose linked product is another one than that of their identity; the link counts.
    """

    prices: int
    new: int
    superseded: list[int]
    products: dict[int, int]
    unlinked: list[int]
    overruled: list[int]


# Products are looked up one by one (LATERAL, LIMIT) or by their ids: with a plain join the planner may read all of a
# source, because it knows little of them while they are new.

# Each observation with its product, the newest price of this kind of run that the product has, and when its page was
# last read well: an unchanged page writes no price.
_MATCH = """
SELECT r.place, coalesce(l.id, p.id, nextval('source_products_id')), l.id IS NOT NULL OR f.is_fed,
    l.id IS NULL AND p.id IS NULL, l.id IS NULL AND NOT f.is_fed AND p.content_hash <> r.content_hash,
    n.signature, n.created_at, g.seen_at, coalesce(g.run_no, 0),
    r.linked_id IS NOT NULL AND l.id IS NULL, coalesce(l.id <> p.id, false)
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS r (place integer, linked_id bigint, identity_type smallint, identity_value text, content_hash bigint)
LEFT JOIN LATERAL (
    SELECT k.id FROM source_products k WHERE k.source_id = %(source)s AND k.id = r.linked_id LIMIT 1
) l ON true
LEFT JOIN LATERAL (
    SELECT k.id, k.content_hash FROM source_products k
    WHERE k.source_id = %(source)s AND k.identity_type = r.identity_type AND k.identity_value = r.identity_value LIMIT 1
) p ON true
LEFT JOIN page_products g ON g.source_id = %(source)s AND g.product_id = coalesce(l.id, p.id)
CROSS JOIN LATERAL (SELECT EXISTS (
    SELECT FROM prices c
    WHERE c.source_id = %(source)s AND c.source_product_id = coalesce(l.id, p.id) AND c.run_type <> %(run_type)s
) AS is_fed) f
LEFT JOIN LATERAL (
    SELECT c.signature, c.created_at FROM prices c
    WHERE c.source_id = %(source)s AND c.source_product_id = coalesce(l.id, p.id) AND c.run_type = %(run_type)s
      AND NOT EXISTS (SELECT FROM runs g WHERE g.no = c.run_no AND g.ignored_at IS NOT NULL)
    ORDER BY c.observed_at DESC, c.run_no DESC LIMIT 1
) n ON true
ORDER BY r.place
"""
_CONTENT_LIST: Final = ", ".join(CONTENT_COLUMNS)
_CONTENT_TYPES: Final = ", ".join(f"{name} text" for name in CONTENT_COLUMNS)
_NEW_PRODUCTS = f"""
INSERT INTO source_products (source_id, id, identity_type, identity_value, content_hash, created_run_no,
    updated_run_no, {_CONTENT_LIST})
SELECT %(source)s, product_id, identity_type, identity_value, content_hash, %(run)s, %(run)s, {_CONTENT_LIST}
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS r (product_id bigint, identity_type smallint, identity_value text, content_hash bigint, is_new boolean,
    {_CONTENT_TYPES})
WHERE is_new
"""  # noqa: S608 - constants only
_CONTENTS = f"""
UPDATE source_products p SET content_hash = r.content_hash, updated_run_no = %(run)s, updated_at = %(moment)s,
    {", ".join(f"{name} = r.{name}" for name in CONTENT_COLUMNS)}
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS r (product_id bigint, content_hash bigint, is_content boolean, {_CONTENT_TYPES})
WHERE p.source_id = %(source)s AND p.id = ANY (%(products)s) AND p.id = r.product_id AND r.is_content
"""  # noqa: S608 - constants only
_WORDS = """
UPDATE offer_words w SET words = words_of(r.title, r.brand, r.category)
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS r (product_id bigint, is_content boolean, title text, brand text, category text)
WHERE w.source_id = %(source)s AND w.product_id = ANY (%(products)s) AND w.product_id = r.product_id
    AND r.is_content
"""
_PRICES = """
INSERT INTO prices (source_id, source_product_id, observed_at, run_no, signature, run_type, amount, currency,
    original_amount, in_stock, on_backorder, created_at)
SELECT %(source)s, product_id, observed_at, %(run)s, signature, %(run_type)s, amount, currency, original_amount,
    in_stock, on_backorder, %(moment)s
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS r (product_id bigint, observed_at timestamptz, signature uuid, amount numeric, currency text,
    original_amount numeric, in_stock boolean, on_backorder boolean, is_due boolean)
WHERE is_due
"""  # mutant: observed-prices
_ATTRIBUTES = """
INSERT INTO product_attributes AS a (source_id, product_id, attributes, run_no)
SELECT %(source)s, product_id, attributes, %(run)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (product_id bigint, attributes jsonb, is_linked boolean)
WHERE NOT is_linked AND attributes <> '{}'
ON CONFLICT (source_id, product_id) DO UPDATE SET attributes = excluded.attributes, run_no = excluded.run_no,
    updated_at = clock_timestamp()
WHERE a.attributes <> excluded.attributes
"""
_VISIBILITY = "SELECT visibility FROM sources WHERE id = %(source)s"


def promote_observations(
    cursor: Any, baseline: Baseline, observations: Sequence[Observation], *, run_no: int, run_type: str
) -> ObservationsPromoted:
    """Make observations visible. The transaction is open, and `baseline` was taken in it with the lock.

    An observation that is older than what is known of its product changes nothing; nor does one of the same moment,
    unless a later run read the same page again. A source whose visibility is INELIGIBLE gets the prices and keeps its
    offers as they are.
    """
    values: dict[str, Any] = {
        "source": baseline.source_id, "run": run_no, "run_type": run_type, "moment": baseline.moment,
    }  # fmt: skip
    rows = [_row(place, observation) for place, observation in enumerate(observations)]
    cursor.execute(_MATCH, {**values, "rows": json.dumps(rows)})
    superseded: list[int] = []
    unlinked: list[int] = []
    overruled: list[int] = []
    newest: dict[Any, tuple[dict[str, Any], datetime]] = {}
    heartbeat = timedelta(hours=baseline.heartbeat_hours)
    for found in cursor.fetchall():
        place, product_id, is_linked, is_new, is_content, signature, priced_at, seen_at, seen_by, *links = found
        row, at = rows[place], observations[place].observed_at
        for is_so, places in zip(links, (unlinked, overruled), strict=True):
            if is_so:
                places.append(place)
        key = (row["identity_type"], row["identity_value"]) if is_new else product_id
        is_superseded = (seen_at is not None and (at, run_no) <= (seen_at, seen_by)) or (
            key in newest and at <= newest[key][1]
        )
        if is_superseded:  # mutant: superseded-observation
            superseded.append(place)
            continue
        if key in newest:
            superseded.append(newest[key][0]["place"])
        is_due = signature is None or signature.hex != row["signature"] or priced_at <= baseline.moment - heartbeat
        row |= {
            "product_id": product_id, "is_linked": is_linked, "is_new": is_new, "is_content": is_content,
            "is_due": is_due,
        }  # fmt: skip
        newest[key] = row, at
    promoted = [row for row, _ in newest.values()]
    values |= {"rows": json.dumps(promoted), "products": [row["product_id"] for row in promoted]}
    cursor.execute(_NEW_PRODUCTS, values)
    if any(row["is_content"] for row in promoted):
        lock_words(cursor, baseline.source_id)
        cursor.execute(_CONTENTS, values)
        cursor.execute(_WORDS, values)
    cursor.execute(_PRICES, values)
    prices = int(cursor.rowcount)
    cursor.execute(_ATTRIBUTES, values)
    moments = [at for _, at in newest.values()]
    page_products.record_seen(cursor, baseline.source_id, values["products"], moments, run_no)
    cursor.execute(_VISIBILITY, values)
    if cursor.fetchone()[0] == Visibility.ELIGIBLE:  # mutant: ineligible-keeps-offers
        recompute(baseline.source_id, values["products"], comparison=Comparison.NEWEST)
    if changed := [row["product_id"] for row in promoted if row["is_new"] or row["is_content"]]:
        ask_for_links(baseline.source_id, run_no, changed)
    return ObservationsPromoted(
        prices=prices,
        new=sum(row["is_new"] for row in promoted),
        superseded=sorted(superseded),
        products={row["place"]: row["product_id"] for row in promoted},
        unlinked=unlinked,
        overruled=overruled,
    )


def _row(place: int, observation: Observation) -> dict[str, Any]:
    content, price, original = observation.content, observation.price, observation.original
    in_stock = observation.availability is Availability.IN_STOCK
    on_backorder = observation.availability is Availability.BACKORDER
    columns = {("image_url" if name == "image" else name): text for name, text in asdict(content).items()}
    return {
        **columns,
        "place": place,
        "linked_id": observation.product_id,
        "identity_type": NUMBERS[observation.identity.type],
        "identity_value": observation.identity.value,
        "content_hash": content_hash(content),
        "amount": f"{price.amount:f}",
        "currency": price.currency,
        "original_amount": f"{original.amount:f}" if original else None,
        "in_stock": in_stock,
        "on_backorder": on_backorder or None,
        "attributes": dict(observation.attributes),
        "signature": price_signature(price, in_stock=in_stock, on_backorder=on_backorder, original=original),
        "observed_at": observation.observed_at.isoformat(),
    }
