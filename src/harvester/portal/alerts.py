"""Alerts: what people should know, open ones first. They end by themselves, when what they tell of is over."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import display
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harvester.feeds.verbs.locked_feed import name_of
from harvester.ops import alert_details
from harvester.ops.alerts import OPENED, RESOLVED
from harvester.ops.models import Alert
from harvester.portal.display import NOTHING, badge, pretty, verb, when
from harvester.portal.filters import ChoicePill
from harvester.portal.links import link
from harvester.portal.model_admin import PortalAdmin

OPEN = "open"
SEVERITIES = ("critical", "warning", "info")


class StatePill(ChoicePill):
    title = "State"
    field = "state"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(OPEN, "Open"), (RESOLVED, "Resolved")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Alert]) -> QuerySet[Alert]:  # noqa: ARG002
        chosen = self.get(self.field)
        return queryset.filter(resolved_at__isnull=chosen == OPEN) if chosen in (OPEN, RESOLVED) else queryset


class SeverityPill(ChoicePill):
    title = "Severity"
    field = "severity"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(severity, severity.capitalize()) for severity in SEVERITIES]


class KindPill(ChoicePill):
    title = "Kind"
    field = "kind"

    def values(self) -> Iterable[tuple[str, str]]:
        """Whatever somebody was told of and is still kept."""
        kinds = Alert.objects.order_by("kind").values_list("kind", flat=True).distinct()
        return [(kind, verb(kind)) for kind in kinds]


class AlertAdmin(PortalAdmin):
    mount = "alerts"
    title = "Alerts"
    page_keys = ("-is_open", "-id")
    empty = "No alerts yet."
    live_seconds = 10
    list_display = ("what", "severity_badge", "about", "since", "seen", "times_seen", "state")
    list_display_links = None
    numbers = ("times_seen",)
    list_filter = (StatePill, SeverityPill, KindPill)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        is_open = ExpressionWrapper(Q(resolved_at__isnull=True), output_field=BooleanField())
        return super().get_queryset(request).annotate(is_open=is_open)

    def page_urls(self) -> list[URLPattern]:
        return [self.url("<row:alert_id>/", require_safe(self.show), "change")]

    def show(self, request: HttpRequest, alert_id: int) -> HttpResponse:
        alert = Alert.objects.filter(pk=alert_id).first()
        if alert is None:
            raise Http404
        context = {
            **self.admin_site.each_context(request),
            "title": "Alerts",
            "alert": alert,
            "kind": verb(alert.kind),
            "things": _things(alert),
            "opening": _delivery(alert, OPENED),
            "ending": _delivery(alert, RESOLVED),
            "detail": pretty(alert.detail),
        }
        return TemplateResponse(request, "portal/alert.html", context)

    @display(description="What")
    def what(self, alert: Alert) -> SafeString:
        where = reverse("admin:ops_alert_change", args=[alert.pk])
        return format_html('<a class="hv-lead" href="{}"><span class="hv-kind">{}</span></a>', where, alert.title)

    @display(description="Severity")
    def severity_badge(self, alert: Alert) -> SafeString:
        return badge(alert.severity)

    @display(description="About")
    def about(self, alert: Alert) -> SafeString:
        """The most exact of the things that it names."""
        things = dict(_things(alert, by_name=False))
        return things.get("Run") or things.get("Feed") or things.get("Source") or NOTHING

    @display(description="Since")
    def since(self, alert: Alert) -> SafeString:
        return when(alert.opened_at)

    @display(description="Last seen")
    def seen(self, alert: Alert) -> SafeString:
        return when(alert.last_seen_at)

    @display(description="Times")
    def times_seen(self, alert: Alert) -> str:
        return f"{alert.times:,}"

    @display(description="State")
    def state(self, alert: Alert) -> SafeString:
        if alert.resolved_at is None:
            return format_html('<strong class="hv-open-state">{}</strong>', "Open")
        return format_html('{} <span class="hv-note">{}</span>', badge(RESOLVED), when(alert.resolved_at))


def _things(alert: Alert, *, by_name: bool = True) -> list[tuple[str, SafeString]]:
    """What the alert is about: kind and link of each thing that its details name."""
    found = []
    for kind, key in alert_details.things(alert).items():
        name = kind.capitalize()
        found.append((name, link(kind, key, text=_name(kind, key) if by_name or kind == "run" else name)))
    return found


def _name(kind: str, key: Any) -> str:
    return {"feed": name_of, "run": "Run {}".format}.get(kind, str)(key)


def _delivery(alert: Alert, phase: str) -> SafeString:
    """What became of the message about the alert's beginning or its end."""
    told = alert_details.message(alert, phase)
    if told.told_at:
        return format_html("{} {}", told.words, when(told.told_at))
    kind = "hv-field-error" if told.delivery is alert_details.Delivery.NOT_DELIVERED else "hv-note"
    return format_html('<span class="{}">{}</span>', kind, told.words)
