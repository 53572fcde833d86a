"""Waking the thread that waits, from anywhere."""

import contextlib
import queue
import time


class Bell:
    """Wakes one waiting thread, also from a signal handler.

    A `threading.Event` cannot do that: a handler runs inside the waiting thread, perhaps while that thread holds the
    event's own lock, and would then wait for itself for ever. Putting into a SimpleQueue is reentrant.
    """

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        if self._rings.empty():
            self._rings.put(None)

    def hush(self) -> None:
        """Forget that it rang."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._rings.get_nowait()

    def wait(self, seconds: float) -> None:
        """Return at the next ring, at once if it rang since the last hush, or when the time is up."""
        with contextlib.suppress(queue.Empty):
            self._rings.get(timeout=max(seconds, 0))


class StopBell(Bell):
    """Rings for good once: it also remembers that somebody asked for a stop."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = False

    def stop(self) -> None:
        self.stopping = True
        self.ring()

    def pause(self, seconds: float) -> None:
        """Wait, however often it rings, but no longer than until somebody asks for a stop."""
        until = time.monotonic() + seconds
        while not self.stopping and (left := until - time.monotonic()) > 0:
            self.wait(left)
