"""How long to wait before trying again."""

import math
from dataclasses import dataclass

#: No wait is longer than a day: an operator would have forgotten the job by then.
LONGEST_WAIT_SECONDS = 24 * 60 * 60
#: Without a wait, a broken server would cause a busy loop.
SHORTEST_WAIT_SECONDS = 0.1
#: The share of a wait that is added at random, so that jobs that failed together do not retry together.
JITTER = 0.25
#: The highest value of the column that counts attempts.
MOST_ATTEMPTS = 32_767


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The number of attempts and the waits between them.

    Attributes:
        base: seconds before the second attempt.
        factor: growth of each further wait.
        cap: longest wait in seconds.
        attempts: total number of attempts, including the first.
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
        """Return the seconds to wait after an attempt failed.

        Args:
            attempt: the attempt that just failed (1 is the first).
            chance: a random number from 0 to 1.
        """
        try:
            grown = float(self.base) * float(self.factor) ** (max(attempt, 1) - 1)
        except OverflowError:
            grown = self.cap
        return max(SHORTEST_WAIT_SECONDS, min(self.cap, grown * (1 + JITTER * chance)))
