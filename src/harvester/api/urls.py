"""The addresses of the API. Whatever is not listed here is answered by the API too, as a problem."""

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path

from harvester.api import problems
from harvester.api.app import api


def nothing_here(_request: HttpRequest) -> HttpResponse:
    return problems.not_found()


urlpatterns = [path("v1/", api.urls), re_path("", nothing_here)]
