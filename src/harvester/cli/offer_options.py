"""What offers are narrowed by at the command line, as it is typed."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from harvester.catalog.search_query import Sort
from harvester.kernel.errors import InvalidInput

Retailer = Annotated[str, typer.Option(help="Only this retailer: its domain, name or id.")]
Source = Annotated[str, typer.Option(help="Only this source: its name or id.")]
Category = Annotated[str, typer.Option(help="Only this category, as the source calls it.")]
Brand = Annotated[str, typer.Option(help="Only this brand.")]
InStock = Annotated[bool | None, typer.Option("--in-stock/--out-of-stock", help="Only these.")]
Currency = Annotated[str, typer.Option(help="Only this currency, such as USD.")]
Lowest = Annotated[str, typer.Option("--min", help="Only at this price or above; needs --currency.")]
Highest = Annotated[str, typer.Option("--max", help="Only at this price or below; needs --currency.")]
Order = Annotated[Sort | None, typer.Option(help="relevance with a text, otherwise newest.")]
Size = Annotated[int, typer.Option(help="Offers on a page, at most 100.")]

#: What a query calls its fields -> what they are typed as, where that differs.
NAMES = {"page_size": "--size", "min_amount": "--min", "max_amount": "--max"}


def typed(*, currency: str, lowest: str, highest: str, size: int, **given: Any) -> dict[str, Any]:
    """The fields of a query that can be read without the database."""
    amounts = {"min_amount": _amount("--min", lowest), "max_amount": _amount("--max", highest)}
    return {**given, **amounts, "currency": currency.upper(), "page_size": size}


def owners(retailer: str, source: str) -> dict[str, Any]:
    """The fields of a query that tell whose offers are wanted. Needs Django."""
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
        raise InvalidInput(f"{option}: {text[:40]!r} is no amount; write it like 19.99.") from None
