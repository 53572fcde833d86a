"""Errors as RFC 9457 has them: `application/problem+json`, with a stable `code` and what to do next."""

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
from harvester.kernel.errors import Conflict, HarvesterError, InvalidInput, NotFound, TransientError
from harvester.ops.statement_limits import is_timeout

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
#: In every answer of the API, and in the lines that the log has of it.
REQUEST_ID_HEADER = "X-Request-Id"
#: Seconds after which whoever met an outage may try again.
OUTAGE_SECONDS = 5
#: Seconds after which whoever asked for too much may try again; at once would make it worse.
SLOW_SECONDS = 30
#: What a validator puts in front of the message that a model gave.
_PREFIXES = ("Value error, ", "Assertion failed, ")


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str = Field(description="the parameter, or the path of the field in the body")
    message: str


class Problem(BaseModel):
    """What went wrong."""

    type: str = "about:blank"
    title: str = Field(description="the status in words")
    status: int
    code: str = Field(description="stable; decide by this, never by the texts")
    detail: str = Field(description="what happened, what was left as it was, and what to do, for people")
    request_id: str = Field(description="the same as the header `X-Request-Id`; name it when you report the problem")
    errors: list[FieldProblem] = Field(default=[], description="with INVALID_INPUT: what is wrong, field by field")


class Refused(Exception):
    """The request cannot be answered; carries everything that its problem says."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers or {}


class WrongField(InvalidInput):
    """A field cannot be used as it is; it goes by the name that the caller gave it.

    Attributes:
        problems: field -> what is wrong with it.
    """

    def __init__(self, field: str, words: str) -> None:
        super().__init__(f"{field}: {words}")
        self.problems = {field: words}


#: The first class that fits decides.
_STATUS: tuple[tuple[type[HarvesterError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
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
    request_id = str(get_contextvars().get("request_id", ""))
    told = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        request_id=request_id,
        errors=list(errors),
    )
    body = told.model_dump_json(exclude=None if errors else {"errors"})
    more = {"Cache-Control": "no-store", **(headers or {})}
    return HttpResponse(body, status=status, content_type=MEDIA_TYPE, headers=more)


def of_exception(request: HttpRequest, error: Exception) -> HttpResponse:
    """The answer to whatever was raised. Nothing of its inside gets out unless it was written for people."""
    if isinstance(error, Refused):
        return problem(error.status, error.code, error.detail, headers=error.headers)
    if isinstance(error, HarvesterError):
        return _of_ours(request, error)
    if isinstance(error, ValidationError):
        return _of_validation(error.errors)
    if is_timeout(error):
        return _too_slow()
    for kinds, answer in _OTHERS:
        if isinstance(error, kinds):
            return answer()
    return _unexpected(request, error)


def not_found() -> HttpResponse:
    return problem(404, "NOT_FOUND", "There is nothing at this address; the reference lists every address.")


def not_allowed(allowed: str) -> HttpResponse:
    detail = f"This address does not know this method; it knows {allowed}."
    return problem(405, "METHOD_NOT_ALLOWED", detail, headers={"Allow": allowed})


def too_large(limit: int) -> HttpResponse:
    return problem(413, "REQUEST_TOO_LARGE", f"The body is too large; allowed are {limit:,} bytes. Nothing was done.")


def length_required() -> HttpResponse:
    return problem(411, "LENGTH_REQUIRED", "Send the body with a Content-Length, not in chunks. Nothing was done.")


def _of_ours(request: HttpRequest, error: HarvesterError) -> HttpResponse:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    if status is None:
        return _unexpected(request, error)
    fields = getattr(error, "problems", {})
    errors = [FieldProblem(field=name, message=redact_text(text)) for name, text in fields.items()]
    headers = {"Retry-After": str(OUTAGE_SECONDS)} if isinstance(error, TransientError) else {}
    return problem(status, error.code, redact_text(str(error)), errors=errors, headers=headers)


def _of_validation(found: Sequence[Mapping[str, Any]]) -> HttpResponse:
    if all(item["loc"][0] == "path" for item in found):
        return not_found()
    errors = [FieldProblem(field=_field(item), message=_words(item["msg"])) for item in found]
    detail = "; ".join(f"{error.field}: {error.message}" for error in errors[:5])
    return problem(422, "INVALID_INPUT", detail, errors=errors)


def _field(item: Mapping[str, Any]) -> str:
    """Without where it stood and without the names of our own arguments."""
    parts = [str(part) for part in item["loc"][1:] if part not in ("filters", "body")]
    return ".".join(parts) or str(item["loc"][0])


def _words(message: str) -> str:
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return message


def _unreadable() -> HttpResponse:
    return problem(400, "BAD_REQUEST", "The request cannot be read: its body must be JSON, and its host one of ours.")


def _outage() -> HttpResponse:
    detail = "The database does not answer. Nothing was done; try again in a moment."
    return problem(503, "DATABASE_UNAVAILABLE", detail, headers={"Retry-After": str(OUTAGE_SECONDS)})


def _too_slow() -> HttpResponse:
    detail = (
        "The database took too long over this and was stopped. Narrow the search by a filter, or try again later; "
        "nothing was changed."
    )
    return problem(503, "READ_TIMEOUT", detail, headers={"Retry-After": str(SLOW_SECONDS)})


def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("API_REQUEST_FAILED", method=request.method, path=request.path_info, exc_info=error)
    return problem(
        500, "INTERNAL_ERROR", "Something went wrong on our side. Nothing was half done; our log knows more."
    )


_OTHERS: tuple[tuple[tuple[type[Exception], ...], Any], ...] = (
    ((Http404,), not_found),
    ((SuspiciousOperation, HttpError), _unreadable),
    ((OperationalError, InterfaceError), _outage),
)
