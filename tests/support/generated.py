"""How much generated tests try: as much as their authors asked for, or `GENERATED_TIMES` as much (`make nightly`)."""

import os

TIMES = int(os.environ.get("GENERATED_TIMES", "1"))


def examples(count: int) -> int:
    """Return how many examples hypothesis is to try."""
    return count * TIMES


def seeds(first: int, count: int) -> range:
    """Return the seeds of a test that makes its own random cases."""
    return range(first, first + count * TIMES)
