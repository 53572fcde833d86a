"""The rules of the breaker of a source, as tables and against a model."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.generated import examples

from harvester.catalog.governance import Breaker, Gate, decide, gate_of, next_state, pause_of

START = datetime(2025, 6, 1, tzinfo=UTC)


def after(results: str, breaker: Breaker | None = None) -> tuple[Breaker, datetime]:
    """Results, one a second: `.` closes, `x` fails, `b` is a refusal, `>` waits until the pause is over."""
    breaker, now = breaker or Breaker(), START
    for result in results:
        now += timedelta(seconds=1)
        if result == ">":
            now = max(now, breaker.paused_until or now)
        elif result == ".":
            breaker = next_state(breaker, "closes", now)
        else:
            breaker = next_state(breaker, "fails", now, is_blocked=result == "b")
    return breaker, now


TABLE = [
    ("", Gate.CLOSED, 0),
    ("xxxx", Gate.CLOSED, 0),
    ("xxxx.xxxx", Gate.CLOSED, 0),
    ("xxxxx", Gate.OPEN, 5),
    ("xxxxxxxxxx", Gate.OPEN, 5),  # requests from before the pause count nothing
    ("xxxxx>", Gate.PROBING, 5),
    ("xxxxx>.", Gate.CLOSED, 0),
    ("xxxxx>.xxxx", Gate.CLOSED, 0),
    ("xxxxx>x", Gate.OPEN, 10),
    ("xxxxx>x>x", Gate.OPEN, 20),
    ("xxxxx>x>x>.xxxxx", Gate.OPEN, 5),
    ("xxxxx" + ">x" * 7, Gate.OPEN, 640),
    ("xxxxx" + ">x" * 9, Gate.OPEN, 1440),
    ("xxxxx" + ">x" * 60, Gate.OPEN, 1440),
    ("xxxxx.", Gate.CLOSED, 0),
    ("bbbbb", Gate.OPEN, 5),
    ("bbbbb>b", Gate.OPEN, 10),
    ("bbbbb>b>b", Gate.STOPPED, 20),
    ("bbbxx>b>b", Gate.STOPPED, 20),
    ("bbxxx>b>b", Gate.OPEN, 20),  # the server refused less than half of what opened it
    ("bbbbb>b>x>b>b", Gate.OPEN, 80),
    ("bbbbb>b>x>b>b>b", Gate.STOPPED, 160),
    ("bbbbb>b>.bbbbb>b", Gate.OPEN, 10),
    ("bbbbb>b>b.", Gate.STOPPED, 0),  # a success of a request from before
    ("bbbbb>b>b>>x>b", Gate.STOPPED, 20),
]


@pytest.mark.parametrize(("results", "gate", "minutes"), TABLE, ids=[results or "none" for results, *_ in TABLE])
def test_failures_in_a_row_open_it_and_refusals_leave_it_to_a_person(results, gate, minutes):
    breaker, now = after(results)
    assert gate_of(breaker, now) is gate
    assert (pause_of(breaker.openings) if breaker.openings else timedelta()) == timedelta(minutes=minutes)


def test_one_holder_probes_until_its_lease_is_over():
    breaker, now = after("xxxxx>")
    assert decide(breaker, now, "a").is_allowed
    leased = replace(breaker, probe_holder="a", probe_until=now + timedelta(minutes=2))
    assert decide(leased, now, "a").is_allowed
    other = decide(leased, now, "b")
    assert (other.is_allowed, other.is_stopped, other.wait) == (False, False, 15.0)
    assert decide(leased, now + timedelta(minutes=2), "b").is_allowed


def test_a_refusal_says_why_and_for_how_long():
    breaker, now = after("xxxxx")
    paused = decide(breaker, now, "a")
    assert (paused.wait, paused.reason) == (300.0, "its source is paused after failures until 2025-06-01 00:05 UTC")
    breaker, now = after("bbbbb>b>b")
    stopped = decide(breaker, now + timedelta(days=90), "a")
    assert (stopped.is_allowed, stopped.is_stopped, stopped.wait) == (False, True, None)
    assert stopped.reason.endswith("its server refuses us")


class Slow:
    """The rules once more, over the whole list of what happened."""

    def __init__(self):
        self.events = []

    def gate(self, now):
        """Return the gate now, and how long the last pause is."""
        streak, openings, causes, until = [], 0, [], None
        for at, is_good, is_blocked in self.events:
            if len(causes) >= 3 and causes[-3:] == [True] * 3:
                return Gate.STOPPED
            if is_good:
                streak, openings, causes, until = [], 0, [], None
            elif until is None or at >= until:
                streak.append(is_blocked)
                if until is not None or len(streak) == 5:
                    openings += 1
                    causes.append(sum(streak) * 2 > len(streak))
                    seconds = 300
                    for _ in range(openings - 1):
                        seconds = min(seconds * 2, 86400)
                    until, streak = at + timedelta(seconds=seconds), []
        if causes[-3:] == [True] * 3:
            return Gate.STOPPED
        return Gate.CLOSED if until is None else Gate.OPEN if now < until else Gate.PROBING


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["closes", "fails", "fails", "blocked"]),
                          st.sampled_from([1, 20, 299, 300, 700, 90_000])), max_size=60))  # fmt: skip
def test_any_story_ends_as_in_the_slow_model(story):
    breaker, slow, now = Breaker(), Slow(), START
    for result, seconds in story:
        now += timedelta(seconds=seconds)
        breaker = next_state(breaker, "closes" if result == "closes" else "fails", now, is_blocked=result == "blocked")
        slow.events.append((now, result == "closes", result == "blocked"))
        for later in (0, 299, 301, 86_401):
            at = now + timedelta(seconds=later)
            assert gate_of(breaker, at) is slow.gate(at)
            assert decide(breaker, at, "a").is_allowed == (gate_of(breaker, at) in (Gate.CLOSED, Gate.PROBING))
