"""Locks that the kernel drops with the process that holds them, however it dies."""

import fcntl
import os
import time
from pathlib import Path

from harvester.kernel.errors import TransientError

#: Seconds between two tries for a lock that another process has.
LOCK_POLL_SECONDS = 0.02


class FileLock:
    """One flock on an open file description of its own, which neither a fork nor an exec carries on."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self.path = path
        self.descriptor = os.open(path, flags, 0o600)
        _open_locks.add(self)

    def share(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take the lock alone if nobody else has it. A shared lock is lost by the attempt."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_exclusive(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.try_exclusive():
            if time.monotonic() > deadline:
                raise TransientError(
                    f"Another process has been starting or stopping the database for {seconds:.0f} s, "
                    f"so nothing was changed. Find it with `fuser {self.path}`, end it and try again."
                )
            time.sleep(LOCK_POLL_SECONDS)

    def close(self) -> None:
        """Unlock before closing: a child that inherited the descriptor would otherwise keep the lock."""
        if self.descriptor >= 0:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close without unlocking, so that the parent's lock outlives its forked child."""
        _open_locks.discard(self)
        os.close(self.descriptor)
        self.descriptor = -1


_open_locks: set[FileLock] = set()


def _forget_after_fork() -> None:
    for lock in list(_open_locks):
        lock.forget()


os.register_at_fork(after_in_child=_forget_after_fork)
