"""Tables of offers and prices. Needs Django."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.consumer_offers import Offer
from harvester.catalog.history import PricePoint
from harvester.catalog.offer_browser import Line, Listing
from harvester.catalog.visibility_reasons import Standing
from harvester.cli.job_views import database_now
from harvester.cli.output import amount_text, pairs, stacked, table, when

#: Characters of a title in a list; `offers show` prints all of it.
TITLE_IN_LIST = 60
_STOCK = {None: "", "IN_STOCK": "yes", "OUT_OF_STOCK": "no", "BACKORDER": "backorder"}


def list_table(found: Sequence[Offer]) -> RenderableType:
    if not found:
        return Text("No visible offer matches. To see which sources are shown: harvester source list")
    now = database_now()
    rows = [
        (
            offer.product_id,
            offer.title[:TITLE_IN_LIST],
            offer.brand,
            money(offer),
            _STOCK[offer.availability],
            offer.source,
            when(offer.observed_at, now),
        )
        for offer in found
    ]
    columns = ("product", "title", "brand", "price", "in stock", "source", "priced")
    return table(columns, rows, right=("product", "price"))


def listing(found: Listing) -> dict[str, Any]:
    """Return a page of all offers as data."""
    offers = [
        {
            **{name: value for name, value in vars(line).items() if name != "standing"},
            "state": line.standing.state,
            "why": line.standing.words,
            "whys": [vars(why) for why in line.standing.whys],
            "last_seen_at": line.standing.last_seen_at,
            "expires_at": line.standing.expires_at,
        }
        for line in found.lines
    ]
    return {"offers": offers, "next": found.next, "is_cut": found.is_cut, "by_number": found.by_number}


def listing_view(found: Listing) -> RenderableType:
    if not found.lines:
        return Text("None of the rows searched so far match." if found.is_cut else "There are no such offers.")
    now = database_now()
    rows = [
        (
            line.product_id,
            line.title[:TITLE_IN_LIST],
            line.brand,
            money(line),
            _STOCK[line.availability],
            line.source,
            when(line.observed_at, now),
            _state(line.standing, now),
        )
        for line in found.lines
    ]
    columns = ("product", "title", "brand", "price", "in stock", "source", "priced", "state")
    # Each reason once, because most offers of a page have the same.
    reasons = dict.fromkeys(
        (why.state, why.words) for line in found.lines for why in line.standing.whys if not line.standing.is_visible
    )
    hidden = table(("state", "reason"), reasons, title="Why consumers do not see them") if reasons else None
    return stacked(table(columns, rows, right=("product", "price")), hidden)


def _state(standing: Standing, now: datetime) -> str:
    states, since = ", ".join(why.state for why in standing.whys), standing.whys[0].since
    if standing.is_visible and standing.is_missing and standing.expires_at:
        return f"{states}, expires {when(standing.expires_at, now)}"
    return f"{states} since {when(since, now)}" if since else states


def money(offer: Offer | PricePoint | Line) -> str:
    if offer.amount is None:
        return ""
    return f"{amount_text(offer.amount)} {offer.currency}"


def detail_view(offer: Offer, standing: Standing) -> RenderableType:
    hidden = ("is_shown", "is_active", "amount", "currency", "rank", "attributes")
    shown = [
        *((name, value) for name, value in vars(offer).items() if name not in hidden),
        *(offer.attributes or {}).items(),
    ]
    facts = [(name.replace("_", " "), _plain(value)) for name, value in shown]
    expires = ("expires", _plain(standing.expires_at))
    return pairs([*facts, ("price", money(offer)), expires, ("visibility", standing.words)])


def _plain(value: Any) -> Any:
    """Return a value for people; times are UTC, as in the price history."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    return amount_text(value) if isinstance(value, Decimal) else value


def history_table(points: Sequence[PricePoint]) -> RenderableType:
    if not points:
        return Text("There are no prices in this period.")
    rows = [
        (
            f"{point.observed_at:%Y-%m-%d %H:%M}",
            money(point),
            amount_text(point.original_amount),
            _STOCK[point.availability],
            "" if point.raw_amount == point.amount else f"from {amount_text(point.raw_amount)}",
            point.run_no,
        )
        for point in points
    ]
    columns = ("observed (UTC)", "price", "original price", "in stock", "corrected", "run")
    return table(columns, rows, right=("price", "original price", "run"))
