"""The slowest wish of everybody wins, and people see whether their schedule fits into it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.scraping.pace import ScheduleFit, request_interval, shortest_period


@pytest.mark.parametrize(
    ("rates", "crawl_delay", "seconds"),
    [
        ([], None, 2),
        ([None], None, 2),
        ([None, None], None, 2),
        # A setting replaces the default, also with a faster pace.
        ([2], None, 0.5),
        ([0.1], None, 10),
        ([Decimal("0.25")], None, 4),
        # The slowest source wins; one without a setting has the default.
        ([2, 0.1, 1], None, 10),
        ([2, None], None, 2),
        ([0.1, None], None, 10),
        # And so does the crawl-delay.
        ([None], 10, 10),
        ([None], 1, 2),
        ([2], 1, 1),
        ([0.1], 5, 10),
    ],
)
def test_the_slowest_wins(rates, crawl_delay, seconds):
    assert request_interval(rates, crawl_delay) == pytest.approx(seconds)


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_is_above_zero(rate):
    with pytest.raises(ValueError, match="above 0"):
        request_interval([1, rate])


@given(st.lists(st.none() | st.floats(0.01, 100), min_size=1), st.none() | st.floats(1, 60))
def test_one_more_source_never_makes_it_faster(rates, crawl_delay):
    assert request_interval(rates, crawl_delay) >= request_interval(rates[:1], crawl_delay)


@pytest.mark.parametrize(
    ("cron", "period"),
    [
        ("*/10 * * * *", timedelta(minutes=10)),
        ("0 */4 * * *", timedelta(hours=4)),
        ("0 9,17 * * *", timedelta(hours=8)),
        ("15 6 * * 1-5", timedelta(days=1)),
        ("0 0 1 * *", timedelta(days=28)),
        ("*/7 * * * *", timedelta(minutes=4)),
    ],
)
def test_the_shortest_time_between_two_moments_counts(cron, period):
    assert shortest_period(cron, datetime(2026, 3, 3, 10, 1, tzinfo=UTC)) == period


def test_without_a_moment_given_it_starts_now():
    assert shortest_period("0 * * * *") == timedelta(hours=1)


def fit(pages, period, interval=2.0, busy_share=0.0):
    return ScheduleFit(pages=pages, period=period, interval=interval, busy_share=busy_share)


@pytest.mark.parametrize(
    ("found", "is_met", "sentence"),
    [
        (fit(42, timedelta(hours=4)), True, "42 URLs every 4 h at 0.5/s: 84 s"),
        (fit(1, timedelta(minutes=1)), True, "1 URL every 1 min at 0.5/s: 2 s"),
        (fit(0, timedelta(minutes=1)), True, "0 URLs every 1 min at 0.5/s: 0 s"),
        (fit(300, timedelta(minutes=10)), True, "300 URLs every 10 min at 0.5/s: 600 s"),
        (
            fit(301, timedelta(minutes=10)),
            False,
            "301 URLs every 10 min at 0.5/s: 602 s, which is too long. The most is 300 URLs.",
        ),
        (
            fit(200, timedelta(minutes=10), busy_share=0.5),
            False,
            (
                "200 URLs every 10 min at 0.5/s: 400 s, which is too long. The most is 150 URLs; "
                "other schedules of the domain take 50% of its requests."
            ),
        ),
        (fit(10_000, timedelta(days=1), interval=8), True, "10,000 URLs every 1 d at 0.125/s: 80,000 s"),
        (fit(5, timedelta(minutes=90), interval=3), True, "5 URLs every 90 min at 0.333/s: 15 s"),
        (
            fit(2, timedelta(seconds=61), interval=60),
            False,
            "2 URLs every 61 s at 0.017/s: 120 s, which is too long. The most is 1 URL.",
        ),
    ],
)
def test_whether_a_schedule_can_be_met_is_one_sentence(found, is_met, sentence):
    assert found.is_met is is_met
    assert str(found) == sentence


def test_the_shares_of_schedules_add_up():
    first = fit(150, timedelta(minutes=10))
    assert first.share == 0.5
    assert fit(900, timedelta(hours=1), busy_share=first.share).is_met
    assert not fit(901, timedelta(hours=1), busy_share=first.share).is_met


@pytest.mark.parametrize(
    "wrong", [{"pages": -1}, {"interval": 0}, {"period": timedelta(0)}, {"busy_share": 1.1}, {"busy_share": -0.1}]
)
def test_impossible_schedules_are_refused(wrong):
    values = {"pages": 1, "period": timedelta(hours=1), "interval": 2.0, **wrong}
    with pytest.raises(ValueError, match="a schedule has"):
        ScheduleFit(**values)
