"""The input of the gates of feeds: the counts of a run, and the thresholds."""

from dataclasses import dataclass, fields
from typing import Any, Final

from harvester.kernel.errors import InvalidInput
from harvester.runs.gates import exceeds

#: Above any catalog; a higher threshold is a typing error.
HIGHEST_COUNT = 1_000_000_000
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
