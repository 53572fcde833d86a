"""Workers in processes of their own that run feeds and stop at a point, to be killed or frozen there."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402

from harvester.catalog import search_index  # noqa: E402
from harvester.engine.worker import Worker, WorkerOptions  # noqa: E402
from tests.support import feed_points  # noqa: E402
from tests.support.feed_world import LOOPBACK  # noqa: E402
from tests.support.forked import fork  # noqa: E402
from tests.support.signals import VARIABLE, say, wait_to_hear  # noqa: E402
from tests.support.workers import QUICK  # noqa: E402


@contextmanager
def feed_worker(
    *path: str, forever: bool = False, few: int = search_index.AT_ONCE, **options: Any
) -> Iterator[BaseProcess]:
    """A worker that stops where the path leads to; see `wait_at_point`.

    `forever`: instead of stopping, it leaves a statement running. `few`: more new products than that come in
    during the promotion.
    """
    process = fork(_work, os.environ[VARIABLE], path, forever, few, options)
    try:
        yield process
    finally:
        # A frozen process is killed as well; nothing else would end it.
        process.kill()
        process.join()


def wait_at_point() -> int:
    """The backend of the worker's session, once the worker is where it stops."""
    return int(wait_to_hear("at"))


def _work(signals: str, path: tuple[str, ...], forever: bool, few: int, options: dict[str, Any]) -> None:
    os.environ[VARIABLE] = signals
    search_index.AT_ONCE = few
    settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK)
    worker = Worker(WorkerOptions(**{**QUICK, "name": "victim", "queues": ("feeds", "decisions"), **options}))

    def stop(*_: object) -> None:
        worker.stop()
        say("stopping")

    signal.signal(signal.SIGTERM, stop)
    end = feed_points.run_forever_here if forever else feed_points.stop_here
    with feed_points.watched(path, end):
        worker.run()
