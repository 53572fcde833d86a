"""Trade item numbers of many rows at once, exactly as `kernel.gtin` reads one."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.kernel.gtin import GTIN_LENGTHS, GtinResult, normalize_gtin, normalize_isbn
from harvester.kernel.network import Field
from harvester.pipeline.parse.lookup import mapped, patched, whole

_DIGITS: Final = whole("[0-9]{1,14}")
_ISBN10_LENGTH: Final = 10
_GROUP: Final = 10_000


def _weighted_sums() -> NDArray[np.int64]:
    """Of four digits each: the sum that goes into the check digit, the last one counted once, its neighbour thrice."""
    numbers = np.arange(_GROUP)
    digits = [numbers // 10**place % 10 for place in range(4)]
    return digits[0] + 3 * digits[1] + digits[2] + 3 * digits[3]


_SUMS: Final = _weighted_sums()
_READERS: Final[dict[Field, Callable[[str], GtinResult | None]]] = {
    Field.GTIN: normalize_gtin,
    Field.ISBN: normalize_isbn,
}


class GtinReader:
    """Reads the columns of trade item numbers of one file, the most telling first."""

    def __init__(self, columns: Sequence[tuple[Field, pl.Expr]]) -> None:
        self._fields = [field for field, _ in columns]
        self._looks = [look for place, (field, text) in enumerate(columns) for look in _looks(place, field, text)]
        self._work = _working(len(columns))

    def looks(self) -> list[pl.Expr]:
        """What to see about the numbers before anything is done with them."""
        return self._looks

    def checked(self, looked: pl.DataFrame) -> list[pl.Series]:
        """Of each column the numbers, which of them are valid, and where there is one at all."""
        return [series for place, field in enumerate(self._fields) for series in _checked(place, field, looked)]

    def work(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add `gtin`, the first valid number or nothing, and `bad_gtin`, where there are only others."""
        return rows.with_columns(self._work)


def _working(count: int) -> list[pl.Expr]:
    number = pl.lit("")
    for place in reversed(range(count)):
        number = pl.when(f"gtin_{place}_is_valid").then(f"gtin_{place}").otherwise(number)
    given = pl.any_horizontal(pl.lit(value=False), *(f"gtin_{place}_is_given" for place in range(count)))
    return [number.alias("gtin"), (given & (number == "")).alias("bad_gtin")]


def _looks(place: int, field: Field, text: pl.Expr) -> list[pl.Expr]:
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


def _checked(place: int, field: Field, looked: pl.DataFrame) -> list[pl.Series]:
    texts, given = looked[f"gtin_{place}"], looked[f"gtin_{place}_is_given"]
    is_number = looked[f"gtin_{place}_is_number"]
    sound = pl.Series(_has_check_digit(looked[f"gtin_{place}_number"].to_numpy()))
    valid = is_number & looked[f"gtin_{place}_has_length"] & sound
    places = (given & ~is_number).arg_true()
    if len(places):
        singly = mapped(texts.gather(places), lambda text: _value(_READERS[field](text)), pl.String())
        texts = patched(texts, places, singly.fill_null(""))
        valid = patched(valid, places, (singly != "").fill_null(value=False))
        given = patched(given, places, singly.is_not_null())
    return [texts, valid.alias(f"gtin_{place}_is_valid"), given]


def _value(result: GtinResult | None) -> str | None:
    """Nothing for nothing, and an empty text for a number that is not valid."""
    if result is None:
        return None
    return result.value if result.valid else ""


def _has_check_digit(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which numbers end with the digit that makes their weighted sum a multiple of ten; zero is no number."""
    rest = np.abs(numbers)
    total = np.zeros(len(rest), np.int64)
    while rest.any():
        total += _SUMS[rest % _GROUP]
        rest = rest // _GROUP
    return (total % 10 == 0) & (numbers > 0)
