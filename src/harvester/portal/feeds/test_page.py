"""What a test run found: the page that waits for it and then shows it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.feeds.advice import advice_for
from harvester.feeds.latest_runs import test_job
from harvester.feeds.models import Feed
from harvester.feeds.notices import titled
from harvester.feeds.states import FeedStatus
from harvester.guards.host_keys import HostKeyUnknown
from harvester.ops.models import Role
from harvester.portal.feeds import buttons, page
from harvester.portal.feeds.facts import host_keys
from harvester.portal.requests import is_fragment, may
from harvester.portal.runs.labels import code

ROW_COLUMNS = (
    ("item_id", "Item id"),
    ("sku", "SKU"),
    ("title", "Title"),
    ("amount", "Price"),
    ("currency", "Currency"),
    ("in_stock", "In stock"),
    ("url", "Address"),
)


def show(site: AdminSite, request: HttpRequest, feed_id: UUID, test_id: int) -> HttpResponse:
    feed = page.find(feed_id)
    job = test_job(feed, test_id)
    if job is None:
        raise Http404
    context = _told(request, feed, job)
    if is_fragment(request):
        return TemplateResponse(request, "portal/feeds/test_body.html", context)
    shell = {**site.each_context(request), "title": "Test", "dialogs": _dialogs(request, feed)}
    return TemplateResponse(request, "portal/feeds/test.html", {**shell, **context})


def _dialogs(request: HttpRequest, feed: Feed) -> list[buttons.Action]:
    return [action for action in buttons.offered(request, feed) if action.title and not action.is_rare]


def _told(request: HttpRequest, feed: Feed, job: Job) -> dict[str, Any]:
    found = job.result if isinstance(job.result, dict) else {}
    error = found.get("error") or _failure(job)
    return {
        "feed": feed,
        "job": job,
        "live": job.state in OPEN,
        "found": found,
        "error": error,
        "is_first_key": bool(error and error["code"] == HostKeyUnknown.code),
        "advice": advice_for(error["code"]) if error else None,
        "keys": host_keys(feed) if found.get("seen_host_key") else None,
        "may_approve": may(request, Role.ADMIN),
        "buttons": _next(request, feed, succeeded=bool(found.get("success"))),
        "binding": [(code(name), names) for name, names in (found.get("binding") or {}).items()],
        "notices": titled(found.get("notices") or []),
        "rejects": _counts(found, "rejects"),
        "warnings": _counts(found, "warnings"),
        "samples": [(code(name), sample) for name, kept in (found.get("samples") or {}).items() for sample in kept],
        "columns": [words for _, words in ROW_COLUMNS],
        "rows": [[row.get(name) for name, _ in ROW_COLUMNS] for row in found.get("rows") or []],
    }


def _counts(found: Mapping[str, Any], name: str) -> list[tuple[str, int]]:
    return [(code(word), count) for word, count in (found.get(name) or {}).items()]


def _failure(job: Job) -> dict[str, str] | None:
    """A test that broke off has an error instead of a result."""
    return {"code": job.error_type or job.state, "message": job.error} if job.error and job.state not in OPEN else None


def _next(request: HttpRequest, feed: Feed, *, succeeded: bool) -> list[buttons.Action]:
    """What to do with what was found."""
    wanted: tuple[str, ...] = ("test",)
    if succeeded:
        wanted = ("run",) if feed.status == FeedStatus.ENABLED else ("enable", "resume", "re-enable")
    found = [action for action in buttons.offered(request, feed) if action.name in wanted]
    return [replace(action, look="primary") for action in found] if succeeded else found
