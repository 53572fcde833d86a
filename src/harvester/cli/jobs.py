"""`harvester jobs ...`: see what runs, waits and failed, and do something about it."""

import json
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

app = group("jobs", "See what runs, waits and failed; retry and cancel.", ("harvester jobs list --state failed",))

States = Annotated[
    list[str] | None, typer.Option("--state", help="Only this state; may be given several times, or with commas.")
]
Queue = Annotated[str, typer.Option(help="Only this queue.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show it again and again until Ctrl-C.")]
Every = Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks with --watch.")]
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
    state: States = None,
    queue: Queue = "",
    kind: Annotated[str, typer.Option(help="Only this kind.")] = "",
    periodic: Annotated[
        bool, typer.Option("--periodic", help="Periodic jobs that succeeded too, thousands a day.")
    ] = False,
    limit: Limit = 20,
    watch: Watch = False,
    every: Every = 1.0,
) -> None:
    """List the newest jobs; periodic ones that succeeded only with a filter or --periodic."""
    states = _states(state or [])
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
        float | None, typer.Option(min=0, help="Silence in seconds; HARVESTER_STUCK_SECONDS by default.")
    ] = None,
) -> None:
    """List running jobs that nobody has heard of for too long.

    Any worker or scheduler takes them from the worker that lost them; there is nothing to do by hand.
    """
    with session() as config:
        from harvester.cli import job_views

        silence = config.stuck_seconds if seconds is None else seconds
        jobs = job_views.stuck(silence)
        OUT.show({"jobs": jobs}, lambda: job_views.stuck_table(jobs, silence))


@command(app, "periodic", ("harvester jobs periodic", "harvester jobs periodic --json"), data=True)
def show_periodic() -> None:
    """List the work that comes due by the clock: its schedule, its next moment, its last moment and job."""
    with session():
        from harvester.cli import periodic_views

        jobs = periodic_views.all_periodic()
        OUT.show({"jobs": jobs}, lambda: periodic_views.list_table(jobs))


@command(app, "retry", ("harvester jobs retry 42", "harvester jobs retry 42 43 44"), data=True)
def retry_jobs(job_ids: JobIds) -> None:
    """Run failed, cancelled or waiting jobs again, now, with all their attempts.

    The ended job of a feed's run starts a new run of the feed as a new job; the old run stays as it is.
    """
    with session():
        from harvester.ops import jobs

        def retry(job_id: int) -> tuple[dict[str, Any], str]:
            followed = jobs.retry(operator(), job_id)
            if followed == job_id:
                return {"state": "pending"}, f"Job {job_id} will run again."
            said = f"Job {followed} starts a new run. Job {job_id} and its run stay as they are."
            return {"state": "pending", "new_job_id": followed}, said

        _each(job_ids, retry)


@command(app, "cancel", ("harvester jobs cancel 42", "harvester jobs cancel 42 43"), data=True)
def cancel_jobs(job_ids: JobIds) -> None:
    """Stop jobs: at once while they wait, at their next check while they run."""
    with session():
        from harvester.ops import jobs

        def cancel(job_id: int) -> tuple[dict[str, Any], str]:
            state = jobs.cancel(operator(), job_id)
            return {"state": state}, f"Job {job_id} was asked to stop; it is {state}."

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
    queue: Annotated[str | None, typer.Option(help="Instead of the kind's own queue.")] = None,
    lane: Annotated[str | None, typer.Option(help="Jobs of one lane run one after the other.")] = None,
    dedupe_key: Annotated[str | None, typer.Option(help="At most one open job has it.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher goes first; the kind's own by default.")] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds before it may run.")] = 0.0,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="Instead of the kind's own number.")] = None,
) -> None:
    """Put in a job by hand, to try something out or to mend something."""
    values = _json_object(args)
    with session():
        from harvester.ops import jobs

        options = {"queue": queue, "lane": lane, "dedupe_key": dedupe_key, "priority": priority, "delay": delay}
        made = jobs.enqueue(operator(), kind, values, **options, max_attempts=max_attempts)
        told = (
            f"Job {made.job_id} was enqueued." if made.created else f"Job {made.job_id} is open with that key already."
        )
        OUT.show({"id": made.job_id, "created": made.created}, lambda: told)


def _states(given: list[str]) -> list[str]:
    from harvester.engine.states import JobState

    wanted = [part.strip().lower() for text in given for part in text.split(",") if part.strip()]
    known = [state.value for state in JobState]
    for state in wanted:
        if state not in known:
            raise InvalidInput(f"There is no state {state!r}; the states are {', '.join(known)}.")
    return wanted


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise InvalidInput(f"--args is not JSON: {problem}.") from None
    if not isinstance(value, dict):
        raise InvalidInput("--args must be a JSON object with the arguments by name.")
    return value


def _show(
    look: Callable[[], Any],
    as_data: Callable[[Any], Any],
    render: Callable[[Any], RenderableType],
    *,
    watch: bool,
    every: float,
) -> None:
    if watch:
        from harvester.cli.watch import watch as keep_looking

        keep_looking(look, as_data, render, every)
        return
    found = look()
    OUT.show(as_data(found), lambda: render(found))


def _each(job_ids: list[int], act: Callable[[int], tuple[dict[str, Any], str]]) -> None:
    """Do it to every job; what fails does not stop the others, and the first failure gives the exit code."""
    done: list[dict[str, Any]] = []
    said: list[str] = []
    failures: list[tuple[int, Failure]] = []
    for job_id in dict.fromkeys(job_ids):
        try:
            changed, words = act(job_id)
            done.append({"id": job_id, **changed})
            said.append(words)
        except HarvesterError as error:
            failures.append((job_id, failure_of(error)))
    if OUT.as_json:
        OUT.print_json({"jobs": done, "failures": [{"id": job_id, **bad.as_dict()} for job_id, bad in failures]})
    for words in said:
        OUT.say(words)
    for _, failure in failures if not OUT.as_json else []:
        OUT.fail(failure)
    if failures:
        raise typer.Exit(failures[0][1].exit_code)
