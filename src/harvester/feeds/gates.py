"""The gates of feeds: pure functions of the counts of a run and its thresholds.

To add a gate, write its function and its `Gate`, and add it to `GATES`.
"""

from dataclasses import dataclass, fields
from typing import Any, Final

from harvester.kernel.errors import InvalidInput
from harvester.runs.gates import Gate, exceeds, percent, share

#: Above any catalog; a higher threshold is a typing error.
HIGHEST_COUNT = 1_000_000_000
#: Of the prices that an ignored run had changed, the share that may come back.
MOST_REPEATED = 0.5
#: The condition "too many products are missing", as a part of a gate's rule.
SPIKE_RULE: Final = "more than {share} of them, and at least {least:,}, are missing, or {most:,} whatever their share"


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Counts of one run, taken before anything was written.

    Attributes:
        rows_read: rows of the file.
        rows_rejected: of them, those that cannot be used.
        products: different products among the usable rows.
        url_hash_products: of them, those without an ID or SKU, which are matched by URL.
        known_products: of them, those that have had a price before.
        shocked_products: of those, the ones whose price changed by more than the threshold of a shock.
        active_before: products that were active before the run, without those whose absence was accepted.
        active_seen: of them, those that the run saw.
        promoted_before: number of products of the last promoted run; None if there was no such run.
        ignored_prices: prices that an ignored run had changed; of several runs, that of which most are repeated.
        repeated_prices: of them, those that this run has too.
        returning_prices: of those, the ones that consumers do not see now.
        ignored_run_no: the ignored run; 0 if there is none.
    """

    rows_read: int
    rows_rejected: int
    products: int
    url_hash_products: int
    known_products: int
    shocked_products: int
    active_before: int
    active_seen: int
    promoted_before: int | None
    ignored_prices: int = 0
    repeated_prices: int = 0
    returning_prices: int = 0
    ignored_run_no: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value < 0:
                raise ValueError(f"{field.name} cannot be negative")

    @property
    def missing(self) -> int:
        """The number of active products that were not seen."""
        return max(0, self.active_before - self.active_seen)  # mutant: missing-products


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """When gates hold a run; shares are of 1.

    Attributes:
        expiry_share: share of the active products that may be missing.
        expiry_least: minimum of missing products for which the share applies.
        expiry_most: number of missing products that holds the run at any share.
        url_hash_share: share of the products that may have no ID or SKU.
        url_hash_most: number of products that may have no ID or SKU.
        accepts_url_identity: whether this feed is accepted without IDs and SKUs.
        shock_move: change of a price, as a share of the last amount, up to which it is not a shock.
        shock_share: share of the known products that may be shocked.
        shock_least: minimum of shocked products for which the share applies.
        reject_share: share of the rows that may be rejected.
        reject_least: minimum of rejected rows for which the share applies.
    """

    expiry_share: float = 0.30
    expiry_least: int = 10
    expiry_most: int = 500
    url_hash_share: float = 0.50
    url_hash_most: int = 1_000
    accepts_url_identity: bool = False
    shock_move: float = 0.50
    shock_share: float = 0.20
    shock_least: int = 20
    reject_share: float = 0.20
    reject_least: int = 20

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name))


def _check(name: str, value: Any) -> None:
    if name == "accepts_url_identity":
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be true or false.")
    elif name.endswith(("_share", "_move")):
        top = 10 if name.endswith("_move") else 1
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= top:
            raise InvalidInput(f"{name} must be a number from 0 to {top}, such as 0.3 for 30 %.")
    elif isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= HIGHEST_COUNT:
        raise InvalidInput(f"{name} must be a whole number from 0 to {HIGHEST_COUNT:,}.")


def is_spike(missing: int, before: int, thresholds: Thresholds) -> bool:
    """Return whether too many products are missing."""
    over_share = exceeds(missing, thresholds.expiry_share, before) and missing >= thresholds.expiry_least
    return over_share or missing >= thresholds.expiry_most


def expiry_spike(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when too large a share, or too many, of the active products were not seen."""
    missing, before = facts.missing, facts.active_before
    holds = is_spike(missing, before, thresholds)
    reason = f"{missing:,} of {before:,} active products ({percent(share(missing, before))}) are not in the file."
    return (
        holds,
        reason,
        {
            "missing": missing,
            "active_before": before,
            "share": share(missing, before),
            "threshold_share": thresholds.expiry_share,
            "threshold_least": thresholds.expiry_least,
            "threshold_most": thresholds.expiry_most,
        },
    )


# Too many active products would disappear: most likely the file is incomplete.
EXPIRY_SPIKE = Gate(
    name="EXPIRY_SPIKE",
    title="Missing products",
    rule=f"Holds when {SPIKE_RULE}.",
    check=expiry_spike,
)


def baseline_shrunk(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when nothing is active and the file has far fewer products than the last promoted one."""
    before = facts.promoted_before or 0
    missing = max(0, before - facts.products) if not facts.active_before else 0
    holds = not facts.active_before and is_spike(missing, before, thresholds)
    reason = (
        f"No product is active any more; the last promoted run had {before:,} products and this file has "
        f"{facts.products:,} ({percent(share(missing, before))} fewer)."
    )
    if facts.active_before:
        reason = "There are active products; “Missing products” compares with them."
    elif not before:
        reason = "No run was promoted before."
    return (
        holds,
        reason,
        {
            "missing": missing,
            "promoted_before": before,
            "products": facts.products,
            "share": share(missing, before),
            "threshold_share": thresholds.expiry_share,
            "threshold_least": thresholds.expiry_least,
            "threshold_most": thresholds.expiry_most,
        },
    )


# All products have expired, so none can be missing: the file is compared with the last promoted run.
BASELINE_SHRUNK = Gate(
    name="BASELINE_SHRUNK",
    title="Smaller than the last run",
    rule=f"Only for a source without active products. Holds when {SPIKE_RULE}.",
    check=baseline_shrunk,
)


def url_hash(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when too large a share, or too many, of the products have neither an item ID nor a SKU."""
    count, products = facts.url_hash_products, facts.products
    is_too_many = exceeds(count, thresholds.url_hash_share, products) or count > thresholds.url_hash_most
    accepted = " This feed accepts that." if thresholds.accepts_url_identity and is_too_many else ""
    holds = is_too_many and not thresholds.accepts_url_identity
    reason = (
        f"{count:,} of {products:,} products ({percent(share(count, products))}) have no item ID or SKU "
        f"and are matched by URL.{accepted}"
    )
    return (
        holds,
        reason,
        {
            "url_hash_products": count,
            "products": products,
            "share": share(count, products),
            "threshold_share": thresholds.url_hash_share,
            "threshold_most": thresholds.url_hash_most,
        },
    )


# Too many products have no ID or SKU: a changed URL would make each of them a new product.
URL_HASH = Gate(
    name="URL_HASH",
    title="No ID or SKU (matched by URL)",
    rule="Holds when more than {share} of the products, or more than {most:,}, have neither item id nor SKU.",
    check=url_hash,
)


def price_shock(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when the prices of too large a share of the known products changed by more than the threshold."""
    count, known = facts.shocked_products, facts.known_products
    holds = exceeds(count, thresholds.shock_share, known) and count >= thresholds.shock_least
    reason = (
        f"{count:,} of {known:,} known products ({percent(share(count, known))}) moved by more than "
        f"{percent(thresholds.shock_move)} or changed their currency."
    )
    return (
        holds,
        reason,
        {
            "shocked_products": count,
            "known_products": known,
            "share": share(count, known),
            "threshold_move": thresholds.shock_move,
            "threshold_share": thresholds.shock_share,
            "threshold_least": thresholds.shock_least,
        },
    )


# Too many prices changed too much at once: columns were swapped, or the currency is another one.
PRICE_SHOCK = Gate(
    name="PRICE_SHOCK",
    title="Price shock",
    rule="Holds when more than {share} of the known products, and at least {least:,}, move by more than {move} "
    "or change their currency.",
    check=price_shock,
)


def repeats_ignored(facts: RunFacts, _thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when more than half of the prices that an ignored run had changed are in the file, and some are not live."""
    repeated, changed = facts.repeated_prices, facts.ignored_prices
    holds = exceeds(repeated, MOST_REPEATED, changed) and facts.returning_prices > 0
    reason = (
        f"{repeated:,} of the {changed:,} prices ({percent(share(repeated, changed))}) that ignored run "
        f"{facts.ignored_run_no} had changed are in this file again; {facts.returning_prices:,} of them are not live."
    )
    if not changed:
        reason = "No ignored run of this source had changed a price."
    return (
        holds,
        reason,
        {
            "repeated_prices": repeated,
            "returning_prices": facts.returning_prices,
            "ignored_prices": changed,
            "ignored_run_no": facts.ignored_run_no,
            "share": share(repeated, changed),
            "threshold_share": MOST_REPEATED,
        },
    )


# Prices of an ignored run are in a file again: most likely the partner repeated the mistake.
REPEATS_IGNORED = Gate(
    name="REPEATS_IGNORED",
    title="Prices of an ignored run",
    rule="Holds when more than {share} of the prices that an ignored run had changed come back.",
    check=repeats_ignored,
)


def reject_share(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when too large a share of the rows was rejected."""
    count, rows = facts.rows_rejected, facts.rows_read
    holds = exceeds(count, thresholds.reject_share, rows) and count >= thresholds.reject_least
    reason = f"{count:,} of {rows:,} rows ({percent(share(count, rows))}) were rejected."
    return (
        holds,
        reason,
        {
            "rows_rejected": count,
            "rows_read": rows,
            "share": share(count, rows),
            "threshold_share": thresholds.reject_share,
            "threshold_least": thresholds.reject_least,
        },
    )


# Too many rows cannot be used: the rest of the file does not show the shop's catalog.
REJECT_SHARE = Gate(
    name="REJECT_SHARE",
    title="Rejected rows",
    rule="Holds when more than {share} of the rows, and at least {least:,}, are rejected.",
    check=reject_share,
)


#: In the order in which they are shown.
GATES = (EXPIRY_SPIKE, BASELINE_SHRUNK, URL_HASH, PRICE_SHOCK, REPEATS_IGNORED, REJECT_SHARE)  # mutant: gates
