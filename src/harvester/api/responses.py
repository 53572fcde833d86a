"""Responses: JSON with an entity tag for reads, and idempotent writes."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, TypeVar

from django.db import transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags
from pydantic import BaseModel
from pydantic_core import to_json

from harvester.api.keys import key_of, rate_headers
from harvester.api.problems import Refused
from harvester.kernel.actor import Actor
from harvester.ops import idempotency
from harvester.ops.idempotency import Answer

T = TypeVar("T")

MEDIA_TYPE = "application/json"
FILE_TYPE = "application/octet-stream"
#: Bytes.
FILE_BLOCK = 64 * 1024
IDEMPOTENCY_HEADER = "Idempotency-Key"
IDEMPOTENCY_PATTERN = "^[A-Za-z0-9_.:-]{1,100}$"
#: Clients must revalidate what they cache, and shared caches may not store it.
_READ_HEADERS = {"Cache-Control": "private, no-cache", "Vary": "Authorization"}


def read(request: HttpRequest, shape: BaseModel | Mapping[str, Any]) -> HttpResponse:
    """Return the shape, or 304 if the client has it already."""
    body = to_json(shape)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**_READ_HEADERS, **rate_headers(request), "ETag": tag}
    # Weak comparison, as HTTP asks for with If-None-Match.
    known = {item.removeprefix("W/") for item in parse_etags(request.headers.get("If-None-Match", ""))}
    if known & {"*", tag}:
        response = HttpResponse(status=304, headers=headers)
        del response.headers["Content-Type"]
        return response
    return HttpResponse(body, content_type=MEDIA_TYPE, headers=headers)


def file(request: HttpRequest, content: BinaryIO, name: str) -> HttpResponseBase:
    """Return a file as a download. Browsers must not render it: its content is not ours."""
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": "sandbox; default-src 'none'"}
    headers |= {"X-Content-Type-Options": "nosniff", **rate_headers(request)}
    headers |= {"Content-Length": str(os.fstat(content.fileno()).st_size)}
    headers |= {"Content-Disposition": content_disposition_header(as_attachment=True, filename=name) or "attachment"}
    return StreamingHttpResponse(_Blocks(content), content_type=FILE_TYPE, headers=headers)


class _Blocks:
    """The blocks of a file, which is closed after the last one, or with the response."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        with self._content:
            while block := self._content.read(FILE_BLOCK):
                yield block

    def close(self) -> None:
        self._content.close()


def write(request: HttpRequest, status: int, act: Callable[[], tuple[BaseModel, Mapping[str, str]]]) -> HttpResponse:
    """Call `act`, or return the first response if this Idempotency-Key was used before."""
    given = request.headers.get(IDEMPOTENCY_HEADER)
    if given is None:
        return _sent(request, _act(status, act))
    if not re.fullmatch(IDEMPOTENCY_PATTERN, given):
        detail = f"{IDEMPOTENCY_HEADER}: use 1 to 100 letters, digits and _ . : -"
        raise Refused(422, "INVALID_INPUT", f"{detail}.")
    owner = key_of(request).pk
    content = b"\n".join([(request.method or "").encode(), request.get_full_path().encode(), request.body])
    with transaction.atomic():
        stored = idempotency.claim(owner, given, hashlib.sha256(content).hexdigest())
        answer = stored or _act(status, act)
        if stored is None:
            idempotency.keep(owner, given, answer)
    return _sent(request, answer, replayed=stored is not None)


def change(
    request: HttpRequest, status: int, verb: Callable[[Actor], T], shape: Callable[[T], BaseModel]
) -> HttpResponse:
    """Call a verb in the name of the key, and return the shape of what it returned."""
    actor = key_of(request).actor
    return write(request, status, lambda: (shape(verb(actor)), {}))


def _act(status: int, act: Callable[[], tuple[BaseModel, Mapping[str, str]]]) -> Answer:
    model, headers = act()
    return Answer(status=status, headers=headers, body=model.model_dump_json())


def _sent(request: HttpRequest, answer: Answer, *, replayed: bool = False) -> HttpResponse:
    headers = {"Cache-Control": "no-store", **rate_headers(request), **answer.headers}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return HttpResponse(answer.body, status=answer.status, content_type=MEDIA_TYPE, headers=headers)
