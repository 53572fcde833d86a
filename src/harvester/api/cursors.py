"""Cursors: where a page ended, as an opaque string. Its format may change with any version."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel

from harvester.api.problems import Refused
from harvester.catalog.search_query import Place, Query, Sort
from harvester.kernel.text import is_encodable

Item = TypeVar("Item")

#: Characters.
LONGEST = 400
_HIGHEST = 2**63 - 1
#: Powers of ten that the database's float type for ranks can hold; amounts have fewer.
_LOWEST_POWER, _HIGHEST_POWER = -45, 37
#: Fields of a query that say which page is wanted, not what is searched.
_PAGE_FIELDS = ("after", "page", "page_size")


def encode(*parts: object) -> str:
    written = json.dumps(parts, default=str, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def decode(cursor: str, *kinds: type) -> list[object]:
    """Return the parts, if they are of these kinds."""
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
    return encode(_query_hash(query), str(value), place.product_id)


def to_place(cursor: str, query: Query) -> Place:
    """A cursor is valid only for the search it was made for; in another search it would skip or repeat offers."""
    query_hash, value, product_id = decode(cursor, str, str, int)
    if query_hash != _query_hash(query) or not isinstance(product_id, int) or not 0 < product_id <= _HIGHEST:
        raise invalid()
    if query.order is Sort.NEWEST:
        return Place(product_id=product_id)
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise invalid() from None
    if not number.is_finite() or not _LOWEST_POWER <= number.adjusted() <= _HIGHEST_POWER:
        raise invalid()
    return Place(product_id=product_id, amount=number, rank=float(number))


def _query_hash(query: Query) -> str:
    filters = {name: value for name, value in vars(query).items() if name not in _PAGE_FIELDS}
    written = json.dumps({**filters, "sort": query.order}, default=str, sort_keys=True)
    return hashlib.sha256(written.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def cut(
    found: list[Item], filters: BaseModel, page_size: int, end: Callable[[Item], int | str]
) -> tuple[list[Item], str | None]:
    """Return the items of one page, and the cursor of the next page if more items were found.

    Args:
        found: the items of the page, and at least one more if there is one.
        filters: what was searched; the cursor is valid only for it.
        page_size: the most items of a page.
        end: the value by which the next page finds its first item, of the last item of this one.
    """
    shown = found[:page_size]
    return shown, after(filters, end(shown[-1])) if len(found) > len(shown) else None


def after(filters: BaseModel, end: int | str) -> str:
    """Return the cursor of a page with these filters that ended here."""
    return encode(_filters_hash(filters), end)


def number(cursor: str, filters: BaseModel) -> int:
    """Return the number in a cursor."""
    filters_hash, value = decode(cursor, str, int)
    if filters_hash != _filters_hash(filters) or not isinstance(value, int) or not 0 < value <= _HIGHEST:
        raise invalid()
    return value


def text(cursor: str, filters: BaseModel) -> str:
    """Return the text in a cursor; the empty text without a cursor."""
    if not cursor:
        return ""
    filters_hash, value = decode(cursor, str, str)
    name = str(value)
    if filters_hash != _filters_hash(filters) or "\x00" in name or not is_encodable(name):
        raise invalid()
    return name


def key(cursor: str, filters: BaseModel) -> UUID | None:
    """Return the id in a cursor; None without a cursor."""
    try:
        return UUID(text(cursor, filters)) if cursor else None
    except ValueError:
        raise invalid() from None


def _filters_hash(filters: BaseModel) -> str:
    filtered_by = filters.model_dump_json(exclude={"cursor", "page_size"})
    return hashlib.sha256(filtered_by.encode()).hexdigest()[:16]


def invalid() -> Refused:
    detail = "cursor: not a cursor that this address returned for this search; start without a cursor."
    return Refused(422, "INVALID_CURSOR", detail)
