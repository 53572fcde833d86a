"""The review queue: offers that could not be linked to a product automatically."""

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
from harvester.portal.pages import Pages
from harvester.portal.requests import attempt, may, require

PAGE_SIZE = 25
#: Words of a title in the first search: specific enough, and few enough to match something.
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
        wanted, after = request.GET.get("source", "").strip(), request.GET.get("after", "")

        rows: list[review_queue.Waiting] = []
        problem = ""
        try:
            only = sources.find(wanted).pk if wanted else None
            rows = review_queue.waiting(source_id=only, after=after, most=PAGE_SIZE + 1)
        except (InvalidInput, NotFound) as refused:
            problem = str(refused)
        page = rows[:PAGE_SIZE]
        context = {
            "title": "Review queue",
            "rows": page,
            "problem": problem,
            "source": wanted,
            "after": after,
            "next": page[-1].cursor if len(rows) > PAGE_SIZE else "",
        }
        return self.render(request, "portal/catalog/review_queue.html", context)

    def show(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        try:
            product = product_details.product(source_id, product_id)
        except NotFound as problem:
            raise Http404 from problem
        brand, words = product.facts["brand"], product.title.split()[:FIRST_WORDS]
        if brand and brand.lower() not in product.title.lower():
            words.insert(0, brand)
        text = request.GET.get("q", " ".join(words)).strip()
        same_gtin = review_queue.find_products(product.facts["gtin"]) if product.facts["gtin"] else []
        waits = product.link_status == "NEEDS_REVIEW"
        context = {
            "title": product.title,
            "product": product,
            "facts": product.facts,
            "line": offer_browser.lines([(source_id, product_id)])[0],
            "url": outside(product.facts["url"]),
            "text": text,
            "same_gtin": [one for one in same_gtin if one.gtin],
            "found": [one for one in review_queue.find_products(text) if one not in same_gtin],
            "waits": waits,
            "following": None if waits else review_queue.next_after(source_id, product_id),
            "decided": product.match_type == "MANUAL" or product.link_status == "SKIPPED",
            "operator": may(request, Role.OPERATOR),
        }
        return self.render(request, "portal/catalog/review.html", context)

    def link(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            try:
                chosen = UUID(request.POST.get("product", ""))
            except ValueError:
                raise InvalidInput("choose one of the products found. Nothing was changed.", field="product") from None
            review_queue.link(actor, source_id, product_id, chosen)
            return _with_link(source_id, product_id, "is linked. Runs will not change this.")

        return self._next(request, source_id, product_id, act)

    def create(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            title, brand = request.POST.get("title", ""), request.POST.get("brand")
            review_queue.create(actor, source_id, product_id, title=title, brand=brand)
            return _with_link(source_id, product_id, "is a new product.")

        return self._next(request, source_id, product_id, act)

    def skip(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            review_queue.skip(actor, source_id, product_id, request.POST.get("reason", ""))
            return _with_link(source_id, product_id, "was skipped. It stays without a product.")

        return self._next(request, source_id, product_id, act)

    def reopen(self, request: HttpRequest, source_id: UUID, product_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            review_queue.reopen(actor, source_id, product_id)
            return "The decision was undone. The offer is in the queue again."

        attempt(request, act)
        return redirect("admin:catalog_review_change", source_id, product_id)

    def _next(self, request: HttpRequest, source_id: UUID, product_id: int, act: Any) -> HttpResponse:
        """Go to the next offer in the queue, or stay if the decision was refused."""
        if not attempt(request, act):
            return redirect("admin:catalog_review_change", source_id, product_id)
        following = review_queue.next_after(source_id, product_id)
        if following is None:
            return redirect("admin:catalog_review_changelist")
        return redirect("admin:catalog_review_change", following.source_id, following.product_id)


def _with_link(source_id: UUID, product_id: int, what: str) -> SafeString:
    """Return a message that starts with a link to the offer."""
    link = reverse("admin:catalog_review_change", args=[source_id, product_id])
    return format_html('<a href="{}">{}</a> {}', link, product_details.product(source_id, product_id).title, what)
