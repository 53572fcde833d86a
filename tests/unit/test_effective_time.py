"""The clock of a held source stops, then continues; it never jumps and never runs ahead of real time."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.effective_time import MAX_HOLD, effective_now, frozen_with_hold

T = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
ZERO = dt.timedelta()


def hours(count):
    return dt.timedelta(hours=count)


#: hours since T, frozen before, held since T, effective hours since T
CLOCK = [
    (0, 0, False, 0),
    (10, 0, False, 10),
    (10, 4, False, 6),
    (10, 168, False, -158),
    (10, 200, False, -158),
    (0, 0, True, 0),
    (72, 0, True, 0),
    (167, 0, True, 0),
    (168, 0, True, 0),
    (169, 0, True, 1),
    (200, 0, True, 32),
    (72, 100, True, -96),
    (10, 4, True, -4),
    (164, 4, True, -4),
    (165, 4, True, -3),
]


@pytest.mark.parametrize(("elapsed", "frozen", "held", "effective"), CLOCK)
def test_the_clock_stops_while_a_run_is_held_and_continues_after_a_week(elapsed, frozen, held, effective):
    moment = effective_now(T + hours(elapsed), frozen=hours(frozen), held_since=T if held else None)
    if held and elapsed + frozen <= 168:
        assert moment == T - hours(frozen)
    assert moment == T + hours(min(effective, elapsed))


def test_a_week_is_the_longest_hold_unless_said_otherwise():
    assert hours(168) == MAX_HOLD
    assert effective_now(T + hours(30), held_since=T, max_hold=hours(24)) == T + hours(6)
    assert effective_now(T + hours(30), held_since=T, max_hold=ZERO) == T + hours(30)


def test_moments_of_any_time_zone_are_compared_in_utc():
    berlin = ZoneInfo("Europe/Berlin")
    # The clocks there go forward in between, so the wall shows 24 hours where 23 have passed.
    since, now = dt.datetime(2026, 3, 28, 12, tzinfo=berlin), dt.datetime(2026, 3, 29, 12, tzinfo=berlin)
    assert frozen_with_hold(now, held_since=since) == hours(23)
    moment = effective_now(now, held_since=since)
    assert (moment, moment.tzinfo) == (since, dt.UTC)


def test_a_hold_that_begins_a_moment_ahead_stops_nothing():
    assert effective_now(T, held_since=T + hours(1), frozen=hours(2)) == T - hours(2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"now": T.replace(tzinfo=None)},
        {"now": T, "held_since": T.replace(tzinfo=None)},
        {"now": T, "frozen": hours(-1)},
        {"now": T, "max_hold": hours(-1)},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"time zone|negative"):
        effective_now(**wrong)


SPANS = st.timedeltas(ZERO, hours(400))
STATES = st.fixed_dictionaries(
    {"frozen": SPANS, "held_since": st.none() | SPANS.map(T.__add__), "max_hold": st.timedeltas(ZERO, hours(300))}
)


@given(STATES, SPANS, SPANS)
def test_the_clock_is_continuous_and_never_faster_than_real_time(state, start, step):
    earlier = effective_now(T + start, **state)
    later = effective_now(T + start + step, **state)
    assert ZERO <= later - earlier <= step


@given(STATES, SPANS)
def test_the_clock_is_never_ahead_and_never_further_behind_than_the_longest_hold(state, elapsed):
    lag = T + elapsed - effective_now(T + elapsed, **state)
    assert ZERO <= lag <= state["max_hold"]


@given(STATES, SPANS)
def test_rejecting_a_held_run_does_not_move_the_clock(state, elapsed):
    now = T + elapsed
    frozen = frozen_with_hold(now, frozen=state["frozen"], held_since=state["held_since"])
    assert effective_now(now, frozen=frozen, max_hold=state["max_hold"]) == effective_now(now, **state)


@given(SPANS, SPANS, st.timedeltas(ZERO, hours(300)))
def test_holding_a_run_does_not_move_the_clock(frozen, elapsed, max_hold):
    now = T + elapsed
    before = effective_now(now, frozen=frozen, max_hold=max_hold)
    assert effective_now(now, frozen=frozen, held_since=now, max_hold=max_hold) == before


@given(st.lists(st.tuples(SPANS, st.sampled_from(["hold", "reject", "nothing"])), max_size=12))
def test_through_any_story_of_holds_and_rejections_the_clock_never_jumps(story):
    now, frozen, held_since = T, ZERO, None
    shown = effective_now(now)
    for span, event in story:
        now += span
        moment = effective_now(now, frozen=frozen, held_since=held_since)
        assert ZERO <= moment - shown <= span
        if event == "hold":
            held_since = held_since or now
        elif event == "reject":
            frozen, held_since = frozen_with_hold(now, frozen=frozen, held_since=held_since), None
        shown = effective_now(now, frozen=frozen, held_since=held_since)
        assert shown == moment
