"""The pills above the list of offers, and the query that they and the search box make."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from harvester.catalog import retailers, sources
from harvester.catalog.offer_browser import Browse
from harvester.catalog.search_query import Sort
from harvester.catalog.states import Shown
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.portal.display import verb
from harvester.portal.pills import Choice, Field, choice_pill, form_pill, text_field

STATES = [(state.value, verb(state.value)) for state in Shown]
STOCK = [("yes", "In stock"), ("no", "Out of stock")]
SORTS = [("newest", "Newest"), ("price", "Cheapest"), ("-price", "Dearest"), ("relevance", "Best match")]
FIELDS = ("q", "retailer", "source", "brand", "category", "state", "stock", "currency", "min", "max", "sort")
PAGE_SIZE = 25


def given(parameters: Mapping[str, str]) -> dict[str, str]:
    """What was chosen and typed, by field."""
    return {name: value for name in FIELDS if (value := parameters.get(name, "").strip())}


def query(chosen: Mapping[str, str], parameters: Mapping[str, str]) -> Browse:
    """The query that was put together.

    Raises:
        InvalidInput, NotFound: a value cannot be looked for; the message names it.
    """
    sort = chosen.get("sort", "")
    if sort and sort not in dict(SORTS):
        raise InvalidInput("sort: there is no such order.")
    return Browse(
        text=chosen.get("q", ""),
        retailer_id=retailers.find(chosen["retailer"]).pk if "retailer" in chosen else None,
        source_id=sources.find(chosen["source"]).pk if "source" in chosen else None,
        brand=chosen.get("brand", ""),
        category=chosen.get("category", ""),
        in_stock={"yes": True, "no": False}.get(chosen.get("stock", "")),
        currency=chosen.get("currency", "").upper(),
        min_amount=_amount("min", chosen),
        max_amount=_amount("max", chosen),
        sort=Sort(sort) if sort else None,
        state=chosen.get("state", ""),
        behind=parameters.get("after", ""),
        ahead=parameters.get("before", ""),
        page_size=PAGE_SIZE,
    )


def _amount(field: str, chosen: Mapping[str, str]) -> Decimal | None:
    if field not in chosen:
        return None
    try:
        return Decimal(chosen[field])
    except InvalidOperation:
        raise InvalidInput(f"{field}: {chosen[field][:40]!r} is no amount; write it like 19.99.") from None


def pills(chosen: Mapping[str, str]) -> list[SafeString]:
    """The filters above the list."""
    return [
        _choice(chosen, "State", "state", STATES),
        _text(chosen, "Retailer", "retailer", "domain, name or id"),
        _text(chosen, "Source", "source", "name or id"),
        _text(chosen, "Brand", "brand", "as the source calls it"),
        _text(chosen, "Category", "category", "as the source calls it"),
        _choice(chosen, "Stock", "stock", STOCK),
        _price(chosen),
        _choice(chosen, "Sort", "sort", SORTS),
    ]


def address(chosen: Mapping[str, str], **more: str) -> str:
    return "?" + urlencode({name: value for name, value in {**chosen, **more}.items() if value})


def _without(chosen: Mapping[str, str], *fields: str) -> dict[str, str]:
    return {name: value for name, value in chosen.items() if name not in fields}


def _choice(chosen: Mapping[str, str], title: str, field: str, words: Iterable[tuple[str, str]]) -> SafeString:
    known, now = dict(words), chosen.get(field, "")
    choices = [Choice(address({**chosen, field: value}), text, value == now) for value, text in known.items()]
    return choice_pill(title, known.get(now, now), address(_without(chosen, field)), choices)


def _text(chosen: Mapping[str, str], title: str, field: str, hint: str) -> SafeString:
    kept, now = _without(chosen, field), chosen.get(field, "")
    return form_pill(title, now, address(kept), kept, [text_field(title, field, now, hint)])


def _price(chosen: Mapping[str, str]) -> SafeString:
    names = ("currency", "min", "max")
    kept, (currency, low, high) = _without(chosen, *names), (chosen.get(name, "") for name in names)
    spread = f"{low or '0'} to {high or '…'}" if low or high else ""
    summary = " ".join(filter(None, (currency.upper(), spread)))
    fields = [
        Field("Currency", {"name": "currency", "value": currency, "placeholder": "USD", "spellcheck": "false"}),
        Field("From", {"name": "min", "inputmode": "decimal", "value": low, "placeholder": "0.00"}),
        Field("To", {"name": "max", "inputmode": "decimal", "value": high, "placeholder": "any"}),
    ]
    return form_pill("Price", summary, address(kept), kept, fields)


def found(read: Callable[[], Any]) -> tuple[Any, str]:
    """What a read function found, or why it cannot look."""
    try:
        return read(), ""
    except (InvalidInput, NotFound) as problem:
        return None, str(problem)
