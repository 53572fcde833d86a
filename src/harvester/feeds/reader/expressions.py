"""Polars helpers that all columns share: kernel functions over columns, patterns, and the choice between columns."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import polars as pl

from harvester.kernel.text import BLANKS


def map_values(texts: pl.Series, function: Callable[[str], Any], dtype: pl.DataType) -> pl.Series:
    """Apply a function to each text, calling it once per distinct text."""
    if not len(texts):
        return pl.Series(dtype=dtype)
    distinct = texts.unique()
    values = pl.Series([function(text) for text in distinct.to_list()], dtype=dtype)
    return texts.replace_strict(distinct, values, return_dtype=dtype)


def replace_at(column: pl.Series, places: pl.Series, values: Sequence[Any] | pl.Series) -> pl.Series:
    """Return the column with other values in some places."""
    if not len(places):
        return column
    return column.clone().scatter(places, pl.Series(values, dtype=column.dtype))


def full_match(pattern: str) -> str:
    """Return a pattern that matches only whole texts. Patterns of the kernel are written for this."""
    return rf"\A(?:{pattern})\z"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words; the longest first, so that none hides another."""
    escaped = (pl.escape_regex(word) for word in sorted(words, key=lambda word: (-len(word), word)))
    return f"(?:{'|'.join(escaped)})"


def collect(rows: pl.LazyFrame) -> pl.DataFrame:
    """Collect a plan over columns in memory.

    Over a few thousand rows, query planning costs more than it saves, and the streaming engine does not help.
    """
    return rows.collect(engine="in-memory", optimizations=pl.QueryOptFlags.none())


def trimmed(text: pl.Expr) -> pl.Expr:
    return text.str.strip_chars(BLANKS)


def first_filled(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Return the first non-blank text of each row, trimmed; empty if there is none."""
    *others, last = map(trimmed, columns)
    for column in reversed(others):
        last = pl.when(column != "").then(column).otherwise(last)
    return last


def first_given(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Return the first non-blank text of each row, as written."""
    *others, last = columns
    for column in reversed(others):
        last = pl.when(trimmed(column) != "").then(column).otherwise(last)
    return last


#: No digits except zeros, whatever surrounds them.
_ZERO: Final = full_match("[^1-9]*0[^1-9]*")


def first_nonzero(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Return the first price of each row that is neither blank nor zero, as written; otherwise the first non-blank."""
    price = first_given(columns)
    for column in reversed(columns[1:] and columns):
        price = pl.when((trimmed(column) != "") & ~column.str.contains(_ZERO)).then(column).otherwise(price)
    return price
