"""The `harvester` command with all its subcommands. Nothing here imports Django, so that --help is fast."""

import os
import sys
from typing import Annotated, Any

import typer

from harvester.cli import (
    alerts,
    audit,
    corrections,
    doctor,
    feed,
    jobs,
    keys,
    offers,
    processes,
    retailers,
    review,
    runs,
    scrape,
    sources,
    users,
)
from harvester.cli.commands import Json, section, want_json
from harvester.cli.exit_codes import MEANINGS, Exit, Failure, failure_of
from harvester.cli.output import OUT
from harvester.cli.signals import end_cleanly

_EXAMPLES = (
    "harvester demo                           see it running, in five minutes",
    "harvester up                             run everything on this machine",
    "harvester feed list                      the feeds, and when they run",
    "harvester runs list --outcome HELD       what waits for a decision",
    "harvester scrape try URL                 what a product page says, and where",
    "harvester user add ann --role admin      create a login for the portal",
    "harvester jobs list --state failed       failed jobs and their errors",
    "harvester doctor                         check the installation",
)
_EXIT_CODES = [f"{code.value:>3}  {meaning}" for code, meaning in MEANINGS.items()]
_SETTINGS = ("come from environment variables; harvester doctor --settings lists them all",)
_BELOW = (("Examples", _EXAMPLES), ("Settings", _SETTINGS), ("Exit codes", _EXIT_CODES))

app = typer.Typer(
    name="harvester",
    help="Collects offers from affiliate feeds and product pages, and serves only those that passed its checks.",
    epilog="\n\n".join(section(title, lines) for title, lines in _BELOW),
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    as_json: Json = False,
) -> None:
    want_json(as_json)
    if show_version:
        from importlib.metadata import version

        number = version("harvester")
        OUT.show({"version": number}, lambda: f"harvester {number}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


processes.declare(app)
app.add_typer(feed.app, rich_help_panel="Operate")
app.add_typer(runs.app, rich_help_panel="Operate")
app.add_typer(scrape.app, rich_help_panel="Operate")
app.add_typer(offers.app, rich_help_panel="Catalog")
app.add_typer(retailers.app, rich_help_panel="Catalog")
app.add_typer(sources.app, rich_help_panel="Catalog")
app.add_typer(corrections.app, rich_help_panel="Catalog")
app.add_typer(review.app, rich_help_panel="Catalog")
retailers.declare_import(app)
app.add_typer(jobs.app, rich_help_panel="Operate")
app.add_typer(alerts.app, rich_help_panel="Operate")
app.add_typer(audit.app, rich_help_panel="Operate")
app.add_typer(users.app, rich_help_panel="Setup and maintenance")
app.add_typer(users.key_app, rich_help_panel="Setup and maintenance")
app.add_typer(keys.app, rich_help_panel="Setup and maintenance")
processes.declare_migrate(app)
doctor.declare(app)


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code. Every error becomes one line on stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    want_json("--json" in given)
    end_cleanly()
    try:
        code: Any = typer.main.get_command(app).main(given, prog_name="harvester", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f" Try: {context.command_path} --help" if context else ""
        message = " ".join(error.format_message().split()).replace(": Value error, ", ": ")
        message += "" if message.endswith((".", "?")) else "."
        OUT.fail(Failure(exit_code=Exit.USAGE, code="USAGE", message=f"{message}{hint}"))
        code = Exit.USAGE
    except typer.Abort:
        code = Exit.INTERRUPTED
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, people get one line
        failure = failure_of(error)
        OUT.fail(failure)
        if failure.unexpected:
            _log_traceback(error)
        code = failure.exit_code
    if code == Exit.INTERRUPTED:
        OUT.fail(failure_of(KeyboardInterrupt()))
    return int(code or Exit.OK)


def _log_traceback(error: BaseException) -> None:
    """Log an unexpected error, with its traceback only at level debug. The log redacts it."""
    import structlog

    from harvester.guards.logs import configure_logging

    level = os.environ.get("HARVESTER_LOG_LEVEL", "").strip().lower()
    if OUT.as_json and not level:
        return
    is_debug = level == "debug"
    if not structlog.is_configured():
        configure_logging("debug" if is_debug else "info")
    structlog.get_logger(__name__).error("UNEXPECTED_ERROR", exc_info=error if is_debug else None)
    if not is_debug:
        OUT.hint("Set HARVESTER_LOG_LEVEL=debug to see the traceback.")
