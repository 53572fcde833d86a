"""The API's description of itself: what django-ninja finds out, plus what holds for every address."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from harvester.api import problems
from harvester.api.keys import BearerKey
from harvester.api.problems import Problem
from harvester.api.responses import IDEMPOTENCY_HEADER, IDEMPOTENCY_PATTERN

#: Status -> what it means here. Every address may answer these.
COMMON = {
    400: "The request cannot be read, or its host is not one of ours.",
    401: "No key, or one that is unknown, expired or revoked: KEY_MISSING, KEY_INVALID, KEY_EXPIRED, KEY_REVOKED.",
    403: "The key lacks the scope: SCOPE_MISSING.",
    411: "The body came in chunks, without a Content-Length: LENGTH_REQUIRED.",
    413: "The body is larger than 64 KiB: REQUEST_TOO_LARGE.",
    422: "A parameter or a field of the body cannot be used: INVALID_INPUT, with `errors`.",
    429: "The key asks too often, or its address with keys that are not valid: RATE_LIMITED. `Retry-After` has the "
    "seconds to wait.",
    500: "Something went wrong on our side: INTERNAL_ERROR.",
    503: "The database, or what keeps the rate limits, does not answer, or took too long over a read: READ_TIMEOUT. "
    "`Retry-After` has the seconds to wait.",
}
NOT_FOUND = {404: "There is no such thing, or consumers do not see it: NOT_FOUND, RUN_NOT_FOUND."}
CONFLICT = {409: "The thing is in a state that forbids this; the code says which."}
UNCHANGED = {304: {"description": "The client has this already: `If-None-Match` named its `ETag`."}}


class _Schema(OpenAPISchema):
    """Says with each operation which scope opens it."""

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        super().operation_security(operation)
        keys = [auth for auth in operation.auth_callbacks if isinstance(auth, BearerKey)]
        return [{BearerKey.__name__: [key.scope.value]} for key in keys]


class DescribedAPI(NinjaAPI):
    """A NinjaAPI whose errors are problems, and whose description says which there are."""

    @cached_property
    def description_of_all(self) -> dict[str, Any]:
        described = _Schema(self, self.get_root_path({}).lstrip("/"))
        schema: dict[str, Any] = {**described, "servers": [{"url": "/"}]}
        schema["components"]["schemas"] |= _shapes()
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                _complete(path, method, operation)
        return schema

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        """The one way from an error to its answer, instead of a handler for each class."""
        return problems.of_exception(request, exc)

    def get_openapi_schema(self, **_: Any) -> Any:
        """Made once: it never changes while a process lives."""
        return self.description_of_all


def _shapes() -> dict[str, Any]:
    shape = Problem.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    return {**shape.pop("$defs"), "Problem": shape}


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    errors = COMMON | (NOT_FOUND if "{" in path else {}) | (CONFLICT if method == "post" else {})
    more = {status: _problem_answer(text) for status, text in errors.items()} | (UNCHANGED if method == "get" else {})
    answers = {int(status): told for status, told in operation["responses"].items()} | more
    operation["responses"] = {str(status): answers[status] for status in sorted(answers)}
    for parameter in operation["parameters"]:
        parameter["schema"] = _never_null(parameter["schema"])
    if method == "post":
        operation["parameters"] = [*operation["parameters"], _IDEMPOTENCY]


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """In an address something is there or is not; it cannot be null."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "title")}
    if len(kinds) == 1:
        return {**rest, **kinds[0]}
    return {**rest, "anyOf": kinds} if kinds else rest


def _problem_answer(text: str) -> dict[str, Any]:
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": text, "content": content}


_IDEMPOTENCY = {
    "in": "header",
    "name": IDEMPOTENCY_HEADER,
    "required": False,
    "schema": {"type": "string", "pattern": IDEMPOTENCY_PATTERN},
    "description": "the same for every try of one request: for 24 hours it is done once and answered alike",
}
