"""The entry of API requests: a middleware in front of sessions, cookies and CSRF checks, because the API has none."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import resolve
from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from harvester.api import problems
from harvester.guards.logs import REQUEST_ID, log_context
from harvester.ops import metrics, statement_limits

Handler = Callable[[HttpRequest], HttpResponseBase]

PREFIX = "/api/"
READS = ("GET", "HEAD")
#: Bytes of a body. No other request needs more; the longest field is a reason.
MOST_BYTES = 64 * 1024
#: Method and address -> bytes of a body that may have more. A list of 20,000 addresses has about 2 MiB.
LARGER_BODIES: Mapping[tuple[str, str], int] = {("POST", "/api/v1/scrape/imports"): 2 * 2**20}

#: The route of unknown addresses. Never the address itself: clients would choose the labels.
UNKNOWN_ROUTE = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_CATCH_ALL = "api/"
#: Seconds, from the time of reading one row to the longest that a read may take.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_requests = Counter(
    "harvester_api_requests",
    "Requests to the API that this process answered.",
    ("route", "method", "status"),
    registry=None,
)
_seconds = Histogram(
    "harvester_api_request_seconds",
    "How long this process took to answer requests to the API.",
    ("route", "method"),
    buckets=_BUCKETS,
    registry=None,
)


class RequestMetrics(Collector):
    """API requests of this web process since it started; Prometheus adds up the processes."""

    def collect(self) -> Iterator[Metric]:
        yield from _requests.collect()
        yield from _seconds.collect()


def answer_api(get_response: Handler) -> Handler:
    """Return a middleware that answers all addresses of the API, errors as problems, and passes on all others."""
    metrics.add_collector(RequestMetrics())
    statement_limits.lift_unless(PREFIX, READS)

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PREFIX):
            return get_response(request)
        started = time.monotonic()
        request_id = uuid4().hex
        request.META[REQUEST_ID] = request_id
        with log_context(request_id=request_id):
            try:
                if request.method in READS and "Authorization" in request.headers:
                    # Only reads are limited. A request without a key never reaches the database.
                    statement_limits.limit(settings.CONFIG.api_read_seconds)
                response = _answer(request)
            except Exception as error:  # noqa: BLE001 - every error becomes a problem
                response = problems.of_exception(request, error)
        response.headers[problems.REQUEST_ID_HEADER] = request_id
        # Counted by its route, which is the address as the reference writes it.
        pattern = request.resolver_match.route if request.resolver_match else _CATCH_ALL
        route = UNKNOWN_ROUTE if pattern == _CATCH_ALL else "/" + _PARAMETER.sub(r"{\1}", pattern)
        method = request.method if request.method in _METHODS else UNKNOWN_ROUTE
        _requests.labels(route, method, f"{response.status_code // 100}xx").inc()
        _seconds.labels(route, method).observe(time.monotonic() - started)
        return response

    return answer


def _answer(request: HttpRequest) -> HttpResponseBase:
    request.get_host()
    length = request.META.get("CONTENT_LENGTH") or "0"
    most = LARGER_BODIES.get((request.method or "", request.path_info), MOST_BYTES)
    if length.isdigit() and int(length) > most:
        return problems.too_large(most)
    if "Transfer-Encoding" in request.headers:
        # Without a length Django reads an empty body, and would report the fields that were sent as missing.
        return problems.length_required()
    method = request.method
    # A HEAD is a GET whose body the server leaves out; the framework does not know that.
    request.method = "GET" if method == "HEAD" else method
    try:
        match = request.resolver_match = resolve(request.path_info)
        response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
    finally:
        request.method = method
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = response.headers["Allow"].split(", ")
        more = ["HEAD"] if "GET" in allowed and "HEAD" not in allowed else []
        return problems.not_allowed(", ".join([*allowed, *more]))
    return response
