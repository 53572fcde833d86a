"""`harvester review ...`: source products that were not matched to a canonical product."""

from typing import Annotated

import typer
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, as_typed
from harvester.cli.output import OUT, table
from harvester.cli.session import session

app = group(
    "review",
    "Link, create or skip products that could not be matched.",
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
    after: Annotated[str, typer.Option(help="Start after this cursor of the page before.")] = "",
    limit: Annotated[int, typer.Option(help="At most this many; up to 100.")] = 50,
) -> None:
    """List the products that wait for review."""
    with session(), as_typed(most="--limit", after="--after"):
        from harvester.catalog import review_queue, sources

        found = review_queue.waiting(source_id=sources.find(source).pk if source else None, after=after, most=limit)
        cursor = found[-1].cursor if len(found) == limit else ""
        rows = [(one.product_id, one.title[:60], one.brand, one.gtin, one.source) for one in found]
        columns = ("product", "title", "brand", "gtin", "source")
        OUT.show(
            {"products": [vars(one) for one in found], "after": cursor},
            lambda: table(columns, rows, right=("product",)) if rows else Text("Nothing to review."),
        )
        if cursor:
            OUT.hint(f"There may be more: --after '{cursor}'")


@command(app, "find", ("harvester review find 'claw hammer'", "harvester review find 4006381333931 --json"), data=True)
def find(text: Annotated[str, typer.Argument(metavar="TEXT", help="Words, a GTIN or an id.")]) -> None:
    """Find canonical products to link to."""
    with session():
        from harvester.catalog import review_queue

        found = review_queue.find_products(text)
        rows = [(one.id, one.title[:60], one.brand, one.gtin, one.sources) for one in found]
        columns = ("id", "title", "brand", "gtin", "sources")
        OUT.show(
            {"products": [vars(one) for one in found]},
            lambda: table(columns, rows, right=("sources",)) if rows else Text("No canonical product matches."),
        )


@command(app, "link", ("harvester review link Shop 42 01980000-0000-7000-8000-000000000000",), data=True)
def link(
    source: SourceName,
    product: Number,
    canonical: Annotated[str, typer.Argument(metavar="CANONICAL", help="The id that harvester review find shows.")],
) -> None:
    """Link a product to a canonical product. Later runs do not change that."""
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
    title: Annotated[str, typer.Option(help="Title; that of the source's product by default.")] = "",
    brand: Annotated[str | None, typer.Option(help="Brand; that of the source's product by default.")] = None,
) -> None:
    """Create a canonical product for a product."""
    with session():
        from harvester.catalog import review_queue, sources

        owner = sources.find(source)
        made = review_queue.create(operator(), owner.pk, product, title=title, brand=brand)
        OUT.show(
            {"product": made}, lambda: f"Canonical product {made} was created for product {product} of {owner.name}."
        )


@command(app, "skip", ("harvester review skip Shop 42 --reason 'a gift card'",), data=True)
def skip(
    source: SourceName, product: Number, *, reason: Annotated[str, typer.Option(help="Why, for others.")] = ""
) -> None:
    """Leave a product without a canonical product."""
    with session():
        from harvester.catalog import review_queue, sources

        owner = sources.find(source)
        review_queue.skip(operator(), owner.pk, product, reason)
        OUT.show({"skipped": product}, lambda: f"Product {product} of {owner.name} is skipped.")


@command(app, "reopen", ("harvester review reopen Shop 42",), data=True)
def reopen(source: SourceName, product: Number) -> None:
    """Undo a decision. The product waits for review again."""
    with session():
        from harvester.catalog import review_queue, sources

        owner = sources.find(source)
        review_queue.reopen(operator(), owner.pk, product)
        OUT.show({"reopened": product}, lambda: f"Product {product} of {owner.name} waits for review again.")
