"""The description of an affiliate network that is needed to read its feeds.

A network is data and at most one pure function: the meaning of column names, the format of links and the place of the
manifest. Everything else about reading a file is the same for all networks and is in `feeds.reader`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from harvester.kernel.headers import normalize_header
from harvester.kernel.link_rules import NO_NETWORK, LinkRules
from harvester.kernel.tracking_url import check_template

#: Columns with these words in their names are never read, so that ranking cannot depend on what a click pays.
PAYING_WORDS = ("commission", "payout", "earning")


class Field(StrEnum):
    """Meanings of feed columns."""

    #: The network's own number of the product: the best identity.
    ITEM_ID = "item_id"
    #: The shop's number of the product.
    SKU = "sku"
    TITLE = "title"
    #: The network's link, tracked or not.
    URL = "url"
    #: The page in the shop, where the network gives it in addition to the tracked link.
    LANDING_URL = "landing_url"
    IMAGE_URL = "image_url"
    #: What a customer pays now.
    SALE_PRICE = "sale_price"
    #: The regular price: what a customer pays unless there is a sale price.
    LIST_PRICE = "list_price"
    #: The former price; never what a customer pays.
    ORIGINAL_PRICE = "original_price"
    #: When the sale price is valid: two ISO 8601 times with a slash between them.
    SALE_PERIOD = "sale_period"
    CURRENCY = "currency"
    #: A display sign in the shop's own notation: it counts only where nothing else is given.
    CURRENCY_SYMBOL = "currency_symbol"
    STOCK = "stock"
    GTIN = "gtin"
    ISBN = "isbn"
    MPN = "mpn"
    BRAND = "brand"
    CATEGORY = "category"
    DESCRIPTION = "description"
    PROMOTION = "promotion"


#: Names of currency columns for all networks, in addition to their own.
CURRENCY_NAMES = ("Currency", "Currency Code", "Price Currency", "Currency ISO Code", "ISO Currency")
#: The same for columns of signs.
CURRENCY_SYMBOL_NAMES = ("Currency Symbol",)
#: A header is understood when it has a column for at least one of each.
REQUIRED = ((Field.TITLE,), (Field.URL, Field.LANDING_URL), (Field.SALE_PRICE, Field.LIST_PRICE))
#: Two columns with one of these meanings are ambiguous, and choosing one would be a guess that matters.
UNIQUE = frozenset(
    {
        *(Field.ITEM_ID, Field.SKU, Field.TITLE, Field.URL, Field.LANDING_URL, Field.SALE_PRICE, Field.LIST_PRICE),
        *(Field.ORIGINAL_PRICE, Field.SALE_PERIOD, Field.CURRENCY, Field.CURRENCY_SYMBOL),
        Field.STOCK,
    }
)
#: Only the best column counts: a product with its number from another column would become another product.
FROM_ONE_COLUMN = frozenset({Field.ITEM_ID, Field.SKU})


@dataclass(frozen=True, kw_only=True)
class Family:
    """A known layout of columns of a network.

    Attributes:
        name: display name.
        marks: column names that identify this family; at least one of each group is required.
    """

    name: str
    marks: tuple[tuple[str, ...], ...]

    def matches(self, names: frozenset[str]) -> bool:
        """Whether these normalized column names are of this family."""
        return all(any(normalize_header(mark) in names for mark in group) for group in self.marks)


@dataclass(frozen=True, kw_only=True)
class ManifestEntry:
    """A network's description of one of its files.

    Attributes:
        location: the path of the file.
        records: rows without the header; a file with another number is incomplete.
        name: of the catalog; not unique.
        format: as the network calls it.
        size: of the file in bytes.
        updated_at: when the network wrote the file.
        unusable: invalid values, such as `numRecords '4,000'`.
    """

    location: str
    records: int | None
    name: str | None = None
    format: str | None = None
    size: int | None = None
    updated_at: datetime | None = None
    unusable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.location:
            raise ValueError("a manifest entry needs the path of a file")
        if self.updated_at and self.updated_at.tzinfo is None:
            raise ValueError("the time of a manifest entry needs an offset")


@dataclass(frozen=True, kw_only=True)
class Network:
    """One affiliate network.

    Attributes:
        name: stored with feeds; never changes.
        label: display name.
        aliases: field -> column names that mean it, the best first. Names are compared by `normalize_header`.
        families: known layouts; the first that matches is reported.
        delimiters: possible column separators, the most likely first.
        links: the format of tracked links, and the network's own tracking parameters.
        manifest_name: file in the root directory that lists the others.
        read_manifest: turns its bytes into entries.
        tracking_template: an example of a link template, for the feed form.
    """

    name: str
    label: str
    aliases: Mapping[Field, tuple[str, ...]]
    families: tuple[Family, ...] = ()
    delimiters: tuple[str, ...] = ("\t", ",", "|", ";")
    links: LinkRules = NO_NETWORK
    manifest_name: str | None = None
    read_manifest: Callable[[bytes], tuple[ManifestEntry, ...]] | None = None
    tracking_template: str | None = None
    #: Normalized column name -> its field and its rank among the field's names.
    meanings: Mapping[str, tuple[Field, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name != self.name.lower():
            raise ValueError("a network's name must be one word in lower case")
        if any(len(mark) != 1 or mark in '"\r\n' or not mark.isascii() for mark in self.delimiters):
            raise ValueError("a delimiter must be one character and neither a quote nor a line break")
        if (self.manifest_name is None) != (self.read_manifest is None):
            raise ValueError("a manifest needs a name and a reader")
        if self.tracking_template:
            check_template(self.tracking_template)
        if not all(any(map(self.aliases.get, group)) for group in REQUIRED):
            raise ValueError("a network needs names for the title, the URL and a price")
        meanings: dict[str, tuple[Field, int]] = {}
        for meant, names in self.aliases.items():
            for rank, alias in enumerate(names):
                name = normalize_header(alias)
                if any(word in name for word in PAYING_WORDS):
                    raise ValueError(f"{alias} says what a click pays and is never read")
                if meanings.setdefault(name, (meant, rank))[0] is not meant:
                    raise ValueError(f"{alias} cannot mean both {meanings[name][0]} and {meant}")
        object.__setattr__(self, "meanings", meanings)

    def family_of(self, headers: Iterable[str]) -> str | None:
        """Return the name of the known layout with these columns, or none."""
        names = frozenset(map(normalize_header, headers))
        return next((family.name for family in self.families if family.matches(names)), None)
