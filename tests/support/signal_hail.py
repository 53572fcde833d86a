"""`python -m tests.support.signal_hail`: wait on a bell that is rung by signals, at every moment of the waiting."""

import os
import signal
import sys
import threading
import time

from harvester.engine.wakeup import StopBell

SIGNALS = 2000


def main() -> None:
    bell = StopBell()
    signal.signal(signal.SIGUSR1, lambda *_: bell.ring())
    sys.setswitchinterval(0.0001)
    hail = threading.Thread(target=_hail, daemon=True)
    hail.start()
    while hail.is_alive():
        bell.hush()
        bell.wait(0)


def _hail() -> None:
    for _ in range(SIGNALS):
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.0001)


if __name__ == "__main__":
    main()
