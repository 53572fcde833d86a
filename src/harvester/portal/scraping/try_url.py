"""Try an address: fetch it once, and show what was read from where and why. Nothing is written."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.views.decorators.http import require_safe

from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.kernel.actor import Actor
from harvester.kernel.errors import ConfigError, Conflict, TransientError
from harvester.ops.models import Role
from harvester.portal.catalog.labels import outside
from harvester.portal.forms import Choice, Text
from harvester.portal.pages import Pages
from harvester.portal.requests import form_view, is_fragment, may, require
from harvester.portal.scraping.filters import MOST_SOURCES
from harvester.portal.scraping.forms import save_in_form
from harvester.portal.scraping.labels import evidence_rows, marked, offer_rows, short_url
from harvester.scraping import single_fetches
from harvester.scraping.models import FetchRequest

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


def _start(actor: Actor, url: str, source_id: str) -> FetchRequest:
    source = Source.objects.get(pk=UUID(source_id)) if source_id else None
    try:
        return single_fetches.try_url(actor, url, source)
    except (ConfigError, TransientError) as problem:
        raise Conflict(str(problem)) from problem


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
            made = save_in_form(form, lambda: _start(actor, form.cleaned_data["url"], form.cleaned_data["source"]))
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
