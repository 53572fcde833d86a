"""Quarantine: pages that were read and not believed, and what a person decides about them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import display
from django.core.cache import cache
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, HarvesterError, InvalidInput, NotFound, TransientError
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import Role
from harvester.portal.catalog.labels import outside
from harvester.portal.display import badge, verb, when
from harvester.portal.filters import ChoicePill, Pill
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, may, require
from harvester.portal.runs.labels import code
from harvester.portal.scraping.filters import ShopPill as TargetShopPill
from harvester.portal.scraping.forms import back
from harvester.portal.scraping.labels import evidence_rows, marked, offer_rows, price_of, short_url, stacked
from harvester.scraping import page_review, quarantine
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.models import QuarantineEntry
from harvester.scraping.site import FIELDS
from harvester.scraping.states import QUARANTINED

STATUSES: Final = (quarantine.OPEN, quarantine.WRITTEN, quarantine.DISMISSED, quarantine.SUPERSEDED)
#: Several people may look at one page, and its text never changes.
TEXT_SECONDS: Final = 600
#: Earlier entries of the same page.
MOST_EARLIER: Final = 5


class EntryShopPill(TargetShopPill):
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        chosen = self.get(self.field)
        try:
            return queryset.filter(source_id=UUID(chosen)) if chosen else queryset
        except ValueError:
            return queryset.none()


class ReasonPill(ChoicePill):
    title = "Reason"
    field = "reason"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(outcome.value, code(outcome.value)) for outcome in QUARANTINED]


class EntryStatusPill(ChoicePill):
    """Open entries, unless the filter asks for others."""

    title = "Status"
    field = "status"

    def values(self) -> Iterable[tuple[str, str]]:
        return [*((status, verb(status)) for status in STATUSES[1:]), ("any", "Any")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        chosen = self.get(self.field)
        return queryset if chosen == "any" else queryset.filter(status=chosen or quarantine.OPEN)


class QuarantineAdmin(PortalAdmin):
    mount = "quarantine"
    title = "Quarantine"
    page_keys = ("-id",)
    empty = "Nothing in quarantine. Pages that were read and not believed appear here."
    live_seconds = 10
    list_display: Sequence[str] = ("where", "why", "price", "read_at")
    list_display_links = None
    numbers = ("price",)
    list_filter: Sequence[type[Pill]] = (EntryShopPill, ReasonPill, EntryStatusPill)

    def get_queryset(self, request: HttpRequest) -> QuerySet[QuarantineEntry]:
        return super().get_queryset(request).select_related("source", "target").defer("evidence")

    def page_urls(self) -> list[URLPattern]:
        key = "<uuid:entry_id>/"
        return [
            self.url(key, require_safe(self.show), "change"),
            self.url(f"{key}choose/", require_POST(self.choose), "choose"),
            self.url(f"{key}propose/", require_POST(self.propose), "propose"),
            self.url(f"{key}write/", require_POST(self.write), "write"),
            self.url(f"{key}reprocess/", require_POST(self.reprocess), "reprocess"),
            self.url(f"{key}dismiss/", require_POST(self.dismiss), "dismiss"),
        ]

    @display(description="Page")
    def where(self, entry: QuarantineEntry) -> SafeString:
        where = reverse("admin:scraping_quarantineentry_change", args=[entry.pk])
        return format_html(
            '<span class="hv-stacked"><a class="hv-lead" href="{}" title="{}"><span class="hv-kind">{}</span></a>'
            '<small class="hv-note">{}</small></span>',
            *(where, entry.target.url, short_url(entry.target.url), entry.source),
        )

    @display(description="Reason")
    def why(self, entry: QuarantineEntry) -> SafeString:
        state = badge(entry.reason) if entry.status == quarantine.OPEN else badge(entry.status)
        return stacked(state, entry.detail)

    @display(description="Price")
    def price(self, entry: QuarantineEntry) -> SafeString:
        return price_of(entry.found)

    @display(description="Read")
    def read_at(self, entry: QuarantineEntry) -> SafeString:
        return when(entry.observed_at)

    def show(self, request: HttpRequest, entry_id: UUID) -> HttpResponse:
        entry = get_object_or_404(QuarantineEntry.objects.select_related("source", "target"), pk=entry_id)
        evidence = [
            {**row, "is_chosen": bool(row["place"]) and entry.target.chosen.get(row["name"]) == row["place"]}
            for row in evidence_rows(entry.evidence)
        ]
        earlier = QuarantineEntry.objects.filter(target=entry.target_id).exclude(pk=entry.pk)
        text = _text_of(entry)
        found = entry.found or {}
        context = {
            "title": short_url(entry.target.url),
            "entry": entry,
            "address": outside(entry.target.url),
            "is_open": entry.status == quarantine.OPEN,
            "offer": offer_rows(found),
            "is_whole": bool(found.get("price") and found.get("title") and found.get("availability")),
            "price": price_of(found),
            "evidence": evidence,
            "text": marked(text, [row["value"] for row in evidence]) if text else None,
            "fields": [(name, code(name.upper())) for name in FIELDS],
            "earlier": list(earlier.order_by("-id").only("pk", "reason", "status", "observed_at")[:MOST_EARLIER]),
            "operator": may(request, Role.OPERATOR),
            "admin": may(request, Role.ADMIN),
            "longest_reason": LONGEST_REASON,
        }
        return self.render(request, "portal/scraping/quarantine_entry.html", context)

    def choose(self, request: HttpRequest, entry_id: UUID) -> HttpResponse:
        """Save a place for this page, and read the kept page again with it."""
        actor = require(request, Role.OPERATOR)
        places = {request.POST.get("field", ""): request.POST.get("place", "")}

        def act() -> str:
            quarantine.choose_places(actor, entry_id, places)
            return _read_again(actor, entry_id)

        return self._done(request, entry_id, act)

    def propose(self, request: HttpRequest, entry_id: UUID) -> HttpResponse:
        """Save a place for all pages of the shop, as a draft that is tested first."""
        actor = require(request, Role.ADMIN)
        places = {request.POST.get("field", ""): request.POST.get("place", "")}
        try:
            made = quarantine.propose_override(actor, entry_id, places)
        except NotFound as problem:
            raise Http404 from problem
        except (Conflict, InvalidInput) as problem:
            messages.error(request, str(problem))
            return redirect("admin:scraping_quarantineentry_change", entry_id)
        messages.success(request, f"Override {made.version} was saved as a draft. Test it on kept pages, then use it.")
        return redirect("admin:scraping_shop_override", made.source_id, made.version)

    def write(self, request: HttpRequest, entry_id: UUID) -> HttpResponse:
        actor, note = require(request, Role.OPERATOR), request.POST.get("note", "")

        def act() -> str:
            entry = quarantine.write_one(actor, entry_id, note=note)
            if entry.status == quarantine.SUPERSEDED:
                return "Nothing was written: a newer page of the product was there first."
            return "The offer was written."

        return self._done(request, entry_id, act)

    def reprocess(self, request: HttpRequest, entry_id: UUID) -> HttpResponse:
        actor = require(request, Role.OPERATOR)
        return self._done(request, entry_id, lambda: _read_again(actor, entry_id))

    def dismiss(self, request: HttpRequest, entry_id: UUID) -> HttpResponse:
        actor, note = require(request, Role.OPERATOR), request.POST.get("note", "")

        def act() -> str:
            quarantine.dismiss(actor, entry_id, note)
            return "The entry was dismissed. The next reading of the page is judged like any other."

        return self._done(request, entry_id, act)

    def _done(self, request: HttpRequest, entry_id: UUID, act: Callable[[], str]) -> HttpResponse:
        attempt(request, act)
        return back(request, "admin:scraping_quarantineentry_change", entry_id)


def _read_again(actor: Actor, entry_id: UUID) -> str:
    """Read the kept page again with what is chosen now, and write its offer if there is one."""
    if QuarantineEntry.objects.filter(pk=entry_id, page=None).exists():
        raise Conflict("The page is not kept any more. Nothing was written; read it from the shop again.")
    try:
        reading, entry = page_review.reprocess_entry(actor, entry_id)
    except (PageMissing, TransientError) as problem:
        raise Conflict(f"{problem} Nothing was written.") from problem
    if entry.status == quarantine.WRITTEN and reading.offer is not None:
        return f"The offer was written: {reading.offer.price}."
    if entry.status == quarantine.SUPERSEDED:
        return "Nothing was written: a newer page of the product was there first."
    next_step = "Choose the place of each field that does not agree, or dismiss the entry."
    return f"Read again, and nothing was written. {code(reading.outcome)}: {reading.detail} {next_step}"


def _text_of(entry: QuarantineEntry) -> str:
    """Return the beginning of the text of the page, read by a child process; empty if it is not kept any more."""
    if not entry.page:
        return ""
    name = f"portal.quarantine.text.{entry.page}"
    known = cache.get(name)
    if known is not None:
        return str(known)
    try:
        _, reading = page_review.read_kept(entry.target_id, entry.page)
    except HarvesterError:
        return ""
    cache.set(name, reading.text, TEXT_SECONDS)
    return reading.text
