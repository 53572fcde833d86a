"""The page of one page of a shop, and what people do with pages.

It shows how the page does, what was last read from it, and its history. People add and change pages, read them now, and
change many at once.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from harvester.catalog import product_details
from harvester.catalog.models import Source
from harvester.catalog.offer_browser import lines
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import AuditEvent, Role
from harvester.portal.catalog.forms import Number
from harvester.portal.catalog.labels import outside
from harvester.portal.forms import Choice, Text, Tick
from harvester.portal.requests import attempt, is_fragment, may, require
from harvester.portal.runs.labels import code
from harvester.portal.scraping.filters import MOST_SOURCES, read_filter
from harvester.portal.scraping.forms import Lines, back, one_of_each, save_in_form
from harvester.portal.scraping.labels import evidence_rows, offer_rows, price_of, said, seen_of, short_url, state_of
from harvester.runs.models import RunPart
from harvester.scraping import page_review, quarantine
from harvester.scraping.capacity import EnqueueResult
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.models import QuarantineEntry, ScrapeTarget
from harvester.scraping.states import TargetStatus
from harvester.scraping.target_filters import TargetFilter
from harvester.scraping.verbs import requests
from harvester.scraping.verbs import targets as verbs

#: Readings and changes that the page shows.
MOST_PARTS: Final = 20
MOST_EVENTS: Final = 6
#: Seconds between two looks: while it is being read, and otherwise.
READING, RESTING = 2, 15


def find(target_id: UUID) -> ScrapeTarget:
    return get_object_or_404(ScrapeTarget.objects.select_related("source__retailer"), pk=target_id)


def show(site: AdminSite, request: HttpRequest, target_id: UUID) -> HttpResponse:
    target = find(target_id)
    job = Job.objects.filter(dedupe_key=f"scrape:{target.pk}", state__in=OPEN).order_by("-id").first()
    history = _history(target)
    latest = history[0] if history else None
    context = {
        "target": target,
        "state": state_of(target),
        "job": job,
        "refresh_seconds": READING if job else RESTING,
        "offer": offer_rows(seen_of(target)),
        "waiting": price_of(target.waiting),
        "evidence": latest["evidence"] if latest else [],
        "latest": latest,
        "history": history,
        "quarantine": QuarantineEntry.objects.filter(target=target, status="OPEN").only("pk", "reason").first(),
        "operator": may(request, Role.OPERATOR),
        "admin": may(request, Role.ADMIN),
        "is_active": target.status == TargetStatus.ACTIVE,
        "is_paused": target.status == TargetStatus.PAUSED,
    }
    if is_fragment(request):
        return TemplateResponse(request, "portal/scraping/target_body.html", context)
    more = {
        **site.each_context(request),
        "title": short_url(target.url),
        "address": outside(target.url),
        "moved_to": outside(target.moved_to) if target.moved_to and target.moved_to != target.url else None,
        "products": _products(target),
        "pinned": [(code(name.upper()), value) for name, value in (target.pinned or {}).items() if value],
        "forced": [("force", "yes")],
        "chosen": sorted(target.chosen.items()),
        "events": list(
            AuditEvent.objects.filter(object_type="scrape_target", object_id=str(target.pk)).order_by("-at", "-id")
            [:MOST_EVENTS]
        ),
    }  # fmt: skip
    return TemplateResponse(request, "portal/scraping/target.html", {**context, **more})


def _history(target: ScrapeTarget) -> list[dict[str, Any]]:
    """Return the newest readings, with the run of each."""
    parts = RunPart.objects.filter(target_id=target.pk, ended_at__isnull=False).select_related("run")
    return [
        {
            "at": part.observed_at or part.ended_at,
            "run": part.run,
            "outcome": part.outcome,
            "detail": said(part.detail),
            "price": price_of(part.found),
            "evidence": evidence_rows(part.detail.get("evidence") or ()),
        }
        for part in parts.order_by("-ended_at")[:MOST_PARTS]
    ]


def _products(target: ScrapeTarget) -> list[dict[str, Any]]:
    """Return the product that it refreshes, and the one that its first price was of if that is another."""
    found: list[dict[str, Any]] = []
    for label, number in (
        ("Linked product", target.product_id),
        ("Product of its first price", target.pinned_product_id),
    ):
        if number is None or any(each["number"] == number for each in found):
            continue
        try:
            title = product_details.product(target.source_id, number).title
            [line] = lines([(target.source_id, number)])
        except NotFound:
            title, line = f"{number} (deleted)", None
        found.append({"label": label, "number": number, "title": title, "line": line})
    return found


#: Change of many pages: its name, its label and the role that may do it.
BULK: Final = (
    ("read", "Read now", Role.OPERATOR),
    ("pause", "Pause", Role.OPERATOR),
    ("resume", "Resume", Role.OPERATOR),
    ("enable", "Enable", Role.OPERATOR),
    ("disable", "Disable", Role.OPERATOR),
    ("schedule", "Set schedule", Role.OPERATOR),
    ("priority", "Set priority", Role.OPERATOR),
    ("block", "Block by robots.txt rule", Role.ADMIN),
    ("unblock", "Unblock", Role.ADMIN),
    ("delete", "Delete", Role.ADMIN),
)
#: Changes that are one setting of a page.
_CHANGES: Final[dict[str, dict[str, Any]]] = {
    "pause": {"status": TargetStatus.PAUSED.value},
    "resume": {"status": TargetStatus.ACTIVE.value},
    "enable": {"enabled": True},
    "disable": {"enabled": False},
    "block": {"robots_path_blocked": True},
    "unblock": {"robots_path_blocked": False},
}
_SCHEDULE_HELP: Final = "Five fields in UTC, such as 0 */4 * * * for every four hours. Empty: on request only."


class TargetForm(forms.Form):
    source = forms.ChoiceField(label="Shop", widget=Choice(), help_text="The page must be on this shop's domain.")
    url = forms.CharField(label="Address", widget=Text({"inputmode": "url"}), help_text="Fetched exactly as given.")
    schedule = forms.CharField(required=False, widget=Text({"placeholder": "0 */4 * * *"}), help_text=_SCHEDULE_HELP)
    priority = forms.IntegerField(initial=0, widget=Number(), help_text="-100 to 100; higher is read first.")
    product_id = forms.IntegerField(
        label="Product number",
        required=False,
        widget=Number(),
        help_text="A product of this source, of which the page then changes only price and stock.",
    )
    sku = forms.CharField(label="SKU", required=False, widget=Text(), help_text="Finds that product instead.")
    gtin = forms.CharField(label="GTIN", required=False, widget=Text(), help_text="The same.")
    notes = forms.CharField(required=False, widget=Lines(3))
    enabled = forms.BooleanField(required=False, initial=True, widget=Tick())

    def __init__(self, *args: Any, target: ScrapeTarget | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if target is None:
            known = Source.objects.order_by("name").values_list("pk", "name")[:MOST_SOURCES]
            field = self.fields["source"]
            assert isinstance(field, forms.ChoiceField)  # noqa: S101 - says so above
            field.choices = [("", "Choose a source"), *((str(pk), name) for pk, name in known)]
        else:
            for name in ("source", "sku", "gtin"):
                del self.fields[name]
            self.fields["url"].help_text = "Another address makes it another page: what was read no longer counts."


def add(site: AdminSite, request: HttpRequest) -> HttpResponse:
    actor = require(request, Role.OPERATOR)
    form = TargetForm(request.POST or None, initial={"source": request.GET.get("source", "")})
    if request.method == "POST" and form.is_valid():
        given = dict(form.cleaned_data)
        source_id = UUID(given.pop("source"))
        made = save_in_form(form, lambda: verbs.add_target(actor, source_id, given.pop("url"), **given))
        if made is not None:
            messages.success(request, "The page was added.")
            return redirect("admin:scraping_scrapetarget_change", made.pk)
    context = {"title": "Add page", "submit": "Add page", "back": reverse("admin:scraping_scrapetarget_changelist")}
    return _form(site, request, form, context)


def edit(site: AdminSite, request: HttpRequest, target_id: UUID) -> HttpResponse:
    actor, target = require(request, Role.OPERATOR), find(target_id)
    known = {name: getattr(target, name) for name in TargetForm.base_fields if hasattr(target, name)}
    form = TargetForm(request.POST or None, target=target, initial=known)
    if request.method == "POST" and form.is_valid():
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if save_in_form(form, lambda: verbs.update_target(actor, target_id, **changes)) is not None:
            messages.success(request, "The page was saved.")
            return redirect("admin:scraping_scrapetarget_change", target_id)
    where = reverse("admin:scraping_scrapetarget_change", args=[target_id])
    return _form(site, request, form, {"title": "Edit", "submit": "Save", "back": where, "target": target})


def _form(site: AdminSite, request: HttpRequest, form: forms.Form, context: dict[str, Any]) -> HttpResponse:
    shell = {**site.each_context(request), "form": form}
    return TemplateResponse(request, "portal/scraping/target_form.html", {**shell, **context})


def _button(
    verb: Callable[[Actor, UUID], object], message: str, role: Role = Role.OPERATOR
) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Return the view of a button: it runs a verb and goes back to the page of the button."""

    def view(request: HttpRequest, target_id: UUID) -> HttpResponse:
        actor = require(request, role)

        def act() -> str:
            verb(actor, target_id)
            return message

        attempt(request, act)
        return back(request, "admin:scraping_scrapetarget_change", target_id)

    return view


pause = _button(verbs.pause_target, "The page is paused.")
resume = _button(verbs.resume_target, "The page is resumed. Its failures are counted from zero.")
enable = _button(lambda actor, pk: verbs.update_target(actor, pk, enabled=True), "The page is enabled.")
disable = _button(lambda actor, pk: verbs.update_target(actor, pk, enabled=False), "The page is disabled.")
forget = _button(quarantine.forget_places, "The page is read by the places of its shop alone again.")
unpin = _button(quarantine.unpin, "The page may show another product now. Its next price pins it again.")
move = _button(verbs.replace_moved, "The new address is used from now on.")


def read(request: HttpRequest, target_id: UUID) -> HttpResponse:
    force = request.POST.get("force") == "yes"
    actor = require(request, Role.ADMIN if force else Role.OPERATOR)

    def act() -> str:
        source_id = find(target_id).source_id
        return outcome_of(requests.request(actor, source_id, [target_id], force=force).require())

    attempt(request, act)
    return back(request, "admin:scraping_scrapetarget_change", target_id)


def reprocess(request: HttpRequest, target_id: UUID) -> HttpResponse:
    """Read the newest kept page again, in a run of its own. Nothing is requested from the shop."""
    actor = require(request, Role.OPERATOR)

    def act() -> str:
        try:
            run = page_review.reprocess(actor, target_id)
        except PageMissing as problem:
            raise Conflict(str(problem)) from problem
        return f"Run {run.no} reads the kept page again. Nothing is requested from the shop."

    attempt(request, act)
    return back(request, "admin:scraping_scrapetarget_change", target_id)


def outcome_of(result: EnqueueResult) -> str:
    """Return the result of a request to read pages, for people."""
    parts = [
        (result.accepted, "queued"),
        (result.waiting, "waiting already"),
        (result.skipped, "skipped because they are off, blocked or not active"),
        (result.rejected, "not queued"),
    ]
    counts = ", ".join(f"{number:,} {what}" for number, what in parts if number) or "none found"
    return f"Pages: {counts}. {result.message}".strip()


def delete(request: HttpRequest, target_id: UUID) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def act() -> str:
        verbs.delete_target(actor, target_id)
        return "The page was deleted. Prices that it has written are kept."

    if attempt(request, act):
        return redirect("admin:scraping_scrapetarget_changelist")
    return redirect("admin:scraping_scrapetarget_change", target_id)


def bulk(site: AdminSite, request: HttpRequest) -> HttpResponse:
    """Change the selected pages, or all that the filters of the list mean; deleting and many pages ask first."""
    name = request.POST.get("change", "")
    role = next((role for each, _, role in BULK if each == name), Role.OPERATOR)
    actor = require(request, role)
    is_all = request.POST.get("which") == "all"
    listing = QueryDict(request.POST.get("query", ""))
    where = request.POST.get("back", "")
    if not (where.startswith("/") and url_has_allowed_host_and_scheme(where, allowed_hosts=None)):
        where = f"{reverse('admin:scraping_scrapetarget_changelist')}?{listing.urlencode()}"

    def act() -> str:
        wanted = _wanted(request, listing, is_all=is_all)
        most = None if may(request, Role.ADMIN) else verbs.MOST_WITHOUT_ADMIN
        return _change(actor, name, wanted, request.POST.get("value", ""), most)

    if (is_all or name == "delete") and request.POST.get("confirm") != "yes":
        try:
            count = _wanted(request, listing, is_all=is_all).targets().count()
        except InvalidInput as problem:
            messages.error(request, str(problem))
            return redirect(where)
        label = next((label for each, label, _ in BULK if each == name), "")
        kept = [
            (key, value) for key, values in request.POST.lists() for value in values if key != "csrfmiddlewaretoken"
        ]
        context = {"title": f"{label}?", "label": label, "count": count, "kept": kept, "back": where, "change": name}
        shell = site.each_context(request)
        return TemplateResponse(request, "portal/scraping/bulk.html", {**shell, **context})
    attempt(request, act)
    return redirect(where)


def _wanted(request: HttpRequest, listing: QueryDict, *, is_all: bool) -> TargetFilter:
    if is_all:
        found = read_filter({name: str(value) for name, value in listing.items()})
        if found is None:
            raise InvalidInput("the filters of the list mean no page. Nothing was changed.")
        return found
    return TargetFilter(ids=one_of_each(request, "page"))


def _change(actor: Actor, name: str, wanted: TargetFilter, value: str, most: int | None) -> str:
    if name == "read":
        owners = wanted.targets().order_by().values_list("source_id", flat=True).distinct()
        results = [requests.request(actor, source_id, wanted) for source_id in owners]
        messages_of = {result.message for result in results if result.message}
        total = EnqueueResult(
            accepted=sum(result.accepted for result in results),
            waiting=sum(result.waiting for result in results),
            skipped=sum(result.skipped for result in results),
            rejected=sum(result.rejected for result in results),
            message=" ".join(sorted(messages_of)),
        )
        return outcome_of(total)
    if name == "delete":
        count = verbs.delete_targets(actor, wanted, most=most)
        return f"{_counted(count)} deleted. Prices that were written are kept."
    changes: dict[str, Any]
    if name == "schedule":
        changes = {name: value}
    elif name == "priority":
        try:
            changes = {name: int(value)}
        except ValueError:
            raise InvalidInput("a priority is a whole number. Nothing was changed.", field=name) from None
    elif name in _CHANGES:
        changes = _CHANGES[name]
    else:
        raise InvalidInput("Choose what to change. Nothing was changed.")
    return f"{_counted(verbs.update_targets(actor, wanted, most=most, **changes))} changed."


def _counted(pages: int) -> str:
    return "1 page was" if pages == 1 else f"{pages:,} pages were"
