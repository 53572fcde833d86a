"""`harvester offers ...`: what consumers see, and how its price went."""

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any

import typer

from harvester.cli.commands import command, group
from harvester.cli.moments import moment
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.cli.typed import LARGEST_NUMBER, as_typed
from harvester.kernel.errors import InvalidInput, NotFound

app = group(
    "offers",
    "What consumers see, and how its price went.",
    ("harvester offers search 'olive oil' --currency USD --sort price",),
)


class Order(StrEnum):
    """The orders as they are typed."""

    relevance = "relevance"
    price = "price"
    dearest = "-price"
    newest = "newest"


SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's name or id.")]
ProductId = Annotated[
    int,
    typer.Argument(metavar="PRODUCT", min=1, max=LARGEST_NUMBER, help="The number that harvester offers search shows."),
]


@command(
    app,
    "search",
    (
        "harvester offers search hammer",
        "harvester offers search 'hammer -drill' --brand Acme --in-stock",
        "harvester offers search --currency USD --max 50 --sort price --json",
    ),
    data=True,
)
def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words of title and brand.")] = "",
    *,
    retailer: Annotated[str, typer.Option(help="Only this retailer: its domain, name or id.")] = "",
    source: Annotated[str, typer.Option(help="Only this source: its name or id.")] = "",
    category: Annotated[str, typer.Option(help="Only this category, as the source calls it.")] = "",
    brand: Annotated[str, typer.Option(help="Only this brand.")] = "",
    in_stock: Annotated[bool | None, typer.Option("--in-stock/--out-of-stock", help="Only these.")] = None,
    currency: Annotated[str, typer.Option(help="Only this currency, such as USD.")] = "",
    lowest: Annotated[str, typer.Option("--min", help="Only at this price or above; needs --currency.")] = "",
    highest: Annotated[str, typer.Option("--max", help="Only at this price or below; needs --currency.")] = "",
    sort: Annotated[Order | None, typer.Option(help="relevance with a text, otherwise newest.")] = None,
    page: Annotated[int, typer.Option(help="The first is 1.")] = 1,
    size: Annotated[int, typer.Option(help="Offers on a page, at most 100.")] = 20,
) -> None:
    """Find offers that consumers see.

    In the text, "two words" in quotes stand beside each other, OR means either, and a minus leaves a word out.
    """
    given: dict[str, Any] = {
        "text": text,
        "category": category,
        "brand": brand,
        "in_stock": in_stock,
        "currency": currency.upper(),
    }
    amounts = {"min_amount": _amount("--min", lowest), "max_amount": _amount("--max", highest)}
    with session(), as_typed(page_size="--size", page="--page", min_amount="--min", max_amount="--max"):
        from harvester.catalog import retailers, search_query, sources

        order = search_query.Sort(sort.value) if sort else None
        owners: dict[str, Any] = {
            "retailer_id": retailers.find(retailer).pk if retailer else None,
            "source_id": sources.find(source).pk if source else None,
        }
        _show_page(search_query.Query(**given, **amounts, **owners, sort=order, page=page, page_size=size))


def _show_page(query: Any) -> None:
    from harvester.catalog.search import search
    from harvester.cli import offer_views

    found = search(query)
    data = {"offers": [vars(offer) for offer in found.offers], "page": query.page, "has_more": found.has_more}
    OUT.show(data, lambda: offer_views.list_table(found.offers))
    if found.has_more:
        OUT.hint(f"There are more: --page {query.page + 1}")


@command(app, "show", ("harvester offers show Shop 42", "harvester offers show Shop 42 --json"), data=True)
def show(source: SourceName, product: ProductId) -> None:
    """Show an offer, whether consumers see it or not, and why."""
    with session():
        from harvester.catalog import explaining, reading, sources
        from harvester.cli import offer_views

        owner = sources.find(source)
        stands = explaining.standing(owner.pk, product)
        if not stands.has_offer:
            raise NotFound(f"Product {product} of {owner.name} has no offer. {stands.words}")
        found = reading.offer(owner.pk, product)
        data = {**vars(found), "state": stands.state, "why": stands.words, "expires_at": stands.expires_at}
        OUT.show(data, lambda: offer_views.detail_view(found, stands))


@command(
    app,
    "history",
    ("harvester offers history Shop 42", "harvester offers history Shop 42 --since 2026-01-01 --json"),
    data=True,
)
def show_history(
    source: SourceName,
    product: ProductId,
    *,
    since: Annotated[str, typer.Option(help="Only from this day or moment on, UTC unless it names a zone.")] = "",
    limit: Annotated[int, typer.Option(help="At most this many, the newest.")] = 100,
) -> None:
    """Show how the price of a product went, newest first, as corrections make it read."""
    start = moment("--since", since)
    with session(), as_typed(most="--limit"):
        from harvester.catalog import history, reading, sources
        from harvester.cli import offer_views

        owner = sources.find(source)
        points = history.price_history(owner.pk, product, since=start, most=limit)
        if not points:
            reading.offer(owner.pk, product)
        OUT.show({"prices": [vars(point) for point in points]}, lambda: offer_views.history_table(points))


def _amount(option: str, text: str) -> Any:
    if not text:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InvalidInput(f"{option}: {text[:40]!r} is no amount; write it like 19.99.") from None
