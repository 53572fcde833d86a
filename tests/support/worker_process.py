"""`python -m tests.support.worker_process threads=2 queues=a,b`: a worker that can be killed."""

import os
import signal
import sys

import django

django.setup()

from harvester.engine.worker import Worker, WorkerOptions  # noqa: E402
from tests.support import fault_kinds, kinds, pace_kinds  # noqa: E402, F401 - registers the kinds
from tests.support.chaos import kinds as chaos_kinds  # noqa: E402, F401 - registers more of them
from tests.support.page_server import resolve_locally  # noqa: E402
from tests.support.signals import say  # noqa: E402
from tests.support.workers import QUICK  # noqa: E402


def options(arguments: list[str]) -> WorkerOptions:
    values: dict[str, object] = dict(QUICK)
    for argument in arguments:
        name, _, text = argument.partition("=")
        default = WorkerOptions.__dataclass_fields__[name].default
        if name == "queues":
            values[name] = tuple(text.split(","))
        elif isinstance(default, bool):
            values[name] = text == "true"
        elif isinstance(default, int | float):
            values[name] = type(default)(text)
        else:
            values[name] = text
    return WorkerOptions(**values)


def work(arguments: list[str]) -> None:
    if log := os.environ.get("TEST_LOG"):
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, sys.stdout.fileno())
        os.dup2(descriptor, sys.stderr.fileno())
    if os.environ.get("TEST_LOCAL_NAMES"):
        resolve_locally()
    worker = Worker(options(arguments))

    def stop(*_: object) -> None:
        worker.stop()
        say(f"stopping:{worker.options.name}")

    signal.signal(signal.SIGTERM, stop)
    if os.environ.get("TEST_SIGTERM_FIRST"):
        os.kill(os.getpid(), signal.SIGTERM)
    worker.run()


if __name__ == "__main__":
    work(sys.argv[1:])
