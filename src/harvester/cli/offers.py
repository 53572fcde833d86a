"""`harvester offers ...`: offers, whether consumers see them, and their prices."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from harvester.catalog.search_query import Sort
from harvester.catalog.states import Shown
from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, as_typed, moment
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput, NotFound

app = group(
    "offers",
    "Search, list and show offers and their prices.",
    (
        "harvester offers search 'olive oil' --currency USD --sort price",
        "harvester offers list --state EXPIRED",
    ),
)

Retailer = Annotated[str, typer.Option(help="Only this retailer: its domain, name or id.")]
Source = Annotated[str, typer.Option(help="Only this source: its name or id.")]
Category = Annotated[str, typer.Option(help="Only this category, as the source calls it.")]
Brand = Annotated[str, typer.Option(help="Only this brand.")]
InStock = Annotated[bool | None, typer.Option("--in-stock/--out-of-stock", help="Only these.")]
Currency = Annotated[str, typer.Option(help="Only this currency, such as USD.")]
Lowest = Annotated[str, typer.Option("--min", help="Only at this price or above; needs --currency.")]
Highest = Annotated[str, typer.Option("--max", help="Only at this price or below; needs --currency.")]
Order = Annotated[Sort | None, typer.Option(help="Default: relevance with a text, otherwise newest.")]
Size = Annotated[int, typer.Option(help="Offers on a page, at most 100.")]
SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's name or id.")]
ProductId = Annotated[
    int,
    typer.Argument(metavar="PRODUCT", min=1, max=LARGEST_NUMBER, help="The number that harvester offers search shows."),
]

#: Field of a query -> option, where they differ.
_OPTIONS = {"page_size": "--size", "min_amount": "--min", "max_amount": "--max"}


def _query_fields(*, currency: str, lowest: str, highest: str, size: int, **given: Any) -> dict[str, Any]:
    """Return the fields of a query that do not need the database."""
    amounts = {"min_amount": _amount("--min", lowest), "max_amount": _amount("--max", highest)}
    return {**given, **amounts, "currency": currency.upper(), "page_size": size}


def _owner_fields(retailer: str, source: str) -> dict[str, Any]:
    """Return the retailer and the source of a query. Needs Django."""
    from harvester.catalog import retailers, sources

    return {
        "retailer_id": retailers.find(retailer).pk if retailer else None,
        "source_id": sources.find(source).pk if source else None,
    }


def _amount(option: str, text: str) -> Decimal | None:
    if not text:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InvalidInput(f"{text[:40]!r} is not an amount; write it like 19.99.", field=option) from None


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
    retailer: Retailer = "",
    source: Source = "",
    category: Category = "",
    brand: Brand = "",
    in_stock: InStock = None,
    currency: Currency = "",
    lowest: Lowest = "",
    highest: Highest = "",
    sort: Order = None,
    page: Annotated[int, typer.Option(help="The first is 1.")] = 1,
    size: Size = 20,
) -> None:
    """Search the offers that consumers see.

    In the text, words in quotes are a phrase, OR means either word, and a minus excludes a word.
    """
    given = _query_fields(
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
    with session(), as_typed(**_OPTIONS, page="--page"):
        from harvester.catalog.search import search
        from harvester.catalog.search_query import Query
        from harvester.cli import offer_views

        found = search(Query(**given, **_owner_fields(retailer, source)))
        data = {"offers": [vars(offer) for offer in found.offers], "page": page, "has_more": found.has_more}
        OUT.show(data, lambda: offer_views.list_table(found.offers))
        if found.has_more:
            OUT.hint(f"There are more: --page {page + 1}")


@command(
    app,
    "list",
    (
        "harvester offers list --state EXPIRED --source Shop",
        "harvester offers list hammer --retailer shop.example --in-stock",
        "harvester offers list 4006381333931                    by SKU or GTIN",
        "harvester offers list --state WITHOUT_OFFER --source Shop --json",
    ),
    data=True,
)
def list_all(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words of title and brand, or a SKU or GTIN.")] = "",
    *,
    state: Annotated[Shown | None, typer.Option(case_sensitive=False, help="Only in this state.")] = None,
    retailer: Retailer = "",
    source: Source = "",
    category: Category = "",
    brand: Brand = "",
    in_stock: InStock = None,
    currency: Currency = "",
    lowest: Lowest = "",
    highest: Highest = "",
    sort: Order = None,
    after: Annotated[str, typer.Option(help="Start after this cursor of the page before.")] = "",
    size: Size = 20,
) -> None:
    """List all offers, also those that consumers do not see, with the reason.

    Products without an offer (WITHOUT_OFFER) are listed for one retailer or one source.
    """
    given = _query_fields(
        text=text,
        state=state or "",
        category=category,
        brand=brand,
        in_stock=in_stock,
        currency=currency,
        lowest=lowest,
        highest=highest,
        sort=sort,
        behind=after,
        size=size,
    )
    with session(), as_typed(**_OPTIONS, state="--state", after="--after", in_stock="--in-stock"):
        from harvester.catalog.offer_browser import Browse, browse
        from harvester.cli import offer_views

        found = browse(Browse(**given, **_owner_fields(retailer, source)))
        OUT.show(offer_views.listing(found), lambda: offer_views.listing_view(found))
        if found.by_number:
            OUT.hint("Matched by SKU or GTIN.")
        if found.next:
            OUT.hint(f"{'There may be more' if found.is_cut else 'There are more'}: --after {found.next}")
        elif found.is_cut:
            OUT.hint("Only the best matches are listed. List all of them with --sort newest.")


@command(app, "show", ("harvester offers show Shop 42", "harvester offers show Shop 42 --json"), data=True)
def show(source: SourceName, product: ProductId) -> None:
    """Show an offer, and why consumers see it or not."""
    with session():
        from harvester.catalog import consumer_offers, sources, visibility_reasons
        from harvester.cli import offer_views

        owner = sources.find(source)
        standing = visibility_reasons.standing(owner.pk, product)
        if not standing.has_offer:
            raise NotFound(f"Product {product} of {owner.name} has no offer. {standing.words}")
        found = consumer_offers.offer(owner.pk, product)
        data = {**vars(found), "state": standing.state, "why": standing.words, "expires_at": standing.expires_at}
        OUT.show(data, lambda: offer_views.detail_view(found, standing))


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
    since: Annotated[str, typer.Option(help="Only from this date or time on; UTC unless it names a time zone.")] = "",
    limit: Annotated[int, typer.Option(help="At most this many, the newest.")] = 100,
) -> None:
    """Show the price history of a product, newest first, after corrections."""
    start = moment("--since", since)
    with session(), as_typed(most="--limit"):
        from harvester.catalog import consumer_offers, history, sources
        from harvester.cli import offer_views

        owner = sources.find(source)
        points = history.price_history(owner.pk, product, since=start, most=limit)
        if not points:
            consumer_offers.offer(owner.pk, product)
        OUT.show({"prices": [vars(point) for point in points]}, lambda: offer_views.history_table(points))
