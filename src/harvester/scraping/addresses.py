"""Addresses of pages: whether they belong to a source, and of which product they are."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch
from harvester.kernel.domains import registrable_domain
from harvester.kernel.errors import InvalidInput
from harvester.kernel.gtin import GTIN_LENGTHS, normalize_gtin
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.rejects import Rejected
from harvester.kernel.text import trim
from harvester.kernel.urls import canonical_page_url, identity_url, is_public_url, split_url, url_hash

MOST_CANDIDATES: Final = 5
#: What a person may write in front of a number of a product.
REFERENCES: Final = ("id", "sku", "gtin")

# Products that SKU, GTIN or address name exactly. The index of identities has the SKUs of products that are recognized
# by it, another index those of the rest. There is no index of url_hash, so the products of the source are read once.
_EXACT = """
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(places)s::int[], %(skus)s::text[], %(items)s::text[], %(hashes)s::text[])
        AS w(place, sku, item, hash)
), numbered AS MATERIALIZED (
    SELECT * FROM unnest(%(gtin_places)s::int[], %(gtins)s::text[]) AS n(place, gtin)
), found AS (
    SELECT w.place, p.id FROM wanted w JOIN source_products p
        ON p.source_id = %(source)s AND p.identity_type = 3 AND p.identity_value = w.sku
    UNION
    SELECT w.place, p.id FROM wanted w JOIN source_products p
        ON p.source_id = %(source)s AND p.identity_type <> 3 AND p.sku = w.sku AND p.sku IS NOT NULL
    UNION
    SELECT w.place, p.id FROM wanted w JOIN source_products p
        ON p.source_id = %(source)s AND p.identity_type IN (1, 2) AND p.identity_value = w.item
    UNION
    SELECT w.place, p.id FROM wanted w JOIN source_products p
        ON p.source_id = %(source)s AND p.identity_type <> 1 AND p.item_id = w.item AND p.item_id IS NOT NULL
    UNION
    SELECT n.place, p.id FROM numbered n JOIN source_products p ON p.source_id = %(source)s AND p.gtin = n.gtin
    UNION
    SELECT w.place, p.id FROM wanted w JOIN source_products p ON p.source_id = %(source)s AND p.url_hash = w.hash
    UNION
    SELECT i.place, p.id FROM unnest(%(id_places)s::int[], %(ids)s::bigint[]) AS i(place, id)
    JOIN source_products p ON p.source_id = %(source)s AND p.id = i.id
)
SELECT f.place, p.id, p.title, p.sku, p.url FROM found f
JOIN source_products p ON p.source_id = %(source)s AND p.id = f.id
ORDER BY f.place, p.id
"""
# Products at the same path, whatever their parameters: what a person may have meant. Each address is wanted in four
# spellings, because taking the scheme and `www.` off every product of a large feed would take several seconds.
_NEAR = """
WITH wanted AS MATERIALIZED (
    SELECT place, scheme || path AS start FROM unnest(%(places)s::int[], %(paths)s::text[]) AS w(place, path)
    CROSS JOIN unnest(ARRAY['https://', 'http://', 'https://www.', 'http://www.']) AS scheme
)
SELECT place, id, title, sku, url FROM (
    SELECT w.place, p.id, p.title, p.sku, p.url, row_number() OVER (PARTITION BY w.place ORDER BY p.id) AS rank
    FROM wanted w JOIN source_products p ON p.source_id = %(source)s
        AND rtrim(split_part(split_part(lower(p.url), '?', 1), '#', 1), '/') = w.start
) found WHERE rank <= %(most)s ORDER BY place, id
"""


@dataclass(frozen=True, kw_only=True)
class PageAddress:
    """An address of a page that may be fetched.

    Attributes:
        url: as given.
        canonical: the one form by which two spellings of a page are recognized; never fetched.
        domain: the registrable domain of its host.
    """

    url: str
    canonical: str
    domain: str


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A product of a feed that a page may be of."""

    id: int
    title: str
    sku: str | None
    url: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """What is known about the product of a page.

    Attributes:
        product_id: the one product that SKU, GTIN or address name; None if there is none, or more than one.
        candidates: what a person may choose from otherwise.
    """

    product_id: int | None
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A page whose product is looked for, by its address and by numbers that somebody named.

    Attributes:
        url: empty if only the numbers count.
        product: the shop's or the network's own number of the product.
        id: Harvester's own number of the product.
    """

    url: str = ""
    sku: str = ""
    gtin: str = ""
    product: str = ""
    id: int | None = None


def read_address(text: Any) -> PageAddress:
    """Return the address of a page.

    Raises:
        InvalidInput: it is not http or https, has a login, or its host is not public.
    """
    if not isinstance(text, str):
        raise InvalidInput("it must look like https://shop.example/product.", field="url")
    try:
        url = str(split_url(text))
        if not is_public_url(url, LinkRules(allowed_networks=settings.CONFIG.egress_networks)):
            raise InvalidInput(
                "its host is not on the public internet, and its network is not in HARVESTER_EGRESS_ALLOW.", field="url"
            )
        return PageAddress(url=url, canonical=canonical_page_url(url), domain=_domain(split_url(url).host))
    except Rejected as problem:
        raise InvalidInput(f"{problem}; it must look like https://shop.example/product.", field="url") from None


def domains_of(source: Source) -> set[str]:
    """Return the registrable domains that the pages of a source may be on: those of its retailer and its own."""
    hosts = {source.retailer.domain or ""}
    for text in (source.retailer.website, source.url):
        try:
            hosts.add(split_url(text).host)
        except Rejected:
            continue
    return {_domain(host) for host in hosts if host}


def address_on(source: Source, text: Any) -> PageAddress:
    """Return the address of a page of this source.

    Raises:
        InvalidInput: it cannot be read, or it belongs to another shop.
    """
    address = read_address(text)
    allowed = domains_of(source)
    if not allowed:
        raise InvalidInput(
            f"{source} and its retailer have no website, so no page can be checked against it. Enter one first.",
            field="url",
        )
    if address.domain not in allowed:
        raise InvalidInput(
            f"its domain is {address.domain}, and pages of {source} are on {', '.join(sorted(allowed))}. "
            "Add it to a source of that shop.",
            field="url",
        )
    return address


def has_feed(source_id: UUID) -> bool:
    """Whether the source has a feed, so that its pages only refresh products of that feed."""
    return Source.objects.filter(pk=source_id, feed__isnull=False).exists()


def wanted_by(reference: str) -> Wanted:
    """Return what a person means by `id:34567`, `sku:A-1`, `gtin:...`, or one of these numbers without its name.

    A number without a name may be all of them; it names a product if all that have it are one product.
    """
    text = trim(reference)
    kind, _, number = text.partition(":")
    kind, number = kind.strip().lower(), number.strip()
    if kind not in REFERENCES or not number:
        kind, number = "", text
    is_id = re.fullmatch("[0-9]{1,18}", number) is not None and kind in ("id", "")
    return Wanted(
        sku=number if kind in ("sku", "") else "",
        gtin=number if kind in ("gtin", "") else "",
        product=number if kind == "" else "",
        id=int(number) if is_id else None,
    )


def find_products(source_id: UUID, pages: Sequence[Wanted]) -> list[Link]:
    """Return for each page its product among those of the source, or the candidates."""
    if not pages:
        return []
    places = list(range(len(pages)))
    rules = LinkRules(allowed_networks=settings.CONFIG.egress_networks)
    gtins = [(place, form) for place, page in enumerate(pages) for form in _gtin_forms(page.gtin)]
    values = {
        "source": source_id,
        "gtin_places": [place for place, _ in gtins],
        "gtins": [form for _, form in gtins],
        "places": places,
        "skus": [page.sku or None for page in pages],
        "items": [page.product or None for page in pages],
        "hashes": [url_hash(identity_url(page.url, rules)) if page.url else None for page in pages],
        "id_places": [place for place, page in enumerate(pages) if page.id is not None],
        "ids": [page.id for page in pages if page.id is not None],
    }
    found: dict[int, list[Candidate]] = {place: [] for place in places}
    for row in fetch(_EXACT, values):
        found[row.pop("place")].append(Candidate(**row))
    missing = [place for place in places if not found[place] and pages[place].url]
    near: dict[int, list[Candidate]] = {place: [] for place in places}
    if missing:
        paths = [_bare(pages[place].url) for place in missing]
        for row in fetch(_NEAR, {"source": source_id, "places": missing, "paths": paths, "most": MOST_CANDIDATES}):
            near[row.pop("place")].append(Candidate(**row))
    return [
        Link(product_id=found[place][0].id)
        if len(found[place]) == 1
        else Link(product_id=None, candidates=tuple(found[place][:MOST_CANDIDATES] or near[place]))
        for place in places
    ]


def candidates_text(candidates: Iterable[Candidate]) -> str:
    """Return products that a page may be of, for a message."""
    return "; ".join(f"{found.id}: {found.title[:60]} (SKU {found.sku or 'none'})" for found in candidates)


def _domain(host: str) -> str:
    """Return the registrable domain. Of a host below an unknown suffix that is the host itself, but not its `www.`."""
    return registrable_domain(host.removeprefix("www."))


def _gtin_forms(text: str) -> list[str]:
    """Return every spelling of a GTIN that a feed may have: a UPC is also an EAN with a zero in front."""
    number = normalize_gtin(text)
    if number is None or number.key is None:
        return []
    digits = number.key.lstrip("0")
    return [digits.zfill(length) for length in GTIN_LENGTHS if len(digits) <= length]


def _bare(url: str) -> str:
    """Return host and path of an address, in lower case, as `_NEAR` compares them."""
    return re.sub(r"^https?://(www\.)?|/*([?#].*)?$", "", url.lower())
