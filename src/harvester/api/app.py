"""The API, version 1: its addresses, its OpenAPI description and the pages of its reference.

The description is that of django-ninja plus what applies to every address.
"""

from functools import cache, cached_property
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from harvester.api import facets, feeds, jobs, offers, problems, reference, runs
from harvester.api.keys import BearerKey
from harvester.api.problems import Problem
from harvester.api.responses import IDEMPOTENCY_HEADER, IDEMPOTENCY_PATTERN
from harvester.api.scraping import adapters, imports, overrides, quarantine, sources, targets, trials

DESCRIPTION = """
Offers that consumers see, for applications; feeds, scraping, runs and decisions, for operators. Every request needs an
API key.
""".strip()
#: Status -> what it means here. Every address may return these.
COMMON = {
    400: "The request cannot be read, or its host is not one of ours.",
    401: "No key, or an unknown, expired or revoked one: KEY_MISSING, KEY_INVALID, KEY_EXPIRED, KEY_REVOKED.",
    403: "The key does not have the scope: SCOPE_MISSING.",
    411: "The body was sent in chunks, without a Content-Length: LENGTH_REQUIRED.",
    413: "The body is larger than 64 KiB: REQUEST_TOO_LARGE.",
    422: "A parameter or a field of the body is invalid: INVALID_INPUT, with `errors`.",
    429: "The key sent too many requests, or its address too many with invalid keys: RATE_LIMITED. Or pages cannot be "
    "read yet: SCRAPE_QUEUE_FULL, SCRAPE_RATE_LIMITED. `Retry-After` has the seconds to wait.",
    500: "Internal error: INTERNAL_ERROR.",
    503: "The database or the store of the rate limits does not respond, or took too long over a read: READ_TIMEOUT. "
    "`Retry-After` has the seconds to wait.",
}
WRITES = ("post", "patch", "delete")
NOT_FOUND = {404: "It does not exist, or consumers do not see it: NOT_FOUND, RUN_NOT_FOUND, PAGE_MISSING."}
CONFLICT = {409: "Not possible in the current state; the code says why."}
UNCHANGED = {304: {"description": "Unchanged: `If-None-Match` contains the current `ETag`."}}
#: The reference and its style sheet change only with the version.
_CACHED = {"Cache-Control": "public, max-age=300"}
_IDEMPOTENCY = {
    "in": "header",
    "name": IDEMPOTENCY_HEADER,
    "required": False,
    "schema": {"type": "string", "pattern": IDEMPOTENCY_PATTERN},
    "description": "the same for every attempt at one request: for 24 hours it is done once and gets the same response",
}


class _Schema(OpenAPISchema):
    """Adds the scope that each operation needs."""

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        super().operation_security(operation)
        keys = [auth for auth in operation.auth_callbacks if isinstance(auth, BearerKey)]
        return [{BearerKey.__name__: [key.scope.value]} for key in keys]


class DescribedAPI(NinjaAPI):
    """A NinjaAPI that returns errors as problems and lists them in its description."""

    @cached_property
    def full_schema(self) -> dict[str, Any]:
        described = _Schema(self, self.get_root_path({}).lstrip("/"))
        schema: dict[str, Any] = {**described, "servers": [{"url": "/"}]}
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
        schema["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        for address, methods in schema["paths"].items():
            for method, operation in methods.items():
                _complete(address, method, operation)
        return schema

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        """Return every error as a problem, instead of by a handler for each class."""
        return problems.of_exception(request, exc)

    def get_openapi_schema(self, **_: Any) -> Any:
        """Return the description, which is made once: it never changes while a process runs."""
        return self.full_schema


def _complete(address: str, method: str, operation: dict[str, Any]) -> None:
    """Add the responses and parameters that every operation of a method has."""
    errors = COMMON | (NOT_FOUND if "{" in address or method in WRITES else {}) | (CONFLICT if method in WRITES else {})
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses = {int(status): response for status, response in operation["responses"].items()}
    responses |= {status: {"description": text, "content": content} for status, text in errors.items()}
    responses |= UNCHANGED if method == "get" else {}
    operation["responses"] = {str(status): responses[status] for status in sorted(responses)}
    for parameter in operation["parameters"]:
        parameter["schema"] = _without_null(parameter["schema"])
    if method in WRITES:
        operation["parameters"] = [*operation["parameters"], _IDEMPOTENCY]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter in an address cannot be null."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "title")}
    if len(kinds) == 1:
        return {**rest, **kinds[0]}
    return {**rest, "anyOf": kinds} if kinds else rest


# Without an interactive page: those of the usual tools need scripts and styles that the portal's policy forbids.
api = DescribedAPI(
    title="Harvester",
    version="1",
    description=DESCRIPTION,
    docs_url=None,
    urls_namespace="api-v1",
    openapi_url="/openapi.json",
)
for module in (
    *(offers, facets, feeds, runs, jobs),
    *(sources, adapters, overrides, targets, imports, quarantine, trials),
):
    api.add_router("", module.router)


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
