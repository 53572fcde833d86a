"""How long to wait before trying again."""

import math
from dataclasses import dataclass

#: Nothing waits longer than a day: an operator would have forgotten it by then.
LONGEST_WAIT_SECONDS = 24 * 60 * 60
#: A wait of nothing would turn a broken server into a busy loop.
SHORTEST_WAIT_SECONDS = 0.1
#: The share of a wait that chance may add, so that jobs that failed together do not return together.
JITTER = 0.25
#: What the column that counts attempts can hold.
MOST_ATTEMPTS = 32_767


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often, and after which waits, a kind of work is tried again.

    Attributes:
        base: seconds before the second attempt.
        factor: how much longer each further wait is.
        cap: seconds that no wait of this policy exceeds.
        attempts: how often the work is tried in all, the first time included.
    """

    base: float = 30.0
    factor: float = 2.0
    cap: float = LONGEST_WAIT_SECONDS
    attempts: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.base < math.inf:
            raise ValueError("base must be above 0 seconds")
        if not 1 <= self.factor < math.inf:
            raise ValueError("factor must be at least 1, or waits would shrink")
        if not SHORTEST_WAIT_SECONDS <= self.cap <= LONGEST_WAIT_SECONDS:
            raise ValueError(f"cap must be from {SHORTEST_WAIT_SECONDS} to {LONGEST_WAIT_SECONDS} seconds")
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise ValueError(f"attempts must be from 1 to {MOST_ATTEMPTS}")

    def wait(self, attempt: int, chance: float) -> float:
        """Seconds to wait after the given attempt (1 is the first) failed.

        Args:
            attempt: the attempt that just failed.
            chance: a number from 0 up to 1, drawn by the caller.
        """
        try:
            grown = float(self.base) * float(self.factor) ** (max(attempt, 1) - 1)
        except OverflowError:
            grown = self.cap
        return max(SHORTEST_WAIT_SECONDS, min(self.cap, grown * (1 + JITTER * chance)))
