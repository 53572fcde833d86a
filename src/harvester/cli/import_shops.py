"""`harvester import`: bring in retailers and sources that exist already."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from harvester.cli.actor import operator
from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, stacked, table
from harvester.cli.session import session

PANEL = "Catalog"


def declare(app: typer.Typer) -> None:
    command(
        app,
        "import",
        (
            "harvester import retailers.csv sources.csv --dry-run",
            "harvester import retailers.csv sources.csv --json",
        ),
        data=True,
        rich_help_panel=PANEL,
    )(import_shops)


def import_shops(
    retailers: Annotated[Path, typer.Argument(metavar="RETAILERS.CSV", help="Columns: name, website.")],
    sources: Annotated[Path, typer.Argument(metavar="SOURCES.CSV", help="Columns: name, url, and more where known.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen; import nothing.")] = False,
) -> None:
    """Bring in retailers and sources that exist already, from two CSV files.

    A source goes to the retailer on whose domain its url lies. Sources without such a retailer, and lines with
    mistakes, are listed and not imported; the exit code is then 1. What is known already stays as it is, so the files
    may be imported again. docs/how-to/import-retailers-and-sources.md tells every column.
    """
    with session():
        from harvester.catalog import shop_import
        from harvester.catalog.csv_rows import read_rows

        retailer_rows = read_rows(retailers, shop_import.RETAILER_COLUMNS, ("name", "website"))
        source_rows = read_rows(sources, shop_import.SOURCE_COLUMNS, ("name", "url"))
        done = shop_import.import_rows(operator(), retailer_rows, source_rows, dry_run=dry_run)
        data = {"dry_run": dry_run, **shop_import.as_dict(done)}
        problems = list(shop_import.problems_in_order(done))
        OUT.show(data, lambda: _told(done, problems, dry_run=dry_run))
        if not done.is_whole:
            raise typer.Exit(Exit.FAILED)


def _told(done: Any, problems: list[Any], *, dry_run: bool) -> RenderableType:
    verb = "would be" if dry_run else "were"
    lines = [
        f"{len(done.retailers_created)} retailers {verb} made, {done.retailers_known} were known.",
        f"{len(done.sources_created)} sources {verb} made, {done.sources_known} were known.",
        f"{len(done.primaries_set)} sources {verb} made the display primary of their retailer.",
    ]
    return stacked(*lines, _problems(problems) if problems else None)


def _problems(problems: list[Any]) -> RenderableType:
    rows = [(problem.file, problem.line, problem.column, problem.reason) for problem in problems]
    return table(("file", "line", "column", "why it was not imported"), rows, title="Not imported", right=("line",))
