"""The list of pages that are read, with filters, and the addresses of a page and its buttons."""

from collections.abc import Sequence
from functools import cache, partial
from html import escape
from typing import Any, Final

from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.ops.models import Role
from harvester.portal.display import NOTHING, when
from harvester.portal.filters import Pill
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import form_view, may
from harvester.portal.scraping import target_actions, target_page
from harvester.portal.scraping.filters import OutcomePill, ShopPill, StatusPill, SwitchPill, TroublePill
from harvester.portal.scraping.labels import price_of, seen_of, short_url, state_of
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.target_filters import TargetFilter

#: Columns of the database that a row shows.
_COLUMNS: Final = (
    *("url", "enabled", "status", "robots_path_blocked", "schedule", "due_at", "recheck_at", "last_scraped_at"),
    *("last_status", "last_seen", "waiting", "source__id", "source__name"),
)


@cache
def _list_address() -> str:
    return reverse("admin:scraping_scrapetarget_changelist")


class TargetAdmin(PortalAdmin):
    mount = "pages"
    title = "Pages"
    page_keys = ("-id",)
    empty = "No pages yet. Add one, or import a list of addresses."
    add_label = "Add page"
    add_role = Role.OPERATOR
    list_per_page = 50
    list_display: Sequence[str] = ("tick", "where", "state", "price", "read", "next")
    list_display_links = None
    numbers = ("price",)
    list_filter: Sequence[type[Pill]] = (ShopPill, TroublePill, StatusPill, OutcomePill, SwitchPill)
    search_fields = ("url__icontains",)
    search_help_text = "Search in addresses and notes"
    change_list_template = "portal/scraping/targets.html"

    def get_list_display(self, request: HttpRequest) -> Sequence[str]:
        shown = super().get_list_display(request)
        return shown if may(request, Role.OPERATOR) else [name for name in shown if name != "tick"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScrapeTarget]:
        """Return pages with only the columns that a row shows."""
        return super().get_queryset(request).select_related("source").only(*_COLUMNS)

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's shape
        queryset: QuerySet[Any],
        search_term: str,
    ) -> tuple[QuerySet[Any], bool]:
        return queryset.filter(TargetFilter(text=search_term).conditions()), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        operator, admin = may(request, Role.OPERATOR), may(request, Role.ADMIN)
        extra = {
            "operator": operator,
            "changes": [(name, label) for name, label, role in target_actions.BULK if may(request, role)],
            "query": request.GET.urlencode(),
            "admin": admin,
        }
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def page_urls(self) -> list[URLPattern]:
        site, key = self.admin_site, "<uuid:target_id>/"
        buttons = {
            "read": target_actions.read,
            "pause": target_actions.pause,
            "resume": target_actions.resume,
            "enable": target_actions.enable,
            "disable": target_actions.disable,
            "move": target_actions.move,
            "unpin": target_actions.unpin,
            "forget": target_actions.forget,
            "reprocess": target_actions.reprocess,
            "delete": target_actions.delete,
        }
        return [
            self.url("add/", form_view(partial(target_actions.add, site)), "add"),
            self.url("bulk/", require_POST(partial(target_actions.bulk, site)), "bulk"),
            self.url(key, require_safe(partial(target_page.show, site)), "change"),
            self.url(f"{key}edit/", form_view(partial(target_actions.edit, site)), "edit"),
            *(self.url(f"{key}{name}/", require_POST(view), name) for name, view in buttons.items()),
        ]

    @display(description="Select")
    def tick(self, target: ScrapeTarget) -> SafeString:
        """Return a checkbox of the form below the list."""
        label = escape(short_url(target.url))
        return SafeString(
            f'<input class="hv-tick" type="checkbox" form="bulk" name="page" value="{target.pk}" '
            f'aria-label="Select {label}">'
        )

    @display(description="Page")
    def where(self, target: ScrapeTarget) -> SafeString:
        return format_html(
            '<span class="hv-stacked"><a class="hv-lead" href="{}{}/" title="{}"><span class="hv-kind">{}</span></a>'
            '<small class="hv-note">{}</small></span>',
            *(_list_address(), target.pk, target.url, short_url(target.url), target.source),
        )

    @display(description="State")
    def state(self, target: ScrapeTarget) -> SafeString:
        found = state_of(target)
        return found.badge if found.word in ("Fine", "New") else found.explained

    @display(description="Price")
    def price(self, target: ScrapeTarget) -> SafeString:
        return price_of(seen_of(target))

    @display(description="Read")
    def read(self, target: ScrapeTarget) -> SafeString:
        return when(target.last_scraped_at)

    @display(description="Next")
    def next(self, target: ScrapeTarget) -> SafeString:
        if target.recheck_at is not None:
            return format_html('{} <span class="hv-note">again</span>', when(target.recheck_at))
        if target.due_at is None:
            return NOTHING if target.schedule else SafeString('<span class="hv-note">on request</span>')
        return when(target.due_at)
