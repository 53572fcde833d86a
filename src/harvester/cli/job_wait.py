"""Waiting for a job to end, with its progress on the screen. Needs Django."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from harvester.cli.job_views import find
from harvester.cli.output import OUT, clean
from harvester.engine.models import Job
from harvester.engine.states import ENDED, JobState

#: Handlers' progress reaches the database twice a second.
LOOK_SECONDS = 0.25
#: A worker that is there takes a job within a second, unless others are before it.
PATIENCE_SECONDS = 10.0


def wait_for_end(job_id: int) -> str:
    """Answers the state in which the job ended."""
    job = find(job_id)
    if not OUT.errors.is_terminal:
        OUT.hint(f"Waiting for job {job_id} ({clean(job.kind)}) ...")
    columns = (_text("{task.description}"), BarColumn(), _text("{task.fields[note]}"), TimeElapsedColumn())
    # The bar goes to stderr: stdout is for the job itself.
    with _told_if_left(job_id), Progress(*columns, console=OUT.errors, transient=True, disable=OUT.as_json) as bar:
        task = bar.add_task(job.kind, total=None, note="")
        asked, hinted = time.monotonic(), False
        while job.state not in ENDED:
            _draw(bar, task, job)
            time.sleep(LOOK_SECONDS)
            job = find(job_id)
            if not hinted and job.state == JobState.PENDING and time.monotonic() - asked > PATIENCE_SECONDS:
                hinted = True
                OUT.hint(f"Nobody has taken job {job_id} yet. Does a worker run? Start one: harvester up")
    return job.state


@contextmanager
def _told_if_left(job_id: int) -> Iterator[None]:
    """Ctrl-C ends the waiting only."""
    try:
        yield
    except KeyboardInterrupt:
        OUT.hint(f"Job {job_id} goes on without you. See how it goes: harvester jobs show {job_id} --wait")
        raise


def _draw(bar: Progress, task: TaskID, job: Job) -> None:
    said: dict[str, Any] = job.progress if isinstance(job.progress, dict) else {}
    description = clean(f"{job.kind} {job.id} {job.state}")
    bar.update(
        task,
        description=description,
        completed=said.get("done") or 0,
        total=said.get("total"),
        note=clean(said.get("note") or ""),
    )


def _text(template: str) -> TextColumn:
    return TextColumn(template, markup=False)
