"""Ignoring a promoted run, and undoing that.

Of the newest promoted run, everything returns to its state before it: prices, presence, content, and what the gates
compare with; its file is refused. Of an older one only the prices are hidden. What either had changed is remembered,
so that a later run that brings most of it back is held. Of a run over pages, the prices are hidden, and its pages do
not lead over a feed any more.

The caller holds the feed's lock, so no run and no decision is under way; the source's row is locked here.
"""

from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.catalog import before_images, fields, offers, page_products
from harvester.catalog.models import Source
from harvester.catalog.resolver import ask_for_links
from harvester.catalog.sources import locked
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit
from harvester.runs.models import Run
from harvester.runs.states import PROMOTED

#: The kind of runs over pages, as its prices have it.
PAGES = "SCRAPE"
_PRODUCTS = "SELECT DISTINCT source_product_id FROM prices WHERE source_id = %(source)s AND run_no = %(run)s"
# Of this run's products one that no later run of its kind priced, where one was promoted: its newest observation is
# not known, and this run's price might be older than that. A run over pages says nothing about other products.
_UNKNOWN_SINCE = """
SELECT p.source_product_id FROM prices p
WHERE p.source_id = %(source)s AND p.run_no = %(run)s
  AND CASE WHEN p.run_type = 'SCRAPE'
      THEN EXISTS (SELECT FROM page_products g WHERE g.source_id = p.source_id AND g.product_id = p.source_product_id
                   AND g.seen_at > p.observed_at)
      ELSE EXISTS (SELECT FROM runs r WHERE r.source_id = %(source)s AND r.no > %(run)s AND r.ignored_at IS NULL
                   AND r.kind = p.run_type AND r.outcome IN ('PROMOTED', 'APPROVED')) END
  AND NOT EXISTS (SELECT FROM prices l WHERE l.source_id = p.source_id AND l.run_type = p.run_type
                  AND l.source_product_id = p.source_product_id AND l.run_no > %(run)s
                  AND NOT EXISTS (SELECT FROM runs r WHERE r.no = l.run_no AND r.ignored_at IS NOT NULL))
LIMIT 1
"""  # mutant: unknown-since
# What the run had changed: amounts and currencies, and the prices of products that were new. Prices that it only
# confirmed, or that differ in stock alone, are not among them; nor are those of pages, which no gate compares.
_REMEMBER_CHANGED = """
INSERT INTO ignored_prices (source_id, run_no, product_id, amount, currency)
SELECT p.source_id, p.run_no, p.source_product_id, p.amount, p.currency
FROM prices p LEFT JOIN LATERAL (
    SELECT l.amount, l.currency FROM prices l
    WHERE l.source_id = %(source)s AND l.source_product_id = p.source_product_id AND l.observed_at < p.observed_at
      AND l.run_type = p.run_type
      AND NOT EXISTS (SELECT FROM runs r WHERE r.no = l.run_no AND r.ignored_at IS NOT NULL)
    ORDER BY l.observed_at DESC, l.run_no DESC LIMIT 1
) b ON true
WHERE p.source_id = %(source)s AND p.run_no = %(run)s AND p.run_type <> 'SCRAPE'
  AND (b.amount, b.currency) IS DISTINCT FROM (p.amount, p.currency)
"""
_FORGET_CHANGED = "DELETE FROM ignored_prices WHERE source_id = %(source)s AND run_no = %(run)s"
# Before the run these products were not there at all.
_FORGET_NEW = """
DELETE FROM hidden_offers h
WHERE h.source_id = %(source)s AND h.product_id = ANY (%(products)s::bigint[])
  AND NOT EXISTS (SELECT FROM offers o WHERE o.source_id = %(source)s AND o.product_id = h.product_id)
  AND NOT EXISTS (SELECT FROM prices p WHERE p.source_id = %(source)s AND p.source_product_id = h.product_id
                  AND p.run_no <> %(run)s)
"""


def ignore_run(actor: Actor, run_id: UUID, reason: str) -> int:
    """Hide the prices of a promoted run from every read; return the number of products concerned.

    Their offers are made from what remains, and the next run writes their prices whatever it sees. If the run is the
    newest promoted one, the source returns to its state before it and the run's file is refused.
    """
    why = fields.reason(reason)
    with transaction.atomic():
        source_id, run = _locked(run_id)
        if run.outcome not in PROMOTED:
            raise Conflict(f"Run {run.no} was not promoted, so none of its prices is read; nothing was changed.")
        if run.ignored_at is not None:
            raise Conflict(f"Run {run.no} is ignored already; nothing was changed.")
        is_newest = Source.objects.filter(pk=source_id, last_promoted_run_no=run.no).exists()
        products = _products(run)
        values: dict[str, Any] = {"source": source_id, "run": run.no, "products": products}
        with connection.cursor() as cursor:
            cursor.execute(_REMEMBER_CHANGED, values)
            Run.objects.filter(pk=run_id).update(
                ignored_at=Now(), ignored_by=actor.id, ignored_reason=why, refuses_file=is_newest
            )
            restored = before_images.swap(cursor, source_id, run.no)
            if run.kind == PAGES:
                page_products.drop_leads(cursor, source_id, products)
            offers.recompute(source_id, products, comparison=offers.Comparison.FORGOTTEN)  # mutant: ignore-forgets
            if restored:
                cursor.execute(_FORGET_NEW, values)
                ask_for_links(source_id, run.no)
        _record(actor, "RUN_IGNORED", run, len(products), why, restored=restored)
    return len(products)


def undo_ignore(actor: Actor, run_id: UUID) -> int:
    """Let the prices of an ignored run be read again; return the number of products concerned.

    If no run was promoted since it was ignored, everything that ignoring restored returns to the state of this run.
    """
    with transaction.atomic():
        source_id, run = _locked(run_id)
        if run.ignored_at is None:
            raise Conflict(f"Run {run.no} is not ignored; nothing was changed.")
        _refuse_older_prices(run)  # mutant: undo-refused
        Run.objects.filter(pk=run_id).update(ignored_at=None, ignored_by=None, ignored_reason=None, refuses_file=False)
        products = _products(run)
        with connection.cursor() as cursor:
            cursor.execute(_FORGET_CHANGED, {"source": source_id, "run": run.no})
            restored = before_images.swap(cursor, source_id, run.no)
            if run.kind == PAGES:
                page_products.restore_leads(cursor, source_id, products)
        offers.recompute(source_id, products)
        if restored:
            ask_for_links(source_id, run.no)
        _record(actor, "RUN_IGNORE_UNDONE", run, len(products), run.ignored_reason or "", restored=restored)
    return len(products)


def _locked(run_id: UUID) -> tuple[UUID, Run]:
    source_id = Run.objects.filter(pk=run_id).values_list("source_id", flat=True).first()
    if source_id is None:
        raise NotFound(f"There is no run {run_id} of a source.")
    locked(source_id)
    return source_id, Run.objects.select_for_update(no_key=True).get(pk=run_id)


def _refuse_older_prices(run: Run) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_UNKNOWN_SINCE, {"source": run.source_id, "run": run.no})
        found = cursor.fetchone()
    if found:
        raise Conflict(
            f"A newer run was promoted that has no price for product {found[0]} of run {run.no}; its price would be "
            "shown over a newer observation. Run the feed, or read the page, again, so that every product has a newer "
            "price. Nothing was changed."
        )


def _products(run: Run) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_PRODUCTS, {"source": run.source_id, "run": run.no})
        return [row[0] for row in cursor.fetchall()]


def refuses(source_id: UUID, file_hash: str) -> bool:
    """Whether a file is that of an ignored run, and nobody has overridden that since."""
    ignored = Run.objects.filter(source_id=source_id, ignored_at__isnull=False, refuses_file=True)
    return ignored.filter(artifact_hash=file_hash).exists()


def lift_refusals(source_id: UUID) -> None:
    """Let the files of ignored runs be read again, because a person asked for that."""
    Run.objects.filter(source_id=source_id, ignored_at__isnull=False, refuses_file=True).update(refuses_file=False)


def _record(actor: Actor, verb: str, run: Run, products: int, reason: str, *, restored: bool) -> None:
    detail = {"source": run.source_id, "run_no": run.no, "products": products, "reason": reason, "restored": restored}
    audit.record(actor, verb, "run", run.pk, changed=["ignored_at"], detail=detail)
