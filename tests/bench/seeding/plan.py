"""How much is to be made."""

from dataclasses import dataclass

from harvester.kernel.errors import InvalidInput

#: Fewer, and a feed that has failed three times in a row would have no run that promoted its offers.
FEWEST_RUNS = 5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a seeded database gets.

    Attributes:
        feeds: feeds, each with a source; some are drafts without runs and offers.
        runs: runs of all feeds, within the last 30 days.
        offers: products that were promoted, of all sources.
        prices_per_offer: prices of each product, from the newest run backwards.
        seed: the same number makes the same rows.
    """

    feeds: int = 1_000
    runs: int = 100_000
    offers: int = 1_000_000
    prices_per_offer: int = 2
    seed: int = 1

    def __post_init__(self) -> None:
        _within("feeds", self.feeds, 1, 10_000)
        _within("runs", self.runs, FEWEST_RUNS * self.feeds, 10_000_000)
        _within("offers", self.offers, self.feeds, 100_000_000)
        _within("prices_per_offer", self.prices_per_offer, 1, 1_000)
        _within("seed", self.seed, 0, 1_000_000)


def _within(field: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise InvalidInput(f"{field}: {value:,} is not allowed; allowed is a number from {lowest:,} to {highest:,}.")
