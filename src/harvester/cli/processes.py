"""`harvester demo | up | web | worker | scheduler`, which run until they are stopped, and `harvester migrate`."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, cell, table, when
from harvester.cli.session import Tables, close_connections, read_config, require_redis, session
from harvester.cli.signals import Parent, StopRequest, stoppable
from harvester.kernel.config import Config

PANEL = "Processes"
Threads = Annotated[int | None, typer.Option(min=1, max=512, help="Jobs that one worker runs in parallel.")]


def declare(app: typer.Typer) -> None:
    command(app, "demo", DEMO_EXAMPLES, rich_help_panel="Start")(demo)
    command(app, "up", UP_EXAMPLES, rich_help_panel="Start")(up)
    command(app, "web", WEB_EXAMPLES, rich_help_panel=PANEL)(web)
    command(app, "worker", WORKER_EXAMPLES, data=True, rich_help_panel=PANEL)(worker)
    command(app, "scheduler", SCHEDULER_EXAMPLES, rich_help_panel=PANEL)(scheduler)


def declare_migrate(app: typer.Typer) -> None:
    command(app, "migrate", MIGRATE_EXAMPLES, data=True, rich_help_panel="Setup and maintenance")(migrate)


DEMO_EXAMPLES = (
    "harvester demo",
    "harvester demo --once            stop after the summary",
    "harvester demo --port 8080",
)


def demo(
    *,
    once: Annotated[bool, typer.Option("--once", help="Stop after the summary.")] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of the portal; 8000, or a free one.")
    ] = None,
) -> None:
    """Show Harvester with sample data: a catalog is imported, changes, and is held when it shrinks.

    The demo uses its own database in .demo (or in HARVESTER_HOME) and its own SFTP server on this machine, and touches
    nothing else. Everything runs until Ctrl-C.
    """
    stop = StopRequest()
    from harvester.cli.demo.stage import perform

    perform(stop, once=once, port=port)


UP_EXAMPLES = (
    "harvester up",
    "harvester up --workers 2 --threads 16",
    "HARVESTER_LISTEN=0.0.0.0:8080 harvester up",
)


def up(
    *,
    workers: Annotated[int, typer.Option(min=0, max=64, help="Worker processes.")] = 1,
    threads: Threads = None,
) -> None:
    """Run portal, workers and scheduler together until Ctrl-C.

    Migrates the embedded database first, and restarts processes that crash.
    """
    from harvester.cli.up import run_all

    run_all(StopRequest(), workers=workers, threads=threads)


WEB_EXAMPLES = ("harvester web", "HARVESTER_LISTEN=127.0.0.1:8080 harvester web")


def web(*, parent: Parent = 0) -> None:
    """Serve the portal."""
    stop = stoppable(parent)
    from harvester.cli.portal_server import PortalServer, bind

    with bind(read_config().listen) as listener, session(service=True) as config:
        close_connections()
        stop.release()
        PortalServer(config, listener, stop).run()


SCHEDULER_EXAMPLES = ("harvester scheduler",)


def scheduler(*, parent: Parent = 0) -> None:
    """Enqueue periodic jobs when they are due. Several schedulers may run."""
    stop = stoppable(parent)
    with session(service=True) as config:
        from harvester.engine.scheduler import Scheduler

        machine = Scheduler(config.stuck_seconds, config.stale_check_seconds)
        stop.pass_on(machine.stop)
        machine.run()


WORKER_EXAMPLES = (
    "harvester worker",
    "harvester worker --queues default,maintenance --threads 16",
    "harvester worker --once          run at most one job",
    "harvester worker --dry-run       list the jobs it would run, and claim nothing",
)


def worker(
    *,
    queues: Annotated[str, typer.Option(help="Queues to serve, separated by commas; all by default.")] = "",
    threads: Threads = None,
    poll_interval: Annotated[
        float | None, typer.Option(min=0.05, max=300, help="Seconds between checks for jobs.")
    ] = None,
    stale_check_interval: Annotated[
        float | None, typer.Option(min=0.05, max=3600, help="Seconds between checks for stuck jobs.")
    ] = None,
    max_jobs: Annotated[int, typer.Option(min=0, help="Stop after this many jobs; 0 for no limit.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Run at most one job and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the jobs it would run; claim nothing.")] = False,
    name: Annotated[str, typer.Option(help="Name of this worker; WORKER_ID by default.")] = "",
    parent: Parent = 0,
) -> None:
    """Run jobs until stopped.

    On SIGTERM or Ctrl-C it claims no more jobs, gives running jobs HARVESTER_GRACE_SECONDS to finish, and returns the
    others to the queue.
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
        return
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
    """Return the options of the command line, and the settings for those that were not given."""
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
    """Show the jobs that a worker with these options would claim now, without locking anything."""
    with session() as config:
        from django.db import connection

        from harvester.cli.job_views import database_now
        from harvester.engine import sql

        options = _options(config, given)
        names = ("id", "kind", "queue", "lane", "priority", "run_at", "attempt", "max_attempts")
        most = min(options.threads, options.max_jobs or options.threads)
        with connection.cursor() as cursor:
            cursor.execute(sql.PREVIEW, {"queues": list(options.queues), "most": most})
            jobs = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        now = database_now()
        OUT.show({"would_run": jobs}, lambda: _preview_table(jobs, now))


def _preview_table(jobs: list[dict[str, Any]], now: datetime) -> RenderableType:
    if not jobs:
        return cell("No jobs are due.")
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


MIGRATE_EXAMPLES = (
    "harvester migrate",
    "harvester migrate --check    exit code 1 if migrations are missing; changes nothing",
)


def migrate(
    *, check: Annotated[bool, typer.Option("--check", help="Only list the missing migrations.")] = False
) -> None:
    """Bring the database to this version: roles, tables and privileges."""
    with session(Tables.ANY):
        from harvester.ops import database

        pending = database.pending_migrations("owner")
        if not check:
            database.migrate()
        done = "missing" if check else "applied"
        OUT.show(
            {done: pending}, lambda: f"{len(pending)} migrations {done}." if pending else "The database is up to date."
        )
        if check and pending:
            raise typer.Exit(Exit.FAILED)
