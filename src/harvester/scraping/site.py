"""What a site file declares: where the fields of a product are on the pages of one shop.

A site is data plus, where data is not enough, one pure function. The structured-data adapter interprets it; a source
may have overrides of the same shape.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from harvester.scraping.offers import PageReading

#: The fields that a site may say the places of.
FIELDS = (
    *("title", "price", "original", "currency", "availability", "product_id", "sku", "gtin", "mpn", "brand", "image"),
    *("shipping",),
)


@dataclass(frozen=True, kw_only=True)
class ReadContext:
    """What an adapter may know about a page.

    Attributes:
        url: the address that was fetched, as given.
        source_id, run_no, target_id: for logs.
        retailer_name, retailer_domain: brand equal to one of them is not a brand.
        default_currency: for pages that name none; ISO 4217.
        variant: `sku`, `pid` or `variant` of the address, by which one of several variants is chosen.
        chosen: what a person chose for this target: field -> place.
    """

    url: str
    source_id: str = ""
    run_no: int | None = None
    target_id: str = ""
    retailer_name: str = ""
    retailer_domain: str = ""
    default_currency: str | None = None
    variant: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Site:
    """The pages of one shop, or of shops on one platform.

    A place is a CSS selector with `::text` or `::attr(name)`, or `json:` and a path into the product of the structured
    data, such as `json:offers.price`. The first place that says something leads.

    Attributes:
        id: lower-case word; constant, stored with targets and runs.
        version: semantic; raised with every change of what is read (a test compares it with the file).
        title: for people.
        domains: registrable domains that it serves; none: any (a platform).
        places: field -> places in the order in which they are asked.
        exclude: CSS selectors of parts of the page that never say anything about its product, such as related products.
        tiers: CSS selector of a quantity-discount table; the price of one piece counts.
        in_stock, out_of_stock, backorder: phrases of this shop, in lower case, in addition to the usual ones.
        sku_pattern: a regular expression whose first group is the article number within the text of its place.
        requires_js: such sites are refused.
        finish: looks at the reading of a page last; pure.
    """

    id: str
    version: str
    title: str
    domains: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    tiers: str | None = None
    in_stock: tuple[str, ...] = ()
    out_of_stock: tuple[str, ...] = ()
    backorder: tuple[str, ...] = ()
    sku_pattern: str | None = None
    requires_js: bool = False
    finish: Callable[[PageReading, ReadContext], PageReading] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z][a-z0-9_]{1,39}", self.id):
            raise ValueError(f"the id of a site is a lower-case word, not {self.id!r}")
        if not re.fullmatch(r"\d+\.\d+\.\d+", self.version):
            raise ValueError(f"the version of {self.id} must look like 1.0.0, not {self.version!r}")
        if unknown := sorted(self.places.keys() - set(FIELDS)):
            raise ValueError(f"{self.id} has places for {', '.join(unknown)}; there are {', '.join(FIELDS)}")


#: What a source may override.
OVERRIDABLE = tuple(
    each.name
    for each in fields(Site)
    if each.name in {"places", "exclude", "tiers", "in_stock", "out_of_stock", "backorder", "sku_pattern"}
)
