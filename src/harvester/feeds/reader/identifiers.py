"""Identifiers and GTINs of many rows at once, with the results of `kernel.identity` and `kernel.gtin`."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import polars as pl

from harvester.feeds.reader.expressions import any_of, full_match, map_values, replace_at
from harvester.feeds.reader.faults import NUMBER
from harvester.kernel.gtin import GTIN_LENGTHS, GtinResult, normalize_gtin, normalize_isbn
from harvester.kernel.identity import LONGEST_IDENTIFIER, clean_identifier
from harvester.kernel.network import Field
from harvester.kernel.rejects import Rejected
from harvester.kernel.text import CONTROLS, WORDS_FOR_NOTHING

#: Identifiers that trimming does not make usable.
_ODD_IDENTIFIER: Final = f"{CONTROLS}|(?i:{full_match(any_of(WORDS_FOR_NOTHING))})"
_DIGITS: Final = full_match("[0-9]{1,14}")
_ISBN10_LENGTH: Final = 10
#: Check digits are computed for groups of four digits.
_GROUP: Final = 10_000
#: Of each group the sum that goes into the check digit: its last digit counts once, the one before it three times.
_SUMS: Final = np.array([1, 3, 1, 3]) @ np.array([np.arange(_GROUP) // 10**place % 10 for place in range(4)])
_READERS: Final[dict[Field, Callable[[str], GtinResult | None]]] = {
    Field.GTIN: normalize_gtin,
    Field.ISBN: normalize_isbn,
}


def is_odd_identifier(text: pl.Expr) -> pl.Expr:
    """Return which trimmed texts the kernel has to read."""
    return text.str.contains(_ODD_IDENTIFIER) | (text.str.len_bytes() > LONGEST_IDENTIFIER)


def read_odd_identifiers(values: pl.Series, faults: pl.Series, odd: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return identifiers and faults, with the odd ones read by the kernel."""
    places = odd.arg_true()
    found: list[str] = []
    found_faults: list[int] = []
    for text in values.gather(places).to_list():
        try:
            value, fault = clean_identifier(text), 0
        except Rejected as refusal:
            value, fault = "", NUMBER[refusal.fault]
        found.append(value)
        found_faults.append(fault)
    return replace_at(values, places, found), replace_at(faults, places, found_faults)


class GtinReader:
    """Reads the columns of GTINs of one file, in order of preference.

    Attributes:
        inputs: the expressions that `check` needs.
    """

    def __init__(self, columns: Sequence[tuple[Field, pl.Expr]]) -> None:
        self._fields = [field for field, _ in columns]
        self.inputs = [look for place, (field, text) in enumerate(columns) for look in _inputs(place, field, text)]
        places = range(len(columns))
        number = pl.lit("")
        for wanted in ("is_kept", "is_valid"):
            for place in reversed(places):
                number = pl.when(f"gtin_{place}_{wanted}").then(f"gtin_{place}").otherwise(number)
        given, valid = (
            pl.any_horizontal(pl.lit(value=False), *(f"gtin_{place}_{what}" for place in places))
            for what in ("is_given", "is_valid")
        )
        self._choice = [number.alias("gtin"), (given & ~valid).alias("bad_gtin")]

    def check(self, cells: pl.DataFrame) -> list[pl.Series]:
        """Return of each column the numbers, which are valid, which are kept, and which rows have one."""
        return [series for place, field in enumerate(self._fields) for series in _check(place, field, cells)]

    def choose(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add `gtin`, the first valid number or else the first to keep, and `bad_gtin`, if there is none valid."""
        return rows.with_columns(self._choice)


def _inputs(place: int, field: Field, text: pl.Expr) -> list[pl.Expr]:
    is_number = text.str.contains(_DIGITS)
    if field is Field.ISBN:
        is_number &= text.str.len_bytes() != _ISBN10_LENGTH
    return [
        text.alias(f"gtin_{place}"),
        is_number.alias(f"gtin_{place}_is_number"),
        text.cast(pl.Int64, strict=False).fill_null(0).alias(f"gtin_{place}_number"),
        text.str.len_bytes().is_in(list(GTIN_LENGTHS)).alias(f"gtin_{place}_has_length"),
        (text != "").alias(f"gtin_{place}_is_given"),
    ]


def _check(place: int, field: Field, cells: pl.DataFrame) -> list[pl.Series]:
    def read_one(text: str) -> str | None:
        """Return null for an empty cell, and an empty text for what cannot be a number."""
        result = _READERS[field](text)
        return None if result is None else result.kept or ""

    texts, given = cells[f"gtin_{place}"], cells[f"gtin_{place}_is_given"]
    is_number, numbers = cells[f"gtin_{place}_is_number"], cells[f"gtin_{place}_number"]
    kept = is_number & cells[f"gtin_{place}_has_length"] & (numbers > 0)
    valid = kept & _has_check_digit(numbers)
    places = (given & ~is_number).arg_true()
    if len(places):
        singly = map_values(texts.gather(places), read_one, pl.String())
        digits = singly.fill_null("")
        texts = replace_at(texts, places, digits)
        kept = replace_at(kept, places, digits != "")
        valid = replace_at(valid, places, _has_check_digit(digits.cast(pl.Int64, strict=False).fill_null(0)))
        given = replace_at(given, places, singly.is_not_null())
    return [texts, valid.alias(f"gtin_{place}_is_valid"), kept.alias(f"gtin_{place}_is_kept"), given]


def _has_check_digit(column: pl.Series) -> pl.Series:
    """Return which numbers have a weighted sum that is a multiple of ten; zero is not a number."""
    numbers = column.to_numpy()
    rest = np.abs(numbers)
    total = np.zeros(len(rest), np.int64)
    while rest.any():
        total += _SUMS[rest % _GROUP]
        rest = rest // _GROUP
    return pl.Series((total % 10 == 0) & (numbers > 0))
