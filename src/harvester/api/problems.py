"""Errors as RFC 9457 problems: `application/problem+json`, with a stable `code` and what to do next."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import HttpError, ValidationError
from pydantic import BaseModel, Field
from structlog.contextvars import get_contextvars

from harvester.guards.redaction import redact_text
from harvester.kernel.errors import ConfigError, Conflict, HarvesterError, InvalidInput, NotFound, TransientError
from harvester.ops.statement_limits import is_timeout
from harvester.scraping.capacity import EnqueueRejected, TryLater
from harvester.scraping.kept_pages import PageMissing

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
#: In every response of the API, and in its log lines.
REQUEST_ID_HEADER = "X-Request-Id"
#: Seconds to wait after an outage.
OUTAGE_SECONDS = 5
#: Seconds to wait after a query that took too long; an immediate retry would make it worse.
SLOW_SECONDS = 30
#: What pydantic puts in front of the messages of our validators.
_PREFIXES = ("Value error, ", "Assertion failed, ")


class FieldProblem(BaseModel):
    """An invalid field."""

    field: str = Field(description="the parameter, or the path of the field in the body")
    message: str


class Problem(BaseModel):
    """An error."""

    type: str = "about:blank"
    title: str = Field(description="the status in words")
    status: int
    code: str = Field(description="stable; check this, never the texts")
    detail: str = Field(description="for people: what happened, what is unchanged, and what to do")
    request_id: str = Field(description="the same as the header `X-Request-Id`; include it when you report the problem")
    errors: list[FieldProblem] = Field(default=[], description="the invalid fields, if it is about fields")


class Refused(Exception):
    """The request is refused; has all fields of the problem to return."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers or {}


class WrongField(InvalidInput):
    """A field is invalid.

    Attributes:
        problems: name of the field, as the client knows it -> what is wrong.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.problems = {field: message}


#: The first matching class counts.
_STATUS: tuple[tuple[type[HarvesterError], int], ...] = (
    (NotFound, 404),
    (PageMissing, 404),
    (TryLater, 429),
    (Conflict, 409),
    (ConfigError, 409),
    (InvalidInput, 422),
    (TransientError, 503),
)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    shape = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        request_id=str(get_contextvars().get("request_id", "")),
        errors=list(errors),
    )
    body = shape.model_dump_json(exclude=None if errors else {"errors"})
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return HttpResponse(body, status=status, content_type=MEDIA_TYPE, headers=all_headers)


def of_exception(request: HttpRequest, error: Exception) -> HttpResponse:
    """Return the problem for any exception. Only messages that were written for people are shown."""
    retry_after = {"Retry-After": str(OUTAGE_SECONDS)}
    match error:
        case Refused():
            refused = error
        case NotFound() | PageMissing() | Conflict() | ConfigError() | InvalidInput() | TransientError():
            status = next(status for kind, status in _STATUS if isinstance(error, kind))
            fields = getattr(error, "problems", {}) or ({error.field: error.reason} if error.field else {})
            errors = [FieldProblem(field=name, message=redact_text(text)) for name, text in fields.items()]
            code, headers = error.code, retry_after if isinstance(error, TransientError) else {}
            if isinstance(error, EnqueueRejected):
                code = f"SCRAPE_{error.rejection.upper()}"
                headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return problem(status, code, redact_text(str(error)), errors=errors, headers=headers)
        case ValidationError():
            return _of_validation(error.errors)
        case Http404():
            return not_found()
        case SuspiciousOperation() | HttpError():
            detail = "The request cannot be read: its body must be JSON, and its host one of ours."
            refused = Refused(400, "BAD_REQUEST", detail)
        case OperationalError() if is_timeout(error):
            detail = "The query took too long and was stopped; nothing was changed. Add a filter, or try again later."
            refused = Refused(503, "READ_TIMEOUT", detail, {"Retry-After": str(SLOW_SECONDS)})
        case OperationalError() | InterfaceError():
            detail = "The database does not respond. Nothing was done; try again in a moment."
            refused = Refused(503, "DATABASE_UNAVAILABLE", detail, retry_after)
        case _:
            log.error("API_REQUEST_FAILED", method=request.method, path=request.path_info, exc_info=error)
            refused = Refused(500, "INTERNAL_ERROR", "Internal error. Nothing was left half done; see our log.")
    return problem(refused.status, refused.code, refused.detail, headers=refused.headers)


def _of_validation(found: Sequence[Mapping[str, Any]]) -> HttpResponse:
    if all(item["loc"][0] == "path" for item in found):
        return not_found()
    errors = []
    for item in found:
        # Without the place (query, body) and without the names of our own arguments.
        parts = [str(part) for part in item["loc"][1:] if part not in ("filters", "body")]
        message = item["msg"]
        for prefix in _PREFIXES:
            message = message.removeprefix(prefix)
        errors.append(FieldProblem(field=".".join(parts) or str(item["loc"][0]), message=message))
    detail = "; ".join(f"{error.field}: {error.message}" for error in errors[:5])
    return problem(422, "INVALID_INPUT", detail, errors=errors)


def not_found() -> HttpResponse:
    return problem(404, "NOT_FOUND", "There is nothing at this address; the reference lists every address.")


def not_allowed(allowed: str) -> HttpResponse:
    detail = f"This address does not allow this method; it allows {allowed}."
    return problem(405, "METHOD_NOT_ALLOWED", detail, headers={"Allow": allowed})


def too_large(limit: int) -> HttpResponse:
    detail = f"The body is larger than {limit:,} bytes. Nothing was done; split it into several requests."
    return problem(413, "REQUEST_TOO_LARGE", detail)


def length_required() -> HttpResponse:
    return problem(411, "LENGTH_REQUIRED", "Send the body with a Content-Length, not in chunks. Nothing was done.")
