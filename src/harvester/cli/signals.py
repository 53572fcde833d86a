"""Stopping on signals, which may come at any time, also during the start, and more than once."""

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

#: Set by the supervisor.
Parent = Annotated[int, typer.Option(hidden=True, help="Stop when this process ends.")]

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Linux's prctl(2): which signal a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1
#: Between checks for the parent where the kernel does not report its end.
_PARENT_LOOK_SECONDS = 0.5


def end_cleanly() -> None:
    """Let SIGTERM and SIGHUP end a command like Ctrl-C does, so that it releases the database."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, terminate)


class StopRequest:
    """Remembers that a signal asked for a stop. Create it before anything slow.

    The handler only sets a flag and wakes the waiting thread: setting an Event inside a handler can deadlock with the
    code that it interrupted.
    """

    def __init__(self) -> None:
        self.asked = False
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        for number in STOPPING:
            # `nohup` ignores SIGHUP on purpose.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True

    def wait(self, seconds: float | None) -> None:
        """Sleep until a signal arrives, at most this long. Signals with other handlers wake it too."""
        if self.asked:
            return
        select.select([self._reader], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def pass_on(self, stop: Callable[[], None]) -> None:
        """Call `stop` from its own thread when a stop is requested, or was already."""

        def listen() -> None:
            # Signal numbers arrive here before their handlers run in the main thread, so the flag may not be set yet.
            while not self.asked:
                select.select([self._reader], [], [])
                self.asked = bool(set(os.read(self._reader, 4096)) & set(STOPPING)) or self.asked
            stop()

        threading.Thread(target=listen, name="harvester-signals", daemon=True).start()

    def release(self) -> None:
        """Stop waking up on signals; other code installs its own handlers."""
        signal.set_wakeup_fd(-1)


def stoppable(parent: int) -> StopRequest:
    """Return a stop request that is also set when the parent ends. Call it first, so that no early stop is lost.

    If the parent is dead already, the process still starts and then stops at once: the last process that holds the
    embedded database has to stop it.
    """
    stop = StopRequest()
    if parent and not end_with_parent(parent):
        stop.asked = True
    return stop


def end_with_parent(parent: int) -> bool:
    """Send this process SIGTERM when the parent dies, however it dies. Return False if it is dead already."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    else:
        threading.Thread(target=watch, name="harvester-parent", daemon=True).start()
    return os.getppid() == parent
