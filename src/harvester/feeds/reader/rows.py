"""Records to rows: every rule over whole columns, every fault and warning counted.

A block takes four steps, each of them one pass over columns. *Look* reads the cells and sees what is plain about them.
*Work* makes results of what is plain. What is odd goes to the kernel value by value, and its results are put in their
places. *Judge* finds the faults. *Finish* makes identities and hashes of the rows that are valid.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.columns import ColumnReader
from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER, no_faults
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.gtins import GtinReader
from harvester.feeds.reader.links import LinkReader, is_surely_web, read_odd_addresses
from harvester.feeds.reader.lookup import collected, mapped, patched
from harvester.feeds.reader.output_rows import BY_URL, SCHEMA, finished
from harvester.feeds.reader.prices import CELLS, COLUMN, RESULT, PriceReader
from harvester.feeds.reader.row_checks import judged
from harvester.feeds.reader.texts import (
    first_charged,
    first_filled,
    first_given,
    is_odd_identifier,
    read_odd_identifiers,
    trimmed,
)
from harvester.kernel.identity import NUMBERS, IdentityType, clean_identifier
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.money import sale_holds_at
from harvester.kernel.network import Field, Network
from harvester.kernel.numerals import DecimalStyle
from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.special_networks import Network as IpNetwork
from harvester.kernel.stock import Stock, UnknownStock, read_stock
from harvester.kernel.urls import url_hash

LONGEST_FIELD: Final = 100_000
_IDENTIFIERS: Final = (Field.ITEM_ID, Field.SKU)
#: Which of a field's columns counts, for the fields whose cells need nothing else at first.
_FIRST: Final[dict[Field, Callable[[Sequence[pl.Expr]], pl.Expr]]] = {
    **dict.fromkeys(CELLS, first_charged),
    **dict.fromkeys((Field.STOCK, Field.SALE_PERIOD), first_given),
    **dict.fromkeys((Field.MPN, Field.BRAND, Field.CATEGORY, Field.DESCRIPTION, Field.PROMOTION), first_filled),
}


@dataclass(frozen=True, kw_only=True)
class ParseSettings:
    """What a feed says about its files.

    Attributes:
        moment: when the prices are observed; sale prices outside their period do not count.
        default_currency: for rows that name none.
        decimal_style: used only where a price has two readings.
        kept_parameters: parameters of links, in lower case, that choose a product of this feed.
        allowed_networks: that links may lead to although they are not public.
        unknown_stock: what a stock text means that is empty or cannot be read.
    """

    moment: datetime
    default_currency: str | None = None
    decimal_style: DecimalStyle | None = None
    unknown_stock: UnknownStock = UnknownStock.IN_STOCK
    kept_parameters: tuple[str, ...] = ()
    allowed_networks: tuple[IpNetwork, ...] = ()

    def __post_init__(self) -> None:
        if self.moment.tzinfo is None:
            raise ValueError("prices are observed at a moment with its offset")

    def link_rules(self, network: Network) -> LinkRules:
        """The network's rules with what the feed says about them."""
        kept = network.links.kept_names | set(self.kept_parameters)
        return replace(network.links, kept_names=kept, allowed_networks=self.allowed_networks)


@dataclass(frozen=True, slots=True)
class Rows:
    """The valid rows of a block, what was found beside them, and the lines with a warning.

    Of products that are known by their address alone, and whose link has a parameter that is shown but does not count
    for the identity, `links` has `identity_value` and `link`.
    """

    frame: pl.DataFrame
    findings: tuple[Findings, ...]
    rows_read: int
    warned: NDArray[np.int64]
    links: pl.DataFrame | None = None


class RowReader:
    """Turns the blocks of one file into rows."""

    def __init__(self, columns: ColumnReader, network: Network, settings: ParseSettings) -> None:
        self._columns = columns
        self._texts = columns.texts
        self._moment = settings.moment
        self._unknown_stock = settings.unknown_stock
        self._rules = settings.link_rules(network)
        self._links = LinkReader(self._rules)
        self._prices = PriceReader(
            self._texts,
            default_currency=settings.default_currency,
            decimal_style=settings.decimal_style,
        )
        self._gtins = GtinReader(
            [(field, text) for field in (Field.GTIN, Field.ISBN) for text in self._texts.get(field, ())]
        )
        self._looks = list(self._wanted())

    def read(self, block: Block) -> Rows:
        """The valid rows of a block."""
        if not len(block.ends):
            return Rows(pl.DataFrame(schema=SCHEMA), (block.findings,), block.rows_read, block.lines)
        looked = self._links.unwrapped(self._columns.read(block, self._looks))
        worked = self._mended(self._worked(looked, block))
        valid, findings, warned = judged(worked, block)
        frame = finished(valid) if valid.height else pl.DataFrame(schema=SCHEMA)
        return Rows(frame, (block.findings, findings), block.rows_read, warned, _shortened(valid, frame))

    def identity(self, block: Block) -> tuple[int, str] | None:
        """Return type and value of the identity of a block's only record, whether or not the record is a valid row."""
        looked = self._links.unwrapped(self._columns.read(block, self._looks))
        row = self._mended(self._worked(looked, block)).row(0, named=True)
        for kind, field in ((IdentityType.NETWORK_ITEM_ID, Field.ITEM_ID), (IdentityType.SKU, Field.SKU)):
            if value := row.get(field.value):
                return NUMBERS[kind], value
        address = row["identity"]
        return (NUMBERS[IdentityType.URL_HASH], url_hash(address)) if address else None

    def _wanted(self) -> Iterator[pl.Expr]:
        """The look: cells, and what is to be seen about them."""
        texts = self._texts
        yield first_filled(texts[Field.TITLE]).alias("title")
        landing, link = texts.get(Field.LANDING_URL, []), texts.get(Field.URL, [])
        address = first_given([*landing, *link])
        yield address.alias("address")
        yield from self._links.looks(address)
        if landing and link:
            yield trimmed(first_given([*link, *landing])).alias("given_link")
            yield is_surely_web(trimmed(first_given([*link, *landing]))).alias("given_is_web")
        yield from self._gtins.looks()
        for field in _IDENTIFIERS:
            if field in texts:
                yield first_filled(texts[field]).alias(field.value)
                yield is_odd_identifier(first_filled(texts[field])).alias(f"{field.value}_is_odd")
            if field in self._columns.spares:
                yield first_filled(self._columns.spares[field]).alias(f"{field.value}_spare")
        if Field.IMAGE_URL in texts:
            yield first_given(texts[Field.IMAGE_URL]).alias("image_url")
            yield is_surely_web(first_given(texts[Field.IMAGE_URL])).alias("image_is_web")
        for field, first in _FIRST.items():
            if field in texts:
                yield first(texts[field]).alias(field.value)
        # Together, so that two columns which contradict each other are seen to do so.
        currencies = [trimmed(text) for text in texts.get(Field.CURRENCY, ())]
        currency = pl.concat_str(currencies, separator=" ") if currencies else pl.lit("")
        if symbols := texts.get(Field.CURRENCY_SYMBOL):
            symbol = trimmed(first_given(symbols))
            yield symbol.alias(Field.CURRENCY_SYMBOL.value)
            currency = pl.when(trimmed(currency) == "").then(symbol).otherwise(currency)
        yield currency.alias(COLUMN)

    def _worked(self, looked: pl.DataFrame, block: Block) -> pl.DataFrame:
        """The results of what is plain."""
        ready = looked.with_columns(
            pl.Series("line", block.lines),
            *self._links.work(looked["link"]),
            *self._gtins.checked(looked),
            *self._in_period(looked),
            *_too_long(looked, block),
        ).with_row_index("place")
        rows = self._prices.work(ready.lazy(), ready[COLUMN])
        return collected(self._gtins.work(rows.with_columns(*_stock(looked, self._unknown_stock))))

    def _in_period(self, looked: pl.DataFrame) -> list[pl.Series]:
        """Sale prices only where they hold, and faults where nobody knows."""
        if not {Field.SALE_PERIOD.value, Field.SALE_PRICE.value} <= set(looked.columns):
            return []
        sale = looked[Field.SALE_PRICE.value]
        holds = mapped(looked[Field.SALE_PERIOD.value], self._holds, pl.Boolean())
        unknown = holds.is_null() & (looked.select(trimmed(pl.col(sale.name))).to_series() != "")
        fault = unknown.cast(FAULT_TYPE) * NUMBER[Fault.PERIOD_UNREADABLE]
        return [sale.zip_with(holds.fill_null(value=False), pl.Series([""])), fault.alias("period_fault")]

    def _holds(self, period: str) -> bool | None:
        try:
            return sale_holds_at(period, self._moment)
        except Rejected:
            return None

    def _mended(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with everything in its place that the kernel had to read."""
        images = _odd_images(rows, self._rules)
        mended = [*self._odd_links(rows), *self._odd_prices(rows), *_odd_identifiers(rows), *images]
        rows = rows.with_columns(mended) if mended else rows
        return rows.with_columns(*_tracked(rows, self._rules), *_spared(rows))

    def _odd_links(self, rows: pl.DataFrame) -> Iterator[pl.Series]:
        is_plain = rows["link_is_plain"]
        if is_plain.all():
            return
        places = (~is_plain).arg_true()
        odd = self._links.read_odd(rows["address"].gather(places).to_list())
        for name in ("url", "identity", "link_identity"):
            yield patched(rows[name], places, odd[name])
        yield patched(no_faults(rows.height), places, odd["fault"]).alias("link_fault")

    def _odd_prices(self, rows: pl.DataFrame) -> Iterator[pl.Series]:
        is_plain = rows["price_is_plain"]
        if is_plain.all():
            return
        cells = [cell.value for cell in self._prices.bound]
        odd = self._prices.read_odd(rows.filter(~is_plain).select("place", COLUMN, *cells))
        for name in RESULT.names()[1:]:
            yield patched(rows[name], odd["place"], odd[name])


def _stock(looked: pl.DataFrame, meaning: UnknownStock) -> Iterator[pl.Expr]:
    """Whether products are in stock, and where the column for it says nothing that is known."""
    cell = pl.col(Field.STOCK.value)
    words = looked[Field.STOCK.value].unique().to_list() if Field.STOCK.value in looked.columns else []
    meanings = {word: read_stock(word) for word in words}
    unknown = [word for word, stock in meanings.items() if stock is Stock.UNKNOWN]
    out = [word for word, stock in meanings.items() if stock is Stock.OUT]
    out += unknown if meaning is UnknownStock.OUT_OF_STOCK else []
    yield (~cell.is_in(out) if out else pl.lit(value=True)).alias("in_stock")
    if unknown:
        yield cell.is_in(unknown).alias("unknown_stock")
    if unknown and meaning is UnknownStock.REJECT:
        yield (cell.is_in(unknown).cast(FAULT_TYPE) * NUMBER[Fault.STOCK_UNREADABLE]).alias("stock_fault")


def _shortened(valid: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame | None:
    """See `Rows.links`; none if there is no such row."""
    if not valid.height or (valid["identity"] == valid["link_identity"]).all():
        return None
    is_shortened = (valid["identity"] != valid["link_identity"]) & (frame["identity_type"] == BY_URL)
    found = pl.DataFrame([frame["identity_value"], valid["link_identity"].alias("link")]).filter(is_shortened)
    return found if found.height else None


def _too_long(looked: pl.DataFrame, block: Block) -> Iterator[pl.Series]:
    """Faults where a field has too many characters; most blocks have no record of so many bytes."""
    if np.diff(block.ends, prepend=0).max() > LONGEST_FIELD:
        texts = [name for name, dtype in looked.schema.items() if dtype == pl.String and not name.endswith("_spare")]
        longest = looked.select(pl.max_horizontal(trimmed(pl.col(texts)).str.len_chars())).to_series()
        yield ((longest > LONGEST_FIELD).cast(FAULT_TYPE) * NUMBER[Fault.TEXT_TOO_LONG]).alias("text_fault")


def _odd_identifiers(rows: pl.DataFrame) -> Iterator[pl.Series]:
    for field in _IDENTIFIERS:
        name = field.value
        if name in rows.columns and rows[f"{name}_is_odd"].any():
            values, faults = read_odd_identifiers(rows[name], no_faults(rows.height), rows[f"{name}_is_odd"])
            yield values
            yield faults.alias(f"{name}_fault")


def _spared(rows: pl.DataFrame) -> Iterator[pl.Series]:
    """Identifiers of other columns, only where the column that counts is empty; one that cannot be used is none."""
    for field in _IDENTIFIERS:
        if (name := f"{field.value}_spare") in rows.columns:
            is_wanted = (rows[field.value] == "") & (rows[name] != "")
            yield mapped(rows[name].zip_with(is_wanted, pl.Series([""])), _identifier_or_none, pl.String()).alias(name)


def _identifier_or_none(text: str) -> str:
    try:
        return clean_identifier(text)
    except Rejected:
        return ""


def _tracked(rows: pl.DataFrame, rules: LinkRules) -> Iterator[pl.Series]:
    """The network's link where it is more than the address that is shown, and an address at all."""
    if "given_link" in rows.columns:
        link, is_web = rows["given_link"], rows["given_is_web"]
        is_tracked = (link != rows["url"]) & read_odd_addresses(is_web, link, rules)
    elif (rows["address"] == rows["url"]).all():
        return
    else:
        link = collected(rows.lazy().select(trimmed(pl.col("address")))).to_series()
        is_tracked = link != rows["url"]
    if is_tracked.any():
        yield link.zip_with(is_tracked, pl.Series([""])).alias("tracked_url")


def _odd_images(rows: pl.DataFrame, rules: LinkRules) -> Iterator[pl.Series]:
    """Images without those that are no address."""
    if "image_url" not in rows.columns or rows["image_is_web"].all():
        return
    images = collected(rows.lazy().select(trimmed(pl.col("image_url")))).to_series()
    is_web = read_odd_addresses(rows["image_is_web"], images, rules)
    yield images.zip_with(is_web, pl.Series([""]))
    yield (~is_web & (images != "")).alias("bad_image")
