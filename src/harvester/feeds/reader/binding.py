"""The meaning of a file's columns.

A name that the network does not know may look like a currency, a price, an ID or the stock: then it is in doubt.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made
from typing import NamedTuple

from harvester.feeds.reader.errors import HeaderUnreadable
from harvester.guards.redaction import redact_text
from harvester.kernel.headers import normalize_header
from harvester.kernel.network import FROM_ONE_COLUMN, PAYING_WORDS, REQUIRED, UNIQUE, Field, Network


class _Kind(NamedTuple):
    """A kind of column.

    Attributes:
        label: display name.
        parts: of a normalized name, one of which makes it look like this kind.
        exceptions: parts that mean something else.
        names: whole normalized names that are too short to be parts.
    """

    label: str
    parts: tuple[str, ...]
    exceptions: tuple[str, ...]
    names: tuple[str, ...] = ()


#: Numbers of other things than the product: `item_group_id`, `Program Id`, `Parent SKU`.
_OTHER_THINGS = """
    group parent categor brand merchantid advertiser program campaign catalogid catalogueid manufacturerid seller store
    adsid adwords promotion shipping tax image feed partner color colour size deal coupon site publisher account network
    retailer supplier vendor department collection warehouse label
"""
#: Other prices than that of one piece: `shipping_price`, `unit_pricing_measure`, `auto_pricing_min_price`.
_OTHER_PRICES = """
    shipping delivery postage unitpric priceunit priceper perunit range minprice maxprice minimum maximum pricing
    installment subscription loyalty wholesale dealer date pricetype pricelabel tax vat deposit drop percent
    grundpreis versand liefer livraison
"""
#: Networks know columns by English names; a shop's own column may have one of its language.
_CURRENCY_WORDS = "currency w\u00e4hrung waehrung devise monnaie moneda moeda valuta divisa waluta"
_PRICE_WORDS = "price msrp rrp preis prix precio prezzo prijs"
_STOCK_WORDS = """
    stock availab inventory quantity qty lagerbestand verf\u00fcgbar verfuegbar disponib existencias voorraad giacenza
"""
_ID_WORDS = """
    sku productid itemid articleid offerid variantid itemnumber productcode articlenumber artikelnummer artikelnr
"""
_OTHER_STOCKS = (
    "date minimum maximum minqty maxqty minorder maxorder pack store pickup restock sellongoogle photo perunit unit"
)
_KINDS = (
    _Kind("currency", tuple(_CURRENCY_WORDS.split()), ("shipping", "tax"), ("ccy", "cur", "curr")),
    _Kind("price", tuple(_PRICE_WORDS.split()), tuple(_OTHER_PRICES.split())),
    _Kind("stock", tuple(_STOCK_WORDS.split()), tuple(_OTHER_STOCKS.split())),
    _Kind("ID", tuple(_ID_WORDS.split()), tuple(_OTHER_THINGS.split())),
)
#: A count of pieces adds nothing if another column has the stock.
_COUNTS = ("inventory", "quantity", "qty")
#: "Shop ID" and "shopId", but not "Android" or "Paid".
_ENDS_WITH_ID = "(?:.*[^A-Za-z])?(?:id|ID|Id)|.*[a-z]I[dD]"


def resembled_field(name: str, bound: Container[Field]) -> str | None:
    """Return the kind of column that an unbound column looks like, or none.

    Args:
        name: as in the file.
        bound: fields that other columns of the file are bound to.
    """
    normalized = normalize_header(name)
    if any(word in normalized for word in PAYING_WORDS):
        return None
    for label, parts, exceptions, names in _KINDS:
        looks_so = normalized in names or any(part in normalized for part in parts)
        if label == "ID":
            looks_so = looks_so or re.fullmatch(_ENDS_WITH_ID, name.strip()) is not None
        if label == "stock" and Field.STOCK in bound and any(part in normalized for part in _COUNTS):
            looks_so = False
        if looks_so and not any(part in normalized for part in exceptions):
            return label
    return None


@dataclass(frozen=True, kw_only=True)
class Binding:
    """The meaning of a header.

    Attributes:
        header: the column names as written in the file.
        family: the network's known layout, if it is one.
        columns: field -> places of its columns, in order of preference.
        doubtful: names that the network does not know although they look like an important field, and that field.
        spares: for fields that are read from one column only, the places of the other columns. Their values do not
            identify products, but are stored where the preferred column is empty.
    """

    header: tuple[str, ...]
    family: str | None
    columns: Mapping[Field, tuple[int, ...]]
    doubtful: tuple[tuple[str, str], ...] = ()
    spares: Mapping[Field, tuple[int, ...]] = made(default_factory=dict)

    @property
    def names(self) -> dict[str, list[str]]:
        """Field -> the names of its columns, for people."""
        return {field.value: [self.header[place] for place in places] for field, places in self.columns.items()}

    @property
    def unbound(self) -> list[str]:
        """The names of columns that are not read."""
        bound = {place for places in (*self.columns.values(), *self.spares.values()) for place in places}
        return [name for place, name in enumerate(self.header) if place not in bound]


def bind(header: Sequence[str], network: Network) -> Binding:
    """Find the columns by their names.

    Raises:
        HeaderUnreadable: two columns of an important field have the same name.
    """
    found: dict[Field, list[tuple[int, int]]] = {}
    for place, name in enumerate(header):
        if meaning := network.meanings.get(normalize_header(name)):
            found.setdefault(meaning[0], []).append((meaning[1], place))
    for field, places in found.items():
        names = [normalize_header(header[place]) for _, place in places]
        if field in UNIQUE and len(set(names)) < len(names):
            twins = redact_text(", ".join(repr(header[place]) for _, place in sorted(places)))[:200]
            raise HeaderUnreadable(
                f"Several columns have the same name for the {field.value}: {twins}. It is unclear which one counts. "
                "Nothing was changed. Ask the partner to remove one of them."
            )
    ranked = {field: tuple(place for _, place in sorted(found[field])) for field in Field if field in found}
    columns = {field: places[:1] if field in FROM_ONE_COLUMN else places for field, places in ranked.items()}
    unknown = [name for name in header if normalize_header(name) not in network.meanings]
    resembled = [(name, resembled_field(name, columns)) for name in unknown]
    return Binding(
        header=tuple(header),
        family=network.family_of(header),
        columns=columns,
        doubtful=tuple((name, field) for name, field in resembled if field),
        spares={field: ranked[field][1:] for field in FROM_ONE_COLUMN if len(ranked.get(field, ())) > 1},
    )


def missing(binding: Binding) -> list[tuple[Field, ...]]:
    """Return the groups of required fields of which the header has none."""
    return [group for group in REQUIRED if not any(field in binding.columns for field in group)]
