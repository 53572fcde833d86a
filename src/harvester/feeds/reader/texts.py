"""Plain texts and identifiers of many rows at once."""

from collections.abc import Sequence
from typing import Final

import polars as pl

from harvester.feeds.reader.faults import NUMBER
from harvester.feeds.reader.lookup import one_of, patched, whole
from harvester.kernel.identity import LONGEST_IDENTIFIER, clean_identifier
from harvester.kernel.rejects import Rejected
from harvester.kernel.text import BLANKS, CONTROLS, WORDS_FOR_NOTHING

#: Identifiers that are more than a text without blanks at its ends.
_ODD_IDENTIFIER: Final = f"{CONTROLS}|(?i:{whole(one_of(WORDS_FOR_NOTHING))})"

#: No digit but zeros, whatever stands around them.
_ZERO: Final = whole("[^1-9]*0[^1-9]*")


def trimmed(text: pl.Expr) -> pl.Expr:
    """Without blanks at the ends."""
    return text.str.strip_chars(BLANKS)


def first_filled(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Of each row the first text that is not blank, trimmed; empty if there is none."""
    *others, last = map(trimmed, columns)
    for column in reversed(others):
        last = pl.when(column != "").then(column).otherwise(last)
    return last


def first_given(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Of each row the first text that is not blank, as it was written."""
    *others, last = columns
    for column in reversed(others):
        last = pl.when(trimmed(column) != "").then(column).otherwise(last)
    return last


def first_charged(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Of each row the first price that is neither blank nor zero, as it was written; failing that, the first given."""
    price = first_given(columns)
    for column in reversed(columns[1:] and columns):
        price = pl.when((trimmed(column) != "") & ~column.str.contains(_ZERO)).then(column).otherwise(price)
    return price


def is_odd_identifier(text: pl.Expr) -> pl.Expr:
    """Which trimmed texts have to be looked at one by one before they are identifiers."""
    return text.str.contains(_ODD_IDENTIFIER) | (text.str.len_bytes() > LONGEST_IDENTIFIER)


def read_odd_identifiers(values: pl.Series, faults: pl.Series, odd: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Identifiers and faults, with the odd ones read by the kernel."""
    places = odd.arg_true()
    singly = [_read_one(text) for text in values.gather(places).to_list()]
    found = [value for value, _ in singly]
    return patched(values, places, found), patched(faults, places, [fault for _, fault in singly])


def _read_one(text: str) -> tuple[str, int]:
    try:
        return clean_identifier(text), 0
    except Rejected as refusal:
        return "", NUMBER[refusal.fault]
