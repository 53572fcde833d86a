"""`harvester worker`: runs jobs, or shows which it would run."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from harvester.cli.commands import command
from harvester.cli.output import OUT, cell, table, when
from harvester.cli.session import read_config, require_redis, session
from harvester.cli.signals import Parent, stoppable
from harvester.kernel.config import Config

EXAMPLES = (
    "harvester worker",
    "harvester worker --queues default,maintenance --threads 16",
    "harvester worker --once          run one job, if there is one, and end",
    "harvester worker --dry-run       show what it would run, and claim nothing",
)

Threads = Annotated[int | None, typer.Option(min=1, max=512, help="Jobs that one worker runs at once.")]


def declare(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "worker", EXAMPLES, data=True, rich_help_panel="Processes")(worker)


def worker(
    *,
    queues: Annotated[str, typer.Option(help="Queues to serve, separated by commas; all by default.")] = "",
    threads: Threads = None,
    poll_interval: Annotated[
        float | None, typer.Option(min=0.05, max=300, help="Seconds between two looks without being woken.")
    ] = None,
    stale_check_interval: Annotated[
        float | None, typer.Option(min=0.05, max=3600, help="Seconds between two looks for stuck jobs.")
    ] = None,
    max_jobs: Annotated[int, typer.Option(min=0, help="Stop after this many jobs; 0 for no limit.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Run at most one job and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run; claim nothing.")] = False,
    name: Annotated[str, typer.Option(help="Name of this worker; WORKER_ID by default.")] = "",
    parent: Parent = 0,
) -> None:
    """Run jobs until stopped.

    On SIGTERM or Ctrl-C it claims nothing more, lets its jobs finish for HARVESTER_GRACE_SECONDS and hands the rest
    back.
    """
    given = {
        "name": name,
        "queues": tuple(part.strip() for part in queues.split(",") if part.strip()),
        "threads": 1 if once else threads,
        "poll_seconds": poll_interval,
        "stale_check_seconds": stale_check_interval,
        "max_jobs": 1 if once else max_jobs,
        "until_idle": once,
    }
    if dry_run:
        _preview(given)
    else:
        _work(given, parent)


def _work(given: dict[str, Any], parent: int) -> None:
    stop = stoppable(parent)
    require_redis(read_config())
    with session(service=True) as config:
        from harvester.engine.watchdog import end_with_interpreter
        from harvester.engine.worker import Worker

        machine = Worker(_options(config, given))
        stop.pass_on(machine.stop)
        end_with_interpreter()
        machine.run()


def _options(config: Config, given: dict[str, Any]) -> Any:
    """What was said on the command line, and the settings for the rest."""
    from harvester.engine.worker import WorkerOptions, worker_name

    return WorkerOptions(
        name=worker_name(given["name"] or config.worker_id),
        queues=given["queues"],
        threads=given["threads"] or config.worker_threads,
        poll_seconds=given["poll_seconds"] or config.poll_seconds,
        heartbeat_seconds=config.heartbeat_seconds,
        stuck_seconds=config.stuck_seconds,
        stale_check_seconds=given["stale_check_seconds"] or config.stale_check_seconds,
        grace_seconds=config.grace_seconds,
        max_jobs=given["max_jobs"],
        until_idle=given["until_idle"],
    )


def _preview(given: dict[str, Any]) -> None:
    """What a worker with these options would claim now, without a lock on anything."""
    with session() as config:
        jobs, now = _due(_options(config, given))
        OUT.show({"would_run": jobs}, lambda: _table(jobs, now))


def _due(options: Any) -> tuple[list[dict[str, Any]], datetime]:
    from django.db import connection

    from harvester.cli.job_views import database_now
    from harvester.engine import sql

    names = ("id", "kind", "queue", "lane", "priority", "run_at", "attempt", "max_attempts")
    most = min(options.threads, options.max_jobs or options.threads)
    with connection.cursor() as cursor:
        cursor.execute(sql.PREVIEW, {"queues": list(options.queues), "most": most})
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()], database_now()


def _table(jobs: list[dict[str, Any]], now: datetime) -> RenderableType:
    if not jobs:
        return cell("Nothing is due: a worker would wait.")
    rows = [
        (
            job["id"],
            job["kind"],
            job["queue"],
            job["lane"],
            job["priority"],
            when(job["run_at"], now),
            f"{job['attempt'] + 1} of {job['max_attempts']}",
        )
        for job in jobs
    ]
    columns = ("id", "kind", "queue", "lane", "priority", "due", "attempt")
    return table(columns, rows, title="A worker would run now", right=("id", "priority"))
