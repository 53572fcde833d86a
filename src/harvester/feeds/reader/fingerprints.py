"""Hashes of many rows at once, exactly as `kernel.signature` and `kernel.urls` compute one."""

from dataclasses import fields
from typing import Final

import polars as pl
import polars_hash  # noqa: F401 - registers the expressions `chash` and `nchash`

from harvester.feeds.reader.prices import AMOUNT
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.signature import DIGITS, Content, field_hash, field_seed

#: Field of `Content` -> column of the rows.
_COLUMN_OF: Final = {"image": "image_url"}


def sha256(texts: pl.Expr) -> pl.Expr:
    """64 hexadecimal digits."""
    return texts.chash.sha2_256()  # type: ignore[attr-defined]


def signature(currencies: frozenset[str]) -> pl.Expr:
    """Of rows with amount, currency, original_amount, in_stock and promotion, which may be empty but not null.

    The currencies are those that occur.
    """
    decimals = sorted({MINOR_UNITS[code] for code in currencies})
    text = pl.format(
        "{}|{}|{}|{}|{}",
        _amount_text("amount", decimals),
        "currency",
        _amount_text("original_amount", decimals).fill_null(""),
        pl.when("in_stock").then(pl.lit("in")).otherwise(pl.lit("out")),
        "promotion",
    )  # mutant: signature-parts
    return sha256(text).str.head(DIGITS)


def _amount_text(column: str, decimals: list[int]) -> pl.Expr:
    """The amount with exactly the decimals of its currency."""
    text = pl.col(column).cast(pl.String)
    chosen = text
    for count in decimals:
        shortened = text.str.head(-_superfluous(count))
        codes = [code for code, units in MINOR_UNITS.items() if units == count]
        chosen = (
            pl.when(pl.col("currency").is_in(codes)).then(shortened).otherwise(chosen) if decimals[1:] else shortened
        )
    return chosen


def _superfluous(decimals: int) -> int:
    """Characters to leave out at the end, the point included if there are no decimals."""
    return AMOUNT.scale - decimals + (decimals == 0)


def content_hash(columns: frozenset[str]) -> pl.Expr:
    """Of rows with these columns, whose texts may be empty but not null. Fields without a column are empty."""
    present: list[pl.Expr] = []
    absent = 0
    for place, field in enumerate(fields(Content)):
        column = _COLUMN_OF.get(field.name, field.name)
        if column in columns:
            present.append(pl.col(column).nchash.xxhash64(seed=field_seed(place)))  # type: ignore[attr-defined]
        else:
            absent += field_hash(place, None)
    return pl.sum_horizontal(*present, pl.lit(absent % 2**64, pl.UInt64)).reinterpret(signed=True)
