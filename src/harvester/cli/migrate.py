"""`harvester migrate`: bring the database's tables to this version."""

from typing import Annotated

import typer

from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import Tables, session

EXAMPLES = ("harvester migrate", "harvester migrate --check    exit code 1 if a migration is missing; changes nothing")


def declare(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "migrate", EXAMPLES, data=True, rich_help_panel="Set up and look after")(migrate)


def migrate(*, check: Annotated[bool, typer.Option("--check", help="Only say what is missing.")] = False) -> None:
    """Bring the database to this version: role, tables, and what the application may do with them."""
    with session(Tables.ANY):
        from harvester.ops import database

        pending = database.pending_migrations("owner")
        if not check:
            database.migrate()
        done = "missing" if check else "applied"
        OUT.show(
            {done: pending}, lambda: f"{len(pending)} migrations {done}." if pending else "No migration is missing."
        )
        if check and pending:
            raise typer.Exit(Exit.FAILED)
