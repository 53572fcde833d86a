"""Health checks and metrics for machines, without session, login and host name."""

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
DATABASE_ERRORS = (DatabaseError, InterfaceError)
#: Response header that names the installation, for `harvester doctor`.
INSTALLATION = "Harvester-Installation"
NO_DATABASE = "The database does not respond."
#: A request with one of these came through a proxy, so that its peer is not the client.
PROXY_HEADERS = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_X_FORWARDED_HOST")


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Report that the process is alive. The database is not checked: a restart would not bring it back."""
    return JsonResponse({"status": "alive"}, headers={INSTALLATION: settings.CONFIG.installation})


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Report whether the database responds and has this version's tables."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        waiting = pending_migrations()
    except DATABASE_ERRORS as problem:
        # The driver's text names hosts and users, which belong in the log and not in the response.
        log.warning("NOT_READY", error_type=type(problem).__name__, error=str(problem))
        return JsonResponse({"status": "not ready", "reason": NO_DATABASE}, status=503)
    if waiting:
        reason = f"Pending migrations: {len(waiting)}. Run `harvester migrate`."
        return JsonResponse({"status": "not ready", "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Return Prometheus metrics to anyone who has the token or, if none is set, to this machine."""
    token = settings.CONFIG.metrics_token
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if token and not (scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode())):
        return _refuse("This page needs the bearer token of HARVESTER_METRICS_TOKEN.", 401)
    if not token and not _is_local(request):
        return _refuse("Only this machine can read metrics until HARVESTER_METRICS_TOKEN is set.", 403)
    try:
        return HttpResponse(metrics.exposition(), content_type=CONTENT_TYPE_LATEST)
    except DATABASE_ERRORS as problem:
        log.warning("METRICS_UNAVAILABLE", error_type=type(problem).__name__, error=str(problem))
        return _refuse(NO_DATABASE, 503)


def _is_local(request: HttpRequest) -> bool:
    """Return whether a request comes directly from this machine, under an allowed host.

    Without the check of the host, a web page could read metrics through a rebound DNS name.
    """
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
    """Middleware that answers probes before sessions and host names are checked: probes come by IP address."""

    def answer(request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path_info)
        return probe(request) if probe else get_response(request)

    return answer
