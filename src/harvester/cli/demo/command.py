"""What is typed to see the demo."""

from typing import Annotated

import typer

from harvester.cli.commands import command
from harvester.cli.signals import StopRequest

EXAMPLES = (
    "harvester demo",
    "harvester demo --once            end after the summary",
    "harvester demo --port 8080",
)


def declare(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "demo", EXAMPLES, rich_help_panel="Start")(demo)


def demo(
    *,
    once: Annotated[bool, typer.Option("--once", help="End after the summary.")] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of the portal; 8000, or a free one.")
    ] = None,
) -> None:
    """See Harvester at work: a shop's catalog comes in, changes, and is held when it shrinks.

    It has a database of its own in .demo (or in HARVESTER_HOME) and a partner's SFTP server on this machine, and
    touches nothing else. Everything stays until Ctrl-C.
    """
    stop = StopRequest()
    from harvester.cli.demo.stage import perform

    perform(stop, once=once, port=port)
