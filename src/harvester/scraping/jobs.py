"""The jobs of scraping. What they do is imported when one of them runs."""

from typing import Final

from harvester.engine.registry import Later, job_kind
from harvester.kernel.retry import RetryPolicy

PAGE: Final = "scraping.page"
QUEUE: Final = "pages"
RETRY: Final = RetryPolicy(base=5.0, factor=3.0, attempts=3)


def register() -> None:
    job_kind(PAGE, queue=QUEUE, retry=RETRY)(Later("harvester.runs.parts:execute_part"))
