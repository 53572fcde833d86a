"""What machines ask: alive, ready, how much. No session, no login, no host name needed."""

import ipaddress
from collections.abc import Callable
from hmac import compare_digest

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from harvester.ops import metrics
from harvester.ops.database import pending_migrations

log = structlog.get_logger(__name__)

View = Callable[[HttpRequest], HttpResponse]
DATABASE_AWAY = (DatabaseError, InterfaceError)
#: Which installation answers, for `harvester doctor`.
INSTALLATION = "Harvester-Installation"
NO_ANSWER = "The database does not answer."
#: A request with one of these came through a proxy, so its peer says nothing about who asks.
PROXY_HEADERS = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_X_FORWARDED_HOST")


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process is alive. It says nothing about the database: a restart would not bring that back."""
    return JsonResponse({"status": "alive"}, headers={INSTALLATION: settings.CONFIG.installation})


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """The database answers and has this version's tables."""
    reason = _why_not_ready()
    if reason:
        return JsonResponse({"status": "not ready", "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


def _why_not_ready() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        waiting = pending_migrations()
    except DATABASE_AWAY as problem:
        # The driver's text names hosts and users; the log may know them, a stranger may not.
        log.warning("NOT_READY", error_type=type(problem).__name__, error=str(problem))
        return NO_ANSWER
    if waiting:
        return f"Pending migrations: {len(waiting)}. Run `harvester migrate`."
    return ""


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Prometheus metrics, for whoever has the token or, without one, for this machine."""
    token = settings.CONFIG.metrics_token
    if token and not _has_token(request, token):
        return _refuse("This page needs the bearer token of HARVESTER_METRICS_TOKEN.", 401)
    if not token and not _is_local(request):
        return _refuse("Only this machine may read metrics until HARVESTER_METRICS_TOKEN is set.", 403)
    try:
        return HttpResponse(metrics.exposition(), content_type=CONTENT_TYPE_LATEST)
    except DATABASE_AWAY as problem:
        log.warning("METRICS_UNAVAILABLE", error_type=type(problem).__name__, error=str(problem))
        return _refuse(NO_ANSWER, 503)


def _has_token(request: HttpRequest, token: str) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode())


def _is_local(request: HttpRequest) -> bool:
    """Straight from this machine, under a name of ours: a rebound DNS name must not let a web page read this."""
    if any(request.META.get(header) for header in PROXY_HEADERS):
        return False
    request.get_host()
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _refuse(why: str, status: int) -> HttpResponse:
    response = HttpResponse(f"{why}\n", status=status, content_type="text/plain; charset=utf-8")
    if status == 401:  # noqa: PLR2004 - the protocol's number
        response.headers["WWW-Authenticate"] = 'Bearer realm="metrics"'
    return response


PROBES: dict[str, View] = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics_page}


def answer_probes(get_response: View) -> View:
    """Answer before sessions and host names are looked at: probes come by address, and must leave nothing behind."""

    def answer(request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path_info)
        return probe(request) if probe else get_response(request)

    return answer
