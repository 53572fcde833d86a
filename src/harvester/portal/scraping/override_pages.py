"""Overrides of a shop: its versions, what they would change on kept pages, and where lost values are found now."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse

from harvester.engine.states import OPEN
from harvester.ops.models import Role
from harvester.portal.display import pretty
from harvester.portal.forms import Text
from harvester.portal.requests import attempt, is_fragment, may, require
from harvester.portal.runs.labels import code
from harvester.portal.scraping import shop_page
from harvester.portal.scraping.forms import Lines, save_in_form
from harvester.portal.scraping.labels import OFFER_LABELS, short_path
from harvester.scraping import overrides as verbs
from harvester.scraping.models import ScrapeOverride

MOST_VERSIONS: Final = 50
EXAMPLE: Final = '{"places": {"price": ["json:offers.price"]}}'
#: Outcome of reading a kept page again -> its label and color.
_KINDS: Final = {
    "same": ("Same", "succeeded"),
    "changed": ("Changed", "retryable"),
    "gained": ("Gained an offer", "succeeded"),
    "lost": ("Lost the offer", "failed"),
    "other": ("Another reason", "pending"),
    "missing": ("File gone", "pending"),
}


class OverrideForm(forms.Form):
    places = forms.CharField(
        label="Places",
        widget=Lines(6, EXAMPLE),
        help_text="JSON of what differs from the site file: places, exclude, tiers, in_stock, out_of_stock, backorder. "
        "A place is a CSS selector with ::text or ::attr(name), or json: and a path.",
    )
    note = forms.CharField(required=False, widget=Text(), help_text="Why, for the others.")

    def clean_places(self) -> Any:
        try:
            return json.loads(self.cleaned_data["places"])
        except ValueError as problem:
            raise forms.ValidationError(f"This is not JSON: {problem}.") from None


def overrides(site: AdminSite, request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Show the versions; a POST saves a new one as a draft."""
    source = shop_page.find(source_id)
    actor = require(request, Role.ADMIN) if request.method == "POST" else None
    form = OverrideForm(request.POST or None)
    if actor is not None and form.is_valid():
        given = form.cleaned_data
        made = save_in_form(form, lambda: verbs.save(actor, source_id, given["places"], given["note"]))
        if made is not None:
            messages.success(request, f"Override {made.version} was saved as a draft. Test it on kept pages.")
            return redirect("admin:scraping_shop_override", source_id, made.version)
    versions = ScrapeOverride.objects.filter(source=source).order_by("-version")[:MOST_VERSIONS]
    context = {
        **shop_page.shell(site, request, source),
        "form": form,
        "versions": [{"override": each, "tested": _summary(each.backtest)} for each in versions],
        "hints": _hints(source_id),
    }
    return TemplateResponse(request, "portal/scraping/overrides.html", context)


def show(site: AdminSite, request: HttpRequest, source_id: UUID, version: int) -> HttpResponse:
    source = shop_page.find(source_id)
    found = get_object_or_404(ScrapeOverride, source=source, version=version)
    job = verbs.job_of_test(found)
    report: Mapping[str, Any] = found.backtest or {}
    context = {
        "source": source,
        "override": found,
        "places": pretty(found.places),
        "job": job,
        "live": job is not None and job.state in OPEN,
        "error": job.error if job is not None and job.state == "failed" else None,
        "report": report,
        "tested_at": datetime.fromisoformat(report["at"]) if report.get("at") else None,
        "tiles": [
            {"name": label, "tone": tone, "count": report.get(kind, 0)} for kind, (label, tone) in _KINDS.items()
        ],
        "changed_fields": [
            (OFFER_LABELS.get(name, code(name.upper())), count) for name, count in (report.get("fields") or {}).items()
        ],
        "changes": [_change(change) for change in report.get("changes") or ()],
        "admin": may(request, Role.ADMIN),
    }
    if is_fragment(request):
        return TemplateResponse(request, "portal/scraping/override_body.html", context)
    shell = {**site.each_context(request), "title": f"Override {version}"}
    return TemplateResponse(request, "portal/scraping/override.html", {**shell, **context})


def _summary(report: Mapping[str, Any] | None) -> str:
    """Return what a test found, in a phrase."""
    if not report:
        return ""
    parts = [f"{report.get(kind, 0):,} {label.lower()}" for kind, (label, _) in _KINDS.items() if report.get(kind)]
    return f"{report.get('pages', 0):,} pages: {', '.join(parts) or 'none kept'}"


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    label, tone = _KINDS.get(change["kind"], (change["kind"], "pending"))
    return {
        "target_id": UUID(change["target_id"]),
        "name": short_path(change["url"]),
        "label": label,
        "tone": tone,
        "then": change["then"],
        "now": change["now"],
        "detail": change.get("detail", ""),
        "fields": [
            (OFFER_LABELS.get(name, code(name.upper())), then, now)
            for name, (then, now) in (change.get("fields") or {}).items()
        ],
    }


def _hints(source_id: UUID) -> dict[str, Any]:
    """Return where lost values are found now, as the last search reported them."""
    job = verbs.job_of_hints(source_id)
    result = job.result if job is not None and isinstance(job.result, dict) else {}
    return {
        "job": job,
        "live": job is not None and job.state in OPEN,
        "was_searched": bool(result),
        "rows": [
            {**hint, "label": OFFER_LABELS.get(hint["field"], hint["field"]),
             "places": json.dumps({"places": {hint["field"]: [hint["place"]]}})}
            for hint in result.get("hints", ())
        ],
    }  # fmt: skip


def _button(
    act: Callable[..., str],
) -> Callable[[HttpRequest, UUID, int], HttpResponse]:
    """Return the view of a button of one version."""

    def view(request: HttpRequest, source_id: UUID, version: int) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        attempt(request, lambda: act(actor, source_id, version))
        return redirect("admin:scraping_shop_override", source_id, version)

    return view


@_button
def test(*key: Any) -> str:
    verbs.test(*key)
    return "The test is queued. It reads kept pages and requests nothing."


@_button
def use(*key: Any) -> str:
    return f"Override {verbs.use(*key).version} is used from now on."


@_button
def retire(*key: Any) -> str:
    return f"Override {verbs.retire(*key).version} is retired. The site file alone counts again."


def find_hints(request: HttpRequest, source_id: UUID) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def act() -> str:
        verbs.find_hints(actor, source_id)
        return "The search is queued. Open this page again in a moment."

    attempt(request, act)
    return redirect("admin:scraping_shop_overrides", source_id)
