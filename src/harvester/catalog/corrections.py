"""Corrections: how prices are read when what was observed is known to be wrong.

Prices are facts and stay. A correction hides, multiplies or sets those of a scope; it is never deleted, only revoked.
By default it is for the prices that are shown when it is made, and ends with the next different price of each product;
one for a window of time, open or not, is an explicit choice. Making or revoking one recomputes the offers concerned,
under the locks of their sources.
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
from harvester.catalog.states import CorrectionAction, CorrectionExtent, CorrectionScope
from harvester.kernel.actor import Actor
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit

#: A price in cents, or one a hundred times too large, is what multipliers are for; more is a slip of the hand.
LEAST, MOST = Decimal("0.0001"), Decimal(10_000)
#: An offer can hold no more.
MOST_SET = Decimal(10_000_000_000)
#: What names the prices of each scope.
NAMED_BY: Mapping[str, tuple[str, ...]] = {
    CorrectionScope.RETAILER: ("retailer_id",),
    CorrectionScope.SOURCE: ("source_id",),
    CorrectionScope.PRODUCT: ("source_id", "product_id"),
    CorrectionScope.RUN: ("source_id", "run_no"),
}
_NAMES = ("retailer_id", "source_id", "product_id", "run_no")
_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("multiplier", "set_amount", "set_currency", "observed_from", "observed_to", "extent"), None)
}

# The prices that a correction is made for: those that offers show, or those of one run. They reach back to the last
# different price of the same kind of run; prices of a run reach back to the run alone.
OBSERVED_PRICES = """
SELECT p.source_id, p.source_product_id AS product_id, p.run_type, p.amount, p.currency,
    CASE WHEN %(run)s::bigint IS NOT NULL THEN p.observed_at - interval '1 microsecond'
         ELSE coalesce(b.observed_at, '-infinity') END AS after_at, p.observed_at AS anchored_at
FROM (
    SELECT p.* FROM offers o JOIN prices p ON p.source_id = o.source_id AND p.source_product_id = o.product_id
        AND p.observed_at = o.observed_at AND p.run_no = o.run_no
    WHERE o.source_id = ANY (%(sources)s) AND %(run)s::bigint IS NULL
      AND (%(product)s::bigint IS NULL OR o.product_id = %(product)s)
    UNION ALL
    SELECT p.* FROM prices p WHERE p.source_id = ANY (%(sources)s) AND p.run_no = %(run)s
) p LEFT JOIN LATERAL (
    SELECT d.observed_at FROM prices d
    WHERE d.source_id = p.source_id AND d.source_product_id = p.source_product_id AND d.run_type = p.run_type
      AND d.observed_at < p.observed_at AND (d.amount, d.currency) IS DISTINCT FROM (p.amount, p.currency)
      AND NOT EXISTS (SELECT FROM runs r WHERE r.no = d.run_no AND r.ignored_at IS NOT NULL)
    ORDER BY d.observed_at DESC LIMIT 1
) b ON %(run)s::bigint IS NULL
"""
_KEEP_OBSERVED = f"""
INSERT INTO corrected_prices (source_id, product_id, correction_id, run_type, amount, currency, after_at, anchored_at)
SELECT x.source_id, x.product_id, %(correction)s, x.run_type, x.amount, x.currency, x.after_at, x.anchored_at
FROM ({OBSERVED_PRICES}) x WHERE %(only)s::bigint[] IS NULL OR x.product_id = ANY (%(only)s)
ON CONFLICT (source_id, product_id, correction_id) DO NOTHING
"""  # noqa: S608 - constants only
_AFFECTED_OBSERVED = """
SELECT product_id FROM corrected_prices WHERE source_id = %(source)s AND correction_id = %(correction)s
"""
# What offers show and what was observed: if any of it changes, a preview is out of date.
_STATE = """
SELECT count(*), coalesce(bit_xor(hashtextextended(concat_ws(
    ' ', source_id, product_id, trim_scale(amount), currency, trim_scale(last_amount), last_currency), 0)), 0)
FROM offers WHERE source_id = ANY (%(sources)s) AND (%(product)s::bigint IS NULL OR product_id = %(product)s)
"""
_SHOWN_PRICE = "SELECT trim_scale(amount), currency FROM offers WHERE source_id = %s AND product_id = %s"
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
    set_amount: Decimal | int | str | None = None,
    set_currency: str | None = None,
    extent: str | None = None,
    observed_from: dt.datetime | None = None,
    observed_to: dt.datetime | None = None,
    expected: str | None = None,
    **named: Any,
) -> PriceCorrection:
    """Correct how prices are read.

    Args:
        actor: who says so.
        scope: PRODUCT, RETAILER, SOURCE or RUN.
        action: IGNORE, which wins, MULTIPLIER, or SET, of one product.
        reason: why, for those who look later.
        multiplier: what a price is multiplied by.
        set_amount: what a price is set to.
        set_currency: its currency, which must be that of the price.
        extent: OBSERVED, for the prices shown now until each product's next different price; or WINDOW, for every
            price observed between two moments. Without one, WINDOW if a moment is given, otherwise OBSERVED.
        observed_from: only prices observed at this moment or later.
        observed_to: only prices observed before this moment.
        expected: the state of the prices that a preview showed; if it has changed, nothing is done.
        **named: which retailer_id, source_id, product_id or run_no, as the scope needs it.

    Raises:
        Conflict: the prices have changed since the preview.
    """
    values = {"scope": scope, "action": action, "reason": reason, "multiplier": multiplier}
    sets = {"set_amount": set_amount, "set_currency": set_currency, "extent": extent}
    window = {"observed_from": observed_from, "observed_to": observed_to}
    correction = _built(actor.id, values | sets | window, named)
    with transaction.atomic():
        held = _lock(correction)
        _refuse_unknown(correction)
        if expected is not None and expected != state_of(correction, [source.pk for source in held]):
            raise Conflict(
                "Prices have changed since the preview. Nothing was changed; look at the new preview and confirm it."
            )
        correction.save(force_insert=True)
        if correction.extent == CorrectionExtent.OBSERVED:
            keep_observed(correction, [source.pk for source in held])
        _record(actor, "CORRECTION_CREATED", correction, _recompute(correction, held))
    return correction


def checked(**given: Any) -> PriceCorrection:
    """The correction that `create` would make of the same values, unsaved.

    Raises:
        InvalidInput: a value is not allowed.
        NotFound: what it names does not exist.
    """
    named = {field: given.pop(field) for field in _NAMES if field in given}
    correction = _built("", {**_DEFAULTS, **given}, named)
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
        set_amount=_set_amount(action, given["set_amount"]),
        set_currency=_set_currency(action, given["set_currency"]),
        extent=_extent(given),
        created_by=created_by,
        **_named(scope, named),
    )
    _refuse_finer_than_the_currency(correction)
    if action == CorrectionAction.SET and scope != CorrectionScope.PRODUCT:
        raise InvalidInput("scope: a price is set for one product; choose PRODUCT.")
    _refuse_empty_window(correction)
    return correction


def state_of(correction: PriceCorrection, source_ids: list[UUID]) -> str:
    """The prices that a correction could change, as one short text; another price makes it another text."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"sources": source_ids, "product": correction.product_id})
        count, mark = cursor.fetchone()
    return f"{count}.{mark}"


def keep_observed(correction: PriceCorrection, source_ids: list[UUID], only: list[int] | None = None) -> None:
    """Keep the prices that a correction is made for, or those of some products. The transaction is the caller's."""
    values = {"sources": source_ids, "product": correction.product_id, "run": correction.run_no, "only": only}
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_OBSERVED, {**values, "correction": correction.pk})


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
        "correction": correction.pk,
    }
    observed = correction.extent == CorrectionExtent.OBSERVED
    with connection.cursor() as cursor:
        cursor.execute(_AFFECTED_OBSERVED if observed else _AFFECTED, values)
        return [row[0] for row in cursor.fetchall()]


def _record(actor: Actor, verb: str, correction: PriceCorrection, products: int) -> None:
    told = (
        *("scope", "action", "multiplier", "set_amount", "set_currency", "extent", *_NAMES),
        *("observed_from", "observed_to", "reason"),
    )
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
    if correction.product_id is not None and (
        correction.action == CorrectionAction.SET or correction.extent == CorrectionExtent.OBSERVED
    ):
        _refuse_unclear_price(correction)


def _refuse_unclear_price(correction: PriceCorrection) -> None:
    """A correction for the shown price needs one, and a set price its currency."""
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN_PRICE, [correction.source_id, correction.product_id])
        shown = cursor.fetchone()
    if shown is None:
        raise Conflict(
            f"Product {correction.product_id} has no price that is shown, so there is none to correct. Nothing was "
            "changed. To correct its older prices, choose a window of time."
        )
    if correction.action == CorrectionAction.SET and shown[1] != correction.set_currency:
        raise InvalidInput(
            f"set_currency: the price is {shown[0]:f} {shown[1]}, so it can be set in {shown[1]} only; to set "
            f"{correction.set_currency} would show the price of another currency."
        )


def _has_product(correction: PriceCorrection) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM source_products WHERE source_id = %s AND id = %s",
            [correction.source_id, correction.product_id],
        )
        return cursor.rowcount == 1


def _extent(given: Mapping[str, Any]) -> str:
    dated = given["observed_from"] is not None or given["observed_to"] is not None
    if given["extent"] is None:
        return CorrectionExtent.WINDOW if dated else CorrectionExtent.OBSERVED
    extent = fields.choice(CorrectionExtent)("extent", given["extent"])
    if dated and extent == CorrectionExtent.OBSERVED:
        raise InvalidInput("extent: a correction for the prices shown now has no window; leave the moments out.")
    return str(extent)


def _set_amount(action: str, given: Any) -> Decimal | None:
    if action != CorrectionAction.SET:
        if given is not None:
            raise InvalidInput(f"set_amount: {action} has none; leave it out, or choose SET.")
        return None
    try:
        value = Decimal(str(given))
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and 0 < value < MOST_SET and value == round(value, 4)):
        raise InvalidInput(f"set_amount: allowed is an amount above 0 and below {MOST_SET:,} with at most 4 decimals.")
    return value


def _refuse_finer_than_the_currency(correction: PriceCorrection) -> None:
    amount, currency = correction.set_amount, correction.set_currency
    if amount is None or currency is None or amount == round(amount, MINOR_UNITS[currency]):
        return
    decimals = {0: "no decimals", 2: "at most 2 decimals", 3: "at most 3 decimals"}[MINOR_UNITS[currency]]
    raise InvalidInput(f"set_amount: an amount in {currency} has {decimals}; {amount:f} is no price in {currency}.")


def _set_currency(action: str, given: Any) -> str | None:
    if action != CorrectionAction.SET:
        if given is not None:
            raise InvalidInput(f"set_currency: {action} has none; leave it out, or choose SET.")
        return None
    if not isinstance(given, str) or given not in MINOR_UNITS:
        raise InvalidInput("set_currency: needed with a set price: the currency of the price, such as USD.")
    return given


def _multiplier(action: str, given: Any) -> Decimal | None:
    if action != CorrectionAction.MULTIPLIER:
        if given is not None:
            raise InvalidInput(f"multiplier: {action} has none; leave it out, or choose MULTIPLIER.")
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
