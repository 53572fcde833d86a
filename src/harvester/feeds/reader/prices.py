"""Prices of many rows at once, with the results of `kernel.money.offered_prices`.

There are three methods, each for what the one before cannot read: plain numbers as columns; numbers with the same
currency marker in all price cells of a row, where the kernel reads each distinct marker once; everything else cell by
cell in the kernel, once for each distinct combination.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import polars as pl

from harvester.feeds.reader.expressions import collect, full_match
from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.money import LONGEST_PRICE, offered_prices, parse_price
from harvester.kernel.network import Field
from harvester.kernel.numerals import DecimalStyle
from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.text import BLANKS, HYPHENS

AMOUNT: Final = pl.Decimal(14, 4)
CELLS: Final = (Field.SALE_PRICE, Field.LIST_PRICE, Field.ORIGINAL_PRICE)
CURRENCY_COLUMN: Final = Field.CURRENCY.value

#: Numbers with one reading in any currency of at least two decimals, and in a currency without decimals.
_PLAIN: Final = full_match(r"[0-9]{1,10}(?:\.[0-9]{1,2})?")
_WHOLE: Final = full_match("[0-9]{1,10}")
_GROUPED: Final = full_match(r"[1-9][0-9]{0,2}(?:,[0-9]{3}){1,2}\.[0-9]{1,2}")
#: A separator right before the number may belong to the number, and one right after it says how to read the number
#: ("129,-").
_UNCLEAR_MARKER: Final = f"(?s)[.,]\x00|\x00.*[.,:].*[{HYPHENS}]"
#: Stands for the number in a marker, and the number that the kernel gets to see in its place.
_PLACEHOLDER, _EXAMPLE = "\x00", "1.00"
#: Combinations that are cached across blocks.
_MOST_CACHED: Final = 100_000

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
class _Currency:
    """What a currency marker or column means: a code, or a fault."""

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
        self._currencies: dict[tuple[str | None, str], _Currency] = {}
        self._offers: dict[tuple[str, ...], tuple[object, ...]] = {}

    def read_plain(self, rows: pl.LazyFrame, currencies: pl.Series) -> pl.LazyFrame:
        """Add the results of the price cells, which are right where `price_is_plain` is true.

        Adds amount, price_currency, original_amount, price_fault, bad_original and price_is_plain.
        """
        found = {column: self._currency_of(column) for column in currencies.unique().to_list()}
        known = rows.with_columns(
            code=_looked_up({column: one.code for column, one in found.items()}, pl.String()),
            currency_fault=_looked_up({column: one.fault for column, one in found.items()}, FAULT_TYPE),
        )
        return self._computed(known, frozenset(MINOR_UNITS[one.code] for one in found.values() if one.code))

    def read_odd(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the results of rows whose prices are not plain: of their place, the price cells and the currency."""
        numbers = _without_markers(rows, self.bound)
        keys = numbers.select(CURRENCY_COLUMN, "marker")
        distinct = keys.unique()
        currencies = [self._currency_of(column, marker) for column, marker in distinct.iter_rows()]
        codes = pl.Series("code", [one.code for one in currencies], dtype=pl.String)
        faults = pl.Series("currency_fault", [one.fault for one in currencies], dtype=FAULT_TYPE)
        found = keys.join(
            distinct.with_columns(codes, faults),
            on=[CURRENCY_COLUMN, "marker"],
            how="left",
            maintain_order="left",
            nulls_equal=True,
        )
        known = numbers.with_columns(found["code"], found["currency_fault"]).lazy()
        done = collect(self._computed(known, frozenset(MINOR_UNITS.values())))
        fits = done["price_is_plain"] & done["marker"].is_not_null()
        odd = self._read_one_by_one(rows.filter(~fits))
        return pl.concat([done.filter(fits).select(RESULT.names()), odd]).sort("place")

    def _computed(self, rows: pl.LazyFrame, decimals: frozenset[int]) -> pl.LazyFrame:
        for step in _steps(tuple(self.bound), decimals):
            rows = rows.with_columns(step)
        return rows.drop("code", "currency_fault", "before", *(_amount_of(cell) for cell in CELLS))

    def _currency_of(self, column: str, marker: str | None = _PLACEHOLDER) -> _Currency:
        """Let the kernel read a price of 1.00 with this marker."""
        if marker is None:
            return _Currency(None, 0)
        cached = self._currencies.get((marker, column))
        if cached is None:
            if len(self._currencies) >= _MOST_CACHED:
                self._currencies.clear()
            example = marker.replace(_PLACEHOLDER, _EXAMPLE)
            try:
                price = parse_price(example, currency=column, default_currency=self._default)
                cached = _Currency(price.currency, 0)
            except Rejected as refusal:
                cached = _Currency(None, NUMBER[refusal.fault])
            self._currencies[marker, column] = cached
        return cached

    def _read_one_by_one(self, rows: pl.DataFrame) -> pl.DataFrame:
        cells = [pl.col(cell.value) if cell in self.bound else pl.lit("").alias(cell.value) for cell in CELLS]
        results = []
        for place, *texts in rows.select("place", *cells, CURRENCY_COLUMN).iter_rows():
            sale, listed, original, currency = key = tuple(texts)
            offer = self._offers.get(key)
            if offer is None:
                if len(self._offers) >= _MOST_CACHED:
                    self._offers.clear()
                try:
                    price, before, warnings = offered_prices(
                        sale,
                        listed,
                        original,
                        currency=currency,
                        default_currency=self._default,
                        decimal_style=self._style,
                    )
                    offer = price.amount, price.currency, before.amount if before else None, 0, bool(warnings)
                except Rejected as refusal:
                    offer = None, None, None, NUMBER[refusal.fault], False
                self._offers[key] = offer
            results.append((place, *offer))
        return pl.DataFrame(results, schema=RESULT, orient="row")


def _without_markers(rows: pl.DataFrame, bound: list[Field]) -> pl.DataFrame:
    """Return the numbers of the price cells, and what surrounds them as the marker of the row.

    The marker is null where the cells of a row have different ones, or where it is unclear what belongs to the number.
    """
    trimmed = rows.with_columns(pl.col(cell.value).str.strip_chars(BLANKS) for cell in bound)
    cells = [pl.col(cell.value) for cell in bound]
    # The marker of a blank cell is null.
    markers = trimmed.select(
        pl.when(cell != "").then(cell.str.replace("[0-9](?:.*[0-9])?", _PLACEHOLDER)) for cell in cells
    )
    marker = markers.select(marker=pl.coalesce(pl.all(), pl.lit(_PLACEHOLDER))).to_series()
    agree = [(one == marker) | one.is_null() for one in markers.iter_columns()]
    is_short = [trimmed[cell.value].str.len_chars() <= LONGEST_PRICE for cell in bound]
    is_clear = marker.str.contains(_PLACEHOLDER, literal=True) & ~marker.str.contains(_UNCLEAR_MARKER)
    sure = pl.select(pl.all_horizontal(is_clear, *agree, *is_short)).to_series()
    known = pl.select(pl.when(sure).then(marker).alias("marker")).to_series()
    stripped = [cell.str.replace(r"\A[^0-9]+", "").str.replace(r"[^0-9]+\z", "") for cell in cells]
    numbers = [
        pl.when(cell.str.contains(_GROUPED)).then(cell.str.replace_all(",", "", literal=True)).otherwise(cell)
        for cell in stripped
    ]
    return trimmed.with_columns(*numbers, known)


def _looked_up(values: Mapping[str, object], dtype: pl.DataType) -> pl.Expr:
    """Return the value of each text of the currency column; every text that occurs is a key."""
    if len(set(values.values())) == 1:
        return pl.lit(next(iter(values.values())), dtype)
    return pl.col(CURRENCY_COLUMN).replace_strict(values, return_dtype=dtype)


def _amount_of(cell: Field) -> str:
    return f"{cell.value}_amount"


@cache
def _steps(bound: tuple[Field, ...], decimals: frozenset[int]) -> list[list[pl.Expr]]:
    """Return the steps from the cells, `code` and `currency_fault` to the results.

    They apply the rules of sale, list and original price to plain numbers with one currency per row.
    """
    plain = pl.all_horizontal(_is_plain(pl.col(cell.value), decimals) for cell in bound)
    amounts = [
        (pl.col(cell.value).cast(AMOUNT, strict=False) if cell in bound else pl.lit(None, AMOUNT)).alias(
            _amount_of(cell)
        )
        for cell in CELLS
    ]
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
    before, amount = pl.col("before"), pl.col("amount")
    return [
        [plain.alias("price_is_plain"), *amounts],
        [
            pl.when(on_sale).then(sale).when(is_listed).then(listed).alias("amount"),
            pl.when(original > 0).then(original).when(on_sale & is_listed).then(listed).alias("before"),
            fault.cast(FAULT_TYPE).alias("price_fault"),
        ],
        # An original price counts only if it is higher than the price.
        [
            pl.col("code").alias("price_currency"),
            pl.when(before > amount).then(before).alias("original_amount"),
            ((pl.col("price_fault") == 0) & (before < amount)).fill_null(value=False).alias("bad_original"),
        ],
    ]


def _is_plain(cell: pl.Expr, decimals: frozenset[int]) -> pl.Expr:
    """Return whether a cell is blank or a number with one reading in the currency of its row.

    Without a currency, every number has the same fault.
    """
    number = cell.str.contains(_PLAIN)
    if 0 in decimals:
        without_decimals = pl.col("code").is_in([code for code, count in MINOR_UNITS.items() if not count])
        number = pl.when(without_decimals).then(cell.str.contains(_WHOLE)).otherwise(number)
    return (cell == "") | number
