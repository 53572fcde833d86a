"""What is to be known about an affiliate network in order to read its feeds.

A network is data and at most one pure function. It says which column names mean what, how its links look and where its
manifest stands; everything else about reading a file is the same for all networks and stands in `feeds.reader`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from harvester.kernel.headers import normalize_header
from harvester.kernel.link_rules import NO_NETWORK, LinkRules
from harvester.kernel.tracking_url import check_template

#: Words in the names of columns that are never read: ranking must not be able to follow what a click pays.
PAYING_WORDS = ("commission", "payout", "earning")


class Field(StrEnum):
    """What a column of a feed can mean."""

    #: The network's own number of the product: the best identity.
    ITEM_ID = "item_id"
    #: The shop's number of the product.
    SKU = "sku"
    TITLE = "title"
    #: The link as the network gives it, tracked or not.
    URL = "url"
    #: The page in the shop, where the network gives it beside the tracked link.
    LANDING_URL = "landing_url"
    IMAGE_URL = "image_url"
    #: What a customer pays now.
    SALE_PRICE = "sale_price"
    #: The ordinary price: what a customer pays unless there is a sale price.
    LIST_PRICE = "list_price"
    #: What it cost before; never what a customer pays.
    ORIGINAL_PRICE = "original_price"
    #: When the sale price holds: two moments of ISO 8601 with a slash between them.
    SALE_PERIOD = "sale_period"
    CURRENCY = "currency"
    #: A sign that is shown to people, in the shop's own way of writing: it counts only where nothing else is given.
    CURRENCY_SYMBOL = "currency_symbol"
    STOCK = "stock"
    GTIN = "gtin"
    ISBN = "isbn"
    MPN = "mpn"
    BRAND = "brand"
    CATEGORY = "category"
    DESCRIPTION = "description"
    PROMOTION = "promotion"


#: Names of currency columns that every network knows, besides its own.
CURRENCY_NAMES = ("Currency", "Currency Code", "Price Currency", "Currency ISO Code", "ISO Currency")
#: The same for columns of signs.
CURRENCY_SYMBOL_NAMES = ("Currency Symbol",)
#: A header is understood when it has a column for at least one of each.
REQUIRED = ((Field.TITLE,), (Field.URL, Field.LANDING_URL), (Field.SALE_PRICE, Field.LIST_PRICE))
#: Two columns of one of these names cannot be told apart, and taking either would be a guess that matters.
UNIQUE = frozenset(
    {
        *(Field.ITEM_ID, Field.SKU, Field.TITLE, Field.URL, Field.LANDING_URL, Field.SALE_PRICE, Field.LIST_PRICE),
        *(Field.ORIGINAL_PRICE, Field.SALE_PERIOD, Field.CURRENCY, Field.CURRENCY_SYMBOL),
        Field.STOCK,
    }
)
#: Only the best column counts: a product whose number came from another column would be taken for another product.
FROM_ONE_COLUMN = frozenset({Field.ITEM_ID, Field.SKU})


@dataclass(frozen=True, kw_only=True)
class Family:
    """One layout of columns that a network is known to deliver.

    Attributes:
        name: shown to people.
        marks: column names that tell this family; of each group at least one has to be there.
    """

    name: str
    marks: tuple[tuple[str, ...], ...]

    def is_told_by(self, names: frozenset[str]) -> bool:
        """Whether these column names, normalized, are of this family."""
        return all(any(normalize_header(mark) in names for mark in group) for group in self.marks)


@dataclass(frozen=True, kw_only=True)
class ManifestEntry:
    """What a network says about one of its files.

    Attributes:
        location: the path of the file.
        records: rows without the header; a file with another number is not whole.
        name: of the catalog; not unique.
        format: in the network's words.
        size: of the file in bytes.
        updated_at: when the network wrote the file.
        unusable: values that are given and not what they should be, such as `numRecords '4,000'`.
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
            raise ValueError("an entry of a manifest names a file")
        if self.updated_at and self.updated_at.tzinfo is None:
            raise ValueError("an entry of a manifest has a time with its offset")


@dataclass(frozen=True, kw_only=True)
class Network:
    """One affiliate network.

    Attributes:
        name: stored with feeds; never changes.
        label: shown to people.
        aliases: field -> column names that mean it, the most telling first. Names are compared by `normalize_header`.
        families: known layouts, the first that is told by its marks is reported.
        delimiters: what may separate columns, the most likely first.
        links: how tracked links look, and the network's own tracking parameters.
        manifest_name: file in the root directory that lists the others.
        read_manifest: turns its bytes into entries.
        tracking_template: an example of a link template, for the form in which people enter theirs.
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
    #: Normalized column name -> its field and its place among the field's names.
    meanings: Mapping[str, tuple[Field, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name != self.name.lower():
            raise ValueError("a network's name is one word in lower case")
        if any(len(mark) != 1 or mark in '"\r\n' or not mark.isascii() for mark in self.delimiters):
            raise ValueError("a delimiter is one character and neither a quote nor the end of a line")
        if (self.manifest_name is None) != (self.read_manifest is None):
            raise ValueError("a manifest needs its name and its reader")
        if self.tracking_template:
            check_template(self.tracking_template)
        if not all(any(map(self.aliases.get, group)) for group in REQUIRED):
            raise ValueError("a network needs names for the title, the URL and a price")
        object.__setattr__(self, "meanings", self._meanings())

    def family_of(self, headers: Iterable[str]) -> str | None:
        """The known layout that a file with these columns has."""
        names = frozenset(map(normalize_header, headers))
        return next((family.name for family in self.families if family.is_told_by(names)), None)

    def _meanings(self) -> dict[str, tuple[Field, int]]:
        found: dict[str, tuple[Field, int]] = {}
        for meant, names in self.aliases.items():
            for place, alias in enumerate(names):
                name = normalize_header(alias)
                if any(word in name for word in PAYING_WORDS):
                    raise ValueError(f"{alias} says what a click pays and is never read")
                if found.setdefault(name, (meant, place))[0] is not meant:
                    raise ValueError(f"{alias} cannot mean both {found[name][0]} and {meant}")
        return found
