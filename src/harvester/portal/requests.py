"""Checks and helpers for views."""

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_http_methods

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role, User

#: Decorates a view that shows a form and takes it.
form_view = require_http_methods(["GET", "HEAD", "POST"])


def without_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that removes NUL from queries: the database can neither store it in a text nor compare it."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get("QUERY_STRING", ""):
            cleaned = QueryDict(mutable=True)
            for name, values in request.GET.lists():
                cleaned.setlist(name.replace("\x00", ""), [value.replace("\x00", "") for value in values])
            request.GET = QueryDict(cleaned.urlencode())
        return get_response(request)

    return answer


def may(request: HttpRequest, role: Role) -> bool:
    """Return whether the user has at least this role now."""
    return isinstance(request.user, User) and request.user.may(role)


def require(request: HttpRequest, role: Role) -> Actor:
    """Return the user as an actor, or refuse without the role."""
    if not isinstance(request.user, User) or not request.user.may(role):
        raise PermissionDenied
    return request.user.actor


def is_fragment(request: HttpRequest) -> bool:
    """Return whether a page is refreshing a part of itself."""
    return request.headers.get("HX-Request") == "true"


def attempt(request: HttpRequest, verb: Callable[[], str]) -> bool:
    """Run a verb, and show what it did or why it refused on the next page."""
    try:
        messages.success(request, verb())
    except NotFound as problem:
        raise Http404 from problem
    except (Conflict, InvalidInput) as problem:
        messages.error(request, str(problem))
        return False
    return True
