"""Trade item numbers of many rows at once, exactly as `kernel.gtin` reads one."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.lookup import mapped, patched, whole
from harvester.kernel.gtin import GTIN_LENGTHS, GtinResult, normalize_gtin, normalize_isbn
from harvester.kernel.network import Field

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
        """Of each column the numbers, which of them are valid, which are kept, and where there is one at all."""
        return [series for place, field in enumerate(self._fields) for series in _checked(place, field, looked)]

    def work(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add `gtin`, the first valid number, else the first that can be kept, and `bad_gtin`, where none is valid."""
        return rows.with_columns(self._work)


def _working(count: int) -> list[pl.Expr]:
    number = pl.lit("")
    for wanted in ("is_kept", "is_valid"):
        for place in reversed(range(count)):
            number = pl.when(f"gtin_{place}_{wanted}").then(f"gtin_{place}").otherwise(number)
    given, valid = (_any(f"gtin_{place}_{what}" for place in range(count)) for what in ("is_given", "is_valid"))
    return [number.alias("gtin"), (given & ~valid).alias("bad_gtin")]


def _any(names: Iterable[str]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(value=False), *names)


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
    is_number, numbers = looked[f"gtin_{place}_is_number"], looked[f"gtin_{place}_number"]
    kept = is_number & looked[f"gtin_{place}_has_length"] & (numbers > 0)
    valid = kept & _has_check_digit(numbers)
    places = (given & ~is_number).arg_true()
    if len(places):
        singly = mapped(texts.gather(places), lambda text: _kept(_READERS[field](text)), pl.String())
        digits = singly.fill_null("")
        texts = patched(texts, places, digits)
        kept = patched(kept, places, digits != "")
        valid = patched(valid, places, _has_check_digit(digits.cast(pl.Int64, strict=False).fill_null(0)))
        given = patched(given, places, singly.is_not_null())
    return [texts, valid.alias(f"gtin_{place}_is_valid"), kept.alias(f"gtin_{place}_is_kept"), given]


def _kept(result: GtinResult | None) -> str | None:
    """Nothing for nothing, and an empty text for what can be no number."""
    return None if result is None else result.kept or ""


def _has_check_digit(column: pl.Series) -> pl.Series:
    """Which numbers end with the digit that makes their weighted sum a multiple of ten; zero is no number."""
    numbers = column.to_numpy()
    rest = np.abs(numbers)
    total = np.zeros(len(rest), np.int64)
    while rest.any():
        total += _SUMS[rest % _GROUP]
        rest = rest // _GROUP
    return pl.Series((total % 10 == 0) & (numbers > 0))
