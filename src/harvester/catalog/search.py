"""The search for visible offers: text, filters, sort and page."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from django.db import connection, transaction

from harvester.catalog.consumer_offers import Offer, fetch_offers
from harvester.catalog.search_query import Place, Query
from harvester.catalog.search_sql import asked_words, may_walk, parameters, statement, walking


@dataclass(frozen=True, kw_only=True)
class Page:
    """Offers that were found, whether more follow, and the place of the last one."""

    offers: list[Offer]
    has_more: bool
    end: Place | None = None


def search(query: Query) -> Page:
    """Return one page of the visible offers that match."""
    values = parameters(query)
    # One more than the page shows, if there is one.
    found: list[Offer] = []
    walks = may_walk(query)
    if walks:
        found = fetch_offers(walking(query), values)
    if len(found) <= query.page_size:
        with words_first() if walks and asked_words(query) else nullcontext():
            found = fetch_offers(statement(query), values)
    shown = found[: query.page_size]
    last = shown[-1] if shown else None
    end = Place(product_id=last.product_id, amount=last.amount, rank=last.rank) if last else None
    return Page(offers=shown, has_more=len(found) > len(shown), end=end)


@contextmanager
def words_first() -> Iterator[None]:
    """Make the planner go from words to offers; it believes that reading every offer is cheaper."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        yield
