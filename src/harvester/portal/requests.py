"""What views ask of a request."""

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role, User


def without_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware that takes NUL out of queries: no text of the database can hold it, nor be compared with it."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get("QUERY_STRING", ""):
            request.GET = QueryDict(_clean(request.GET).urlencode())
        return get_response(request)

    return answer


def _clean(query: QueryDict) -> QueryDict:
    cleaned = QueryDict(mutable=True)
    for name, values in query.lists():
        cleaned.setlist(name.replace("\x00", ""), [value.replace("\x00", "") for value in values])
    return cleaned


def may(request: HttpRequest, role: Role) -> bool:
    """Whether whoever asks has at least this role, now."""
    return isinstance(request.user, User) and request.user.may(role)


def require(request: HttpRequest, role: Role) -> Actor:
    """Who asks, as an actor; refused without the role."""
    if not isinstance(request.user, User) or not request.user.may(role):
        raise PermissionDenied
    return request.user.actor


def is_fragment(request: HttpRequest) -> bool:
    """Whether a page asks for a fresh piece of itself."""
    return request.headers.get("HX-Request") == "true"


def attempt(request: HttpRequest, verb: Callable[[], str]) -> bool:
    """Carry out a verb and show, on the next page, what it did or why it refused."""
    try:
        messages.success(request, verb())
    except NotFound as problem:
        raise Http404 from problem
    except (Conflict, InvalidInput) as problem:
        messages.error(request, str(problem))
        return False
    return True
