"""Corrections: how prices are read when what was observed is known to be wrong.

Prices are facts and stay. A correction hides or scales those of a scope and a window; it is never deleted, only
revoked. Making or revoking one makes the offers concerned anew, under the locks of their sources.
"""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from harvester.catalog import fields, offers
from harvester.catalog.models import PriceCorrection, Retailer, Run, Source
from harvester.catalog.sources import locked, locked_of, unknown
from harvester.catalog.states import CorrectionAction, CorrectionScope
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit

#: A price in cents, or one a hundred times too large, is what multipliers are for; more is a slip of the hand.
LEAST, MOST = Decimal("0.0001"), Decimal(10_000)
#: What names the prices of each scope.
NAMED_BY: Mapping[str, tuple[str, ...]] = {
    CorrectionScope.RETAILER: ("retailer_id",),
    CorrectionScope.SOURCE: ("source_id",),
    CorrectionScope.PRODUCT: ("source_id", "product_id"),
    CorrectionScope.RUN: ("source_id", "run_no"),
}
_NAMES = ("retailer_id", "source_id", "product_id", "run_no")

_AFFECTED = """
SELECT DISTINCT source_product_id FROM prices
WHERE source_id = %(source)s
  AND (%(product)s::bigint IS NULL OR source_product_id = %(product)s)
  AND (%(run)s::bigint IS NULL OR run_no = %(run)s)
  AND observed_at >= coalesce(%(since)s, '-infinity'::timestamptz)
  AND observed_at < coalesce(%(until)s, 'infinity'::timestamptz)
"""


def create(
    actor: Actor,
    *,
    scope: str,
    action: str,
    reason: str,
    multiplier: Decimal | int | str | None = None,
    observed_from: dt.datetime | None = None,
    observed_to: dt.datetime | None = None,
    **named: Any,
) -> PriceCorrection:
    """Correct how prices are read, from now on.

    Args:
        actor: who says so.
        scope: PRODUCT, RETAILER, SOURCE or RUN.
        action: IGNORE, which wins, or MULTIPLIER.
        reason: why, for those who look later.
        multiplier: what a price is multiplied by.
        observed_from: only prices observed at this moment or later.
        observed_to: only prices observed before this moment.
        **named: which retailer_id, source_id, product_id or run_no, as the scope needs it.
    """
    values = {"scope": scope, "action": action, "reason": reason, "multiplier": multiplier}
    window = {"observed_from": observed_from, "observed_to": observed_to}
    correction = _built(actor.id, values | window, named)
    with transaction.atomic():
        held = _lock(correction)
        _refuse_unknown(correction)
        correction.save(force_insert=True)
        _record(actor, "CORRECTION_CREATED", correction, _recompute(correction, held))
    return correction


def checked(**given: Any) -> PriceCorrection:
    """The correction that `create` would make of the same values, unsaved.

    Raises:
        InvalidInput: a value is not allowed.
        NotFound: what it names does not exist.
    """
    named = {field: given.pop(field) for field in _NAMES if field in given}
    correction = _built("", {"multiplier": None, "observed_from": None, "observed_to": None, **given}, named)
    if correction.source_id is not None and not Source.objects.filter(pk=correction.source_id).exists():
        raise unknown(correction.source_id)
    if correction.retailer_id is not None:
        _refuse_unknown_retailer(correction.retailer_id)
    _refuse_unknown(correction)
    return correction


def were_changed(source_id: UUID, since: dt.datetime) -> bool:
    """Whether a correction that may concern a source was made or revoked at this moment or later."""
    concern = Q(source_id=source_id) | Q(retailer__sources=source_id)
    return PriceCorrection.objects.filter(concern, Q(created_at__gte=since) | Q(revoked_at__gte=since)).exists()


def parse_id(text: str) -> UUID:
    """The id of a correction as it was typed."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no correction {text[:60]!r}; `harvester corrections list` shows them.") from None


def _built(created_by: str, given: Mapping[str, Any], named: Mapping[str, Any]) -> PriceCorrection:
    scope, action = given["scope"], given["action"]
    correction = PriceCorrection(
        scope=fields.choice(CorrectionScope)("scope", scope),
        action=fields.choice(CorrectionAction)("action", action),
        reason=fields.reason(given["reason"]),
        observed_from=_moment("observed_from", given["observed_from"]),
        observed_to=_moment("observed_to", given["observed_to"]),
        multiplier=_multiplier(action, given["multiplier"]),
        created_by=created_by,
        **_named(scope, named),
    )
    _refuse_empty_window(correction)
    return correction


def revoke(actor: Actor, correction_id: UUID) -> PriceCorrection:
    """End a correction; the prices are read as they were observed again. It stays in the list of corrections."""
    correction = PriceCorrection.objects.filter(pk=correction_id).first()
    if correction is None:
        raise NotFound(f"There is no correction {correction_id}.")
    with transaction.atomic():
        held = _lock(correction)
        ended = PriceCorrection.objects.filter(pk=correction_id, revoked_at=None).update(
            revoked_at=Now(), revoked_by=actor.id
        )
        if not ended:
            raise Conflict(f"The correction {correction_id} was revoked already; nothing was changed.")
        _record(actor, "CORRECTION_REVOKED", correction, _recompute(correction, held))
    correction.refresh_from_db()
    return correction


def _lock(correction: PriceCorrection) -> list[Source]:
    """Promotion reads the corrections under the same locks, so none slips between the two."""
    if correction.source_id is not None:
        return [locked(correction.source_id)]
    return locked_of(_refuse_unknown_retailer(correction.retailer_id))


def _refuse_unknown_retailer(retailer_id: UUID | None) -> UUID:
    retailer = Retailer.objects.filter(pk=str(retailer_id)).first()
    if retailer is None:
        raise NotFound(f"There is no retailer {retailer_id}; `harvester retailer list` shows them all.")
    return retailer.pk


def _recompute(correction: PriceCorrection, held: list[Source]) -> int:
    affected = {source.pk: _affected(correction, source.pk) for source in held}
    for source_id, products in affected.items():
        offers.recompute(source_id, products)
    return sum(map(len, affected.values()))


def _affected(correction: PriceCorrection, source_id: UUID) -> list[int]:
    values = {
        "source": source_id,
        "product": correction.product_id,
        "run": correction.run_no,
        "since": correction.observed_from,
        "until": correction.observed_to,
    }
    with connection.cursor() as cursor:
        cursor.execute(_AFFECTED, values)
        return [row[0] for row in cursor.fetchall()]


def _record(actor: Actor, verb: str, correction: PriceCorrection, products: int) -> None:
    told = ("scope", "action", "multiplier", *_NAMES, "observed_from", "observed_to", "reason")
    detail = {field: getattr(correction, field) for field in told if getattr(correction, field) is not None}
    audit.record(actor, verb, "correction", correction.pk, detail={**detail, "products": products})


def _named(scope: str, named: Mapping[str, Any]) -> dict[str, Any]:
    given = {field for field, value in named.items() if value is not None}
    needed = NAMED_BY[fields.choice(CorrectionScope)("scope", scope)]
    wrong = sorted(given ^ set(needed))
    if wrong:
        raise InvalidInput(
            f"{wrong[0]}: a correction of scope {scope} is named by {' and '.join(needed)} and nothing else."
        )
    return {field: named[field] for field in needed}


def _refuse_unknown(correction: PriceCorrection) -> None:
    if correction.product_id is not None and not _has_product(correction):
        raise NotFound(f"product_id: the source {correction.source_id} has no product {correction.product_id}.")
    run_no = correction.run_no
    if run_no is not None and not Run.objects.filter(no=run_no, source_id=str(correction.source_id)).exists():
        raise NotFound(f"run_no: the source {correction.source_id} has no run {run_no}.")


def _has_product(correction: PriceCorrection) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM source_products WHERE source_id = %s AND id = %s",
            [correction.source_id, correction.product_id],
        )
        return cursor.rowcount == 1


def _multiplier(action: str, given: Any) -> Decimal | None:
    if action == CorrectionAction.IGNORE:
        if given is not None:
            raise InvalidInput("multiplier: IGNORE has none; leave it out, or choose MULTIPLIER.")
        return None
    try:
        value = Decimal(str(given))
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and LEAST <= value <= MOST and value == round(value, 6)):
        raise InvalidInput(f"multiplier: allowed is a number from {LEAST} to {MOST} with at most 6 decimals.")
    return value


def _moment(field: str, given: Any) -> dt.datetime | None:
    if given is not None and (not isinstance(given, dt.datetime) or given.tzinfo is None):
        raise InvalidInput(f"{field}: allowed is a moment with a time zone, or nothing.")
    return given


def _refuse_empty_window(correction: PriceCorrection) -> None:
    since, until = correction.observed_from, correction.observed_to
    if since is not None and until is not None and since >= until:
        raise InvalidInput("observed_to: it must be later than observed_from; the moment itself is not part of it.")
