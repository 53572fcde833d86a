"""The audit log, newest event first."""

import re
from collections.abc import Iterable
from typing import Any

from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harvester.feeds.display_names import names_of, things_in, with_names
from harvester.ops.audit_log import ORDER, VERBS, filtered
from harvester.ops.models import AuditEvent
from harvester.portal.display import NOTHING, pretty, verb, when
from harvester.portal.filters import ChoicePill, DaysPill, Field, FormPill, TextPill, text_field
from harvester.portal.links import address
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin

#: The first eight characters identify a UUID well enough in a list.
UUID_TAIL = re.compile(r"(?<=\A[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


class ActorPill(TextPill):
    title = "Actor"
    field = "actor"
    hint = "name or ID"

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:  # noqa: ARG002
        return filtered(queryset, actor=self.get(self.field))


class VerbPill(ChoicePill):
    title = "Event"
    field = "verb"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(name, verb(name)) for name in VERBS]


class ObjectPill(FormPill):
    title = "Object"
    parameters = ("object_type", "object_id")

    def fields(self) -> Iterable[Field]:
        kind, number = (self.get(name) for name in self.parameters)
        return [text_field("Type", "object_type", kind, "job, user"), text_field("ID", "object_id", number)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:  # noqa: ARG002
        return filtered(queryset, object_type=self.get("object_type"), object_id=self.get("object_id"))


class WhenPill(DaysPill):
    title = "When"
    field = "at"


class AuditChangeList(KeysetChangeList):
    """A page of events with the names of their objects."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        events: list[Any] = list(self.result_list)
        names = names_of([named for event in events for named in _objects(event)])
        for event in events:
            event.names = names


def _objects(event: AuditEvent) -> list[tuple[str, str]]:
    return [(event.object_type, event.object_id), *things_in(event.detail)]


class AuditEventAdmin(PortalAdmin):
    mount = "audit"
    title = "Audit log"
    page_keys = ORDER
    empty = "No events yet."
    list_display = ("moment", "who", "what", "object", "how")
    list_display_links = None
    list_filter = (ActorPill, VerbPill, ObjectPill, WhenPill)

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return AuditChangeList

    def page_urls(self) -> list[URLPattern]:
        return [self.url("<row:event_id>/", require_safe(self.show), "change")]

    def show(self, request: HttpRequest, event_id: int) -> HttpResponse:
        event: Any = get_object_or_404(AuditEvent, pk=event_id)
        event.names = names_of(_objects(event))
        context = {
            "title": "Audit log",
            "event": event,
            "what": verb(event.verb),
            "object": self.object(event),
            "detail": pretty(event.detail),
        }
        return self.render(request, "portal/audit_event.html", context)

    @display(description="When")
    def moment(self, event: AuditEvent) -> SafeString:
        return when(event.at)

    @display(description="Actor")
    def who(self, event: AuditEvent) -> SafeString:
        return format_html('<span class="hv-actor hv-actor-{}">{}</span>', event.actor_kind, event.actor_name)

    @display(description="Event")
    def what(self, event: AuditEvent) -> SafeString:
        link = reverse("admin:ops_auditevent_change", args=[event.pk])
        return format_html('<a class="hv-job" href="{}"><span class="hv-kind">{}</span></a>', link, verb(event.verb))

    @display(description="Object")
    def object(self, event: Any) -> SafeString:
        full = f"{event.object_type} {event.object_id}"
        name = event.names.get((event.object_type, event.object_id)) or UUID_TAIL.sub("…", event.object_id)
        short = f"{event.object_type} {name}"
        where = address(event.object_type, event.object_id)
        if where is None:
            return format_html('<span class="hv-object" title="{}">{}</span>', full, short)
        return format_html('<a class="hv-object" href="{}" title="{}">{}</a>', where, full, short)

    @display(description="Details")
    def how(self, event: Any) -> SafeString:
        detail = with_names(event.detail, event.names)
        parts = [*event.changed, *(f"{name}: {value}" for name, value in detail.items())]
        return format_html('<span class="hv-detail" title="{0}">{0}</span>', ", ".join(parts)) if parts else NOTHING
