"""The page of one page of a shop: how it does, what was last read from it, and its history."""

from typing import Any, Final
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from harvester.catalog import product_details
from harvester.catalog.offer_browser import lines
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.kernel.errors import NotFound
from harvester.ops.models import AuditEvent, Role
from harvester.portal.catalog.labels import outside
from harvester.portal.requests import is_fragment, may
from harvester.portal.runs.labels import code
from harvester.portal.scraping.labels import evidence_rows, offer_rows, price_of, said, seen_of, short_url, state_of
from harvester.runs.models import RunPart
from harvester.scraping.models import QuarantineEntry, ScrapeTarget
from harvester.scraping.states import TargetStatus

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
