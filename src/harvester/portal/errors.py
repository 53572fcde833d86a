"""Error pages. They say what to do next and reveal no internals."""

from http import HTTPStatus
from math import ceil

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import get_template

from harvester.portal.display import duration


def _page(status: HTTPStatus, title: str, text: str, *, retry_after: int | None = None) -> HttpResponse:
    """Render a page without a request, and so without session, user and database."""
    content = get_template("portal/error.html").render({"status": status.value, "title": title, "text": text})
    response = HttpResponse(content, status=status)
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response


def bad_request(_request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    return _page(HTTPStatus.BAD_REQUEST, "This request is not valid", "Nothing was changed. Go back and try again.")


def forbidden(_request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    text = "Your role does not allow this. An admin can change your role."
    return _page(HTTPStatus.FORBIDDEN, "Not allowed", text)


def forged(_request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Return the page after a forged form, or one from before the login."""
    text = "The form is no longer valid. Nothing was changed. Go back, reload the page and try again."
    return _page(HTTPStatus.FORBIDDEN, "This page has expired", text)


def not_found(_request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    text = "It may have been deleted after the retention period, or the address is wrong."
    return _page(HTTPStatus.NOT_FOUND, "Page not found", text)


def broken(_request: HttpRequest) -> HttpResponse:
    text = "Changes are saved completely or not at all; check before you try again. The portal's log has the details."
    return _page(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong", text)


def too_many_failures(_request: HttpRequest) -> HttpResponse:
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    text = (
        f"{settings.AXES_FAILURE_LIMIT} logins with this username failed from your address. "
        f"Try again in {duration(seconds)}."
    )
    return _page(HTTPStatus.TOO_MANY_REQUESTS, "Too many failed logins", text, retry_after=seconds)


def too_many_attempts(_request: HttpRequest, wait: float) -> HttpResponse:
    seconds = max(1, ceil(wait))
    text = (
        "Too many logins from your network. Your password was not checked. Users who logged in from here in the last "
        f"30 days still can. Otherwise try again in {duration(seconds)}."
    )
    return _page(HTTPStatus.TOO_MANY_REQUESTS, "Too many logins", text, retry_after=seconds)


def logins_busy(_request: HttpRequest) -> HttpResponse:
    """Return the page if too many passwords are waiting to be checked."""
    text = "Many users are logging in now. Your password was not checked. Try again in a few seconds."
    return _page(HTTPStatus.SERVICE_UNAVAILABLE, "Too many logins at once", text, retry_after=3)
