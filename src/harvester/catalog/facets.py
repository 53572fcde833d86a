"""Names that searches filter by: retailers, sources, brands and categories, and their slugs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from django.core.cache import cache
from django.db import connection
from django.utils.text import slugify

from harvester.catalog.models import Retailer, Source
from harvester.kernel.errors import InvalidInput

Term = Literal["brand", "category"]

#: Seconds for which a process caches brands and categories: collecting them reads every visible offer.
CACHE_SECONDS: Final = 600


def slug_of(name: str) -> str:
    """Return a name in a form for addresses: `Müller & Co` is `müller-co`."""
    return slugify(name, allow_unicode=True)


def retailer_id(text: str) -> UUID:
    """Return the retailer with this id, slug or domain.

    Raises:
        InvalidInput: it does not exist, or several match.
    """
    known = Retailer.objects.values_list("pk", "name", "domain")
    return _find("retailer", text, ((pk, {slug_of(name), (domain or "").lower()}) for pk, name, domain in known))


def source_id(text: str) -> UUID:
    """Return the source with this id or slug. Errors as for `retailer_id`."""
    return _find("source", text, ((pk, {slug_of(name)}) for pk, name in Source.objects.values_list("pk", "name")))


def _find(kind: str, text: str, known: Iterable[tuple[UUID, set[str]]]) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        wanted = text.lower()
    found = [pk for pk, names in known if wanted and wanted in names]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{len(found)} {kind}s are called {text[:60]!r}; use the id of one.", field=kind)
    raise InvalidInput(f"there is no {kind} {text[:60]!r}; the list of {kind}s has their ids and slugs.", field=kind)


def retailers(*, after: tuple[str, str] | None, most: int) -> list[Retailer]:
    """Return retailers by name; the page starts after this name and id."""
    found = Retailer.objects.order_by("name", "id")
    if after:
        # The database compares by the same collation that it sorts by.
        found = found.extra(where=["(name, id) > (%s, %s::uuid)"], params=list(after))
    return list(found[:most])


def sources(*, retailer: UUID | None, after: str, most: int) -> list[Source]:
    """Return sources by name; the page starts after this name."""
    found = Source.objects.select_related("retailer").order_by("name")
    if retailer:
        found = found.filter(retailer_id=retailer)
    return list((found.filter(name__gt=after) if after else found)[:most])


@dataclass(frozen=True, kw_only=True)
class Used:
    """A brand or category of visible offers.

    Attributes:
        name: as one of the sources writes it; searches ignore case.
        key: the form for comparing and sorting.
        offers: number of visible offers with it.
    """

    name: str
    key: str
    offers: int


_USED = """
SELECT min(p.{column}), lower(p.{column}) COLLATE "C", count(*)
FROM visible_offers v JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id
WHERE p.{column} <> '' {conditions} GROUP BY 2 ORDER BY 2
"""


def used(term: Term, *, retailer: UUID | None = None, source: UUID | None = None) -> list[Used]:
    """Return the brands or categories of visible offers; up to ten minutes old."""
    key = f"catalog.naming:{term}:{retailer}:{source}"
    known: list[Used] | None = cache.get(key)
    if known is None:
        conditions = "AND v.retailer_id = %(retailer)s " if retailer else ""
        conditions += "AND v.source_id = %(source)s" if source else ""
        with connection.cursor() as cursor:
            statement = _USED.format(column={"brand": "brand", "category": "category"}[term], conditions=conditions)
            cursor.execute(statement, {"retailer": retailer, "source": source})
            known = [Used(name=name, key=folded, offers=count) for name, folded, count in cursor.fetchall()]
        cache.set(key, known, CACHE_SECONDS)
    return known
