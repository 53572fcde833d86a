"""The list of feeds, and the addresses of all pages and buttons of a feed."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from html import escape
from typing import Any

from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.exposure import exposures
from harvester.feeds.figures import latest_runs
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.states import FeedStatus
from harvester.ops.models import Role
from harvester.portal.display import NOTHING, badge, number, when
from harvester.portal.feeds import actions, forms, labels, page
from harvester.portal.filters import ChoicePill
from harvester.portal.links import link
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import form_view, may

#: Columns of the database that a row shows.
_COLUMNS = (
    *("network", "status", "schedule_hours", "next_run_at", "manual_run_requested_at"),
    *("source__id", "source__name"),
)
#: The buttons of a row: those that can be undone or do no harm.
ROW_ACTIONS = tuple(actions.BY_NAME[name] for name in ("run", "resume", "pause"))


@cache
def _list_address() -> str:
    """Return the address of the list. To reverse one for each row takes longer than the rest of its cell."""
    return reverse("admin:feeds_feed_changelist")


class StatusPill(ChoicePill):
    title = "Status"
    field = "status"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(status.value, status.value.capitalize()) for status in FeedStatus]


class NetworkPill(ChoicePill):
    title = "Network"
    field = "network"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(name, network.label) for name, network in networks().items()]


class FeedChangeList(KeysetChangeList):
    """A page of feeds with data of other tables, which one query reads for all rows."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        feeds: list[Any] = list(self.result_list)
        sources = [feed.source_id for feed in feeds]
        last, seen = latest_runs(sources), exposures(sources)
        for feed in feeds:
            feed.last_run = last.get(feed.source_id)
            feed.exposure = seen[feed.source_id]


class FeedAdmin(PortalAdmin):
    mount = "feeds"
    title = "Affiliate feeds"
    page_keys = ("source__name",)
    empty = "No feeds yet. A feed imports a partner's catalog. Admins add feeds here or with `harvester feed add`."
    add_label = "Add feed"
    live_seconds = 5
    list_per_page = 25
    list_display = ("name", "of_network", "status_badge", "last", "plan", "next", "offers", "buttons")
    list_display_links = None
    numbers = ("offers",)
    list_filter = (StatusPill, NetworkPill)
    search_fields = ("source__name__icontains",)
    search_help_text = "Search by name"
    change_list_template = "portal/feeds/list.html"

    def get_list_display(self, request: HttpRequest) -> Sequence[str]:
        shown = super().get_list_display(request)
        return shown if may(request, Role.OPERATOR) else [name for name in shown if name != "buttons"]

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return FeedChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Feed]:
        """Return feeds with only the columns that a row shows."""
        return super().get_queryset(request).filter(retired_at=None).select_related("source").only(*_COLUMNS)

    def page_urls(self) -> list[URLPattern]:
        def bound(view: Callable[..., Any]) -> Callable[..., Any]:
            return partial(view, self.admin_site)

        pages = [
            self.url("add/", form_view(bound(forms.add)), "add"),
            self.url("<uuid:feed_id>/", require_safe(bound(page.show)), "change"),
            self.url("<uuid:feed_id>/runs/", require_safe(bound(page.show_runs)), "runs"),
            self.url("<uuid:feed_id>/metrics/", require_safe(bound(page.show_metrics)), "metrics"),
            self.url("<uuid:feed_id>/edit/", form_view(bound(forms.edit)), "edit"),
            self.url("<uuid:feed_id>/tests/<row:test_id>/", require_safe(bound(page.show_test)), "test_result"),
        ]
        buttons = {
            "run": actions.run,
            "force": actions.force,
            "test": actions.test,
            "enable": actions.enable,
            "pause": actions.pause,
            "resume": actions.resume,
            "re-enable": actions.re_enable,
            "delete": actions.delete,
            "retire": actions.retire,
            "host-key": actions.approve_host_key,
        }
        return [
            *pages,
            *(self.url(f"<uuid:feed_id>/{name}/", require_POST(view), name) for name, view in buttons.items()),
        ]

    @display(description="Feed")
    def name(self, feed: Any) -> SafeString:
        where, why = f"{_list_address()}{feed.pk}/", feed.exposure.not_visible_because
        note = format_html('<span class="hv-note hv-why">{}</span>', why) if why else ""
        return format_html(
            '<a class="hv-job hv-name" href="{0}" title="{1}"><span class="hv-kind">{1}</span></a>{2}',
            *(where, feed, note),
        )

    @display(description="Network")
    def of_network(self, feed: Feed) -> SafeString:
        return format_html('<span class="hv-whole">{}</span>', labels.network(feed.network))

    @display(description="Status")
    def status_badge(self, feed: Feed) -> SafeString:
        return badge(feed.status)

    @display(description="Last run")
    def last(self, feed: Any) -> SafeString:
        if feed.last_run is None:
            return NOTHING
        run = feed.last_run
        shown = link("run", run.no, text=f"#{run.no}")
        return format_html(
            '<span class="hv-last">{} {} <span class="hv-note">{}</span></span>',
            *(badge(labels.outcome(run)), shown, when(run.started_at)),
        )

    @display(description="Schedule")
    def plan(self, feed: Feed) -> SafeString:
        return format_html('<span class="hv-whole">{}</span>', labels.schedule(feed))

    @display(description="Next run")
    def next(self, feed: Feed) -> SafeString:
        return badge("queued") if feed.manual_run_requested_at else when(feed.next_run_at)

    @display(description="Visible offers")
    def offers(self, feed: Any) -> SafeString:
        is_known = feed.exposure.visible or feed.exposure.not_visible_because
        return number(feed.exposure.visible) if is_known else NOTHING

    @display(description="Actions")
    def buttons(self, feed: Feed) -> SafeString:
        """Return buttons of the page's one form, which has the CSRF token."""
        where, name = escape(f"{_list_address()}{feed.pk}"), escape(str(feed))
        parts = " ".join(
            f'<button type="submit" class="hv-button hv-small" form="row-action" formaction="{where}/{action.name}/" '
            f'aria-label="{escape(action.label)}: {name}">{escape(action.label)}</button>'
            for action in ROW_ACTIONS
            if feed.status in action.states
        )
        return SafeString(f'<span class="hv-row-buttons">{parts}</span>') if parts else NOTHING
