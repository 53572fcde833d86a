"""Offers are derived from prices: recomputing them, and the nightly check that they are right."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from harvester.catalog import search_index
from harvester.catalog.models import Source
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind, periodic
from harvester.kernel.retry import RetryPolicy
from harvester.ops import alerts

log = structlog.get_logger(__name__)

CHECK_OFFERS = "catalog.check_offers"
#: The check reads every price of a source; as sources are chosen at random, each is checked sooner or later.
SOURCES_EACH_NIGHT = 5
#: Wrong offers of a source in the log; one is enough to investigate.
MOST_LOGGED = 20
RETRY = RetryPolicy(base=60.0, factor=3.0, attempts=3)

#: Every writer of offers locks the source's row.
LOCK_SOURCE = "SELECT id FROM sources WHERE id = %(source)s FOR UPDATE"

# Recomputes the offers of some products from prices. Of each product only the newest prices of the preferred kind are
# read, until one is readable, and those of the other kind only if there is none: corrections are expensive to look up.
# The presence of a product that only pages show is what they say.
#
# A product without a readable price loses its offer; its presence is kept in hidden_offers, and so is that of a product
# that is left to its pages, because every run of a feed that had it is ignored. An offer that comes back was last seen
# at its newest price (of a feed, if it has pages too) or at its stored presence, not later. If an ignored run saw
# something newer, the offer gets no signature, so that the next run always writes a price: otherwise un-ignoring that
# run would show its price in place of a newer observation.
_RECOMPUTE = """
WITH newest AS MATERIALIZED (
    SELECT x.wanted, g.product_id IS NOT NULL AS has_page,
        g.product_id IS NOT NULL AND f.run_no IS NULL AS is_page_only, g.seen_at AS page_seen_at,
        g.ended_at AS page_ended_at, f.run_no AS fed_by, f.observed_at AS fed_at,
        (CASE WHEN a.price IS NULL THEN b.price ELSE a.price END).*
    FROM unnest(%(products)s::bigint[]) AS x (wanted)
    LEFT JOIN page_products g ON g.source_id = %(source)s AND g.product_id = x.wanted
    LEFT JOIN LATERAL (
        SELECT l.run_no, l.observed_at FROM prices l
        WHERE g.product_id IS NOT NULL AND l.source_id = %(source)s AND l.source_product_id = x.wanted
          AND l.run_type <> 'SCRAPE'
          AND NOT EXISTS (SELECT FROM runs r WHERE r.no = l.run_no AND r.ignored_at IS NOT NULL)
        ORDER BY l.observed_at DESC, l.run_no DESC LIMIT 1
    ) f ON true
    LEFT JOIN LATERAL (
        SELECT r AS price FROM readable_prices r
        WHERE r.source_id = %(source)s AND r.product_id = x.wanted AND r.is_preferred
        ORDER BY r.observed_at DESC, r.run_no DESC LIMIT 1
    ) a ON true
    LEFT JOIN LATERAL (
        SELECT r AS price FROM readable_prices r
        WHERE a.price IS NULL AND r.source_id = %(source)s AND r.product_id = x.wanted
        ORDER BY r.observed_at DESC, r.run_no DESC LIMIT 1
    ) b ON true
), gone AS (
    DELETE FROM offers o USING newest t
    WHERE o.source_id = %(source)s AND o.product_id = t.wanted AND t.product_id IS NULL
    RETURNING o.source_id, o.product_id, o.seen_until, o.absence_accepted, o.by_pages
), left_to_pages AS (
    SELECT o.source_id, o.product_id, o.seen_until, o.absence_accepted, o.by_pages
    FROM newest t JOIN offers o ON o.source_id = t.source_id AND o.product_id = t.product_id WHERE t.is_page_only
), kept AS (
    INSERT INTO hidden_offers AS h
    SELECT g.source_id, g.product_id, g.seen_until, g.absence_accepted, s.last_promoted_run_no, s.last_promoted_at
    FROM (SELECT * FROM gone UNION ALL SELECT * FROM left_to_pages) g JOIN sources s ON s.id = g.source_id
    WHERE NOT g.by_pages
    ON CONFLICT (source_id, product_id) DO UPDATE SET seen_until = excluded.seen_until,
        absence_accepted = excluded.absence_accepted, last_promoted_run_no = excluded.last_promoted_run_no,
        last_promoted_at = excluded.last_promoted_at
)
INSERT INTO offers AS o (source_id, product_id, currency, amount, original_amount, in_stock, on_backorder, observed_at,
    run_no, last_run_type, last_signature, last_amount, last_currency, last_priced_at, by_pages, ended_at, seen_until,
    absence_accepted)
SELECT t.source_id, t.product_id, t.currency, t.amount, t.original_amount, t.in_stock, t.on_backorder, t.observed_at,
    t.run_no, n.run_type, CASE WHEN EXISTS (
        SELECT FROM prices i JOIN runs r ON r.no = i.run_no WHERE r.ignored_at IS NOT NULL
        AND i.source_id = t.source_id AND i.source_product_id = t.product_id AND i.observed_at >= n.observed_at
    ) THEN NULL ELSE n.signature END, n.amount, n.currency, n.created_at,
    t.is_page_only, CASE WHEN t.is_page_only THEN t.page_ended_at END,
    CASE WHEN t.is_page_only THEN t.page_seen_at
         WHEN f.run_no = s.last_promoted_run_no THEN NULL
         WHEN h.last_promoted_run_no = s.last_promoted_run_no THEN h.seen_until
         ELSE greatest(coalesce(h.seen_until, h.last_promoted_at), f.observed_at) END,
    NOT t.is_page_only AND f.run_no IS DISTINCT FROM s.last_promoted_run_no
        AND coalesce(h.absence_accepted, false)
FROM newest t
JOIN sources s ON s.id = t.source_id
LEFT JOIN hidden_offers h ON h.source_id = t.source_id AND h.product_id = t.product_id
CROSS JOIN LATERAL (
    SELECT l.* FROM prices l
    WHERE l.source_id = t.source_id AND l.source_product_id = t.product_id
      AND NOT EXISTS (SELECT FROM runs r WHERE r.no = l.run_no AND r.ignored_at IS NOT NULL)
      AND (l.run_type <> 'SCRAPE' OR s.visibility = 'ELIGIBLE')
    ORDER BY l.observed_at DESC, l.run_no DESC LIMIT 1
) n
CROSS JOIN LATERAL (
    SELECT CASE WHEN t.has_page THEN t.fed_by ELSE n.run_no END AS run_no,
        CASE WHEN t.has_page THEN t.fed_at ELSE n.observed_at END AS observed_at
) f
ON CONFLICT (source_id, product_id) DO UPDATE SET
    currency = excluded.currency, amount = excluded.amount, original_amount = excluded.original_amount,
    in_stock = excluded.in_stock, on_backorder = excluded.on_backorder, observed_at = excluded.observed_at,
    run_no = excluded.run_no, by_pages = excluded.by_pages, ended_at = excluded.ended_at,
    seen_until = CASE WHEN excluded.by_pages AND o.by_pages THEN greatest(o.seen_until, excluded.seen_until)
        WHEN excluded.by_pages OR o.by_pages THEN excluded.seen_until ELSE o.seen_until END,
    last_run_type = excluded.last_run_type, last_amount = excluded.last_amount,
    last_currency = excluded.last_currency, last_priced_at = excluded.last_priced_at,
    last_signature = CASE %(comparison)s WHEN 'FORGOTTEN' THEN NULL WHEN 'NEWEST' THEN excluded.last_signature
        ELSE o.last_signature END
"""  # mutant: offers-recompute

# Offers that differ from the prices; there must be none. A missing signature is correct: it makes the next run write a
# price. Missing words are added soon.
_DIFFERENCES = """
SELECT coalesce(o.source_id, t.source_id), coalesce(o.product_id, t.product_id)
FROM (SELECT * FROM offers WHERE %(source)s::uuid IS NULL OR source_id = %(source)s) o
FULL JOIN (SELECT * FROM current_prices WHERE %(source)s::uuid IS NULL OR source_id = %(source)s) t
    ON t.source_id = o.source_id AND t.product_id = o.product_id
LEFT JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id
LEFT JOIN offer_words w ON w.source_id = o.source_id AND w.product_id = o.product_id
LEFT JOIN page_presence g ON g.source_id = o.source_id AND g.product_id = o.product_id
LEFT JOIN (
    SELECT DISTINCT ON (l.source_id, l.source_product_id) l.* FROM prices l JOIN sources s ON s.id = l.source_id
    WHERE (%(source)s::uuid IS NULL OR l.source_id = %(source)s)
      AND (l.run_type <> 'SCRAPE' OR s.visibility = 'ELIGIBLE')
      AND NOT EXISTS (SELECT FROM runs r WHERE r.no = l.run_no AND r.ignored_at IS NOT NULL)
    ORDER BY l.source_id, l.source_product_id, l.observed_at DESC, l.run_no DESC
) n ON n.source_id = o.source_id AND n.source_product_id = o.product_id
WHERE (o.currency, o.amount, o.original_amount, o.in_stock, o.on_backorder, o.observed_at, o.run_no)
    IS DISTINCT FROM (t.currency, t.amount, t.original_amount, t.in_stock, t.on_backorder, t.observed_at, t.run_no)
   OR (o.by_pages, o.ended_at)
    IS DISTINCT FROM (coalesce(g.is_page_only, false), CASE WHEN g.is_page_only THEN g.ended_at END)
   OR o.by_pages AND o.seen_until < g.seen_at
   OR p.id IS NULL OR w.words <> words_of(p.title, p.brand, p.category)
   OR (o.last_amount, o.last_currency, coalesce(o.last_signature, n.signature))
    IS DISTINCT FROM (n.amount, n.currency, n.signature)
ORDER BY 1, 2 LIMIT %(most)s
"""


class Comparison(StrEnum):
    """What the next run compares a price with that is in an offer already."""

    AS_BEFORE = "AS_BEFORE"
    FORGOTTEN = "FORGOTTEN"  # nothing: it records a price even if it is unchanged
    NEWEST = "NEWEST"  # the newest price that counts, of whatever kind of run


def recompute(source_id: UUID, product_ids: Sequence[int], *, comparison: Comparison = Comparison.AS_BEFORE) -> None:
    """Recompute these offers, in the caller's transaction.

    Args:
        source_id: their source.
        product_ids: their products.
        comparison: what the next run compares prices with.
    """
    values: dict[str, Any] = {"source": source_id, "products": sorted(set(product_ids)), "comparison": comparison}
    with connection.cursor() as cursor:
        cursor.execute(LOCK_SOURCE, values)
        cursor.execute(_RECOMPUTE, values)
        search_index.add_words(cursor, source_id, values["products"])


def differences(source_id: UUID | None = None, most: int = 100) -> list[tuple[UUID, int]]:
    """Return the source and product of offers that differ from the prices; there must be none."""
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERENCES, {"source": source_id, "most": most})
        return list(cursor.fetchall())


def register() -> None:
    job_kind(CHECK_OFFERS, queue="maintenance", retry=RETRY)(check_offers)
    periodic("nightly check of offers", kind=CHECK_OFFERS, cron="41 2 * * *")


def check_offers(job: RunningJob) -> dict[str, int]:
    """Compare the offers of some sources with their prices, and raise alerts for differences.

    Nothing is repaired: a difference is a bug, and the wrong rows help to find it.
    """
    picked = Source.objects.filter(last_promoted_at__isnull=False).order_by("?")[:SOURCES_EACH_NIGHT]
    wrong = 0
    for done, source in enumerate(picked):
        job.check()
        job.progress(done, SOURCES_EACH_NIGHT, note=source.name)
        if search_index.are_lacking(source.pk):
            # The job that adds words is late or was cancelled; if it is running, the new one finds nothing to do.
            search_index.ask_for_words(source.pk)
        products = [product_id for _, product_id in differences(source.pk, most=MOST_LOGGED)]
        wrong += len(products)
        key = f"offers_differ:{source.pk}"
        with job.transaction():
            if not products:
                alerts.resolve_alert(key, "The offers match the prices again.")
                continue
            log.error("OFFERS_DIFFER", source_id=str(source.pk), products=products, at_most=MOST_LOGGED)
            alerts.raise_alert(
                "OFFERS_DIFFER",
                key,
                f"Offers of {source} do not match its prices",
                f"{len(products)} or more offers differ from the newest readable price. Nothing was changed. This is a "
                "bug; please report it with the OFFERS_DIFFER lines of the log, which name the products.",
                severity="critical",
                detail={"source_id": str(source.pk), "products": products},
            )
    return {"sources": len(picked), "wrong_offers": wrong}
