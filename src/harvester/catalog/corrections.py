"""Corrections of wrong prices.

Observed prices never change. A correction hides, multiplies or sets those of a scope; it is never deleted, only
revoked. By default it applies to the prices shown when it is created, and ends with the next different price of each
product. A window of time is an explicit choice. Creating or revoking one recomputes the affected offers while their
sources are locked.
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
from harvester.catalog.models import PriceCorrection, Retailer, Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.sources import locked, locked_of, unknown
from harvester.catalog.states import CorrectionAction, CorrectionExtent, CorrectionScope
from harvester.kernel.actor import Actor
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.runs.models import Run

#: Multipliers are for prices in cents, or a hundred times too large; beyond these limits it is a typing mistake.
LEAST, MOST = Decimal("0.0001"), Decimal(10_000)
#: The largest price of an offer.
MOST_SET = Decimal(10_000_000_000)
#: Scope -> the fields that select its prices.
SELECTED_BY: Mapping[str, tuple[str, ...]] = {
    CorrectionScope.RETAILER: ("retailer_id",),
    CorrectionScope.SOURCE: ("source_id",),
    CorrectionScope.PRODUCT: ("source_id", "product_id"),
    CorrectionScope.RUN: ("source_id", "run_no"),
}
_SELECTORS = ("retailer_id", "source_id", "product_id", "run_no")
_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("multiplier", "set_amount", "set_currency", "observed_from", "observed_to", "extent"), None)
}

# The prices that a correction is created for: those that offers show, or those of one run. It applies back to the last
# different price of the same kind of run; for prices of a run it applies only to that run.
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
# Shown and observed prices: if one of them changes, a preview is out of date.
_STATE = """
SELECT count(*), coalesce(bit_xor(hashtextextended(concat_ws(
    ' ', source_id, product_id, trim_scale(amount), currency, trim_scale(last_amount), last_currency), 0)), 0)
FROM offers WHERE source_id = ANY (%(sources)s) AND (%(product)s::bigint IS NULL OR product_id = %(product)s)
"""
_SHOWN_PRICE = """
SELECT trim_scale(amount) AS amount, currency FROM offers WHERE source_id = %(source)s AND product_id = %(product)s
"""
_PRODUCT = "SELECT id FROM source_products WHERE source_id = %(source)s AND id = %(product)s"
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
    """Create a correction.

    Args:
        actor: who creates it.
        scope: PRODUCT, RETAILER, SOURCE or RUN.
        action: IGNORE, which takes precedence, MULTIPLIER, or SET, only for one product.
        reason: why.
        multiplier: the factor of MULTIPLIER.
        set_amount: the price of SET.
        set_currency: its currency, which must be that of the price.
        extent: OBSERVED: the prices shown now, until each product's next different price. WINDOW: every price observed
            between two times. By default WINDOW if a time is given, otherwise OBSERVED.
        observed_from: only prices observed at this time or later.
        observed_to: only prices observed before this time.
        expected: the state of the prices in a preview; if it has changed, nothing is done.
        **named: the retailer_id, source_id, product_id or run_no that the scope requires.

    Raises:
        Conflict: the prices have changed since the preview.
    """
    values = {"scope": scope, "action": action, "reason": reason, "multiplier": multiplier}
    sets = {"set_amount": set_amount, "set_currency": set_currency, "extent": extent}
    window = {"observed_from": observed_from, "observed_to": observed_to}
    correction = _built(actor.id, values | sets | window, named)
    with transaction.atomic():
        sources = _lock(correction)
        _check_objects(correction)
        if expected is not None and expected != state_of(correction, [source.pk for source in sources]):
            raise Conflict(
                "Prices have changed since the preview. Nothing was done; check the new preview and confirm again."
            )
        correction.save(force_insert=True)
        if correction.extent == CorrectionExtent.OBSERVED:
            keep_observed(correction, [source.pk for source in sources])
        _record(actor, "CORRECTION_CREATED", correction, _recompute(correction, sources))
    return correction


def checked(**given: Any) -> PriceCorrection:
    """Return the correction that `create` would create from the same values, unsaved.

    Raises:
        InvalidInput: a value is invalid.
        NotFound: the retailer, source, product or run does not exist.
    """
    named = {field: given.pop(field) for field in _SELECTORS if field in given}
    correction = _built("", {**_DEFAULTS, **given}, named)
    if correction.source_id is not None and not Source.objects.filter(pk=correction.source_id).exists():
        raise unknown(correction.source_id)
    if correction.retailer_id is not None:
        _existing_retailer(correction.retailer_id)
    _check_objects(correction)
    return correction


def were_changed(source_id: UUID, since: dt.datetime) -> bool:
    """Whether a correction that may apply to a source was created or revoked at this time or later."""
    applies = Q(source_id=source_id) | Q(retailer__sources=source_id)
    return PriceCorrection.objects.filter(applies, Q(created_at__gte=since) | Q(revoked_at__gte=since)).exists()


def parse_id(text: str) -> UUID:
    """Return the id of a correction, or raise NotFound."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no correction {text[:60]!r}; `harvester corrections list` shows them.") from None


def _built(created_by: str, given: Mapping[str, Any], named: Mapping[str, Any]) -> PriceCorrection:
    action = given["action"]
    scope = fields.choice(CorrectionScope)("scope", given["scope"])
    selectors = SELECTED_BY[scope]
    wrong = sorted({field for field, value in named.items() if value is not None} ^ set(selectors))
    if wrong:
        raise InvalidInput(f"{wrong[0]}: the scope {scope} requires {' and '.join(selectors)}, and nothing else.")
    correction = PriceCorrection(
        scope=scope,
        action=fields.choice(CorrectionAction)("action", action),
        reason=fields.reason(given["reason"]),
        observed_from=_time("observed_from", given["observed_from"]),
        observed_to=_time("observed_to", given["observed_to"]),
        multiplier=_multiplier(action, given["multiplier"]),
        set_amount=_set_amount(action, given["set_amount"]),
        set_currency=_set_currency(action, given["set_currency"]),
        extent=_extent(given),
        created_by=created_by,
        **{field: named[field] for field in selectors},
    )
    amount, currency = correction.set_amount, correction.set_currency
    if amount is not None and currency is not None and amount != round(amount, MINOR_UNITS[currency]):
        decimals = {0: "no decimals", 2: "at most 2 decimals", 3: "at most 3 decimals"}[MINOR_UNITS[currency]]
        raise InvalidInput(f"{amount:f} is not a price in {currency}, which has {decimals}.", field="set_amount")
    if action == CorrectionAction.SET and scope != CorrectionScope.PRODUCT:
        raise InvalidInput("SET applies to one product; choose PRODUCT.", field="scope")
    since, until = correction.observed_from, correction.observed_to
    if since is not None and until is not None and since >= until:
        raise InvalidInput("must be later than observed_from.", field="observed_to")
    return correction


def state_of(correction: PriceCorrection, source_ids: list[UUID]) -> str:
    """Return the state of the prices that a correction could change, as a short text that differs for other prices."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"sources": source_ids, "product": correction.product_id})
        count, mark = cursor.fetchone()
    return f"{count}.{mark}"


def keep_observed(correction: PriceCorrection, source_ids: list[UUID], only: list[int] | None = None) -> None:
    """Store the prices that a correction is created for, or those of some products, in the caller's transaction."""
    values = {"sources": source_ids, "product": correction.product_id, "run": correction.run_no, "only": only}
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_OBSERVED, {**values, "correction": correction.pk})


def revoke(actor: Actor, correction_id: UUID) -> PriceCorrection:
    """Revoke a correction; its prices are shown as observed again. It stays in the list of corrections."""
    correction = PriceCorrection.objects.filter(pk=correction_id).first()
    if correction is None:
        raise NotFound(f"There is no correction {correction_id}.")
    with transaction.atomic():
        sources = _lock(correction)
        valid = PriceCorrection.objects.filter(pk=correction_id, revoked_at=None)
        if not valid.update(revoked_at=Now(), revoked_by=actor.id):
            raise Conflict(f"The correction {correction_id} was already revoked. Nothing was changed.")
        _record(actor, "CORRECTION_REVOKED", correction, _recompute(correction, sources))
    correction.refresh_from_db()
    return correction


def _lock(correction: PriceCorrection) -> list[Source]:
    """Lock the sources. A promotion reads the corrections under the same locks, so it misses none."""
    if correction.source_id is not None:
        return [locked(correction.source_id)]
    return locked_of(_existing_retailer(correction.retailer_id))


def _existing_retailer(retailer_id: UUID | None) -> UUID:
    retailer = Retailer.objects.filter(pk=str(retailer_id)).first()
    if retailer is None:
        raise NotFound(f"There is no retailer {retailer_id}; `harvester retailer list` shows them all.")
    return retailer.pk


def _recompute(correction: PriceCorrection, sources: list[Source]) -> int:
    """Recompute the offers that a correction applies to. Return how many."""
    values = {
        "product": correction.product_id,
        "run": correction.run_no,
        "since": correction.observed_from,
        "until": correction.observed_to,
        "correction": correction.pk,
    }
    statement = _AFFECTED_OBSERVED if correction.extent == CorrectionExtent.OBSERVED else _AFFECTED
    affected = {}
    with connection.cursor() as cursor:
        for source in sources:
            cursor.execute(statement, {**values, "source": source.pk})
            affected[source.pk] = [row[0] for row in cursor.fetchall()]
    for source_id, products in affected.items():
        offers.recompute(source_id, products)
    return sum(map(len, affected.values()))


def _record(actor: Actor, verb: str, correction: PriceCorrection, products: int) -> None:
    recorded = (
        *("scope", "action", "multiplier", "set_amount", "set_currency", "extent", *_SELECTORS),
        *("observed_from", "observed_to", "reason"),
    )
    detail = {field: getattr(correction, field) for field in recorded if getattr(correction, field) is not None}
    audit.record(actor, verb, "correction", correction.pk, detail={**detail, "products": products})


def _check_objects(correction: PriceCorrection) -> None:
    """Raise an error if the product or the run does not exist, or if the price to correct is unclear."""
    source_id, product_id, run_no = correction.source_id, correction.product_id, correction.run_no
    if run_no is not None and not Run.objects.filter(no=run_no, source_id=str(source_id)).exists():
        raise NotFound(f"the source {source_id} has no run {run_no}.", field="run_no")
    if product_id is None:
        return
    if not fetch(_PRODUCT, {"source": source_id, "product": product_id}):
        raise NotFound(f"the source {source_id} has no product {product_id}.", field="product_id")
    if correction.action != CorrectionAction.SET and correction.extent != CorrectionExtent.OBSERVED:
        return
    shown = fetch(_SHOWN_PRICE, {"source": source_id, "product": product_id})
    if not shown:
        raise Conflict(
            f"Product {product_id} has no visible price to correct. Nothing was changed. To correct its older prices, "
            "choose a window of time."
        )
    [[amount, currency]] = [row.values() for row in shown]
    if correction.action == CorrectionAction.SET and currency != correction.set_currency:
        raise InvalidInput(
            f"the price is {amount:f} {currency}, so it can only be set in {currency}; "
            f"{correction.set_currency} would be the price of another currency.",
            field="set_currency",
        )


def _extent(given: Mapping[str, Any]) -> str:
    dated = given["observed_from"] is not None or given["observed_to"] is not None
    if given["extent"] is None:
        return CorrectionExtent.WINDOW if dated else CorrectionExtent.OBSERVED
    extent = fields.choice(CorrectionExtent)("extent", given["extent"])
    if dated and extent == CorrectionExtent.OBSERVED:
        raise InvalidInput("OBSERVED has no window; leave the times out.", field="extent")
    return str(extent)


def _set_amount(action: str, given: Any) -> Decimal | None:
    if action != CorrectionAction.SET:
        if given is not None:
            raise InvalidInput(f"{action} does not use it; leave it out, or choose SET.", field="set_amount")
        return None
    try:
        value = Decimal(str(given))
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and 0 < value < MOST_SET and value == round(value, 4)):
        raise InvalidInput(f"must be above 0 and below {MOST_SET:,}, with at most 4 decimals.", field="set_amount")
    return value


def _set_currency(action: str, given: Any) -> str | None:
    if action != CorrectionAction.SET:
        if given is not None:
            raise InvalidInput(f"{action} does not use it; leave it out, or choose SET.", field="set_currency")
        return None
    if not isinstance(given, str) or given not in MINOR_UNITS:
        raise InvalidInput("SET requires the currency of the price, such as USD.", field="set_currency")
    return given


def _multiplier(action: str, given: Any) -> Decimal | None:
    if action != CorrectionAction.MULTIPLIER:
        if given is not None:
            raise InvalidInput(f"{action} does not use it; leave it out, or choose MULTIPLIER.", field="multiplier")
        return None
    try:
        value = Decimal(str(given))
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and LEAST <= value <= MOST and value == round(value, 6)):
        raise InvalidInput(f"must be a number from {LEAST} to {MOST}, with at most 6 decimals.", field="multiplier")
    return value


def _time(field: str, given: Any) -> dt.datetime | None:
    if given is not None and (not isinstance(given, dt.datetime) or given.tzinfo is None):
        raise InvalidInput("must be a time with a time zone, or empty.", field=field)
    return given
