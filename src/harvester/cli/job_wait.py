"""Waiting for a job, a run over pages or a fetch to end, with a progress bar. Needs Django."""

import time
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harvester.cli.job_views import find
from harvester.cli.output import OUT, clean
from harvester.engine.states import ENDED, JobState
from harvester.runs.models import Run
from harvester.runs.states import RunStatus
from harvester.scraping.models import FetchRequest

#: Handlers save their progress twice a second.
LOOK_SECONDS = 0.25
#: Seconds between two looks at a run over pages, of which each takes a second or more.
RUN_LOOK_SECONDS = 0.5
#: A running worker claims a job within a second, unless others are ahead of it.
PATIENCE_SECONDS = 10.0


def wait_for_end(job_id: int) -> str:
    """Return the state in which the job ended. Ctrl-C ends only the waiting."""
    job = find(job_id)
    if not OUT.errors.is_terminal:
        OUT.hint(f"Waiting for job {job_id} ({clean(job.kind)}) ...")
    columns = (_text("{task.description}"), BarColumn(), _text("{task.fields[note]}"), TimeElapsedColumn())
    try:
        # The bar goes to stderr: stdout is for the job itself.
        with Progress(*columns, console=OUT.errors, transient=True, disable=OUT.as_json) as bar:
            task = bar.add_task(job.kind, total=None, note="")
            started_at, is_hinted = time.monotonic(), False
            while job.state not in ENDED:
                progress: dict[str, Any] = job.progress if isinstance(job.progress, dict) else {}
                bar.update(
                    task,
                    description=clean(f"{job.kind} {job.id} {job.state}"),
                    completed=progress.get("done") or 0,
                    total=progress.get("total"),
                    note=clean(progress.get("note") or ""),
                )
                time.sleep(LOOK_SECONDS)
                job = find(job_id)
                waited = time.monotonic() - started_at
                if not is_hinted and job.state == JobState.PENDING and waited > PATIENCE_SECONDS:
                    is_hinted = True
                    OUT.hint(f"No worker has taken job {job_id} yet. If none is running, start one: harvester up")
    except KeyboardInterrupt:
        OUT.hint(f"Job {job_id} continues. Wait for it again: harvester jobs show {job_id} --wait")
        raise
    return job.state


def wait_for_run(run: Run) -> None:
    """Wait until a run over pages has ended. Ctrl-C ends only the waiting."""
    total = run.parts.filter(begun_at=run.started_at).count()
    columns = (_text("pages"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=OUT.errors, transient=True, disable=OUT.as_json) as bar:
        task = bar.add_task("pages", total=total)
        while run.status == RunStatus.RUNNING:
            ended = run.parts.filter(begun_at=run.started_at, outcome__isnull=False).count()
            bar.update(task, completed=ended)
            time.sleep(RUN_LOOK_SECONDS)
            run.refresh_from_db()


def wait_for_fetch(asked: FetchRequest) -> FetchRequest:
    if asked.job_id is not None:
        wait_for_end(asked.job_id)
    asked.refresh_from_db()
    return asked


def _text(template: str) -> TextColumn:
    return TextColumn(template, markup=False)
