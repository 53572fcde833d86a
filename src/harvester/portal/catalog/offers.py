"""Offers: the list of all of them with the reason why consumers see them or not, and the page of one."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from html import escape
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harvester.catalog import history, offer_browser, product_details, retailers, sources
from harvester.catalog.history import PricePoint
from harvester.catalog.offer_browser import Browse, Line
from harvester.catalog.search_query import Sort
from harvester.catalog.states import Shown
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.catalog.labels import money, offer_link, outside
from harvester.portal.display import badge, verb, when
from harvester.portal.filters import Choice, Field, choice_pill, form_pill, text_field
from harvester.portal.links import link
from harvester.portal.pages import Pages
from harvester.portal.requests import may

PAGE_SIZE = 25
#: Prices that the chart draws and the table lists.
MOST_DRAWN = 500
MOST_LISTED = 50
STATES = [(state.value, verb(state.value)) for state in Shown]
STOCK = [("yes", "In stock"), ("no", "Out of stock")]
SORTS = [("newest", "Newest"), ("price", "Cheapest"), ("-price", "Most expensive"), ("relevance", "Best match")]
FIELDS = ("q", "retailer", "source", "brand", "category", "state", "stock", "currency", "min", "max", "sort")
_NONE = '<span class="hv-none">–</span>'  # noqa: RUF001 - an en dash is meant
_STOCK_CELLS = {
    None: _NONE,
    "IN_STOCK": '<span class="hv-why">In stock</span>',
    "OUT_OF_STOCK": '<span class="hv-note">Out</span>',
    "BACKORDER": '<span class="hv-note">Backorder</span>',
}


class OfferPages(Pages):
    mount = "offers"
    name = "catalog_offer"

    def urls(self) -> list[URLPattern]:
        return [
            self.url("", require_safe(self.list), "changelist"),
            self.url("<uuid:source_id>/<row:product_id>/", require_safe(self.show), "change"),
        ]

    def list(self, request: HttpRequest) -> HttpResponse:
        chosen = {name: value for name in FIELDS if (value := request.GET.get(name, "").strip())}
        listing, problem = None, ""
        try:
            listing = offer_browser.browse(_query(chosen, request.GET))
        except (InvalidInput, NotFound) as refused:
            problem = str(refused)
        context = {
            "title": "Offers",
            "chosen": chosen,
            "kept": {name: value for name, value in chosen.items() if name != "q"},
            "pills": _pills(chosen),
            "listing": listing,
            "rows": _rows(listing.lines) if listing else "",
            "problem": problem,
            "is_first": not (request.GET.get("after") or request.GET.get("before")),
            "first": _address(chosen),
            "next": _address(chosen, after=listing.next) if listing and listing.next else "",
            "previous": _address(chosen, before=listing.previous) if listing and listing.previous else "",
        }
        return self.render(request, "portal/catalog/offers.html", context)

    def show(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        try:
            product = product_details.product(source_id, product_id)
        except NotFound as problem:
            raise Http404 from problem
        prices = history.price_history(source_id, product_id, most=MOST_DRAWN)
        [line] = offer_browser.lines([(source_id, product_id)])
        context = {
            "title": product.title,
            "product": product,
            "facts": product.facts,
            "line": line,
            "standing": line.standing,
            "prices": prices[:MOST_LISTED],
            "hidden": history.hidden_prices(source_id, product_id, most=MOST_LISTED),
            "is_cut": len(prices) > MOST_LISTED,
            "chart": _chart(prices, is_current=line.amount is not None) if prices else None,
            "sightings": product_details.sightings(product),
            "siblings": product_details.siblings(product),
            "corrections": product_details.corrections_of(source_id, product_id),
            "links": {name: outside(product.facts[name]) for name in ("url", "image_url")},
            "tracking": outside(product.tracking_url),
            "operator": may(request, Role.OPERATOR),
        }
        return self.render(request, "portal/catalog/offer.html", context)


def _query(chosen: Mapping[str, str], parameters: Mapping[str, str]) -> Browse:
    """Return the query for the chosen filters.

    Raises:
        InvalidInput, NotFound: a value is invalid; the message names it.
    """
    sort = chosen.get("sort", "")
    if sort and sort not in dict(SORTS):
        raise InvalidInput(f"allowed are {', '.join(dict(SORTS))}.", field="sort")
    return Browse(
        text=chosen.get("q", ""),
        retailer_id=retailers.find(chosen["retailer"]).pk if "retailer" in chosen else None,
        source_id=sources.find(chosen["source"]).pk if "source" in chosen else None,
        brand=chosen.get("brand", ""),
        category=chosen.get("category", ""),
        in_stock={"yes": True, "no": False}.get(chosen.get("stock", "")),
        currency=chosen.get("currency", "").upper(),
        min_amount=_amount("min", chosen),
        max_amount=_amount("max", chosen),
        sort=Sort(sort) if sort else None,
        state=chosen.get("state", ""),
        behind=parameters.get("after", ""),
        ahead=parameters.get("before", ""),
        page_size=PAGE_SIZE,
    )


def _amount(field: str, chosen: Mapping[str, str]) -> Decimal | None:
    if field not in chosen:
        return None
    try:
        return Decimal(chosen[field])
    except InvalidOperation:
        raise InvalidInput(f"{chosen[field][:40]!r} is not an amount. Write it like 19.99.", field=field) from None


def _pills(chosen: Mapping[str, str]) -> list[SafeString]:
    def choice(title: str, field: str, labels: Iterable[tuple[str, str]]) -> SafeString:
        known, now = dict(labels), chosen.get(field, "")
        choices = [Choice(_address({**chosen, field: value}), text, value == now) for value, text in known.items()]
        return choice_pill(title, known.get(now, now), _address(_without(chosen, field)), choices)

    def text(title: str, field: str, hint: str) -> SafeString:
        kept, now = _without(chosen, field), chosen.get(field, "")
        return form_pill(title, now, _address(kept), kept, [text_field(title, field, now, hint)])

    return [
        choice("State", "state", STATES),
        text("Retailer", "retailer", "domain, name or ID"),
        text("Source", "source", "name or ID"),
        text("Brand", "brand", "as spelled by the source"),
        text("Category", "category", "as spelled by the source"),
        choice("Stock", "stock", STOCK),
        _price_pill(chosen),
        choice("Sort", "sort", SORTS),
    ]


def _price_pill(chosen: Mapping[str, str]) -> SafeString:
    names = ("currency", "min", "max")
    kept, (currency, low, high) = _without(chosen, *names), (chosen.get(name, "") for name in names)
    spread = f"{low or '0'} to {high or '…'}" if low or high else ""
    summary = " ".join(filter(None, (currency.upper(), spread)))
    fields = [
        Field("Currency", {"name": "currency", "value": currency, "placeholder": "USD", "spellcheck": "false"}),
        Field("From", {"name": "min", "inputmode": "decimal", "value": low, "placeholder": "0.00"}),
        Field("To", {"name": "max", "inputmode": "decimal", "value": high, "placeholder": "any"}),
    ]
    return form_pill("Price", summary, _address(kept), kept, fields)


def _without(chosen: Mapping[str, str], *fields: str) -> dict[str, str]:
    return {name: value for name, value in chosen.items() if name not in fields}


def _address(chosen: Mapping[str, str], **more: str) -> str:
    return "?" + urlencode({name: value for name, value in {**chosen, **more}.items() if value})


def _rows(lines: Iterable[Line]) -> SafeString:
    """Return the rows of the list. A template with a loop over the cells takes three times as long."""
    rows = []
    for line in lines:
        name = escape(line.brand or "")
        brand = f'<span class="hv-short" title="{name}">{name}</span>' if name else _NONE
        states, standing, since = " ".join(badge(why.state) for why in line.standing.whys), line.standing, ""
        if standing.whys[0].since:
            since = f"<small>since {when(standing.whys[0].since)}</small>"
        elif standing.is_visible and standing.is_missing and standing.expires_at:
            since = f"<small>expires {when(standing.expires_at)}</small>"
        rows.append(
            f'<tr><td data-label="Offer"><span class="hv-title">{offer_link(line)}</span></td>'
            f'<td data-label="Brand">{brand}</td>'
            f'<td data-label="Source">{link("source", line.source_id, text=line.source)}</td>'
            f'<td data-label="Price" class="hv-right">{money(line.amount, line.currency)}</td>'
            f'<td data-label="Stock">{_STOCK_CELLS[line.availability]}</td>'
            f'<td data-label="Priced">{when(line.observed_at)}</td>'
            f'<td data-label="State"><span class="hv-why" title="{escape(standing.words)}">'
            f"{states} {since}</span></td></tr>\n"
        )
    return SafeString("".join(rows))


def _chart(prices: list[PricePoint], *, is_current: bool) -> dict[str, Any]:
    """Return the data of price-chart.js: a line for each currency, up to now if the offer has a price now."""

    def milliseconds(moment: datetime) -> int:
        return round(moment.timestamp() * 1000)

    return {
        "until": milliseconds(timezone.now()) if is_current else None,
        "lines": [
            {
                "label": currency,
                "points": [
                    {"x": milliseconds(point.observed_at), "y": float(point.amount), "out": not point.in_stock}
                    for point in reversed(prices)
                    if point.currency == currency
                ],
            }
            for currency in sorted({point.currency for point in prices})
        ],
    }
