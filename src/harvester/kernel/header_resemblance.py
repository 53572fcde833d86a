"""Column names that look like a currency, a price, an ID or the stock without being a name that the network knows."""

import re
from collections.abc import Container
from typing import NamedTuple

from harvester.kernel.headers import normalize_header
from harvester.kernel.network import PAYING_WORDS, Field


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
