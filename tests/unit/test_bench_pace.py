"""How the benchmark of pages computes which share of the allowed requests was made."""

import pytest
from tests.bench.scrape_pace import budget_used

INTERVAL = 2.0


@pytest.mark.parametrize(
    ("starts", "away", "share"),
    [
        ([0, 2, 4, 6], [], 1.0),
        ([0, 2, 8], [], 0.5),
        ([0, 2, 8], [(3, 7)], 1.0),
        ([0, 2, 12], [(3, 7)], 0.5),
        ([0, 2, 12], [(3, 6), (5, 7)], 0.5),
        ([0, 2, 8], [(20, 30)], 0.5),
        ([0, 2, 4, 6], [(1, 3)], 1.0),
    ],
    ids=[
        "always in time", "a pause", "an outage", "longer than the outage", "two outages at once", "another time",
        "an outage that cost nothing",
    ],
)  # fmt: skip
def test_an_outage_excuses_only_the_time_that_it_took(starts, away, share):
    assert budget_used(starts, INTERVAL, away) == pytest.approx(share)
