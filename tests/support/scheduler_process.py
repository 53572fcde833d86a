"""`python -m tests.support.scheduler_process daily hourly`: a scheduler of `test.note` under these names."""

import os
import signal
import sys

import django

django.setup()

from harvester.engine import registry, scheduler  # noqa: E402
from tests.support import kinds  # noqa: E402, F401 - registers the kinds
from tests.support.signals import say  # noqa: E402


def main(names: list[str]) -> None:
    # A test sets moments in the database and does not wait for the next minute.
    scheduler.LONGEST_SLEEP_SECONDS = 0.01
    registry._periodic.clear()
    for name in names:
        registry.periodic(name, kind="test.note", cron="0 0 1 1 *")
    running = scheduler.Scheduler()
    signal.signal(signal.SIGTERM, lambda *_: running.stop())
    say(f"scheduling:{os.getpid()}")
    running.run()


if __name__ == "__main__":
    main(sys.argv[1:])
