"""Error pages. They say what to do next, and nothing of what went wrong inside."""

from http import HTTPStatus
from math import ceil

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import get_template

from harvester.portal.display import duration


def _page(status: HTTPStatus, title: str, text: str, *, retry_after: int | None = None) -> HttpResponse:
    """Rendered without a request: no session, no user, no database is asked."""
    content = get_template("portal/error.html").render({"status": status.value, "title": title, "text": text})
    response = HttpResponse(content, status=status)
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response


def bad_request(_request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    return _page(HTTPStatus.BAD_REQUEST, "This request is not valid", "Go back and try it another way.")


def forbidden(_request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    text = "Your role does not allow this. An admin can change it; it takes effect at once."
    return _page(HTTPStatus.FORBIDDEN, "You may not do this", text)


def forged(_request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """The form did not come from a page of ours, or its page was older than the login."""
    text = "The form was no longer valid, so nothing was changed. Go back, reload the page and try again."
    return _page(HTTPStatus.FORBIDDEN, "This page is too old", text)


def not_found(_request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    text = "It may have been deleted after the retention period, or the address is wrong."
    return _page(HTTPStatus.NOT_FOUND, "Page not found", text)


def broken(_request: HttpRequest) -> HttpResponse:
    text = "An unexpected error occurred. Changes are saved completely or not at all; check before you try again. "
    text += "The portal's log has the details."
    return _page(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong", text)


def too_many_tries(_request: HttpRequest) -> HttpResponse:
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    text = (
        f"There were {settings.AXES_FAILURE_LIMIT} failed logins with this name from here. "
        f"Try again in {duration(seconds)}."
    )
    return _page(HTTPStatus.TOO_MANY_REQUESTS, "Too many failed logins", text, retry_after=seconds)


def too_many_from_here(_request: HttpRequest, wait: float = 60.0) -> HttpResponse:
    """Too many names were tried from one address."""
    seconds = max(1, ceil(wait))
    text = (
        "Too many logins were tried from your network, so this password was not checked. People who logged in from "
        f"here in the last 30 days still can. Otherwise try again in {duration(seconds)}."
    )
    return _page(HTTPStatus.TOO_MANY_REQUESTS, "Too many logins", text, retry_after=seconds)


def logins_busy(_request: HttpRequest) -> HttpResponse:
    """More passwords wait to be checked than the portal checks beside its other work."""
    text = "Many people are logging in at this moment, so your password was not checked. Try again in a few seconds."
    return _page(HTTPStatus.SERVICE_UNAVAILABLE, "Too many logins at once", text, retry_after=3)
