"""Where a page ended, as a word that clients send back as it is. Its inside may change with any version."""

import base64
import binascii
import hashlib
import json
from decimal import Decimal, InvalidOperation

from pydantic import BaseModel

from harvester.api.problems import Refused
from harvester.catalog.search_query import Place, Query, Sort
from harvester.kernel.text import is_encodable

LONGEST = 400
_HIGHEST = 2**63 - 1
#: Powers of ten that the database's kind of number for ranks can hold; amounts have fewer.
_LOWEST_POWER, _HIGHEST_POWER = -45, 37
_OF_A_PAGE = ("after", "page", "page_size")


def encode(*parts: object) -> str:
    told = json.dumps(parts, default=str, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")


def decode(cursor: str, *kinds: type) -> list[object]:
    """The parts, if they are of these kinds."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise invalid() from None
    if not isinstance(parts, list) or [type(part) for part in parts] != list(kinds):
        raise invalid()
    return parts


def of_place(query: Query, place: Place) -> str:
    value = {Sort.RELEVANCE: place.rank, Sort.NEWEST: None}.get(query.order, place.amount)
    return encode(_mark(query), str(value), place.product_id)


def to_place(cursor: str, query: Query) -> Place:
    """A cursor belongs to the search that it was made for; another one would lose or repeat offers without a word."""
    order = query.order
    mark, value, product_id = decode(cursor, str, str, int)
    if mark != _mark(query) or not isinstance(product_id, int) or not 0 < product_id <= _HIGHEST:
        raise invalid()
    if order is Sort.NEWEST:
        return Place(product_id=product_id)
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise invalid() from None
    if not number.is_finite() or not _LOWEST_POWER <= number.adjusted() <= _HIGHEST_POWER:
        raise invalid()
    return Place(product_id=product_id, amount=number, rank=float(number))


def _mark(query: Query) -> str:
    """What tells one search from another: everything but how much of it is asked for at once."""
    asked = {name: value for name, value in vars(query).items() if name not in _OF_A_PAGE}
    told = json.dumps({**asked, "sort": query.order}, default=str, sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def after(filters: BaseModel, end: int | str) -> str:
    """Where a page of what these filters find ended."""
    return encode(_filters(filters), end)


def number(cursor: str, filters: BaseModel) -> int:
    """A cursor that is a number."""
    mark, value = decode(cursor, str, int)
    if mark != _filters(filters) or not isinstance(value, int) or not 0 < value <= _HIGHEST:
        raise invalid()
    return value


def _filters(filters: BaseModel) -> str:
    asked = filters.model_dump_json(exclude={"cursor", "page_size"})
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def text(cursor: str, filters: BaseModel) -> str:
    mark, value = decode(cursor, str, str)
    name = str(value)
    if mark != _filters(filters):
        raise invalid()
    if "\x00" in name or not is_encodable(name):
        raise invalid()
    return name


def invalid() -> Refused:
    detail = "cursor: it is not one that this address gave out for this search; begin without a cursor."
    return Refused(422, "INVALID_CURSOR", detail)
