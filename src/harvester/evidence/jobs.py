"""The jobs of evidence. What they do is imported when one of them runs."""

from typing import Final

from harvester.engine.registry import Later, job_kind
from harvester.kernel.retry import RetryPolicy

RUN: Final = "evidence.run"
QUEUE: Final = "evidence"
RETRY: Final = RetryPolicy(base=5.0, factor=3.0, attempts=3)


def register() -> None:
    job_kind(RUN, queue=QUEUE, retry=RETRY, own_alerts=True)(Later("harvester.evidence.runs:run_connection"))
