"""`harvester offers list`: every offer, seen by consumers or not, and why."""

from typing import Annotated, Any

import typer

from harvester.catalog.states import Shown
from harvester.cli import offer_options as options
from harvester.cli.commands import command
from harvester.cli.offers import app
from harvester.cli.options import as_typed
from harvester.cli.output import OUT
from harvester.cli.session import session


@command(
    app,
    "list",
    (
        "harvester offers list --state EXPIRED --source Shop",
        "harvester offers list hammer --retailer shop.example --in-stock",
        "harvester offers list 4006381333931                    by the number of a product, any that it has",
        "harvester offers list --state WITHOUT_OFFER --source Shop --json",
    ),
    data=True,
)
def list_all(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words of title and brand, or a product's number.")] = "",
    *,
    state: Annotated[Shown | None, typer.Option(case_sensitive=False, help="Only those that stand so.")] = None,
    retailer: options.Retailer = "",
    source: options.Source = "",
    category: options.Category = "",
    brand: options.Brand = "",
    in_stock: options.InStock = None,
    currency: options.Currency = "",
    lowest: options.Lowest = "",
    highest: options.Highest = "",
    sort: options.Order = None,
    after: Annotated[str, typer.Option(help="Go on behind this place, which the page before names.")] = "",
    size: options.Size = 20,
) -> None:
    """List all offers, those that consumers do not see too, with the reason.

    Products of which no price may be read (WITHOUT_OFFER) are listed for one retailer or one source.
    """
    given = options.typed(
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
    with session(), as_typed(**options.NAMES, state="--state", after="--after", in_stock="--in-stock"):
        from harvester.catalog.offer_browser import Browse, browse
        from harvester.cli import offer_views

        found = browse(Browse(**given, **options.owners(retailer, source)))
        OUT.show(offer_views.listing(found), lambda: offer_views.listing_view(found))
        _tell_the_rest(found)


def _tell_the_rest(found: Any) -> None:
    if found.by_number:
        OUT.hint("Matched by SKU or GTIN.")
    if found.next:
        OUT.hint(f"{'There may be more; look further' if found.is_cut else 'There are more'}: --after {found.next}")
    elif found.is_cut:
        OUT.hint("These match best. With --sort newest all of them can be gone through.")
