"""Addresses that need somebody: moved permanently, gone, or two pages of one product."""

from collections import defaultdict
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.views.decorators.http import require_POST, require_safe

from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.catalog.labels import outside
from harvester.portal.pages import Pages
from harvester.portal.requests import may, require
from harvester.portal.scraping.forms import one_of_each
from harvester.portal.scraping.labels import short_url, state_of
from harvester.scraping import url_health as queries
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.target_filters import TargetFilter, Trouble
from harvester.scraping.verbs import replace_moved

#: Pages that one view shows; the next ones follow when these are done.
MOST_SHOWN: Final = 100
#: Refusals that a message names.
MOST_NAMED: Final = 5
_VIEWS: Final = {
    "moved": ("Moved", "The shop redirects these pages permanently. The new address is the same product."),
    "gone": ("Gone", "The shop says that these pages are gone (404 or 410)."),
    "twice": ("Same product twice", "Two pages of a shop write the price of one product. Keep one of them."),
}


class UrlHealthPages(Pages):
    mount = "url-health"
    name = "scraping_health"

    def urls(self) -> list[URLPattern]:
        return [
            self.url("", require_safe(self.show), "changelist"),
            self.url("move/", require_POST(self.move), "move"),
        ]

    def show(self, request: HttpRequest) -> HttpResponse:
        moved, gone = TargetFilter(has_moved=True).targets(), TargetFilter(trouble=Trouble.GONE).targets()
        twice = queries.same_products(MOST_SHOWN)
        counts = {"moved": moved.count(), "gone": gone.count(), "twice": twice.total}
        first = next((name for name, count in counts.items() if count), "moved")
        chosen = request.GET.get("view", "")
        chosen = chosen if chosen in _VIEWS else first
        where = reverse("admin:scraping_health_changelist")
        context = {
            "title": "URL health",
            "chosen": chosen,
            "about": _VIEWS[chosen][1],
            "view_tabs": [
                {"title": f"{title} ({counts[name]:,})", "link": f"{where}?view={name}", "active": name == chosen}
                for name, (title, _) in _VIEWS.items()
            ],
            "total": counts[chosen],
            "rows": [],
            "groups": [],
            "operator": may(request, Role.OPERATOR),
            "admin": may(request, Role.ADMIN),
            "back": f"{where}?view={chosen}",
        }
        if chosen == "twice":
            context["groups"] = _groups(twice.groups)
        else:
            found = moved if chosen == "moved" else gone
            context["rows"] = [
                _row(each) for each in found.select_related("source").order_by("source__name", "pk")[:MOST_SHOWN]
            ]
        return self.render(request, "portal/scraping/url_health.html", context)

    def move(self, request: HttpRequest) -> HttpResponse:
        """Use the new addresses of the selected pages; those that are refused stay as they are."""
        actor = require(request, Role.OPERATOR)
        done, refused = 0, list[str]()
        try:
            ids = one_of_each(request, "page")
        except InvalidInput as problem:
            messages.error(request, str(problem))
            ids = []
        for target_id in ids[:MOST_SHOWN]:
            try:
                replace_moved(actor, target_id)
                done += 1
            except (Conflict, InvalidInput, NotFound) as problem:
                refused.append(str(problem))
        if done:
            messages.success(request, f"{done:,} page{'s use their' if done > 1 else ' uses its'} new address.")
        if refused:
            more = f" And {len(refused) - MOST_NAMED:,} more." if len(refused) > MOST_NAMED else ""
            messages.error(request, " ".join(refused[:MOST_NAMED]) + more)
        return redirect(f"{reverse('admin:scraping_health_changelist')}?view=moved")


def _row(target: ScrapeTarget) -> dict[str, Any]:
    return {
        "target": target,
        "name": short_url(target.url),
        "state": state_of(target),
        "moved_to": outside(target.moved_to) if target.moved_to else None,
    }


def _groups(found: list[queries.SameProduct]) -> list[dict[str, Any]]:
    """Return products with their pages, read in one statement."""
    wanted = [target_id for group in found for target_id in group.target_ids]
    known = ScrapeTarget.objects.select_related("source").in_bulk(wanted)
    rows: dict[tuple[UUID, int], list[dict[str, Any]]] = defaultdict(list)
    for group in found:
        for target_id in group.target_ids:
            if target_id in known:
                rows[group.source_id, group.product_id].append(_row(known[target_id]))
    return [
        {"source_id": source_id, "product_id": product_id, "source": pages[0]["target"].source, "rows": pages}
        for (source_id, product_id), pages in rows.items()
    ]
