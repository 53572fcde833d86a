"""Response headers that neither Django nor django-csp sets."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

#: The portal uses none of these, and an injected script must not either.
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in ("accelerometer", "camera", "display-capture", "geolocation", "microphone", "payment", "usb")
)
STATIC = "/static/"


def remaining_headers(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that adds Permissions-Policy everywhere, and keeps pages out of caches."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        if not request.path_info.startswith(STATIC):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return answer
