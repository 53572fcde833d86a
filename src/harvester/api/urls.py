"""The addresses of the API, and the pages of its reference."""

from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.views.decorators.http import require_safe

from harvester.api import problems, reference
from harvester.api.app import api

#: Both change only with the version.
_CACHED = {"Cache-Control": "public, max-age=300"}


@require_safe
def docs(_request: HttpRequest) -> HttpResponse:
    """Return the reference as a page; like the OpenAPI description, it needs no key."""
    return HttpResponse(_docs_page(), headers=_CACHED)


@cache
def _docs_page() -> str:
    return reference.page(api.get_openapi_schema())


@require_safe
def docs_style(_request: HttpRequest) -> HttpResponse:
    style = Path(__file__).with_name("docs.css").read_bytes()
    return HttpResponse(style, content_type="text/css; charset=utf-8", headers=_CACHED)


def unknown_address(_request: HttpRequest) -> HttpResponse:
    return problems.not_found()


urlpatterns = [
    path("v1/docs", docs),
    path("v1/docs.css", docs_style),
    path("v1/", api.urls),
    # All other addresses under /api/ get a problem too, not the portal's page.
    re_path("", unknown_address),
]
