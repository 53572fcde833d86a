"""What a feed's stock column says."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from harvester.kernel.headers import normalize_header


class Stock(StrEnum):
    """Whether a product can be bought now."""

    IN = "in"
    OUT = "out"
    #: Nothing, or a word that is in no table: counted as UNKNOWN_STOCK and taken as in stock.
    UNKNOWN = "unknown"

    @property
    def in_stock(self) -> bool:
        return self is not Stock.OUT


#: Words in the form of `normalize_header`.
IN_STOCK = frozenset({"y", "yes", "true", "1", "instock", "available", "lowstock", "limited", "limitedavailability"})
OUT_OF_STOCK = frozenset(
    {
        *("n", "no", "false", "0", "outofstock", "unavailable"),
        *("backorder", "backordered", "preorder", "soldout", "discontinued"),
    }
)
STOCK_WORDS: Mapping[str, Stock] = MappingProxyType(
    dict.fromkeys(IN_STOCK, Stock.IN) | dict.fromkeys(OUT_OF_STOCK, Stock.OUT)
)


def read_stock(text: str | None) -> Stock:
    """Look a stock text up, whatever its case, blanks, underscores and hyphens."""
    return STOCK_WORDS.get(normalize_header(text), Stock.UNKNOWN)
