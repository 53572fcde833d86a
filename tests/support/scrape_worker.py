"""Workers in processes of their own that read pages; one may stop at a point, to be killed there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402

from harvester.engine.worker import Worker, WorkerOptions  # noqa: E402
from tests.support import feed_points  # noqa: E402
from tests.support.feed_world import LOOPBACK  # noqa: E402
from tests.support.forked import fork  # noqa: E402
from tests.support.page_server import resolve_locally  # noqa: E402
from tests.support.scrape_world import CONTACT  # noqa: E402
from tests.support.signals import VARIABLE  # noqa: E402
from tests.support.workers import QUICK  # noqa: E402

#: Steps of a page that are not statements; each is reported by its name when it begins.
STEPS = (
    ("harvester.scraping.fetching", "_send"),
    ("harvester.scraping.fetching", "_keep"),
    ("harvester.scraping.fetching", "end_of"),
    ("harvester.scraping.kept_pages", "store_body"),
    ("harvester.scraping.runs", "note_end"),
)


@contextmanager
def scrape_worker(*path: str, **options: Any) -> Iterator[BaseProcess]:
    """A worker that stops where the path leads to; without a path it works on."""
    process = fork(_work, os.environ.get(VARIABLE, ""), path, options)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _work(signals: str, path: tuple[str, ...], options: dict[str, Any]) -> None:
    os.environ[VARIABLE] = signals
    resolve_locally()
    settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK, **CONTACT)
    feed_points.STEPS = STEPS
    worker = Worker(WorkerOptions(**{**QUICK, "queues": ("pages",), **options}))
    if not path:
        worker.run()
        return
    with feed_points.watched(path):
        worker.run()
