"""Ignoring a promoted run, and undoing that.

The caller holds the feed's lock, so no run and no decision is under way; the source's row is locked here.
"""

from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.catalog import fields, offers
from harvester.catalog.models import Run
from harvester.catalog.sources import locked
from harvester.catalog.states import RunOutcome
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit

PROMOTED = (RunOutcome.PROMOTED, RunOutcome.APPROVED)

_PRODUCTS = "SELECT DISTINCT source_product_id FROM prices WHERE source_id = %(source)s AND run_no = %(run)s"
# Of this run's products one that no later run priced, where a later run was promoted: its newest observation is not
# known, and this run's price might be older than that.
_UNKNOWN_SINCE = """
SELECT p.source_product_id FROM prices p
WHERE p.source_id = %(source)s AND p.run_no = %(run)s
  AND EXISTS (SELECT FROM runs r WHERE r.source_id = %(source)s AND r.no > %(run)s AND r.ignored_at IS NULL
              AND r.outcome IN ('PROMOTED', 'APPROVED'))
  AND NOT EXISTS (SELECT FROM prices l WHERE l.source_id = p.source_id
                  AND l.source_product_id = p.source_product_id AND l.run_no > %(run)s
                  AND NOT EXISTS (SELECT FROM runs r WHERE r.no = l.run_no AND r.ignored_at IS NOT NULL))
LIMIT 1
"""


def ignore_run(actor: Actor, run_id: UUID, reason: str) -> int:
    """Hide the prices of a promoted run from every read; answers how many products that concerns.

    Their offers are made from what remains, and the next run writes their prices whatever it sees.
    """
    why = fields.required_text("reason", reason)
    with transaction.atomic():
        source_id, run = _locked(run_id)
        if run.outcome not in PROMOTED:
            raise Conflict(f"Run {run.no} was not promoted, so none of its prices is read; nothing was changed.")
        if run.ignored_at is not None:
            raise Conflict(f"Run {run.no} is ignored already; nothing was changed.")
        Run.objects.filter(pk=run_id).update(ignored_at=Now(), ignored_by=actor.id, ignored_reason=why)
        products = _products(run)
        offers.recompute(source_id, products, forget_comparison=True)
        _record(actor, "RUN_IGNORED", run, len(products), why)
    return len(products)


def undo_ignore(actor: Actor, run_id: UUID) -> int:
    """Let the prices of an ignored run be read again; answers how many products that concerns."""
    with transaction.atomic():
        source_id, run = _locked(run_id)
        if run.ignored_at is None:
            raise Conflict(f"Run {run.no} is not ignored; nothing was changed.")
        _refuse_older_prices(run)
        Run.objects.filter(pk=run_id).update(ignored_at=None, ignored_by=None, ignored_reason=None)
        products = _products(run)
        offers.recompute(source_id, products)
        _record(actor, "RUN_IGNORE_UNDONE", run, len(products), run.ignored_reason or "")
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
            "shown over a newer observation. Run the feed again, so that every product has a newer price. Nothing was "
            "changed."
        )


def _products(run: Run) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_PRODUCTS, {"source": run.source_id, "run": run.no})
        return [row[0] for row in cursor.fetchall()]


def _record(actor: Actor, verb: str, run: Run, products: int, reason: str) -> None:
    detail = {"source": run.source_id, "run_no": run.no, "products": products, "reason": reason}
    audit.record(actor, verb, "run", run.pk, changed=["ignored_at"], detail=detail)
