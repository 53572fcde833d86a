"""The API, version 1: its addresses, its OpenAPI description and the pages of its reference.

The description is that of django-ninja plus what applies to every address.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from harvester.api import feeds, jobs, offers, problems, runs
from harvester.api.keys import BearerKey
from harvester.api.problems import Problem
from harvester.api.responses import IDEMPOTENCY_HEADER, IDEMPOTENCY_PATTERN
from harvester.api.scraping import adapters, imports, quarantine, sources, targets
from harvester.ops.scopes import Scope

_MARKDOWN_HEAD = """# API reference

Generated from the description that the API serves at `/api/v1/openapi.json`; run `make api-reference` to update it.
[How to use the API](how-to/use-the-api.md) explains keys, paging, errors and retries.

"""
_PAGE_HEAD = """# API reference

Every request needs an API key, sent as `Authorization: Bearer hvk_...`. For tools there is
[openapi.json](/api/v1/openapi.json).

"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Harvester API reference</title>
<link rel="stylesheet" href="/api/v1/docs.css">
</head>
<body>
<nav aria-label="Contents"><ul>
{contents}
</ul></nav>
<main>
{content}
</main>
</body>
</html>
"""
#: Responses that every address may return; listed once.
_COMMON = ("400", "401", "403", "411", "413", "422", "429", "500", "503")
_LIMITS = {"minimum": "from {}", "maximum": "to {}", "maxLength": "at most {} characters"}


def markdown(schema: dict[str, Any]) -> str:
    """Return the reference as Markdown, for the documentation."""
    return _MARKDOWN_HEAD + _reference(schema) + "\n"


def page(schema: dict[str, Any]) -> str:
    """Return the reference as an HTML page that loads nothing from other servers."""
    blocks = (_PAGE_HEAD + _reference(schema)).split("\n\n")
    titles = [block.partition(" ")[2] for block in blocks if block.startswith(("## ", "### "))]
    contents = "\n".join(f'<li><a href="#{_anchor(title)}">{escape(title)}</a></li>' for title in titles)
    return _PAGE.format(contents=contents, content="\n".join(_block(block) for block in blocks if block))


def _block(text: str) -> str:
    """Convert one block of the Markdown that this module writes; other Markdown is not supported."""
    if text.startswith("#"):
        marks, _, title = text.partition(" ")
        return f'<h{len(marks)} id="{_anchor(title)}">{escape(title)}</h{len(marks)}>'
    if text.startswith("| "):
        lines = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in text.splitlines()]
        head = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in lines[0])
        rows = "\n".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in line) + "</tr>" for line in lines[2:])
        return f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    return f"<p>{_inline(text)}</p>"


def _inline(text: str) -> str:
    html = escape(text.replace("\\|", "|"))
    html = re.sub(r"`([^`]*)`", r"<code>\1</code>", html)
    return re.sub(r"\[([^\]]*)\]\(((?:#|/)[^)]*)\)", r'<a href="\2">\1</a>', html)


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _reference(schema: dict[str, Any]) -> str:
    operations = [
        (address, method, operation)
        for address, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    common = operations[0][2]["responses"]
    blocks = ["## Scopes", _table(("scope", "allows to"), ((f"`{scope}`", scope.meaning) for scope in Scope))]
    blocks.append("## Addresses")
    for address, method, operation in operations:
        blocks += _operation(address, method, operation)
    blocks += ["## Errors", "Every address may return these; each is a [Problem](#problem)."]
    blocks.append(_table(("status", "meaning"), ((status, common[status]["description"]) for status in _COMMON)))
    blocks.append("## Shapes")
    for name, shape in sorted(schema["components"]["schemas"].items()):
        if "enum" in shape:
            blocks += [f"### {name}", ", ".join(f"`{value}`" for value in shape["enum"])]
        elif "properties" in shape:
            rows = [
                (f"`{key}`", _type(field), field.get("description", "")) for key, field in shape["properties"].items()
            ]
            blocks += [f"### {name}", shape.get("description", ""), _table(("field", "type", "meaning"), rows)]
    return "\n\n".join(blocks)


def _operation(address: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    [[scope]] = operation["security"][0].values()
    yield f"### {operation['summary']}"
    yield f"`{method.upper()} {address}` with the scope `{scope}`"
    yield operation["description"]
    if operation["parameters"]:
        yield _table(("parameter", "in", "type", "meaning"), (_parameter(item) for item in operation["parameters"]))
    if "requestBody" in operation:
        yield f"Body: {_type(operation['requestBody']['content']['application/json']['schema'])}"
    rows = []
    for status, response in operation["responses"].items():
        if status not in _COMMON:
            content = response.get("content", {}).get("application/json")
            rows.append((status, _type(content["schema"]) if content else response["description"]))
    yield _table(("status", "response"), rows)


def _parameter(item: dict[str, Any]) -> tuple[str, str, str, str]:
    name = f"`{item['name']}`" + (" (required)" if item["required"] and item["in"] != "path" else "")
    schema = item["schema"]
    rules = [_type(schema), *(text.format(schema[key]) for key, text in _LIMITS.items() if key in schema)]
    if schema.get("default") not in (None, ""):
        rules.append(f"default {schema['default']}")
    return name, item["in"], ", ".join(rules), item.get("description", "")


def _type(schema: dict[str, Any]) -> str:
    # A shape that has a default or a description of its own here.
    [schema] = schema.get("allOf", [schema])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(kind) for kind in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(schema.get("format") or schema.get("type") or "anything")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [
        titles,
        ["---"] * len(titles),
        *([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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
    413: "The body is larger than 64 KiB (2 MiB for an import of pages): REQUEST_TOO_LARGE.",
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
        # A parameter in an address cannot be null.
        schema = parameter["schema"]
        kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
        rest = {name: value for name, value in schema.items() if name not in ("anyOf", "title")}
        if len(kinds) == 1:
            parameter["schema"] = {**rest, **kinds[0]}
        else:
            parameter["schema"] = {**rest, "anyOf": kinds} if kinds else rest
    if method in WRITES:
        operation["parameters"] = [*operation["parameters"], _IDEMPOTENCY]


# Without an interactive page: those of the usual tools need scripts and styles that the portal's policy forbids.
api = DescribedAPI(
    title="Harvester",
    version="1",
    description=DESCRIPTION,
    docs_url=None,
    urls_namespace="api-v1",
    openapi_url="/openapi.json",
)
for router in (
    *(offers.router, offers.names, feeds.router, runs.router, jobs.router),
    *(sources.router, adapters.router, targets.router, imports.router, quarantine.router, targets.tried),
):
    api.add_router("", router)


@require_safe
def docs(_request: HttpRequest) -> HttpResponse:
    """Return the reference as a page; like the OpenAPI description, it needs no key."""
    return HttpResponse(_docs_page(), headers=_CACHED)


@cache
def _docs_page() -> str:
    return page(api.get_openapi_schema())


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
