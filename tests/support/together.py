"""Several people at the same moment."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections

#: Only ends a test that hangs.
LIMIT_SECONDS = 30


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make these calls at once, each in a thread with a session of its own; answers or errors, in their order."""
    start = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def call(place: int) -> None:
        try:
            start.wait(LIMIT_SECONDS)
            results[place] = calls[place]()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[place] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    return results
