"""`harvester review ...`: products that the resolver could not recognise."""

from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, as_typed
from harvester.cli.output import OUT, table
from harvester.cli.session import session

app = group(
    "review",
    "Products that the resolver could not recognise: say what they are.",
    ("harvester review list", "harvester review skip Shop 42"),
)

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's name or id.")]
Number = Annotated[
    int,
    typer.Argument(metavar="PRODUCT", min=1, max=LARGEST_NUMBER, help="The number that harvester review list shows."),
]


@command(app, "list", ("harvester review list", "harvester review list --source Shop --json"), data=True)
def list_waiting(
    *,
    source: Annotated[str, typer.Option(help="Only this source: its name or id.")] = "",
    after: Annotated[str, typer.Option(help="Go on behind this place, as the answer before said.")] = "",
    limit: Annotated[int, typer.Option(help="At most this many, at most 100.")] = 50,
) -> None:
    """List the products that wait for a person."""
    with session(), as_typed(most="--limit", after="--after"):
        from harvester.catalog import review_queue, sources

        found = review_queue.waiting(source_id=sources.find(source).pk if source else None, after=after, most=limit)
        onward = found[-1].cursor if len(found) == limit else ""
        OUT.show({"products": [vars(one) for one in found], "after": onward}, lambda: _table(found))
        if onward:
            OUT.hint(f"There may be more: --after '{onward}'")


@command(app, "find", ("harvester review find 'claw hammer'", "harvester review find 4006381333931 --json"), data=True)
def find(text: Annotated[str, typer.Argument(metavar="TEXT", help="Words, a trade item number or an id.")]) -> None:
    """Find canonical products that one may be linked to."""
    with session():
        from harvester.catalog import review_queue

        found = review_queue.find_products(text)
        OUT.show({"products": [vars(one) for one in found]}, lambda: _canonicals(found))


@command(app, "link", ("harvester review link Shop 42 01980000-0000-7000-8000-000000000000",), data=True)
def link(
    source: SourceName,
    product: Number,
    canonical: Annotated[str, typer.Argument(metavar="CANONICAL", help="The id that harvester review find shows.")],
) -> None:
    """Say which canonical product it is; no run changes that."""
    with session():
        from harvester.catalog import review_queue, sources

        owner, target = sources.find(source), review_queue.parse_id(canonical)
        review_queue.link(operator(), owner.pk, product, target)
        OUT.show({"product": target}, lambda: f"Product {product} of {owner.name} is linked.")


@command(
    app, "create", ("harvester review create Shop 42", "harvester review create Shop 42 --title Hammer"), data=True
)
def create(
    source: SourceName,
    product: Number,
    *,
    title: Annotated[str, typer.Option(help="Its title, unless it is that of the source's product.")] = "",
    brand: Annotated[str | None, typer.Option(help="Its brand, unless it is that of the source's product.")] = None,
) -> None:
    """Make a canonical product for it."""
    with session():
        from harvester.catalog import review_queue, sources

        owner = sources.find(source)
        made = review_queue.create(operator(), owner.pk, product, title=title, brand=brand)
        OUT.show({"product": made}, lambda: f"The product {made} was made for product {product} of {owner.name}.")


@command(app, "skip", ("harvester review skip Shop 42 --reason 'a gift card'",), data=True)
def skip(
    source: SourceName, product: Number, *, reason: Annotated[str, typer.Option(help="Why, for those who look.")] = ""
) -> None:
    """Leave it without a canonical product."""
    with session():
        from harvester.catalog import review_queue, sources

        owner = sources.find(source)
        review_queue.skip(operator(), owner.pk, product, reason)
        OUT.show({"skipped": product}, lambda: f"Product {product} of {owner.name} is skipped.")


@command(app, "reopen", ("harvester review reopen Shop 42",), data=True)
def reopen(source: SourceName, product: Number) -> None:
    """Take back what a person decided; it waits again."""
    with session():
        from harvester.catalog import review_queue, sources

        owner = sources.find(source)
        review_queue.reopen(operator(), owner.pk, product)
        OUT.show({"reopened": product}, lambda: f"Product {product} of {owner.name} waits again.")


def _table(found: list[Any]) -> RenderableType:
    if not found:
        return Text("Nothing to review.")
    rows = [(one.product_id, one.title[:60], one.brand, one.gtin, one.source) for one in found]
    return table(("product", "title", "brand", "gtin", "source"), rows, right=("product",))


def _canonicals(found: list[Any]) -> RenderableType:
    if not found:
        return Text("No product is sold under these words, and none has this number.")
    rows = [(one.id, one.title[:60], one.brand, one.gtin, one.sources) for one in found]
    return table(("id", "title", "brand", "gtin", "sold"), rows, right=("sold",))
