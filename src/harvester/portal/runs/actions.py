"""What people do about a run: approve, reject, ignore, undo, and have its file."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from harvester.feeds import decisions, files
from harvester.guards.artifacts import ArtifactMissing
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.requests import attempt, require
from harvester.runs.decisions import request_approval, request_rejection
from harvester.runs.kinds import holding_kind
from harvester.runs.models import Run
from harvester.scraping.states import RUN_KIND
from harvester.scraping.verbs import runs as scraping_runs

#: More digits than any count has.
LONGEST_FIGURE = 18


def approve(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def verb(run_id: UUID) -> str:
        request_approval(actor, run_id, _figures_seen(request, run_id))
        return f"Run {run_no} is being approved. This page updates automatically."

    return _done(request, run_no, verb)


def reject(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def verb(run_id: UUID) -> str:
        request_rejection(actor, run_id, _reason(request), _figures_seen(request, run_id))
        return f"Run {run_no} is being rejected. This page updates automatically."

    return _done(request, run_no, verb)


def ignore(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def verb(run_id: UUID) -> str:
        count = _decisions_of(run_id).ignore(actor, run_id, _reason(request))
        return f"The prices of run {run_no} are hidden; that concerns {count:,} products."

    return _done(request, run_no, verb)


def undo_ignore(request: HttpRequest, run_no: int) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def verb(run_id: UUID) -> str:
        count = _decisions_of(run_id).undo_ignore(actor, run_id)
        return f"The prices of run {run_no} count again; that concerns {count:,} products."

    return _done(request, run_no, verb)


def _decisions_of(run_id: UUID) -> Any:
    """Return the verbs that decide about runs of this kind."""
    return scraping_runs if Run.objects.filter(pk=run_id, kind=RUN_KIND).exists() else decisions


def file(request: HttpRequest, run_no: int) -> HttpResponseBase:
    """The file as the partner wrote it, never shown in the browser: what is in it is somebody else's."""
    actor = require(request, Role.OPERATOR)
    try:
        return _download(actor, _id_of(run_no))
    except NotFound as problem:
        raise Http404 from problem
    except (Conflict, ArtifactMissing) as problem:
        messages.error(request, str(problem))
        return redirect("admin:runs_run_change", run_no)


def _download(actor: Actor, run_id: UUID) -> FileResponse:
    kept = files.hand_out(actor, run_id)
    answer = FileResponse(kept.content, as_attachment=True, filename=kept.name, content_type="application/octet-stream")
    answer.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return answer


def _done(request: HttpRequest, run_no: int, verb: Callable[[UUID], str]) -> HttpResponse:
    run_id = _id_of(run_no)
    attempt(request, lambda: verb(run_id))
    return redirect("admin:runs_run_change", run_no)


def _id_of(run_no: int) -> UUID:
    run_id = Run.objects.filter(no=run_no).values_list("pk", flat=True).first()
    if run_id is None:
        raise Http404
    return run_id


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").replace("\x00", "")


def _figures_seen(request: HttpRequest, run_id: UUID) -> dict[str, int]:
    """What the page showed when the person decided; without it nobody knows what was decided about."""
    kind = holding_kind(Run.objects.values_list("kind", flat=True).get(pk=run_id))
    given = {name: request.POST.get(name, "") for name in (kind.decision_figures if kind else ())}
    if not all(text.isascii() and text.isdigit() and len(text) <= LONGEST_FIGURE for text in given.values()):
        raise InvalidInput("The figures that were decided about did not come along. Look at the page and decide there.")
    return {name: int(text) for name, text in given.items()}
