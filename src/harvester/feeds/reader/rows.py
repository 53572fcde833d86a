"""Records to rows: every rule over whole columns, every fault and warning counted.

A block takes five steps. `_inputs` are the cells of a block and what is plain about them. `_read_plain` computes the
results of what is plain. `_read_odd` lets the kernel read everything else value by value. `_judge` finds faults and
warnings. `output_rows.finish` adds identities and hashes to the valid rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.columns import ColumnReader
from harvester.feeds.reader.expressions import (
    collect,
    first_filled,
    first_given,
    first_nonzero,
    map_values,
    replace_at,
    trimmed,
)
from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER, NUMBERS_OF_CODE, fault_of, no_faults
from harvester.feeds.reader.findings import MOST_SAMPLES, Findings, storable
from harvester.feeds.reader.links import (
    GtinReader,
    LinkReader,
    is_odd_identifier,
    is_surely_web,
    read_odd_addresses,
    read_odd_identifiers,
)
from harvester.feeds.reader.output_rows import BY_URL, SCHEMA, finish
from harvester.feeds.reader.prices import CELLS, CURRENCY_COLUMN, RESULT, PriceReader
from harvester.kernel.identity import NUMBERS, IdentityType, clean_identifier
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.money import sale_holds_at
from harvester.kernel.network import Field, Network
from harvester.kernel.numerals import DecimalStyle
from harvester.kernel.rejects import Fault, Rejected, WarningCode
from harvester.kernel.special_networks import Network as IpNetwork
from harvester.kernel.stock import Stock, UnknownStock, read_stock
from harvester.kernel.urls import url_hash

LONGEST_FIELD: Final = 100_000
#: Characters of a stock text that are shown.
SHOWN_STOCK: Final = 60
_IDENTIFIERS: Final = (Field.ITEM_ID, Field.SKU)
#: How to choose among several columns, for the fields that need nothing else at first.
_CHOICE: Final[dict[Field, Callable[[Sequence[pl.Expr]], pl.Expr]]] = {
    **dict.fromkeys(CELLS, first_nonzero),
    **dict.fromkeys((Field.STOCK, Field.SALE_PERIOD), first_given),
    **dict.fromkeys((Field.MPN, Field.BRAND, Field.CATEGORY, Field.DESCRIPTION, Field.PROMOTION), first_filled),
}
_TITLE_FAULT: Final = "title_fault"
#: Columns of faults, the most important first.
_FAULTS: Final = (
    "text_fault",
    _TITLE_FAULT,
    "link_fault",
    "period_fault",
    "price_fault",
    "item_id_fault",
    "sku_fault",
    "stock_fault",
)  # mutant: row-faults
_WARNINGS: Final = {
    WarningCode.UNKNOWN_STOCK: "unknown_stock",
    WarningCode.BAD_GTIN: "bad_gtin",
    WarningCode.BAD_IMAGE_URL: "bad_image",
    WarningCode.BAD_ORIGINAL_PRICE: "bad_original",
}


@dataclass(frozen=True, kw_only=True)
class ParseSettings:
    """The settings of a feed that decide how its files are read.

    Attributes:
        moment: when the prices are observed; sale prices outside their period do not count.
        default_currency: for rows without one.
        decimal_style: used only where a price has two readings.
        kept_parameters: link parameters, in lower case, that choose a product of this feed.
        allowed_networks: networks that links may lead to although they are not public.
        unknown_stock: the meaning of a stock text that is empty or cannot be read.
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
        """Return the network's rules with the settings of the feed added."""
        kept = network.links.kept_names | set(self.kept_parameters)
        return replace(network.links, kept_names=kept, allowed_networks=self.allowed_networks)


@dataclass(frozen=True, slots=True)
class Rows:
    """The valid rows of a block.

    Attributes:
        frame: the rows.
        findings: rejected rows and warnings.
        rows_read: records that were read, including rejected ones.
        warned: the lines with a warning.
        links: `identity_value` and `link` of products identified by their address alone, if the link has a parameter
            that is shown but is not part of the identity.
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
        self._cells = list(self._inputs())

    def read(self, block: Block) -> Rows:
        """Return the valid rows of a block."""
        if not len(block.ends):
            return Rows(pl.DataFrame(schema=SCHEMA), (block.findings,), block.rows_read, block.lines)
        valid, findings, warned = _judge(self._read_odd(self._read_plain(block)), block)
        frame = finish(valid) if valid.height else pl.DataFrame(schema=SCHEMA)
        links = None
        if valid.height and (is_other := valid["identity"] != valid["link_identity"]).any():
            found = pl.DataFrame([frame["identity_value"], valid["link_identity"].alias("link")])
            found = found.filter(is_other & (frame["identity_type"] == BY_URL))
            links = found if found.height else None
        return Rows(frame, (block.findings, findings), block.rows_read, warned, links)

    def identity(self, block: Block) -> tuple[int, str] | None:
        """Return type and value of the identity of a block's only record, whether or not the record is a valid row."""
        row = self._read_odd(self._read_plain(block)).row(0, named=True)
        for kind, field in ((IdentityType.NETWORK_ITEM_ID, Field.ITEM_ID), (IdentityType.SKU, Field.SKU)):
            if value := row.get(field.value):
                return NUMBERS[kind], value
        address = row["identity"]
        return (NUMBERS[IdentityType.URL_HASH], url_hash(address)) if address else None

    def _inputs(self) -> Iterator[pl.Expr]:
        texts = self._texts
        yield first_filled(texts[Field.TITLE]).alias("title")
        landing, link = texts.get(Field.LANDING_URL, []), texts.get(Field.URL, [])
        address = first_given([*landing, *link])
        yield address.alias("address")
        yield from self._links.inputs(address)
        if landing and link:
            yield trimmed(first_given([*link, *landing])).alias("given_link")
            yield is_surely_web(trimmed(first_given([*link, *landing]))).alias("given_is_web")
        yield from self._gtins.inputs
        for field in _IDENTIFIERS:
            if field in texts:
                yield first_filled(texts[field]).alias(field.value)
                yield is_odd_identifier(first_filled(texts[field])).alias(f"{field.value}_is_odd")
            if field in self._columns.spares:
                yield first_filled(self._columns.spares[field]).alias(f"{field.value}_spare")
        if Field.IMAGE_URL in texts:
            yield first_given(texts[Field.IMAGE_URL]).alias("image_url")
            yield is_surely_web(first_given(texts[Field.IMAGE_URL])).alias("image_is_web")
        for field, choose in _CHOICE.items():
            if field in texts:
                yield choose(texts[field]).alias(field.value)
        # All of them together, so that two columns which contradict each other are noticed.
        currencies = [trimmed(text) for text in texts.get(Field.CURRENCY, ())]
        currency = pl.concat_str(currencies, separator=" ") if currencies else pl.lit("")
        if symbols := texts.get(Field.CURRENCY_SYMBOL):
            symbol = trimmed(first_given(symbols))
            yield symbol.alias(Field.CURRENCY_SYMBOL.value)
            currency = pl.when(trimmed(currency) == "").then(symbol).otherwise(currency)
        yield currency.alias(CURRENCY_COLUMN)

    def _read_plain(self, block: Block) -> pl.DataFrame:
        cells = self._links.unwrap(self._columns.read(block, self._cells))
        too_long = []
        # Most blocks have no record of so many bytes.
        if np.diff(block.ends, prepend=0).max() > LONGEST_FIELD:
            texts = [name for name, dtype in cells.schema.items() if dtype == pl.String and not name.endswith("_spare")]
            longest = cells.select(pl.max_horizontal(trimmed(pl.col(texts)).str.len_chars())).to_series()
            fault = (longest > LONGEST_FIELD).cast(FAULT_TYPE) * NUMBER[Fault.TEXT_TOO_LONG]
            too_long.append(fault.alias("text_fault"))
        ready = cells.with_columns(
            pl.Series("line", block.lines),
            *self._links.read_plain(cells["link"]),
            *self._gtins.check(cells),
            *self._sale_prices(cells),
            *too_long,
        ).with_row_index("place")
        rows = self._prices.read_plain(ready.lazy(), ready[CURRENCY_COLUMN])
        return collect(self._gtins.choose(rows.with_columns(*_stock(cells, self._unknown_stock))))

    def _sale_prices(self, cells: pl.DataFrame) -> list[pl.Series]:
        """Return sale prices only where their period holds, and faults where the period cannot be read."""

        def holds(period: str) -> bool | None:
            try:
                return sale_holds_at(period, self._moment)
            except Rejected:
                return None

        if not {Field.SALE_PERIOD.value, Field.SALE_PRICE.value} <= set(cells.columns):
            return []
        sale = cells[Field.SALE_PRICE.value]
        is_on = map_values(cells[Field.SALE_PERIOD.value], holds, pl.Boolean())
        unknown = is_on.is_null() & (cells.select(trimmed(pl.col(sale.name))).to_series() != "")
        fault = unknown.cast(FAULT_TYPE) * NUMBER[Fault.PERIOD_UNREADABLE]
        return [sale.zip_with(is_on.fill_null(value=False), pl.Series([""])), fault.alias("period_fault")]

    def _read_odd(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the results of the kernel for everything that is not plain."""
        columns: list[pl.Series] = []
        if not (is_plain := rows["link_is_plain"]).all():
            places = (~is_plain).arg_true()
            odd = self._links.read_odd(rows["address"].gather(places).to_list())
            columns += [replace_at(rows[name], places, odd[name]) for name in ("url", "identity", "link_identity")]
            columns.append(replace_at(no_faults(rows.height), places, odd["fault"]).alias("link_fault"))
        if not (is_plain := rows["price_is_plain"]).all():
            cells = [cell.value for cell in self._prices.bound]
            odd = self._prices.read_odd(rows.filter(~is_plain).select("place", CURRENCY_COLUMN, *cells))
            columns += [replace_at(rows[name], odd["place"], odd[name]) for name in RESULT.names()[1:]]
        for name in (field.value for field in _IDENTIFIERS):
            if name in rows.columns and rows[f"{name}_is_odd"].any():
                values, faults = read_odd_identifiers(rows[name], no_faults(rows.height), rows[f"{name}_is_odd"])
                columns += [values, faults.alias(f"{name}_fault")]
        if "image_url" in rows.columns and not rows["image_is_web"].all():
            # Images without a usable address are dropped.
            images = collect(rows.lazy().select(trimmed(pl.col("image_url")))).to_series()
            is_web = read_odd_addresses(rows["image_is_web"], images, self._rules)
            columns += [images.zip_with(is_web, pl.Series([""])), (~is_web & (images != "")).alias("bad_image")]
        rows = rows.with_columns(columns) if columns else rows
        return rows.with_columns(*_tracked_urls(rows, self._rules), *_spare_identifiers(rows))


def _stock(cells: pl.DataFrame, meaning: UnknownStock) -> Iterator[pl.Expr]:
    """Yield whether products are in stock, and which stock texts are unknown."""
    cell = pl.col(Field.STOCK.value)
    texts = cells[Field.STOCK.value].unique().to_list() if Field.STOCK.value in cells.columns else []
    meanings = {text: read_stock(text) for text in texts}
    unknown = [text for text, stock in meanings.items() if stock is Stock.UNKNOWN]
    out = [text for text, stock in meanings.items() if stock is Stock.OUT]
    out += unknown if meaning is UnknownStock.OUT_OF_STOCK else []
    yield (~cell.is_in(out) if out else pl.lit(value=True)).alias("in_stock")
    if unknown:
        yield cell.is_in(unknown).alias("unknown_stock")
    if unknown and meaning is UnknownStock.REJECT:
        yield (cell.is_in(unknown).cast(FAULT_TYPE) * NUMBER[Fault.STOCK_UNREADABLE]).alias("stock_fault")


def _spare_identifiers(rows: pl.DataFrame) -> Iterator[pl.Series]:
    """Yield usable identifiers of spare columns, only where the preferred column is empty."""

    def usable(text: str) -> str:
        try:
            return clean_identifier(text)
        except Rejected:
            return ""

    for field in _IDENTIFIERS:
        if (name := f"{field.value}_spare") in rows.columns:
            is_wanted = (rows[field.value] == "") & (rows[name] != "")
            yield map_values(rows[name].zip_with(is_wanted, pl.Series([""])), usable, pl.String()).alias(name)


def _tracked_urls(rows: pl.DataFrame, rules: LinkRules) -> Iterator[pl.Series]:
    """Yield the network's link, where it is an address and not the one that is shown."""
    if "given_link" in rows.columns:
        link, is_web = rows["given_link"], rows["given_is_web"]
        is_tracked = (link != rows["url"]) & read_odd_addresses(is_web, link, rules)
    elif (rows["address"] == rows["url"]).all():
        return
    else:
        link = collect(rows.lazy().select(trimmed(pl.col("address")))).to_series()
        is_tracked = link != rows["url"]
    if is_tracked.any():
        yield link.zip_with(is_tracked, pl.Series([""])).alias("tracked_url")


def _judge(rows: pl.DataFrame, block: Block) -> tuple[pl.DataFrame, Findings, NDArray[np.int64]]:
    """Return the valid rows, rejected rows and warnings, and the lines with a warning.

    There is a row for each record of the block.
    """
    findings = Findings()
    is_warned = pl.zeros(rows.height, pl.Boolean, eager=True)
    present = tuple(name for name in _FAULTS if name in rows.columns)
    faults = collect(rows.lazy().select(_first_fault(present))).to_series()
    is_valid = faults == 0
    if not is_valid.all():
        _add_rejects(findings, block, faults)
    for warning, name in _WARNINGS.items():
        if name in rows.columns and rows[name].any():
            is_warned |= rows[name]
            places = (rows[name] & is_valid).arg_true()
            if len(places):
                findings.counts[warning] += len(places)
            for place in places.head(MOST_SAMPLES):
                findings.add_sample(warning, int(block.lines[place]), block.record(place))
    for field in _IDENTIFIERS:
        if (name := f"{field.value}_spare") in rows.columns and (spared := (rows[name] != "") & is_valid).any():
            # A row with a stronger identity is not affected.
            gaps = spared & (rows[Field.ITEM_ID.value] == "") if Field.ITEM_ID.value in rows.columns else spared
            findings.spared[field] += int(gaps.sum())
            is_warned |= spared
    if Field.STOCK.value in rows.columns:
        _count_stock(findings, rows, is_valid | (faults == NUMBER[Fault.STOCK_UNREADABLE]))
    return rows if is_valid.all() else rows.filter(is_valid), findings, block.lines[is_warned.to_numpy()]


@cache
def _first_fault(present: tuple[str, ...]) -> pl.Expr:
    """Return the first fault of each row, from the columns that are present and the title."""
    untitled = pl.when(pl.col("title") == "").then(NUMBER[Fault.NO_TITLE]).otherwise(0)  # mutant: title-required
    fault = pl.lit(0, FAULT_TYPE)
    for name in reversed(_FAULTS):
        if name in present or name == _TITLE_FAULT:
            column = untitled if name == _TITLE_FAULT else pl.col(name)
            fault = pl.when(column != 0).then(column).otherwise(fault)
    return fault.cast(FAULT_TYPE).alias("fault")


def _add_rejects(findings: Findings, block: Block, faults: pl.Series) -> None:
    """Count the rejected rows, and keep the first of each code as samples."""
    distinct = faults.filter(faults != 0).value_counts().rows()
    for number, count in distinct:
        findings.counts[fault_of(number).code] += count
    for code in {fault_of(number).code for number, _ in distinct}:
        for place in faults.is_in(NUMBERS_OF_CODE[code]).arg_true().head(MOST_SAMPLES):
            sentence = fault_of(faults[place]).sentence
            findings.add_sample(code, int(block.lines[place]), block.record(place), sentence)


def _count_stock(findings: Findings, rows: pl.DataFrame, counts: pl.Series) -> None:
    """Count the stock texts of the rows that count, and the unknown ones; empty texts are never counted."""
    findings.stock_cells += int(counts.sum())
    if "unknown_stock" in rows.columns and (unknown := rows["unknown_stock"] & counts).any():
        texts = rows.filter(unknown).select(trimmed(pl.col(Field.STOCK.value))).to_series()
        findings.stock_cells -= int((texts == "").sum())
        for text, count in texts.filter(texts != "").value_counts().iter_rows():
            findings.unknown_stock_cells += count
            findings.unknown_stock[storable(text[:SHOWN_STOCK])] += count
