"""`harvester retailer ...`, and `harvester import`, which adds retailers and sources from files."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, pairs, stacked, table
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "retailer",
    "Add, show and change retailers.",
    ("harvester retailer add Shop --website https://shop.example", "harvester retailer list"),
)

Reference = Annotated[str, typer.Argument(metavar="RETAILER", help="Its domain, its name or its id.")]
Website = Annotated[str | None, typer.Option(help="The shop's URL; its host becomes the retailer's domain.")]


@command(app, "add", ("harvester retailer add Shop --website https://shop.example",), data=True)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The retailer's name.")], *, website: Website = None
) -> None:
    """Add a retailer. Add its sources with harvester source add."""
    with session():
        from harvester.catalog import retailers

        made = retailers.create(operator(), name=name, website=website or "")
        OUT.show(_public(made), lambda: f"{made.name} was added ({made.domain or 'without a domain'}).")


@command(app, "list", ("harvester retailer list", "harvester retailer list --json"), data=True)
def list_retailers() -> None:
    """List all retailers with the sources that consumers see."""
    with session():
        from harvester.catalog.models import Retailer

        found = [_with_sources(retailer) for retailer in Retailer.objects.order_by("name").prefetch_related("sources")]
        rows = [(one["name"], one["domain"], len(one["sources"]), _shown(one)) for one in found]
        columns = ("name", "domain", "sources", "consumers see")
        none = Text("There are no retailers yet. Add one: harvester retailer add NAME --website https://...")
        OUT.show({"retailers": found}, lambda: table(columns, rows, right=("sources",)) if rows else none)


@command(app, "show", ("harvester retailer show shop.example",), data=True)
def show(retailer: Reference) -> None:
    """Show a retailer and its sources."""
    with session():
        from harvester.catalog import retailers

        found = _with_sources(retailers.find(retailer))
        names = ("name", "website", "domain", "id")
        facts = [*((name, found[name]) for name in names), ("consumers see", _shown(found))]
        rows = [
            (source["name"], source["kind"], "yes" if source["is_display_primary"] else "")
            for source in found["sources"]
        ]
        columns = ("source", "kind", "display primary")
        OUT.show(found, lambda: stacked(pairs(facts), table(columns, rows) if rows else None))


@command(app, "set", ("harvester retailer set Shop --website https://shop.example",), data=True)
def change(
    retailer: Reference,
    *,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    website: Website = None,
) -> None:
    """Change the name or the website; the domain follows the website."""
    changes = {field: value for field, value in (("name", name), ("website", website)) if value is not None}
    if not changes:
        raise InvalidInput("Nothing was changed: give --name or --website.")
    with session():
        from harvester.catalog import retailers

        made = retailers.update(operator(), retailers.find(retailer).pk, **changes)
        OUT.show(_public(made), lambda: f"{made.name} was changed ({made.domain or 'without a domain'}).")


def _public(retailer: Any) -> dict[str, Any]:
    return {name: getattr(retailer, name) for name in ("id", "name", "website", "domain", "created_at")}


def _with_sources(retailer: Any) -> dict[str, Any]:
    names = ("id", "name", "kind", "is_display_primary")
    sources = sorted(retailer.sources.all(), key=lambda source: source.name)
    return {**_public(retailer), "sources": [{name: getattr(source, name) for name in names} for source in sources]}


def _shown(retailer: dict[str, Any]) -> str:
    """Return the sources that consumers see: the primary, or all direct sources if there is none."""
    primary = [source["name"] for source in retailer["sources"] if source["is_display_primary"]]
    direct = [source["name"] for source in retailer["sources"] if source["kind"] == "DIRECT"]
    return ", ".join(primary or direct) or "nothing"


IMPORT_EXAMPLES = (
    "harvester import retailers.csv sources.csv --dry-run",
    "harvester import retailers.csv sources.csv --json",
)


def declare_import(root: typer.Typer) -> None:
    command(root, "import", IMPORT_EXAMPLES, data=True, rich_help_panel="Catalog")(import_shops)


def import_shops(
    retailers: Annotated[Path, typer.Argument(metavar="RETAILERS.CSV", help="Columns: name, website.")],
    sources: Annotated[Path, typer.Argument(metavar="SOURCES.CSV", help="Columns: name, url, and optional ones.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result; import nothing.")] = False,
) -> None:
    """Import retailers and sources from two CSV files.

    A source is added to the retailer that has the domain of its url. Sources without such a retailer and invalid lines
    are listed and not imported; the exit code is then 1. Existing retailers and sources do not change, so the files
    may be imported again. docs/how-to/import-retailers-and-sources.md describes the columns.
    """
    with session():
        from harvester.catalog import shop_import
        from harvester.catalog.csv_rows import read_rows

        retailer_rows = read_rows(retailers, shop_import.RETAILER_COLUMNS, ("name", "website"))
        source_rows = read_rows(sources, shop_import.SOURCE_COLUMNS, ("name", "url"))
        done = shop_import.import_rows(operator(), retailer_rows, source_rows, dry_run=dry_run)
        data = {"dry_run": dry_run, **shop_import.as_dict(done)}
        verb = "would be" if dry_run else "were"
        lines = [
            f"{len(done.retailers_created)} retailers {verb} added, {done.retailers_known} existed already.",
            f"{len(done.sources_created)} sources {verb} added, {done.sources_known} existed already.",
            f"{len(done.primaries_set)} sources {verb} made the display primary of their retailer.",
        ]
        problems = shop_import.problems_in_order(done)
        rows = [(problem.file, problem.line, problem.column, problem.reason) for problem in problems]
        columns = ("file", "line", "column", "reason")
        rejected = table(columns, rows, title="Not imported", right=("line",)) if rows else None
        OUT.show(data, lambda: stacked(*lines, rejected))
        if not done.is_whole:
            raise typer.Exit(Exit.FAILED)
