"""`harvester offers ...`: what consumers see and what not, and how its price went."""

from typing import Annotated, Any

import typer

from harvester.cli import offer_options as options
from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, as_typed, moment
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import NotFound

app = group(
    "offers",
    "What consumers see and what not, and how its price went.",
    (
        "harvester offers search 'olive oil' --currency USD --sort price",
        "harvester offers list --state EXPIRED",
    ),
)


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
    retailer: options.Retailer = "",
    source: options.Source = "",
    category: options.Category = "",
    brand: options.Brand = "",
    in_stock: options.InStock = None,
    currency: options.Currency = "",
    lowest: options.Lowest = "",
    highest: options.Highest = "",
    sort: options.Order = None,
    page: Annotated[int, typer.Option(help="The first is 1.")] = 1,
    size: options.Size = 20,
) -> None:
    """Find offers that consumers see.

    In the text, "two words" in quotes stand beside each other, OR means either, and a minus leaves a word out.
    """
    given = options.typed(
        text=text,
        category=category,
        brand=brand,
        in_stock=in_stock,
        currency=currency,
        lowest=lowest,
        highest=highest,
        sort=sort,
        page=page,
        size=size,
    )
    with session(), as_typed(**options.NAMES, page="--page"):
        from harvester.catalog.search_query import Query

        _show_page(Query(**given, **options.owners(retailer, source)))


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
        from harvester.catalog import consumer_offers, sources, visibility_reasons
        from harvester.cli import offer_views

        owner = sources.find(source)
        stands = visibility_reasons.standing(owner.pk, product)
        if not stands.has_offer:
            raise NotFound(f"Product {product} of {owner.name} has no offer. {stands.words}")
        found = consumer_offers.offer(owner.pk, product)
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
        from harvester.catalog import consumer_offers, history, sources
        from harvester.cli import offer_views

        owner = sources.find(source)
        points = history.price_history(owner.pk, product, since=start, most=limit)
        if not points:
            consumer_offers.offer(owner.pk, product)
        OUT.show({"prices": [vars(point) for point in points]}, lambda: offer_views.history_table(points))
