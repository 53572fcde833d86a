"""The addresses of the API. Whatever is not listed here is answered by the API too, as a problem."""

from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.views.decorators.http import require_safe

from harvester.api import problems, reference
from harvester.api.app import api

#: Neither depends on the data; both change with the version only.
_KEPT = {"Cache-Control": "public, max-age=300"}


@require_safe
def docs(_request: HttpRequest) -> HttpResponse:
    """The reference as a page, open to everybody like the description that it is made from."""
    return HttpResponse(_page(), headers=_KEPT)


@require_safe
def docs_style(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(_style(), content_type="text/css; charset=utf-8", headers=_KEPT)


@cache
def _page() -> str:
    return reference.page(api.get_openapi_schema())


@cache
def _style() -> bytes:
    return Path(__file__).with_name("docs.css").read_bytes()


def nothing_here(_request: HttpRequest) -> HttpResponse:
    return problems.not_found()


urlpatterns = [
    path("v1/docs", docs),
    path("v1/docs.css", docs_style),
    path("v1/", api.urls),
    re_path("", nothing_here),
]
