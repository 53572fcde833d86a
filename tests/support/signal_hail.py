"""`python -m tests.support.signal_hail`: wait on a StopSignal that signal handlers wake at any point of the wait."""

import os
import signal
import sys
import threading
import time

from harvester.engine.wakeup import StopSignal

SIGNALS = 2000


def main() -> None:
    wakeup = StopSignal()
    signal.signal(signal.SIGUSR1, lambda *_: wakeup.wake())
    sys.setswitchinterval(0.0001)
    hail = threading.Thread(target=_hail, daemon=True)
    hail.start()
    while hail.is_alive():
        wakeup.clear()
        wakeup.wait(0)


def _hail() -> None:
    for _ in range(SIGNALS):
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.0001)


if __name__ == "__main__":
    main()
