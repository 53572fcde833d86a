"""Where requests to the API come in: before sessions, cookies and forged forms are looked at, because it has none."""

import time
from collections.abc import Callable
from http import HTTPStatus
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import resolve

from harvester.api import problems, request_metrics
from harvester.guards.logs import REQUEST_ID, log_context
from harvester.ops import statement_limits

Handler = Callable[[HttpRequest], HttpResponseBase]

PREFIX = "/api/"
READS = ("GET", "HEAD")
#: No request needs more; the longest is a reason.
MOST_BYTES = 64 * 1024


def answer_api(get_response: Handler) -> Handler:
    """A middleware that answers the API's addresses itself, each error as a problem, and passes on all others."""
    request_metrics.register()
    statement_limits.lift_unless(PREFIX, READS)

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PREFIX):
            return get_response(request)
        began = time.monotonic()
        request_id = uuid4().hex
        request.META[REQUEST_ID] = request_id
        with log_context(request_id=request_id):
            response = _answer_anyhow(request)
        response.headers[problems.REQUEST_ID_HEADER] = request_id
        request_metrics.note(request, response.status_code, time.monotonic() - began)
        return response

    return answer


def _answer_anyhow(request: HttpRequest) -> HttpResponseBase:
    try:
        _limit_reads(request)
        return _answer(request)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets a problem
        return problems.of_exception(request, error)


def _limit_reads(request: HttpRequest) -> None:
    """Only reads are stopped; who shows no key asks nothing of the database."""
    if request.method in READS and "Authorization" in request.headers:
        statement_limits.limit(settings.CONFIG.api_read_seconds)


def _answer(request: HttpRequest) -> HttpResponseBase:
    request.get_host()
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > MOST_BYTES:
        return problems.too_large(MOST_BYTES)
    if "Transfer-Encoding" in request.headers:
        # Without a length Django reads nothing of it, and would complain of what was sent as missing.
        return problems.length_required()
    response = _without_head(request)
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return problems.not_allowed(_with_head(response.headers["Allow"]))
    return response


def _with_head(allowed: str) -> str:
    """What an address allows; where it has a GET it has a HEAD, of which the framework does not know."""
    methods = allowed.split(", ")
    return ", ".join([*methods, "HEAD"]) if "GET" in methods and "HEAD" not in methods else allowed


def _without_head(request: HttpRequest) -> HttpResponseBase:
    """HEAD is a GET whose body the server leaves out."""
    asked = request.method
    request.method = "GET" if asked == "HEAD" else asked
    try:
        match = request.resolver_match = resolve(request.path_info)
        answer: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
    finally:
        request.method = asked
    return answer
