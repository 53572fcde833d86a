"""Scalar functions of the kernel applied to columns: once for each value that occurs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl


def mapped(texts: pl.Series, function: Callable[[str], Any], dtype: pl.DataType) -> pl.Series:
    """The function of each text, called once for each text that occurs."""
    if not len(texts):
        return pl.Series(dtype=dtype)
    occurring = texts.unique()
    values = pl.Series([function(text) for text in occurring.to_list()], dtype=dtype)
    return texts.replace_strict(occurring, values, return_dtype=dtype)


def patched(column: pl.Series, places: pl.Series, values: Sequence[Any] | pl.Series) -> pl.Series:
    """The column with other values at some places."""
    if not len(places):
        return column
    return column.clone().scatter(places, pl.Series(values, dtype=column.dtype))


def whole(pattern: str) -> str:
    """A pattern that matches only whole texts. Patterns of the kernel are written for this."""
    return rf"\A(?:{pattern})\z"


def one_of(words: Iterable[str]) -> str:
    """A pattern that matches any of the words; the longest first, so that none hides another."""
    escaped = (pl.escape_regex(word) for word in sorted(words, key=lambda word: (-len(word), word)))
    return f"(?:{'|'.join(escaped)})"


def collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """The frame that a plan over columns in memory comes to.

    Over some thousand rows, planning costs more than it saves, and the streaming engine brings nothing.
    """
    return rows.collect(engine="in-memory", optimizations=pl.QueryOptFlags.none())
