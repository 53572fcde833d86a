"""Run a part of a job in parallel, in a separate thread and database session."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

from django.db import connections

#: For a transaction that waits for parallel steps, which may take any time. Otherwise the server ends sessions that
#: idle in a transaction; those of a frozen worker are ended when it loses its job.
MAY_WAIT = "SET LOCAL idle_in_transaction_session_timeout = 0"


@contextmanager
def in_side_session(steps: Iterable[object]) -> Iterator[Callable[[], None]]:
    """Run steps, one after the other, in parallel with the block.

    The block gets a function that waits for the last step and raises the first error. At the end of the block, the
    running step is awaited and the remaining ones are skipped.
    """
    left = threading.Event()

    def take_all() -> None:
        try:
            for _ in steps:
                if left.is_set():
                    return
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1, thread_name_prefix="side-session") as pool:
        taking = pool.submit(copy_context().run, take_all)
        try:
            yield taking.result
        finally:
            left.set()
