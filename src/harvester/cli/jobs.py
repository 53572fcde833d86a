"""`harvester jobs ...`: list, retry, cancel and enqueue jobs."""

import contextlib
import json
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit, Failure, failure_of
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import HarvesterError, InvalidInput

app = group("jobs", "List, retry and cancel jobs.", ("harvester jobs list --state failed",))

Watch = Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")]
Every = Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between refreshes with --watch.")]
JobIds = Annotated[list[int], typer.Argument(metavar="ID...", help="Ids of jobs.")]


@command(
    app,
    "list",
    (
        "harvester jobs list",
        "harvester jobs list --state failed --limit 100",
        "harvester jobs list --state running,retryable --watch",
        "harvester jobs list --kind ops.clean_up --json",
    ),
    data=True,
)
def list_jobs(
    *,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only these states; repeat it, or separate them by commas.")
    ] = None,
    queue: Annotated[str, typer.Option(help="Only this queue.")] = "",
    kind: Annotated[str, typer.Option(help="Only this kind.")] = "",
    periodic: Annotated[
        bool, typer.Option("--periodic", help="Include successful periodic jobs, thousands a day.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 20,
    watch: Watch = False,
    every: Every = 1.0,
) -> None:
    """List the newest jobs. Successful periodic jobs are listed only with a filter or --periodic."""
    from harvester.engine.states import JobState

    states = [part.strip().lower() for text in state or [] for part in text.split(",") if part.strip()]
    existing = [job_state.value for job_state in JobState]
    for name in states:
        if name not in existing:
            raise InvalidInput(f"There is no state {name!r}; the states are {', '.join(existing)}.")
    with session():
        from harvester.cli import job_views

        def look() -> list[dict[str, Any]]:
            return job_views.newest(states=states, queue=queue, kind=kind, limit=limit, periodic=periodic)

        _show(look, lambda jobs: {"jobs": jobs}, job_views.list_table, watch=watch, every=every)


@command(
    app, "show", ("harvester jobs show 42", "harvester jobs show 42 --wait", "harvester jobs show 42 --json"), data=True
)
def show_job(
    job_id: Annotated[int, typer.Argument(metavar="ID", help="Id of the job.")],
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; the exit code is 1 unless it succeeded.")
    ] = False,
) -> None:
    """Show a job with its attempts, its history and its error."""
    with session():
        from harvester.cli import job_views
        from harvester.cli.job_wait import wait_for_end
        from harvester.engine.states import JobState

        state = wait_for_end(job_id) if wait else ""
        found = job_views.details(job_id)
        OUT.show(found, lambda: job_views.detail_view(found))
        if wait and state != JobState.SUCCEEDED:
            raise typer.Exit(Exit.FAILED)


@command(
    app, "stats", ("harvester jobs stats", "harvester jobs stats --watch", "harvester jobs stats --json"), data=True
)
def show_stats(*, watch: Watch = False, every: Every = 1.0) -> None:
    """Count jobs by state and by queue."""
    with session():
        from harvester.cli import job_views

        _show(job_views.stats, lambda found: found, job_views.stats_view, watch=watch, every=every)


@command(app, "stuck", ("harvester jobs stuck", "harvester jobs stuck --seconds 60"), data=True)
def show_stuck(
    *,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Seconds without a heartbeat; HARVESTER_STUCK_SECONDS by default.")
    ] = None,
) -> None:
    """List running jobs whose worker has stopped responding.

    Workers and schedulers reassign such jobs by themselves.
    """
    with session() as config:
        from harvester.cli import job_views

        silence = config.stuck_seconds if seconds is None else seconds
        jobs = job_views.stuck(silence)
        OUT.show({"jobs": jobs}, lambda: job_views.stuck_table(jobs, silence))


@command(app, "periodic", ("harvester jobs periodic", "harvester jobs periodic --json"), data=True)
def show_periodic() -> None:
    """List periodic jobs: schedule, next time, last time and last job."""
    with session():
        from harvester.cli import job_views

        jobs = job_views.all_periodic()
        OUT.show({"jobs": jobs}, lambda: job_views.periodic_table(jobs))


@command(app, "retry", ("harvester jobs retry 42", "harvester jobs retry 42 43 44"), data=True)
def retry_jobs(job_ids: JobIds) -> None:
    """Run failed, cancelled or waiting jobs again, now, with all their attempts.

    For the job of a feed run that has ended, a new job starts a new run of the feed; the old run does not change.
    """
    with session():
        from harvester.ops import jobs

        def retry(job_id: int) -> tuple[dict[str, Any], str]:
            new_id = jobs.retry(operator(), job_id)
            if new_id == job_id:
                return {"state": "pending"}, f"Job {job_id} will run again."
            message = f"Job {new_id} starts a new run. Job {job_id} and its run do not change."
            return {"state": "pending", "new_job_id": new_id}, message

        _each(job_ids, retry)


@command(app, "cancel", ("harvester jobs cancel 42", "harvester jobs cancel 42 43"), data=True)
def cancel_jobs(job_ids: JobIds) -> None:
    """Cancel jobs: waiting ones at once, running ones at their next check."""
    with session():
        from harvester.engine.states import JobState
        from harvester.ops import jobs

        def cancel(job_id: int) -> tuple[dict[str, Any], str]:
            state = jobs.cancel(operator(), job_id)
            if state == JobState.CANCELLED:
                return {"state": state}, f"Job {job_id} is cancelled."
            return {"state": state}, f"Cancellation of job {job_id} was requested; it is still {state}."

        _each(job_ids, cancel)


@command(
    app,
    "enqueue",
    (
        "harvester jobs enqueue ops.clean_up",
        """harvester jobs enqueue KIND --args '{"feed_id": "..."}' --delay 60""",
    ),
    data=True,
)
def enqueue_job(
    kind: Annotated[str, typer.Argument(help="A registered kind of job.")],
    *,
    args: Annotated[str, typer.Option(help="Arguments as a JSON object; ids only, never a secret.")] = "{}",
    queue: Annotated[str | None, typer.Option(help="Queue; that of the kind by default.")] = None,
    lane: Annotated[str | None, typer.Option(help="Jobs of one lane run one after the other.")] = None,
    dedupe_key: Annotated[str | None, typer.Option(help="Unique among open jobs.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher runs first; that of the kind by default.")] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds before it may run.")] = 0.0,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="Attempts; those of the kind by default.")] = None,
) -> None:
    """Enqueue a job by hand, for a test or a repair."""
    try:
        values = json.loads(args)
    except ValueError as problem:
        raise InvalidInput(f"--args is not JSON: {problem}.") from None
    if not isinstance(values, dict):
        raise InvalidInput("--args must be a JSON object with the arguments by name.")
    with session():
        from harvester.ops import jobs

        options = {"queue": queue, "lane": lane, "dedupe_key": dedupe_key, "priority": priority, "delay": delay}
        made = jobs.enqueue(operator(), kind, values, **options, max_attempts=max_attempts)
        message = (
            f"Job {made.job_id} was enqueued."
            if made.created
            else f"Nothing was enqueued: job {made.job_id} with that key is still open."
        )
        OUT.show({"id": made.job_id, "created": made.created}, lambda: message)


def _show(
    look: Callable[[], Any],
    as_data: Callable[[Any], Any],
    render: Callable[[Any], RenderableType],
    *,
    watch: bool,
    every: float,
) -> None:
    """Show something once, or with `watch` until Ctrl-C; as JSON, that is one document per line."""
    if not watch:
        found = look()
        OUT.show(as_data(found), lambda: render(found))
        return
    from rich.live import Live

    with contextlib.suppress(KeyboardInterrupt):
        if OUT.as_json:
            while True:
                OUT.print_json(as_data(look()))
                time.sleep(every)
        with Live(render(look()), console=OUT.screen, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(render(look()), refresh=True)


def _each(job_ids: list[int], act: Callable[[int], tuple[dict[str, Any], str]]) -> None:
    """Change every job. A failure does not stop the others; the first failure gives the exit code."""
    done: list[dict[str, Any]] = []
    messages: list[str] = []
    failures: list[tuple[int, Failure]] = []
    for job_id in dict.fromkeys(job_ids):
        try:
            changed, message = act(job_id)
            done.append({"id": job_id, **changed})
            messages.append(message)
        except HarvesterError as error:
            failures.append((job_id, failure_of(error)))
    if OUT.as_json:
        OUT.print_json({"jobs": done, "failures": [{"id": job_id, **bad.as_dict()} for job_id, bad in failures]})
    for message in messages:
        OUT.say(message)
    for _, failure in failures if not OUT.as_json else []:
        OUT.fail(failure)
    if failures:
        raise typer.Exit(failures[0][1].exit_code)
