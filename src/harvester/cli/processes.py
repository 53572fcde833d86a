"""`harvester up | web | scheduler`, beside the worker: the processes that run until they are told to stop."""

from typing import Annotated

import typer

from harvester.cli import worker
from harvester.cli.commands import command
from harvester.cli.session import close_connections, read_config, session
from harvester.cli.signals import Parent, StopRequest, stoppable
from harvester.cli.worker import Threads

PANEL = "Processes"


def declare(app: typer.Typer) -> None:
    """Add these commands to the application."""
    command(app, "up", UP_EXAMPLES, rich_help_panel="Start")(up)
    command(app, "web", WEB_EXAMPLES, rich_help_panel=PANEL)(web)
    worker.declare(app)
    command(app, "scheduler", SCHEDULER_EXAMPLES, rich_help_panel=PANEL)(scheduler)


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

    Brings the embedded database up to date first, restarts what crashes, and stops all of it on one Ctrl-C.
    """
    from harvester.cli.up import run_all

    run_all(StopRequest(), workers=workers, threads=threads)


WEB_EXAMPLES = ("harvester web", "HARVESTER_LISTEN=127.0.0.1:8080 harvester web")


def web(*, parent: Parent = 0) -> None:
    """Serve the portal."""
    stop = stoppable(parent)
    from harvester.cli.portal_server import PortalServer, bind

    with bind(read_config().listen) as taken, session(service=True) as config:
        close_connections()
        stop.release()
        PortalServer(config, taken, stop).run()


SCHEDULER_EXAMPLES = ("harvester scheduler",)


def scheduler(*, parent: Parent = 0) -> None:
    """Enqueue periodic jobs when they come due; several schedulers do no harm."""
    stop = stoppable(parent)
    with session(service=True) as config:
        from harvester.engine.scheduler import Scheduler

        machine = Scheduler(config.stuck_seconds, config.stale_check_seconds)
        stop.pass_on(machine.stop)
        machine.run()
