"""Offers: the list of all of them with why consumers see them or not, and the page of one."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils import timezone
from django.views.decorators.http import require_safe

from harvester.catalog import history, offer_browser, product_details
from harvester.catalog.history import PricePoint
from harvester.kernel.errors import NotFound
from harvester.ops.models import Role
from harvester.portal.catalog import offer_filters
from harvester.portal.catalog.labels import outside
from harvester.portal.catalog.offer_rows import rows
from harvester.portal.pages import Pages
from harvester.portal.requests import may

#: Prices that the chart draws and the table lists.
MOST_DRAWN = 500
MOST_LISTED = 50


class OfferPages(Pages):
    mount = "offers"
    name = "catalog_offer"

    def urls(self) -> list[URLPattern]:
        return [
            self.url("", require_safe(self.list), "changelist"),
            self.url("<uuid:source_id>/<row:product_id>/", require_safe(self.show), "change"),
        ]

    def list(self, request: HttpRequest) -> HttpResponse:
        chosen = offer_filters.given(request.GET)
        listing, problem = offer_filters.found(lambda: offer_browser.browse(offer_filters.query(chosen, request.GET)))
        context = {
            "title": "Offers",
            "chosen": chosen,
            "kept": {name: value for name, value in chosen.items() if name != "q"},
            "pills": offer_filters.pills(chosen),
            "listing": listing,
            "rows": rows(listing.lines) if listing else "",
            "problem": problem,
            "is_first": not (request.GET.get("after") or request.GET.get("before")),
            "first": offer_filters.address(chosen),
            **_neighbours(chosen, listing),
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
            "chart": _chart(prices, goes_on=line.amount is not None),
            "sightings": product_details.sightings(product),
            "siblings": product_details.siblings(product),
            "corrections": product_details.corrections_of(source_id, product_id),
            "links": {name: outside(product.facts[name]) for name in ("url", "image_url")},
            "tracking": outside(product.tracking_url),
            "operator": may(request, Role.OPERATOR),
        }
        return self.render(request, "portal/catalog/offer.html", context)


def _neighbours(chosen: dict[str, str], listing: offer_browser.Listing | None) -> dict[str, str]:
    if listing is None:
        return {}
    return {
        "next": offer_filters.address(chosen, after=listing.next) if listing.next else "",
        "previous": offer_filters.address(chosen, before=listing.previous) if listing.previous else "",
    }


def _chart(prices: list[PricePoint], *, goes_on: bool) -> dict[str, Any] | None:
    """What the page's script draws: a step for each price, a line for each currency, up to now while it is offered."""
    if not prices:
        return None
    return {
        "until": _milliseconds(timezone.now()) if goes_on else None,
        "lines": [
            {
                "label": currency,
                "points": [
                    {"x": _milliseconds(point.observed_at), "y": float(point.amount), "out": not point.in_stock}
                    for point in reversed(prices)
                    if point.currency == currency
                ],
            }
            for currency in sorted({point.currency for point in prices})
        ],
    }


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
