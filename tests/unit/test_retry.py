"""Waits grow, are never nothing, and never exceed a day."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harvester.kernel.retry import JITTER, LONGEST_WAIT_SECONDS, SHORTEST_WAIT_SECONDS, RetryPolicy

numbers = st.one_of(
    st.integers(min_value=1, max_value=10**6), st.floats(min_value=1e-9, max_value=1e9, allow_subnormal=False)
)
factors = st.one_of(st.integers(min_value=1, max_value=1000), st.floats(min_value=1, max_value=1e6))
caps = st.floats(min_value=SHORTEST_WAIT_SECONDS, max_value=LONGEST_WAIT_SECONDS)
policies = st.builds(RetryPolicy, base=numbers, factor=factors, cap=caps)
attempts = st.integers(min_value=1, max_value=32_767)
chances = st.floats(min_value=0, max_value=1, exclude_max=True)
FEEDS = RetryPolicy(base=5, factor=3, attempts=3)


@given(policies, attempts, chances)
@example(RetryPolicy(base=5, factor=3), 32_767, 0.5)
@example(RetryPolicy(base=1e9, factor=1e6), 60, 0.999)
def test_a_wait_is_never_nothing_and_never_beyond_the_cap(policy, attempt, chance):
    wait = policy.wait(attempt, chance)
    assert math.isfinite(wait)
    assert SHORTEST_WAIT_SECONDS <= wait <= policy.cap <= LONGEST_WAIT_SECONDS


@given(policies, attempts, chances)
def test_a_wait_is_never_shorter_than_the_one_before(policy, attempt, chance):
    assert policy.wait(attempt + 1, chance) >= policy.wait(attempt, chance)


@given(
    st.builds(RetryPolicy, base=numbers, factor=st.floats(min_value=1 + JITTER, max_value=100)),
    attempts,
    chances,
    chances,
)
def test_waits_grow_whatever_chance_adds(policy, attempt, first, second):
    assert policy.wait(attempt + 1, second) >= min(policy.wait(attempt, first), policy.cap)


@given(policies, attempts)
def test_chance_spreads_waits_and_never_shortens_them(policy, attempt):
    calm = policy.wait(attempt, 0)
    assert calm <= policy.wait(attempt, 0.999) <= max(calm * (1 + JITTER), SHORTEST_WAIT_SECONDS)


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 5), (2, 15), (3, 45), (4, 135), (9, 32_805), (10, 86_400), (500, 86_400)]
)
def test_the_waits_of_feeds(attempt, seconds):
    assert FEEDS.wait(attempt, 0) == seconds


def test_the_usual_policy_doubles_from_half_a_minute():
    assert [RetryPolicy().wait(attempt, 0) for attempt in (1, 2, 3)] == [30, 60, 120]
    assert RetryPolicy().attempts == 3


def test_an_attempt_below_the_first_waits_like_the_first():
    assert FEEDS.wait(0, 0) == FEEDS.wait(1, 0)


@pytest.mark.parametrize(
    "values",
    [
        {"base": 0},
        {"base": -1},
        {"base": math.nan},
        {"base": math.inf},
        {"factor": 0.99},
        {"factor": math.nan},
        {"factor": math.inf},
        {"cap": 0},
        {"cap": SHORTEST_WAIT_SECONDS / 2},
        {"cap": LONGEST_WAIT_SECONDS + 1},
        {"cap": math.nan},
        {"attempts": 0},
        {"attempts": 32_768},
    ],
    ids=str,
)
def test_an_impossible_policy_is_refused_at_birth(values):
    with pytest.raises(ValueError, match=next(iter(values))):
        RetryPolicy(**values)
