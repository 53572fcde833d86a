"""The list of shops whose pages are read, and the addresses of the pages and buttons of a shop."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from django.contrib.admin import display
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.governance import Gate, SourceState
from harvester.catalog.models import Source
from harvester.ops.models import Role
from harvester.portal.display import NOTHING, badge, duration, number, when
from harvester.portal.filters import ChoicePill, Pill
from harvester.portal.links import link
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.pages import Pages
from harvester.portal.requests import form_view, may
from harvester.portal.scraping import adapters, shop_page
from harvester.portal.scraping.labels import State
from harvester.scraping import shops
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.shops import ShopFigures
from harvester.scraping.states import TargetStatus

#: A page that is due for longer than this is late: the scheduler looks every minute, and a lane keeps its pace.
LATE_SECONDS: Final = 900


def state_of(source: Source, figures: ShopFigures, breaker: SourceState | None) -> State:
    """Return how reading a shop is going."""
    return next(_states(source, figures, breaker))


def _states(source: Source, figures: ShopFigures, breaker: SourceState | None) -> Iterator[State]:
    """Yield all that is true of a shop, the most urgent first."""
    adapter = figures.state
    if not source.enabled:
        yield State("Off", "cancelled", "The source is switched off.", "Enable the source.")
    if not source.scrape_enabled:
        if source.tos_reviewed_at is None:
            yield State("Not set up", "pending", "Its terms were not reviewed yet.", "Review the shop's terms.")
        yield State("Stopped", "cancelled", "Reading its pages is switched off.", "Enable it when it is ready.")
    if not source.robots_compliant:
        who = source.robots_set_by
        why = f"{who} forbade reading it." if who else "Its robots.txt forbids its pages."
        yield State("Robots", "failed", why, "Ask the shop; then an admin allows it again.")
    if adapter is not None and not adapter.enabled:
        yield State("Adapter off", "failed", "Its adapter is disabled.", "Fix the cause; then enable the adapter.")
    if breaker is not None and breaker.gate == Gate.STOPPED:
        word = "Paused" if breaker.breaker.stopped_by else "Blocked"
        why = (breaker.breaker.stopped_reason or "").rstrip(".").capitalize()
        yield State(word, "failed", f"{why}.", "Find out why; then resume it.")
    if breaker is not None and breaker.breaker.paused_until is not None:
        until = breaker.breaker.paused_until
        again = f"in {duration((until - timezone.now()).total_seconds())}" if until > timezone.now() else "now"
        yield State("Waiting", "retryable", f"Its server failed; one page is tried again {again}.")
    if not figures.total:
        yield State("No pages", "pending", "It has no pages yet.", "Add or import pages.")
    if figures.oldest_due_at and (timezone.now() - figures.oldest_due_at).total_seconds() > LATE_SECONDS:
        late = duration((timezone.now() - figures.oldest_due_at).total_seconds())
        yield State("Late", "retryable", f"A page has been due for {late}.", "Check that its schedule can be met.")
    yield State("Reading", "succeeded", "Its pages are read by their schedules.")


class ShopsWithFigures(KeysetChangeList):
    """A page of shops with their figures, read in a few statements for all rows."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found: list[Any] = self.result_list
        known = shops.figures_of(found)
        breakers = shop_page.breakers_of([source.pk for source in found])
        for source in found:
            source.figures = known[source.pk]
            source.shop_state = state_of(source, source.figures, breakers.get(source.pk))


class ShowPill(ChoicePill):
    """Sources that are read or have pages, unless the filter asks for all."""

    title = "Show"
    field = "show"

    def values(self) -> Iterable[tuple[str, str]]:
        return [("all", "All sources"), ("on", "Switched on"), ("off", "Switched off")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        chosen = self.get(self.field)
        if chosen in ("on", "off"):
            return queryset.filter(scrape_enabled=chosen == "on", adapter_id__isnull=False)
        has_pages = Exists(ScrapeTarget.objects.filter(source=OuterRef("pk")))
        used = Q(scrape_enabled=True) | Q(adapter_id__isnull=False) | Q(tos_reviewed_at__isnull=False) | has_pages
        return queryset if chosen == "all" else queryset.filter(used)


class ShopList(PortalAdmin):
    """Sources as shops whose pages are read."""

    mount = "shops"
    title = "Shops"
    page_keys = ("name", "id")
    empty = "No shops yet. Import the addresses of their pages, or choose a source under Show: All sources."
    live_seconds = 10
    list_display: Sequence[str] = ("shop", "state", "pages", "last_run", "fresh", "lag", "entries", "buttons")
    list_display_links = None
    numbers = ("entries",)
    list_filter: Sequence[type[Pill]] = (ShowPill,)
    search_fields = ("name__icontains", "retailer__name__icontains")
    search_help_text = "Search by name or retailer"
    change_list_template = "portal/scraping/shops.html"

    def get_list_display(self, request: HttpRequest) -> Sequence[str]:
        shown = super().get_list_display(request)
        return shown if may(request, Role.ADMIN) else [name for name in shown if name != "buttons"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        return super().get_queryset(request).select_related("retailer")

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return ShopsWithFigures

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        extra = {"operator": may(request, Role.OPERATOR), "admin": may(request, Role.ADMIN)}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    @display(description="Shop")
    def shop(self, source: Any) -> SafeString:
        return format_html(
            '<span class="hv-product">{}<small class="hv-note">{}</small></span>',
            *(link("shop", source.pk, text=source.name), source.retailer.domain or source.retailer.name),
        )

    @display(description="State")
    def state(self, source: Any) -> SafeString:
        found = source.shop_state
        return found.badge if found.word == "Reading" else found.explained

    @display(description="Pages")
    def pages(self, source: Any) -> SafeString:
        """Return how many are active, and how many are broken or stale if any is."""
        figures: ShopFigures = source.figures
        if not figures.total:
            return NOTHING
        where = reverse("admin:scraping_scrapetarget_changelist")
        statuses = (TargetStatus.ACTIVE, TargetStatus.BROKEN, TargetStatus.STALE, TargetStatus.PAUSED)
        shown = [
            format_html(
                '<a class="{}" href="{}?source={}&amp;status={}">{} {}</a>',
                "hv-object" if status == TargetStatus.ACTIVE else "hv-note",
                *(where, source.pk, status.value, number(figures.count(status)), status.value.lower()),
            )
            for status in statuses
            if figures.count(status) or status == TargetStatus.ACTIVE
        ]
        return SafeString(f'<span class="hv-product">{"".join(shown)}</span>')

    @display(description="Last run")
    def last_run(self, source: Any) -> SafeString:
        run = source.figures.run
        if run is None:
            return NOTHING
        shown = link("run", run["no"], text=f"#{run['no']}")
        state = badge(run["outcome"] or run["status"])
        return format_html('<span class="hv-last">{} {} <span class="hv-note">{}</span></span>', state, shown,
                           when(run["started_at"]))  # fmt: skip

    @display(description="Newest price")
    def fresh(self, source: Any) -> SafeString:
        return when(source.figures.newest_success_at)

    @display(description="Lag")
    def lag(self, source: Any) -> SafeString | str:
        due = source.figures.oldest_due_at
        return NOTHING if due is None else duration((timezone.now() - due).total_seconds())

    @display(description="Quarantine")
    def entries(self, source: Any) -> SafeString:
        if not source.figures.quarantine:
            return NOTHING
        where = reverse("admin:scraping_quarantineentry_changelist")
        return format_html('<a class="hv-object" href="{}?source={}">{}</a>', where, source.pk,
                           number(source.figures.quarantine))  # fmt: skip

    @display(description="Actions")
    def buttons(self, source: Any) -> SafeString:
        """Return the stop button, of the page's one form, which has the CSRF token."""
        if not source.scrape_enabled:
            return NOTHING
        where = reverse("admin:scraping_shop_stop", args=[source.pk])
        return format_html(
            '<button type="submit" class="hv-button hv-small hv-danger" form="row-action" formaction="{}" '
            'aria-label="Stop: {}">Stop</button>',
            *(where, source.name),
        )


class ShopPages(Pages):
    mount = "shops"
    name = "scraping_shop"

    def urls(self) -> list[URLPattern]:
        key, listing = "<uuid:source_id>/", ShopList(Source, self.site)
        buttons = {
            "terms": shop_page.terms,
            "adapter": shop_page.adapter,
            "robots": shop_page.robots,
            "check_robots": shop_page.check_robots,
            "enable": shop_page.enable,
            "stop": shop_page.stop,
            "show": shop_page.show_prices,
            "hide": shop_page.hide_prices,
            "read": shop_page.read,
            "requeue": shop_page.requeue,
            "pause": shop_page.pause,
            "resume": shop_page.resume,
        }

        def bound(view: Any) -> Any:
            return lambda request, **keys: view(self.site, request, **keys)

        return [
            self.url("", require_safe(listing.changelist_view), "changelist"),
            self.url("stop-all/", require_POST(shop_page.stop_all), "stop_all"),
            self.url(key, require_safe(bound(shop_page.show)), "change"),
            self.url(f"{key}coverage/", require_safe(bound(shop_page.coverage)), "coverage"),
            self.url(f"{key}settings/", form_view(bound(shop_page.edit_settings)), "settings"),
            self.url(f"{key}overrides/", form_view(bound(adapters.overrides)), "overrides"),
            self.url(f"{key}overrides/<row:version>/", require_safe(bound(adapters.show_override)), "override"),
            self.url(f"{key}overrides/<row:version>/test/", require_POST(adapters.test), "override_test"),
            self.url(f"{key}overrides/<row:version>/use/", require_POST(adapters.use), "override_use"),
            self.url(f"{key}overrides/<row:version>/retire/", require_POST(adapters.retire), "override_retire"),
            self.url(f"{key}hints/", require_POST(adapters.find_hints), "hints"),
            *(self.url(f"{key}{name}/", require_POST(view), name) for name, view in buttons.items()),
        ]
