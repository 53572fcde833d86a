"""How offers and prices look. Needs Django."""

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

#: Characters of a title in a list; `offers show` has all of it.
TITLE_IN_LIST = 60


def list_table(found: Sequence[Offer]) -> RenderableType:
    if not found:
        return Text("No offer fits, or consumers see none: harvester source list tells which sources are shown.")
    now = database_now()
    rows = [
        (
            offer.product_id,
            offer.title[:TITLE_IN_LIST],
            offer.brand,
            money(offer),
            "yes" if offer.in_stock else "no",
            offer.source,
            when(offer.observed_at, now),
        )
        for offer in found
    ]
    columns = ("product", "title", "brand", "price", "in stock", "source", "priced")
    return table(columns, rows, right=("product", "price"))


def listing(found: Listing) -> dict[str, Any]:
    """A page of all offers as data."""
    return {
        "offers": [_line(line) for line in found.lines],
        "next": found.next,
        "is_cut": found.is_cut,
        "by_number": found.by_number,
    }


def _line(line: Line) -> dict[str, Any]:
    stands = line.standing
    return {
        **{name: value for name, value in vars(line).items() if name != "standing"},
        "state": stands.state,
        "why": stands.words,
        "whys": [vars(why) for why in stands.whys],
        "last_seen_at": stands.last_seen_at,
        "expires_at": stands.expires_at,
    }


def listing_view(found: Listing) -> RenderableType:
    if not found.lines:
        return Text("There is none among the rows looked at so far." if found.is_cut else "There is no such offer.")
    now = database_now()
    rows = [
        (
            line.product_id,
            line.title[:TITLE_IN_LIST],
            line.brand,
            money(line),
            "" if line.in_stock is None else "yes" if line.in_stock else "no",
            line.source,
            when(line.observed_at, now),
            _state(line.standing, now),
        )
        for line in found.lines
    ]
    columns = ("product", "title", "brand", "price", "in stock", "source", "priced", "state")
    return stacked(table(columns, rows, right=("product", "price")), _reasons(found))


def _state(stands: Standing, now: datetime) -> str:
    words, since = ", ".join(why.state for why in stands.whys), stands.whys[0].since
    if stands.is_visible and stands.is_missing and stands.expires_at:
        return f"{words}, expires {when(stands.expires_at, now)}"
    return f"{words} since {when(since, now)}" if since else words


def _reasons(found: Listing) -> RenderableType | None:
    """Whole sentences, each once: the offers of a page mostly share them."""
    whys = [why for line in found.lines for why in line.standing.whys if not line.standing.is_visible]
    told = dict.fromkeys((why.state, why.words) for why in whys)
    return table(("state", "why"), told, title="Why consumers do not see them") if told else None


def money(offer: Offer | PricePoint | Line) -> str:
    if offer.amount is None:
        return ""
    return f"{amount_text(offer.amount)} {offer.currency}"


def detail_view(offer: Offer, stands: Standing) -> RenderableType:
    hidden = ("is_shown", "is_active", "amount", "currency", "rank")
    facts = [(name.replace("_", " "), _plain(value)) for name, value in vars(offer).items() if name not in hidden]
    expires = ("expires", _plain(stands.expires_at))
    return pairs([*facts, ("price", money(offer)), expires, ("consumers", stands.words)])


def _plain(value: Any) -> Any:
    """A fact as people read it; moments are UTC, as in the list of prices."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    return amount_text(value) if isinstance(value, Decimal) else value


def history_table(points: Sequence[PricePoint]) -> RenderableType:
    if not points:
        return Text("There is no price in this time.")
    rows = [
        (
            f"{point.observed_at:%Y-%m-%d %H:%M}",
            money(point),
            amount_text(point.original_amount),
            "yes" if point.in_stock else "no",
            "" if point.raw_amount == point.amount else f"was {amount_text(point.raw_amount)}",
            point.run_no,
        )
        for point in points
    ]
    columns = ("observed (UTC)", "price", "before", "in stock", "corrected", "run")
    return table(columns, rows, right=("price", "before", "run"))
