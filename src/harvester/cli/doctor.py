"""`harvester doctor`: is everything as it must be, and if not, what to do."""

import os
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, stacked, table

EXAMPLES = (
    "harvester doctor",
    "harvester doctor --json",
    "harvester doctor --settings      every setting, its value and where it came from",
)


def declare(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "doctor", EXAMPLES, data=True, rich_help_panel="Setup and maintenance")(doctor)


def doctor(
    *,
    settings: Annotated[bool, typer.Option("--settings", help="List every setting instead.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="With --settings: as the page docs/settings.md.")
    ] = False,
) -> None:
    """Check settings, database, key, Redis, disk and processes, and say what to do.

    Nothing is created. An embedded database that exists is started for the checks, because nothing less would show
    that it works. The exit code is 1 if any check fails.
    """
    if settings or markdown:
        _settings(as_page=markdown)
    else:
        _examine()


def _settings(*, as_page: bool) -> None:
    from harvester.cli.session import read_config
    from harvester.cli.settings_table import markdown, settings_of, settings_view

    if as_page:
        typer.echo(markdown(), nl=False)
        return
    found = settings_of(read_config(), os.environ)
    OUT.show({"settings": found}, lambda: settings_view(found))


def _examine() -> None:
    from harvester.cli.checks import Finding, examine
    from harvester.cli.checks.finding import State

    findings: list[Finding] = list(examine())
    failed = [finding for finding in findings if finding.state == State.FAIL]
    data = {"ok": not failed, "checks": [finding.as_dict() for finding in findings]}
    OUT.show(data, lambda: _view(findings, len(failed)))
    if failed:
        raise typer.Exit(Exit.FAILED)


def _view(findings: list[Any], failed: int) -> RenderableType:
    rows = [(finding.check, finding.state.value, finding.finding, finding.advice) for finding in findings]
    if failed:
        verdict = Text(f"{failed} of {len(findings)} checks failed.", style="bold red")
    else:
        verdict = Text("No problems found.", style="green")
    return stacked(table(("check", "state", "finding", "what to do"), rows), verdict)
