"""Prices of many rows at once, exactly as `kernel.money.offered_prices` reads one.

Three ways, the next for what the one before cannot read: plain numbers as columns; numbers with the same currency
marker in all price cells of a row, where the kernel is asked once for each marker; everything else cell by cell in the
kernel, once for each combination that occurs.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import polars as pl

from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER
from harvester.feeds.reader.lookup import collected, whole
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.money import LONGEST_PRICE, offered_prices, parse_price
from harvester.kernel.network import Field
from harvester.kernel.numerals import DecimalStyle
from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.text import BLANKS, HYPHENS

AMOUNT: Final = pl.Decimal(14, 4)
CELLS: Final = (Field.SALE_PRICE, Field.LIST_PRICE, Field.ORIGINAL_PRICE)
COLUMN: Final = Field.CURRENCY.value

#: Numbers with one reading in any currency of at least two decimals, and in one without decimals.
_PLAIN: Final = whole(r"[0-9]{1,10}(?:\.[0-9]{1,2})?")
_WHOLE: Final = whole("[0-9]{1,10}")
_GROUPED: Final = whole(r"[1-9][0-9]{0,2}(?:,[0-9]{3}){1,2}\.[0-9]{1,2}")
#: A separator at the end of what stands before the number may belong to the number, and one right after it says how to
#: read the number ("129,-").
_UNCLEAR_MARKER: Final = f"(?s)[.,]\x00|\x00.*[.,:].*[{HYPHENS}]"
_EXAMPLE: Final = "1.00"
#: Combinations that are remembered from one block to the next.
_MOST_REMEMBERED: Final = 100_000

RESULT: Final = pl.Schema(
    {
        "place": pl.UInt32(),
        "amount": AMOUNT,
        "price_currency": pl.String(),
        "original_amount": AMOUNT,
        "price_fault": FAULT_TYPE,
        "bad_original": pl.Boolean(),
    }
)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a currency marker or column comes to: a code, or the fault that it is."""

    code: str | None
    fault: int


class PriceReader:
    """Reads the price cells of one file.

    Attributes:
        bound: the price cells that the file has columns for.
    """

    def __init__(
        self, bound: Collection[Field], *, default_currency: str | None, decimal_style: DecimalStyle | None
    ) -> None:
        self.bound = [cell for cell in CELLS if cell in bound]
        self._default = default_currency
        self._style = decimal_style
        self._said: dict[tuple[str | None, str], _Said] = {}
        self._offered: dict[tuple[str, ...], tuple[object, ...]] = {}

    def work(self, rows: pl.LazyFrame, currencies: pl.Series) -> pl.LazyFrame:
        """Add what the price cells come to, right where `price_is_plain` is true.

        Adds amount, price_currency, original_amount, price_fault, bad_original and price_is_plain.
        """
        occurring = currencies.unique().to_list()
        said = {column: self._say(column) for column in occurring}
        known = rows.with_columns(
            code=_looked_up(COLUMN, {column: one.code for column, one in said.items()}, pl.String()),
            currency_fault=_looked_up(COLUMN, {column: one.fault for column, one in said.items()}, FAULT_TYPE),
        )
        return self._computed(known, frozenset(MINOR_UNITS[one.code] for one in said.values() if one.code))

    def read_odd(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of a place, the price cells and the currency, whose prices are not plain: what they come to."""
        unmarked = _unmarked(rows, self.bound)
        keys = unmarked.select(COLUMN, "marker")
        occurring = keys.unique()
        said = [self._say(column, marker) for column, marker in occurring.iter_rows()]
        codes = pl.Series("code", [one.code for one in said], dtype=pl.String)
        faults = pl.Series("currency_fault", [one.fault for one in said], dtype=FAULT_TYPE)
        found = keys.join(
            occurring.with_columns(codes, faults),
            on=[COLUMN, "marker"],
            how="left",
            maintain_order="left",
            nulls_equal=True,
        )
        known = unmarked.with_columns(found["code"], found["currency_fault"]).lazy()
        done = collected(self._computed(known, frozenset(MINOR_UNITS.values())))
        fits = done["price_is_plain"] & done["marker"].is_not_null()
        odd = self._one_by_one(rows.filter(~fits))
        return pl.concat([done.filter(fits).select(RESULT.names()), odd]).sort("place")

    def _computed(self, rows: pl.LazyFrame, decimals: frozenset[int]) -> pl.LazyFrame:
        for step in _steps(tuple(self.bound), decimals):
            rows = rows.with_columns(step)
        return rows.drop("code", "currency_fault", "before", *(_amount_of(cell) for cell in CELLS))

    def _say(self, column: str, marker: str | None = "\x00") -> _Said:
        """Ask the kernel about a price of one with this marker."""
        if marker is None:
            return _Said(None, 0)
        known = self._said.get((marker, column))
        if known is None:
            if len(self._said) >= _MOST_REMEMBERED:
                self._said.clear()
            known = self._said[marker, column] = self._ask(marker.replace("\x00", _EXAMPLE), column)
        return known

    def _ask(self, example: str, column: str) -> _Said:
        try:
            price = parse_price(example, currency=column, default_currency=self._default)
        except Rejected as refusal:
            return _Said(None, NUMBER[refusal.fault])
        return _Said(price.currency, 0)

    def _one_by_one(self, rows: pl.DataFrame) -> pl.DataFrame:
        cells = [pl.col(cell.value) if cell in self.bound else pl.lit("").alias(cell.value) for cell in CELLS]
        texts = rows.select("place", *cells, COLUMN)
        results = [(place, *self._offer(tuple(row))) for place, *row in texts.iter_rows()]
        return pl.DataFrame(results, schema=RESULT, orient="row")

    def _offer(self, texts: tuple[str, ...]) -> tuple[object, ...]:
        known = self._offered.get(texts)
        if known is None:
            if len(self._offered) >= _MOST_REMEMBERED:
                self._offered.clear()
            known = self._offered[texts] = self._read_one(*texts)
        return known

    def _read_one(self, sale: str, listed: str, original: str, currency: str) -> tuple[object, ...]:
        try:
            price, before, warnings = offered_prices(
                sale,
                listed,
                original,
                currency=currency,
                default_currency=self._default,
                decimal_style=self._style,
            )
        except Rejected as refusal:
            return None, None, None, NUMBER[refusal.fault], False
        return price.amount, price.currency, before.amount if before else None, 0, bool(warnings)


def _is_plain(cell: pl.Expr, decimals: frozenset[int]) -> pl.Expr:
    """Whether a cell is blank or a number with one reading in the currency of its row.

    Where there is no currency, every number has the same fault.
    """
    number = cell.str.contains(_PLAIN)
    if 0 in decimals:
        without_decimals = pl.col("code").is_in([code for code, count in MINOR_UNITS.items() if not count])
        number = pl.when(without_decimals).then(cell.str.contains(_WHOLE)).otherwise(number)
    return (cell == "") | number


def _unmarked(rows: pl.DataFrame, bound: list[Field]) -> pl.DataFrame:
    """The numbers of the price cells without what stands around them, which becomes the marker of the row.

    The marker is null where the cells of a row have different ones, or where it is not sure what belongs to the number.
    """
    trimmed = rows.with_columns(pl.col(cell.value).str.strip_chars(BLANKS) for cell in bound)
    cells = [pl.col(cell.value) for cell in bound]
    markers = trimmed.select(_marker(cell) for cell in cells)
    marker = markers.select(marker=pl.coalesce(pl.all(), pl.lit("\x00"))).to_series()
    agree = [(one == marker) | one.is_null() for one in markers.iter_columns()]
    is_short = [trimmed[cell.value].str.len_chars() <= LONGEST_PRICE for cell in bound]
    is_clear = marker.str.contains("\x00", literal=True) & ~marker.str.contains(_UNCLEAR_MARKER)
    sure = pl.select(pl.all_horizontal(is_clear, *agree, *is_short)).to_series()
    known = pl.select(pl.when(sure).then(marker).alias("marker")).to_series()
    return trimmed.with_columns(*map(_number, cells), known)


def _marker(cell: pl.Expr) -> pl.Expr:
    """The cell with a NUL in place of its number; null if the cell is blank."""
    marker = cell.str.replace("[0-9](?:.*[0-9])?", "\x00")
    return pl.when(cell != "").then(marker)


def _number(cell: pl.Expr) -> pl.Expr:
    number = cell.str.replace(r"\A[^0-9]+", "").str.replace(r"[^0-9]+\z", "")
    return pl.when(number.str.contains(_GROUPED)).then(number.str.replace_all(",", "", literal=True)).otherwise(number)


def _looked_up(column: str, values: Mapping[str, object], dtype: pl.DataType) -> pl.Expr:
    """What each text of a column comes to; all texts that occur are among the keys."""
    if len(set(values.values())) == 1:
        return pl.lit(next(iter(values.values())), dtype)
    return pl.col(column).replace_strict(values, return_dtype=dtype)


def _amount_of(cell: Field) -> str:
    return f"{cell.value}_amount"


@cache
def _steps(bound: tuple[Field, ...], decimals: frozenset[int]) -> list[list[pl.Expr]]:
    """Steps from the cells, `code` and `currency_fault` to what they come to."""
    plain = pl.all_horizontal(_is_plain(pl.col(cell.value), decimals) for cell in bound)
    amounts = [
        pl.col(cell.value).cast(AMOUNT, strict=False) if cell in bound else pl.lit(None, AMOUNT) for cell in CELLS
    ]
    named = [amount.alias(_amount_of(cell)) for cell, amount in zip(CELLS, amounts, strict=True)]
    return [[plain.alias("price_is_plain"), *named], _judging(), _comparing()]


def _judging() -> list[pl.Expr]:
    """The rules of sale, list and original price over plain numbers and one currency for each row."""
    sale, listed, original = (pl.col(_amount_of(cell)) for cell in CELLS)
    on_sale = (sale > 0).fill_null(value=False)
    is_listed = (listed > 0).fill_null(value=False)
    fault = (
        pl.when(sale.is_null() & listed.is_null())
        .then(NUMBER[Fault.NO_PRICE])
        .when(pl.col("currency_fault") != 0)
        .then("currency_fault")
        .when(~on_sale & ~is_listed)
        .then(NUMBER[Fault.PRICE_ZERO])
        .otherwise(0)
    )  # mutant: price-zero
    return [
        pl.when(on_sale).then(sale).when(is_listed).then(listed).alias("amount"),
        pl.when(original > 0).then(original).when(on_sale & is_listed).then(listed).alias("before"),
        fault.cast(FAULT_TYPE).alias("price_fault"),
    ]


def _comparing() -> list[pl.Expr]:
    """An original price counts only if it is more than the price."""
    before, amount = pl.col("before"), pl.col("amount")
    return [
        pl.col("code").alias("price_currency"),
        pl.when(before > amount).then(before).alias("original_amount"),
        ((pl.col("price_fault") == 0) & (before < amount)).fill_null(value=False).alias("bad_original"),
    ]
