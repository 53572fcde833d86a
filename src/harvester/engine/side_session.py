"""Doing one part of a job's work beside the rest, in a thread and a database session of its own."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

from django.db import connections

#: For a transaction that waits for steps beside it, which may take any time. Otherwise the server ends sessions that
#: idle in one; those of a worker that froze are ended when it loses its job.
MAY_WAIT = "SET LOCAL idle_in_transaction_session_timeout = 0"


@contextmanager
def beside(steps: Iterable[object]) -> Iterator[Callable[[], None]]:
    """Take steps, one after the other, while the block does something else.

    The block is given a function that waits for the last step and raises what went wrong in any. When the block is
    left, the step at work is awaited and those behind it are not taken.
    """
    left = threading.Event()

    def take_all() -> None:
        try:
            for _ in steps:
                if left.is_set():
                    return
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1, thread_name_prefix="beside") as pool:
        taking = pool.submit(copy_context().run, take_all)
        try:
            yield taking.result
        finally:
            left.set()
