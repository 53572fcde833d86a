"""A sale price counts within its period."""

from datetime import UTC, datetime, timedelta

import pytest

from harvester.kernel.money import sale_holds_at
from harvester.kernel.rejects import RejectCode, Rejected

PERIOD = "2025-03-01T00:00-0800/2025-03-31T23:59-0700"
BEGIN, END = datetime(2025, 3, 1, 8, tzinfo=UTC), datetime(2025, 4, 1, 6, 59, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("moment", "holds"), [(BEGIN - MINUTE, False), (BEGIN, True), (END, True), (END + MINUTE, False)]
)
def test_a_sale_price_holds_from_its_first_to_its_last_moment(moment, holds):
    assert sale_holds_at(PERIOD, moment) is holds


@pytest.mark.parametrize("period", [None, "", "  \u00a0"])
def test_without_a_period_it_always_holds(period):
    assert sale_holds_at(period, BEGIN)


def test_moments_without_an_offset_are_utc():
    assert sale_holds_at("2025-03-01/2025-03-02", datetime(2025, 3, 2, tzinfo=UTC))
    assert not sale_holds_at(" 2025-03-01T00:00 / 2025-03-02T00:00 ", datetime(2025, 3, 2, 0, 1, tzinfo=UTC))


@pytest.mark.parametrize("period", ["soon", "2025-03-01", "2025-03-01/", "/2025-03-01", "a/b", "2025-13-01/2026-01-01"])
def test_a_period_that_cannot_be_read_is_refused(period):
    with pytest.raises(Rejected) as refused:
        sale_holds_at(period, BEGIN)
    assert refused.value.code is RejectCode.INVALID_PRICE
