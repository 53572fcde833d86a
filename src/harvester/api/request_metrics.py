"""Requests to the API in numbers. Each web process tells its own; whoever scrapes adds them up."""

import re
from collections.abc import Iterator

from django.http import HttpRequest
from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from harvester.ops import metrics

#: Where no address of ours was asked for. Never what was asked for: whoever asks would choose the labels.
ELSEWHERE = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_CATCH_ALL = "api/"
#: Seconds; from what a single row takes to what a read may take at most.
_STEPS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

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
    buckets=_STEPS,
    registry=None,
)


class ApiCollector(Collector):
    """What this process has answered since it began."""

    def collect(self) -> Iterator[Metric]:
        yield from _requests.collect()
        yield from _seconds.collect()


def register() -> None:
    metrics.add_collector(ApiCollector())


def note(request: HttpRequest, status: int, seconds: float) -> None:
    """Count one answer."""
    route = _route(request)
    method = request.method if request.method in _METHODS else ELSEWHERE
    _requests.labels(route, method, f"{status // 100}xx").inc()
    _seconds.labels(route, method).observe(seconds)


def _route(request: HttpRequest) -> str:
    """The address as the reference writes it, with the names of its parts."""
    match = request.resolver_match
    route = match.route if match else _CATCH_ALL
    return ELSEWHERE if route == _CATCH_ALL else "/" + _PARAMETER.sub(r"{\1}", route)
