"""Gates on the pages of a batch, and what follows from them for the adapter: pure functions of facts.

attempts of a batch ─> GATES ─> Verdict: which findings refuse the batch
verdict, counters ─> advance ─> counters, and whether the adapter is switched off
batch, usual rates ─> deviation ─> whether the batch is unusual, which refuses nothing
a price and the one before ─> price_move ─> whether the page is read a second time first
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from harvester.kernel.money import Price
from harvester.runs.gates import Gate, exceeds, percent, share

#: Attempts of a full batch, from which a rate means something.
BATCH: Final = 20
#: Share of failures above which a batch is refused.
MOST_FAILED: Final = 0.5
#: Different products with one price or title above which a batch is refused.
FEWEST_SAME: Final = 5
#: Share and number of prices that moved far above which a batch is refused.
MOST_MOVED: Final = 0.2
FEWEST_MOVED: Final = 5
#: A price that changed by more than this share moved far. A shifted decimal point always did.
FAR: Final = Decimal("0.5")
#: Batches in a row after which the adapter is switched off.
STRIKES: Final = 2
#: The usual rates are known from this many batches on.
FEWEST_BATCHES: Final = 3
#: A failure rate is unusual above this, and above this many times the usual one.
LEAST_RATE, TIMES_USUAL = 0.10, 3
#: A yield is unusual if it is lower than the usual one by more than this.
YIELD_DROP: Final = 0.20


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One page that counts in a batch.

    Attributes:
        target: which page.
        product: the same for two pages of one product.
        is_failure: the adapter could not read it.
        is_zero: it read a price of zero.
        is_yield: it gave an offer, or the page had not changed.
        has_moved: its price moved far and nobody has confirmed it yet.
        price: what was read, as text such as "19.99 USD"; none if it is what the product cost before.
        title: what was read, or a hash of it; none if it is what the product was called before.
        is_new: no earlier batch has counted it.
    """

    target: str
    product: str = ""
    is_failure: bool = False
    is_zero: bool = False
    is_yield: bool = False
    has_moved: bool = False
    price: str | None = None
    title: str | None = None
    is_new: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return what differs from the defaults, for the next batches."""
        return {name: value for name, value in asdict(self).items() if value and name != "is_new"}


def attempts_from_json(stored: Sequence[Mapping[str, Any]]) -> list[Attempt]:
    """Return attempts of earlier batches."""
    return [Attempt(**each, is_new=False) for each in stored]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The attempts that are judged together, the newest last."""

    attempts: tuple[Attempt, ...]

    @property
    def size(self) -> int:
        return len(self.attempts)

    @property
    def new(self) -> int:
        """Attempts that no earlier batch has counted."""
        return sum(attempt.is_new for attempt in self.attempts)

    @property
    def failures(self) -> int:
        return sum(attempt.is_failure for attempt in self.attempts)

    @property
    def offers(self) -> int:
        return sum(attempt.is_yield for attempt in self.attempts)

    @property
    def zero_prices(self) -> int:
        return sum(attempt.is_zero for attempt in self.attempts)

    @property
    def failure_rate(self) -> float:
        return share(self.failures, self.size)

    @property
    def yield_rate(self) -> float:
        return share(self.offers, self.size)


def batch_of(new: Sequence[Attempt], earlier: Sequence[Attempt]) -> Batch:
    """Return the batch of new attempts; fewer than 20 are judged together with the newest earlier ones."""
    missing = max(0, BATCH - len(new))
    return Batch(attempts=(*(earlier[-missing:] if missing else ()), *new))


def _has_drifted(batch: Batch, _thresholds: None) -> tuple[bool, str, dict[str, float]]:
    holds = batch.size >= BATCH and exceeds(batch.failures, MOST_FAILED, batch.size)
    reason = f"{batch.failures:,} of {batch.size:,} pages ({percent(batch.failure_rate)}) could not be read."
    figures = {"failures": batch.failures, "attempts": batch.size, "threshold_share": MOST_FAILED}
    return holds, reason, {**figures, "threshold_least": BATCH}


def _has_same_value(batch: Batch, _thresholds: None) -> tuple[bool, str, dict[str, float]]:
    worst, what = 0, ""
    for name in ("price", "title"):
        products: dict[str, set[str]] = defaultdict(set)
        for attempt in batch.attempts:
            if value := getattr(attempt, name):
                products[value].add(attempt.product)
        # A batch is refused for what is new in it; what was refused before is not refused again.
        fresh = {getattr(attempt, name) for attempt in batch.attempts if attempt.is_new}
        most = max((len(found) for value, found in products.items() if value in fresh), default=0)
        if most > worst:
            worst, what = most, name
    holds = worst >= FEWEST_SAME
    reason = f"{worst:,} different products have the same {what}." if holds else "No value repeats suspiciously."
    return holds, reason, {"products": worst, "threshold_least": FEWEST_SAME}


def _has_moved(batch: Batch, _thresholds: None) -> tuple[bool, str, dict[str, float]]:
    # A page that was looked at twice counts once.
    moved = len({attempt.target for attempt in batch.attempts if attempt.has_moved})
    is_new = any(attempt.has_moved and attempt.is_new for attempt in batch.attempts)
    holds = is_new and moved >= FEWEST_MOVED and exceeds(moved, MOST_MOVED, batch.size)
    reason = f"The prices of {moved:,} of {batch.size:,} pages moved by more than {percent(float(FAR))}."
    figures = {"moved": moved, "attempts": batch.size, "threshold_share": MOST_MOVED, "threshold_least": FEWEST_MOVED}
    return holds, reason, figures


DRIFT: Final = Gate(
    name="DRIFT",
    title="Pages cannot be read",
    rule="Refuses a batch of at least {least:,} pages of which more than {share} could not be read.",
    check=_has_drifted,
)
SAME_VALUE: Final = Gate(
    name="SAME_VALUE",
    title="One value for many products",
    rule="Refuses a batch in which {least:,} or more different products have one new price or title.",
    check=_has_same_value,
)
BULK_MOVE: Final = Gate(
    name="BULK_MOVE",
    title="Many prices moved far",
    rule="Refuses a batch in which more than {share} of the prices, and at least {least:,}, moved far.",
    check=_has_moved,
)
#: In the order in which they are shown; the first that holds gives its name to the refusal.
GATES: Final = (DRIFT, SAME_VALUE, BULK_MOVE)


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What an adapter's batches on one source have in a row.

    Attributes:
        uncounted: attempts since the counters last advanced.
        failed: batches that drifted.
        empty: batches without an offer.
        zero_prices: batches with a price of zero.
    """

    uncounted: int = 0
    failed: int = 0
    empty: int = 0
    zero_prices: int = 0

    @property
    def reason(self) -> str | None:
        """Why the adapter is switched off; None if it stays on."""
        if self.failed >= STRIKES:
            return f"More than {percent(MOST_FAILED)} of the pages could not be read in {self.failed} batches in a row."
        if self.empty >= STRIKES:
            return f"There was no offer in {self.empty} batches in a row."
        if self.zero_prices >= STRIKES:
            return f"There was a price of zero in {self.zero_prices} batches in a row."
        return None


def advance(counters: Counters, batch: Batch) -> Counters:
    """Count a batch; only 20 attempts that were not counted before make the counters advance."""
    uncounted = counters.uncounted + batch.new
    if uncounted < BATCH:
        return replace(counters, uncounted=uncounted)
    has_drifted, _, _ = _has_drifted(batch, None)
    return Counters(
        uncounted=0,
        failed=counters.failed + 1 if has_drifted else 0,
        empty=counters.empty + 1 if not batch.offers else 0,
        zero_prices=counters.zero_prices + 1 if batch.zero_prices else 0,
    )


@dataclass(frozen=True, kw_only=True)
class UsualRates:
    """Medians over the batches of 7 days.

    Attributes:
        failure_rate: none if there were no batches.
        yield_rate: the same.
        batches: how many there were.
    """

    failure_rate: float | None = None
    yield_rate: float | None = None
    batches: int = field(default=0)


def deviation(batch: Batch, usual: UsualRates) -> str | None:
    """Return in which way a full batch is unusual; None if it is not, or if nobody knows yet what is usual."""
    if batch.size < BATCH or usual.batches < FEWEST_BATCHES or usual.failure_rate is None or usual.yield_rate is None:
        return None
    most = max(TIMES_USUAL * usual.failure_rate, LEAST_RATE)
    if batch.failure_rate > most:
        return f"{percent(batch.failure_rate)} of the pages could not be read; usual is {percent(usual.failure_rate)}."
    if batch.yield_rate < usual.yield_rate - YIELD_DROP:
        return f"{percent(batch.yield_rate)} of the pages gave an offer; usual is {percent(usual.yield_rate)}."
    return None


def price_move(price: Price, before: Price | None) -> str | None:
    """Return how a price moved, if it moved so far that a second page has to confirm it."""
    if before is None or price == before:
        return None
    if price.currency != before.currency:
        return f"The price is {price} after {before}: another currency."
    change = (price.amount - before.amount) / before.amount
    if abs(change) <= FAR:
        return None
    ratio = max(price.amount, before.amount) / min(price.amount, before.amount)
    point = any(factor * Decimal("0.95") <= ratio <= factor * Decimal("1.05") for factor in (10, 100))
    hint = " The decimal point may have been misread." if point else ""
    return f"The price is {price} after {before} ({change:+.0%}).{hint}"
