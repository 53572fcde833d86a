"""What many open pages show at once is looked up once for all of them."""

import time
from collections.abc import Callable
from typing import TypeVar, cast

from django.core.cache import cache

Found = TypeVar("Found")
#: The longer a look takes, the less often it is taken: at most one twentieth of the time goes into it.
SHARE = 20


def shared(name: str, seconds: float, look: Callable[[], Found]) -> Found:
    """What was found last while it is fresh, else what is found now."""
    known = cache.get(name)
    if known is not None:
        return cast("Found", known)
    started = time.monotonic()
    found = look()
    cache.set(name, found, max(seconds, SHARE * (time.monotonic() - started)))
    return found
