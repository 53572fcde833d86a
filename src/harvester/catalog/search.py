"""Finding offers: text, filters, sort and page over what consumers see."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from django.db import connection, transaction

from harvester.catalog.consumer_offers import Offer, fetch_offers
from harvester.catalog.search_query import Place, Query
from harvester.catalog.search_sql import asked_words, may_walk, parameters, statement, walking


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some of the offers that were found, whether more follow, and behind which place."""

    offers: list[Offer]
    has_more: bool
    end: Place | None = None


def search(query: Query) -> Page:
    """One page of the offers that consumers see and that fit."""
    found = _found(query)
    shown = found[: query.page_size]
    return Page(offers=shown, has_more=len(found) > len(shown), end=_place(shown[-1]) if shown else None)


def _found(query: Query) -> list[Offer]:
    """As many as the page shows, and one more if there is one."""
    values = parameters(query)
    if not may_walk(query):
        return fetch_offers(statement(query), values)
    found = fetch_offers(walking(query), values)
    if len(found) > query.page_size:
        return found
    with words_first() if asked_words(query) else nullcontext():
        return fetch_offers(statement(query), values)


@contextmanager
def words_first() -> Iterator[None]:
    """Go from words to offers, one by one: the planner takes that for dearer than to read every offer."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        yield


def _place(offer: Offer) -> Place:
    return Place(product_id=offer.product_id, amount=offer.amount, rank=offer.rank)
