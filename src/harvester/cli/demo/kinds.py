"""Kinds of jobs for the demo, one for each way in which a job can go. Workers load them with a hidden option."""

import time

from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.errors import TerminalError, TransientError
from harvester.kernel.retry import RetryPolicy

QUEUE = "demo"
#: Served by one worker alone, the one that is going to be killed.
DOOMED_QUEUE = "demo-doomed"
_QUICK = RetryPolicy(base=0.3, factor=2, attempts=3)
#: Longer than the demo waits for anything: whoever runs this long was forgotten.
_FOREVER_SECONDS = 600.0


@job_kind("demo.greet", queue=QUEUE)
def greet(_job: RunningJob, name: str) -> str:
    return f"Hello, {name}."


@job_kind("demo.flaky_fetch", queue=QUEUE, retry=_QUICK)
def flaky_fetch(job: RunningJob) -> str:
    """The outside world does not answer at first."""
    if job.attempt == 1:
        raise TransientError("The shop did not answer; this is tried again.")
    return "answered at the second attempt"


@job_kind("demo.broken_feed", queue=QUEUE, retry=_QUICK)
def broken_feed(_job: RunningJob) -> None:
    """No number of attempts would help."""
    raise TerminalError("The file has no price column; trying again cannot help. Correct the feed, then retry.")


@job_kind("demo.polite_fetch", queue=QUEUE)
def polite_fetch(job: RunningJob, put_in_at: float) -> str:
    """Waits for its turn without a slot and without an attempt."""
    if job.run_at.timestamp() <= put_in_at:
        raise Snooze(1.0, "the shop allows the next request a second later")
    return "fetched when it was allowed"


@job_kind("demo.endless_crawl", queue=QUEUE)
def endless_crawl(job: RunningJob) -> None:
    """Goes on until somebody stops it."""
    _go_on(job)


@job_kind("demo.nightly_report", queue=QUEUE)
def nightly_report(_job: RunningJob) -> str:
    return "written"


@job_kind("demo.import_catalog", queue=QUEUE)
def import_catalog(job: RunningJob, rows: int) -> dict[str, int]:
    """Says how far it is."""
    for done in range(rows + 1):
        job.check()
        job.progress(done, rows, "rows")
        time.sleep(0.02)
    return {"rows": rows}


@job_kind("demo.one_at_a_time", queue=QUEUE)
def one_at_a_time(_job: RunningJob, page: int) -> int:
    time.sleep(0.3)
    return page


@job_kind("demo.long_import", queue=DOOMED_QUEUE, retry=_QUICK)
def long_import(job: RunningJob) -> str:
    """Would take for ever at its first attempt; somebody kills the worker under it."""
    if job.attempt == 1:
        _go_on(job)
    return "finished by the worker that took over"


def _go_on(job: RunningJob) -> None:
    deadline = time.monotonic() + _FOREVER_SECONDS
    while time.monotonic() < deadline:
        job.check()
        time.sleep(0.05)
