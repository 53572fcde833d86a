"""`harvester migrate`: apply migrations to the database."""

from typing import Annotated

import typer

from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import Tables, session

EXAMPLES = ("harvester migrate", "harvester migrate --check    exit code 1 if migrations are missing; changes nothing")


def declare(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "migrate", EXAMPLES, data=True, rich_help_panel="Setup and maintenance")(migrate)


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
