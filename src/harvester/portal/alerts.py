"""Alerts, open ones first. An alert is resolved automatically when its cause ends."""

from collections.abc import Iterable

from django.contrib.admin import display
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harvester.feeds.verbs.locked_feed import name_of
from harvester.ops import alerts
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
        alert = get_object_or_404(Alert, pk=alert_id)
        context = {
            "title": "Alerts",
            "alert": alert,
            "kind": verb(alert.kind),
            "subjects": _subjects(alert),
            "opening": _delivery(alert, OPENED),
            "ending": _delivery(alert, RESOLVED),
            "detail": pretty(alert.detail),
        }
        return self.render(request, "portal/alert.html", context)

    @display(description="Alert")
    def what(self, alert: Alert) -> SafeString:
        where = reverse("admin:ops_alert_change", args=[alert.pk])
        return format_html('<a class="hv-lead" href="{}"><span class="hv-kind">{}</span></a>', where, alert.title)

    @display(description="Severity")
    def severity_badge(self, alert: Alert) -> SafeString:
        return badge(alert.severity)

    @display(description="About")
    def about(self, alert: Alert) -> SafeString:
        """Return the most specific subject."""
        subjects = dict(_subjects(alert, by_name=False))
        return subjects.get("Run") or subjects.get("Feed") or subjects.get("Source") or NOTHING

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


def _subjects(alert: Alert, *, by_name: bool = True) -> list[tuple[str, SafeString]]:
    """Return kind and link of everything that the alert is about."""
    found = []
    for kind, key in alerts.things(alert).items():
        text = kind.capitalize()
        if by_name or kind == "run":
            text = {"feed": name_of, "run": "Run {}".format}.get(kind, str)(key)
        found.append((kind.capitalize(), link(kind, key, text=text)))
    return found


def _delivery(alert: Alert, phase: str) -> SafeString:
    """Return what happened to the message about the alert's beginning or end."""
    message = alerts.message(alert, phase)
    if message.delivered_at:
        return format_html("{} {}", message.words, when(message.delivered_at))
    kind = "hv-field-error" if message.delivery is alerts.Delivery.NOT_DELIVERED else "hv-note"
    return format_html('<span class="{}">{}</span>', kind, message.words)
