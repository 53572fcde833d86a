"""How a process is told to stop: at any time, more than once, and never in vain."""

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Annotated

import typer

from harvester.cli.exit_codes import Terminated

#: Given to a child by its supervisor.
Parent = Annotated[int, typer.Option(hidden=True, help="The process to end with.")]

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Linux's prctl(2): which signal a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1
#: How often a process looks for its parent where the kernel does not tell.
_PARENT_LOOK_SECONDS = 0.5


def end_cleanly() -> None:
    """Have SIGTERM and SIGHUP end a short command like Ctrl-C does, so that it lets go of the database."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


class StopRequest:
    """Remembers that a signal asked for a stop, from the moment this is made.

    Make it before anything slow. A handler does no more than take a note and wake whoever waits: setting an
    Event inside a handler can deadlock with the very code that it interrupted.
    """

    def __init__(self) -> None:
        self.asked = False
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        for number in STOPPING:
            # `nohup` ignores SIGHUP, and means it.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True

    def wait(self, seconds: float | None) -> None:
        """Sleep until a signal comes, at most this long. Signals with other handlers wake it as well."""
        if self.asked:
            return
        select.select([self._reader], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def pass_on(self, stop: Callable[[], None]) -> None:
        """Call `stop` for a signal that came, or will come, from a thread of its own."""
        threading.Thread(target=self._listen, args=[stop], name="harvester-signals", daemon=True).start()

    def _listen(self, stop: Callable[[], None]) -> None:
        # The numbers of signals arrive here before their handlers run in the main thread: the note may come later.
        while not self.asked:
            select.select([self._reader], [], [])
            self.asked = bool(set(os.read(self._reader, 4096)) & set(STOPPING)) or self.asked
        stop()

    def release(self) -> None:
        """Wake nobody any more; another part installs its own handlers."""
        signal.set_wakeup_fd(-1)


def stoppable(parent: int) -> StopRequest:
    """First of all, so that a stop during the start is not lost.

    With a dead parent the start goes on all the same and the stop follows at once: whoever holds the embedded
    database last has to stop it.
    """
    stop = StopRequest()
    if parent and not end_with_parent(parent):
        stop.asked = True
    return stop


def end_with_parent(parent: int) -> bool:
    """Have this process get SIGTERM when the given parent dies, however it dies; False if it is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=[parent], name="harvester-parent", daemon=True).start()
    return os.getppid() == parent


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
