"""The review queue: products that the resolver could not recognise, and what a person says they are."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog import offer_browser, product_details, review_queue, sources
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.catalog.labels import outside
from harvester.portal.catalog.offer_filters import found
from harvester.portal.pages import Pages
from harvester.portal.requests import attempt, may, require

PAGE_SIZE = 25
#: Words of a title that are looked for first: enough to find its like, few enough to find something.
FIRST_WORDS = 3


class ReviewPages(Pages):
    mount = "review"
    name = "catalog_review"

    def urls(self) -> list[URLPattern]:
        key = "<uuid:source_id>/<row:product_id>/"
        return [
            self.url("", require_safe(self.list), "changelist"),
            self.url(key, require_safe(self.show), "change"),
            self.url(f"{key}link/", require_POST(self.link), "link"),
            self.url(f"{key}create/", require_POST(self.create), "create"),
            self.url(f"{key}skip/", require_POST(self.skip), "skip"),
            self.url(f"{key}reopen/", require_POST(self.reopen), "reopen"),
        ]

    def list(self, request: HttpRequest) -> HttpResponse:
        asked, after = request.GET.get("source", "").strip(), request.GET.get("after", "")

        def read() -> Any:
            only = sources.find(asked).pk if asked else None
            return review_queue.waiting(source_id=only, after=after, most=PAGE_SIZE + 1)

        rows, problem = found(read)
        page = (rows or [])[:PAGE_SIZE]
        context = {
            "title": "Review queue",
            "rows": page,
            "problem": problem,
            "source": asked,
            "after": after,
            "next": page[-1].cursor if rows and len(rows) > PAGE_SIZE else "",
        }
        return self.render(request, "portal/catalog/review_queue.html", context)

    def show(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        try:
            product = product_details.product(source_id, product_id)
        except NotFound as problem:
            raise Http404 from problem
        text = request.GET.get("q", _first_words(product)).strip()
        same_number = review_queue.find_products(product.facts["gtin"]) if product.facts["gtin"] else []
        by_words = review_queue.find_products(text)
        context = {
            "title": product.title,
            "product": product,
            "facts": product.facts,
            "line": offer_browser.lines([(source_id, product_id)])[0],
            "url": outside(product.facts["url"]),
            "text": text,
            "same_number": [one for one in same_number if one.gtin],
            "found": [one for one in by_words if one not in same_number],
            "waits": product.link_status == "NEEDS_REVIEW",
            "following": review_queue.next_after(source_id, product_id)
            if product.link_status != "NEEDS_REVIEW"
            else None,
            "decided": product.match_type == "MANUAL" or product.link_status == "SKIPPED",
            "operator": may(request, Role.OPERATOR),
        }
        return self.render(request, "portal/catalog/review.html", context)

    def link(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            review_queue.link(actor, source_id, product_id, _chosen(request))
            return _told(source_id, product_id, "is linked; no run will change that.")

        return self._next(request, source_id, product_id, act)

    def create(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            title, brand = request.POST.get("title", ""), request.POST.get("brand")
            review_queue.create(actor, source_id, product_id, title=title, brand=brand)
            return _told(source_id, product_id, "is a new product now.")

        return self._next(request, source_id, product_id, act)

    def skip(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            review_queue.skip(actor, source_id, product_id, request.POST.get("reason", ""))
            return _told(source_id, product_id, "is skipped: it stays without a product.")

        return self._next(request, source_id, product_id, act)

    def reopen(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            review_queue.reopen(actor, source_id, product_id)
            return "The decision is taken back; it waits again."

        attempt(request, act)
        return redirect("admin:catalog_review_change", source_id, product_id)

    def _next(self, request: HttpRequest, source_id: UUID, product_id: int, act: Any) -> HttpResponse:
        """After a decision the next that waits; after a refusal the same again."""
        if not attempt(request, act):
            return redirect("admin:catalog_review_change", source_id, product_id)
        following = review_queue.next_after(source_id, product_id)
        if following is None:
            return redirect("admin:catalog_review_changelist")
        return redirect("admin:catalog_review_change", following.source_id, following.product_id)


def _told(source_id: UUID, product_id: int, what: str) -> SafeString:
    """What was decided about which product, with the way back to it."""
    link = reverse("admin:catalog_review_change", args=[source_id, product_id])
    return format_html('<a href="{}">{}</a> {}', link, product_details.product(source_id, product_id).title, what)


def _first_words(product: product_details.Product) -> str:
    words = product.title.split()[:FIRST_WORDS]
    brand = product.facts["brand"]
    return " ".join([brand, *words] if brand and brand.lower() not in product.title.lower() else words)


def _chosen(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("product", ""))
    except ValueError:
        raise InvalidInput("product: choose one of the products that were found. Nothing was changed.") from None
