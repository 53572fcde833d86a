"""`harvester retailer ...`: those who sell."""

from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.output import OUT, pairs, stacked, table
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "retailer",
    "Those who sell: add, look at and change them.",
    ("harvester retailer add Shop --website https://shop.example", "harvester retailer list"),
)

Reference = Annotated[str, typer.Argument(metavar="RETAILER", help="Its domain, its name or its id.")]
Website = Annotated[
    str | None, typer.Option(help="The shop's address; its host is the domain that the retailer is known by.")
]


@command(app, "add", ("harvester retailer add Shop --website https://shop.example",), data=True)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As people know it.")], *, website: Website = None
) -> None:
    """Make a retailer known. Its sources are added with harvester source add."""
    with session():
        from harvester.catalog import retailers

        made = retailers.create(operator(), name=name, website=website or "")
        OUT.show(_public(made), lambda: f"{made.name} was added, known by {made.domain or 'its name'}.")


@command(app, "list", ("harvester retailer list", "harvester retailer list --json"), data=True)
def list_retailers() -> None:
    """List every retailer with the source that consumers see."""
    with session():
        from harvester.catalog.models import Retailer

        found = [_with_sources(retailer) for retailer in Retailer.objects.order_by("name").prefetch_related("sources")]
        OUT.show({"retailers": found}, lambda: _table(found))


@command(app, "show", ("harvester retailer show shop.example",), data=True)
def show(retailer: Reference) -> None:
    """Show a retailer and its sources."""
    with session():
        from harvester.catalog import retailers

        found = _with_sources(retailers.find(retailer))
        OUT.show(found, lambda: _view(found))


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
        raise InvalidInput("There is nothing to change; say --name or --website.")
    with session():
        from harvester.catalog import retailers

        made = retailers.update(operator(), retailers.find(retailer).pk, **changes)
        OUT.show(_public(made), lambda: f"{made.name} is known by {made.domain or 'its name'} now.")


def _public(retailer: Any) -> dict[str, Any]:
    return {name: getattr(retailer, name) for name in ("id", "name", "website", "domain", "created_at")}


def _with_sources(retailer: Any) -> dict[str, Any]:
    names = ("id", "name", "kind", "is_display_primary")
    sources = sorted(retailer.sources.all(), key=lambda source: source.name)
    return {**_public(retailer), "sources": [{name: getattr(source, name) for name in names} for source in sources]}


def _shown(retailer: dict[str, Any]) -> str:
    """The sources that consumers see: the primary, or without one every direct source."""
    primary = [source["name"] for source in retailer["sources"] if source["is_display_primary"]]
    direct = [source["name"] for source in retailer["sources"] if source["kind"] == "DIRECT"]
    return ", ".join(primary or direct) or "nothing"


def _table(found: list[dict[str, Any]]) -> RenderableType:
    if not found:
        return Text("There are no retailers yet. Add one: harvester retailer add NAME --website https://...")
    rows = [(one["name"], one["domain"], len(one["sources"]), _shown(one)) for one in found]
    return table(("name", "domain", "sources", "consumers see"), rows, right=("sources",))


def _view(found: dict[str, Any]) -> RenderableType:
    names = ("name", "website", "domain", "id")
    facts = [*((name, found[name]) for name in names), ("consumers see", _shown(found))]
    rows = [
        (source["name"], source["kind"], "yes" if source["is_display_primary"] else "") for source in found["sources"]
    ]
    return stacked(pairs(facts), table(("source", "kind", "display primary"), rows) if rows else None)
