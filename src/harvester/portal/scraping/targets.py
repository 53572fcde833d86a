"""Pages that are read: their list with its filters and buttons, addresses that need somebody, and addresses to try.

An address needs somebody if it moved permanently, if it is gone, or if two pages are of one product. A try fetches an
address once and shows what was read from where and why; nothing is written.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from html import escape
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.kernel.errors import ConfigError, Conflict, InvalidInput, NotFound, TransientError
from harvester.ops.models import Role
from harvester.portal.catalog.labels import outside
from harvester.portal.display import NOTHING, when
from harvester.portal.filters import Pill
from harvester.portal.forms import Choice, Text
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.pages import Pages
from harvester.portal.requests import form_view, is_fragment, may, require
from harvester.portal.scraping import target_page
from harvester.portal.scraping.filters import MOST_SOURCES, OutcomePill, ShopPill, StatusPill, SwitchPill, TroublePill
from harvester.portal.scraping.forms import one_of_each, save_in_form
from harvester.portal.scraping.labels import evidence_rows, marked, offer_rows, price_of, seen_of, short_url, state_of
from harvester.scraping import queries, single_fetches
from harvester.scraping.models import FetchRequest, ScrapeTarget
from harvester.scraping.target_filters import TargetFilter, Trouble
from harvester.scraping.verbs import replace_moved

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
            "changes": [(name, label) for name, label, role in target_page.BULK if may(request, role)],
            "query": request.GET.urlencode(),
            "admin": admin,
        }
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def page_urls(self) -> list[URLPattern]:
        site, key = self.admin_site, "<uuid:target_id>/"
        buttons = {
            "read": target_page.read,
            "pause": target_page.pause,
            "resume": target_page.resume,
            "enable": target_page.enable,
            "disable": target_page.disable,
            "move": target_page.move,
            "unpin": target_page.unpin,
            "forget": target_page.forget,
            "reprocess": target_page.reprocess,
            "delete": target_page.delete,
        }
        return [
            self.url("add/", form_view(partial(target_page.add, site)), "add"),
            self.url("bulk/", require_POST(partial(target_page.bulk, site)), "bulk"),
            self.url(key, require_safe(partial(target_page.show, site)), "change"),
            self.url(f"{key}edit/", form_view(partial(target_page.edit, site)), "edit"),
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
            # Products with their pages, read in one statement.
            wanted = [target_id for group in twice.groups for target_id in group.target_ids]
            known = ScrapeTarget.objects.select_related("source").in_bulk(wanted)
            groups = []
            for group in twice.groups:
                pages = [_row(known[target_id]) for target_id in group.target_ids if target_id in known]
                if pages:
                    source = pages[0]["target"].source
                    groups.append({"source_id": group.source_id, "product_id": group.product_id, "source": source,
                                   "rows": pages})  # fmt: skip
            context["groups"] = groups
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


#: The newest tries below the form; they are deleted after a week.
MOST_TRIES: Final = 10


class TryForm(forms.Form):
    url = forms.CharField(label="Address", widget=Text({"inputmode": "url", "placeholder": "https://"}))
    source = forms.ChoiceField(
        label="Shop",
        required=False,
        widget=Choice(),
        help_text="Its settings and overrides are used. Without one, the page is read like that of any shop.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = Source.objects.order_by("name").values_list("pk", "name")[:MOST_SOURCES]
        field = self.fields["source"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - says so above
        field.choices = [("", "No shop yet"), *((str(pk), name) for pk, name in known)]


class TryPages(Pages):
    mount = "try-url"
    name = "scraping_try"

    def urls(self) -> list[URLPattern]:
        return [
            self.url("", form_view(self.form), "changelist"),
            self.url("<uuid:request_id>/", require_safe(self.show), "change"),
        ]

    def form(self, request: HttpRequest) -> HttpResponse:
        actor = require(request, Role.OPERATOR) if request.method == "POST" else None
        form = TryForm(request.POST or None, initial={name: request.GET.get(name, "") for name in ("url", "source")})
        if actor is not None and form.is_valid():
            given = form.cleaned_data

            def start() -> FetchRequest:
                source = Source.objects.get(pk=UUID(given["source"])) if given["source"] else None
                try:
                    return single_fetches.try_url(actor, given["url"], source)
                except (ConfigError, TransientError) as problem:
                    raise Conflict(str(problem)) from problem

            made = save_in_form(form, start)
            if made is not None:
                return redirect("admin:scraping_try_change", made.pk)
        tries = FetchRequest.objects.filter(purpose=single_fetches.TRY).select_related("source").order_by("-created_at")
        context = {
            "title": "Try a URL",
            "form": form,
            "operator": may(request, Role.OPERATOR),
            "tries": [
                {"request": each, "name": short_url(each.url)} for each in tries.defer("result", "state")[:MOST_TRIES]
            ],
        }
        return self.render(request, "portal/scraping/try.html", context)

    def show(self, request: HttpRequest, request_id: UUID) -> HttpResponse:
        """Show a try while it runs, and then what was read."""
        found = get_object_or_404(FetchRequest.objects.select_related("source"), pk=request_id)
        job = Job.objects.filter(pk=found.job_id).first() if found.job_id else None
        result: Mapping[str, Any] = found.result if isinstance(found.result, dict) else {}
        evidence = evidence_rows(result.get("evidence") or ())
        text = str(result.get("text") or "")
        context = {
            "title": short_url(found.url),
            "found": found,
            "address": outside(found.url),
            "job": job,
            "live": found.outcome is None and job is not None and job.state in OPEN,
            "error": job.error if job is not None and found.outcome is None and job.state not in OPEN else None,
            "offer": offer_rows(result.get("offer")),
            "said": result.get("error") or result.get("note") or result.get("detail"),
            "warnings": result.get("warnings") or [],
            "result": result,
            "evidence": evidence,
            "text": marked(text, [row["value"] for row in evidence]) if text else None,
            "operator": may(request, Role.OPERATOR),
        }
        if is_fragment(request):
            return TemplateResponse(request, "portal/scraping/try_body.html", context)
        return self.render(request, "portal/scraping/try_result.html", context)
