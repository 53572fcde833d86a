"""Waiting for a condition instead of for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: Between two questions: soon at first, for most answers come at once, and then less often, for to ask takes time too.
PAUSES_SECONDS = (0.005, 0.05)


def wait_for(condition: Callable[[], T], what: str = "the condition", seconds: float = 120.0) -> T:
    """Ask until the answer is truthy; the limit only ends a test that hangs."""
    deadline = time.monotonic() + seconds
    pause, longest = PAUSES_SECONDS
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {seconds:g} s")
        time.sleep(pause)
        pause = min(pause * 1.3, longest)
    return answer
