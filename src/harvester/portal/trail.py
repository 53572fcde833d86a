"""The audit trail: who did what, newest first."""

import re
from collections.abc import Iterable

from django.contrib.admin import display
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harvester.ops.models import AuditEvent
from harvester.portal.display import NOTHING, pretty, verb, when
from harvester.portal.filters import ChoicePill, DaysPill, FormPill, TextPill
from harvester.portal.links import address
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.pills import Field, text_field

#: The beginning of an id tells it apart well enough in a list.
UUID_TAIL = re.compile(r"(?<=\A[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
#: What people and the system do; a test finds every verb that the code records. Others can be asked for by address.
VERBS = (
    "ACTIVATION_APPROVAL_REQUESTED",
    "ACTIVATION_APPROVED",
    "ACTIVATION_REJECTED",
    "ACTIVATION_REJECTION_REQUESTED",
    "API_KEY_CREATED",
    "API_KEY_REVOKED",
    "CORRECTION_CREATED",
    "CORRECTION_REVOKED",
    "CREDENTIAL_CHANGED",
    "DISPLAY_PRIMARY_SET",
    "DISPLAY_PRIMARY_UNSET",
    "EXPIRY_HOURS_CHANGED",
    "FEED_AUTO_DISABLED",
    "FEED_CREATED",
    "FEED_DELETED",
    "FEED_STATUS_CHANGED",
    "FEED_TEST_REQUESTED",
    "FEED_UPDATED",
    "HOST_KEY_APPROVED",
    "INSECURE_TRANSPORT_SELECTED",
    "JOB_CANCELLED",
    "JOB_ENQUEUED",
    "JOB_RETRIED",
    "KEYS_ROTATED",
    "MANUAL_RUN_REQUESTED",
    "PRODUCT_CREATED",
    "PRODUCT_LINKED",
    "PRODUCT_REOPENED",
    "PRODUCT_SKIPPED",
    "RETAILER_CREATED",
    "RETAILER_UPDATED",
    "RUN_FILE_DOWNLOADED",
    "RUN_HELD",
    "RUN_HELD_ANEW",
    "RUN_IGNORED",
    "RUN_IGNORE_UNDONE",
    "RUN_PROMOTED",
    "SOURCE_CREATED",
    "SOURCE_UPDATED",
    "USER_ACTIVATED",
    "USER_CREATED",
    "USER_DEACTIVATED",
    "USER_LOGGED_IN",
    "USER_LOGGED_OUT",
    "USER_LOGIN_FAILED",
    "USER_PASSWORD_CHANGED",
    "USER_ROLE_CHANGED",
)


class ActorPill(TextPill):
    title = "Actor"
    field = "actor"
    hint = "name or id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:  # noqa: ARG002
        wanted = self.get(self.field)
        return queryset.filter(Q(actor_name=wanted) | Q(actor_id=wanted)) if wanted else queryset


class VerbPill(ChoicePill):
    title = "What"
    field = "verb"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(name, verb(name)) for name in VERBS]


class ObjectPill(FormPill):
    title = "Object"
    parameters = ("object_type", "object_id")

    def fields(self) -> Iterable[Field]:
        kind, number = (self.get(name) for name in self.parameters)
        return [text_field("Type", "object_type", kind, "job, user"), text_field("Id", "object_id", number)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:  # noqa: ARG002
        for name in self.parameters:
            if wanted := self.get(name):
                queryset = queryset.filter(**{name: wanted})
        return queryset


class WhenPill(DaysPill):
    title = "When"
    field = "at"


class AuditEventAdmin(PortalAdmin):
    mount = "audit"
    title = "Audit trail"
    page_keys = ("-at", "-id")
    empty = "Nobody has done anything yet."
    list_display = ("moment", "who", "what", "object", "how")
    list_display_links = None
    list_filter = (ActorPill, VerbPill, ObjectPill, WhenPill)

    def page_urls(self) -> list[URLPattern]:
        return [self.url("<row:event_id>/", require_safe(self.show), "change")]

    def show(self, request: HttpRequest, event_id: int) -> HttpResponse:
        event = AuditEvent.objects.filter(pk=event_id).first()
        if event is None:
            raise Http404
        context = {
            **self.admin_site.each_context(request),
            "title": "Audit trail",
            "event": event,
            "what": verb(event.verb),
            "thing": self.object(event),
            "detail": pretty(event.detail),
        }
        return TemplateResponse(request, "portal/audit_event.html", context)

    @display(description="When")
    def moment(self, event: AuditEvent) -> SafeString:
        return when(event.at)

    @display(description="Who")
    def who(self, event: AuditEvent) -> SafeString:
        return format_html('<span class="hv-actor hv-actor-{}">{}</span>', event.actor_kind, event.actor_name)

    @display(description="What")
    def what(self, event: AuditEvent) -> SafeString:
        link = reverse("admin:ops_auditevent_change", args=[event.pk])
        return format_html('<a class="hv-job" href="{}"><span class="hv-kind">{}</span></a>', link, verb(event.verb))

    @display(description="Object")
    def object(self, event: AuditEvent) -> SafeString:
        full = f"{event.object_type} {event.object_id}"
        short = f"{event.object_type} {UUID_TAIL.sub('…', event.object_id)}"
        where = address(event.object_type, event.object_id)
        if where is None:
            return format_html('<span class="hv-object" title="{}">{}</span>', full, short)
        return format_html('<a class="hv-object" href="{}" title="{}">{}</a>', where, full, short)

    @display(description="Details")
    def how(self, event: AuditEvent) -> SafeString:
        parts = [*event.changed, *(f"{name}: {value}" for name, value in event.detail.items())]
        return format_html('<span class="hv-detail" title="{0}">{0}</span>', ", ".join(parts)) if parts else NOTHING
