"""Where records and fields end, computed for megabytes at a time.

There is a bit for each byte, sixty-four to a word. A byte is inside quotes if the number of quotes up to it is odd, and
a few shifts compute that parity for all bytes at once. This is valid if quotes occur only where fields begin and end;
the survey reports whether they do.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
Positions: TypeAlias = NDArray[np.int64]

_ONE = np.uint64(1)
_SIX = np.uint64(6)
_WORD_BITS = 64
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_LINE_FEED, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, slots=True)
class Survey:
    """Records and their delimiters.

    Attributes:
        ends: position of the line feed that ends each record.
        lines: number of line feeds before each record.
        line_count: number of line feeds up to the last end.
        delimiters: how many each record has outside quotes.
        is_regular: quotes occur only where a field begins or ends. If not, nothing else here can be trusted.
    """

    ends: Positions
    lines: Positions
    line_count: int
    delimiters: Positions
    is_regular: bool


def survey(data: bytes, delimiter: bytes, *, quoted: bool) -> Survey:
    """Locate the records that end within the data."""
    values = np.frombuffer(data, np.uint8)
    delimiters = _pack(values == delimiter[0])
    feed_bits = _pack(values == _LINE_FEED)
    feeds = _positions(feed_bits)
    if not quoted or b'"' not in data:
        return _surveyed(feeds, np.arange(len(feeds)), delimiters, is_regular=True)
    quotes = _pack(values == _QUOTE)
    inside = _odd_so_far(quotes)
    places = feeds.astype(np.uint64)
    is_inside = ((inside[places >> _SIX] >> (places & np.uint64(_WORD_BITS - 1))) & _ONE).astype(bool)
    which = np.flatnonzero(~is_inside)
    bounds = delimiters | feed_bits
    # Searching for one byte is much faster than for two.
    returns = _pack(values == _RETURN) & _next_bits(feed_bits) if b"\r" in data else np.zeros_like(bounds)
    is_regular = _are_regular(quotes, inside, bounds, returns, len(data) - 1)
    return _surveyed(feeds, which, delimiters & ~inside, is_regular=is_regular)


def lines_alone(data: bytes, delimiter: bytes) -> tuple[Positions, Positions]:
    """Return the positions of line feeds, and the numbers of the lines that are not records by themselves."""
    values = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(values == _LINE_FEED)
    quotes = np.flatnonzero(values[: feeds[-1] + 1] == _QUOTE) if len(feeds) else np.empty(0, np.int64)
    line = np.searchsorted(feeds, quotes)
    counts = np.bincount(line, minlength=len(feeds))
    place = np.arange(len(quotes)) - (np.cumsum(counts) - counts)[line]
    before = np.where(quotes > 0, values[quotes - 1], _LINE_FEED)
    after = values[quotes + 1]
    after = np.where((after == _RETURN) & (values[np.minimum(quotes + 2, len(values) - 1)] == _LINE_FEED), 10, after)
    neighbor = np.where(place % 2 == 0, before, after)
    is_wrong = ~np.isin(neighbor, (_LINE_FEED, _QUOTE, delimiter[0]))
    return feeds, np.union1d(line[is_wrong], np.flatnonzero(counts % 2))


def _surveyed(feeds: Positions, which: Positions, delimiters: Words, *, is_regular: bool) -> Survey:
    ends = feeds[which]
    lines = np.concatenate(([0], which[:-1] + 1)) if len(which) else which
    # How many delimiters precede each end.
    places = ends.astype(np.uint64)
    word = places >> _SIX
    totals = np.concatenate(([0], np.cumsum(np.bitwise_count(delimiters), dtype=np.int64)))
    within = delimiters[word] & ((_ONE << (places & np.uint64(_WORD_BITS - 1))) - _ONE)
    passed = totals[word] + np.bitwise_count(within)
    return Survey(
        ends=ends,
        lines=lines,
        line_count=int(which[-1]) + 1 if len(which) else 0,
        delimiters=np.diff(passed, prepend=0),
        is_regular=is_regular,
    )


def _are_regular(quotes: Words, inside: Words, bounds: Words, returns: Words, last: int) -> bool:
    """Return whether quotes occur only where fields begin or end. Two in a row are one in text."""
    opening, closing = quotes & inside, quotes & ~inside
    before = bounds | closing
    may_open = before << _ONE
    may_open[1:] |= before[:-1] >> np.uint64(_WORD_BITS - 1)
    may_open[0] |= _ONE
    may_close = _next_bits(bounds | opening | returns)
    # What follows the last byte is not known yet.
    may_close[last // _WORD_BITS] |= _ONE << np.uint64(last % _WORD_BITS)
    wrong = (opening & ~may_open) | (closing & ~may_close)
    return not wrong.any()


def _pack(mask: NDArray[np.bool_]) -> Words:
    packed = np.packbits(mask, bitorder="little")
    padding = -len(packed) % 8
    return np.pad(packed, (0, padding)).view(np.uint64) if padding or not len(packed) else packed.view(np.uint64)


def _positions(words: Words) -> Positions:
    """Return where bits are set; fast if few are."""
    filled = np.flatnonzero(words)
    bits = np.unpackbits(words[filled].view(np.uint8), bitorder="little")
    found = np.flatnonzero(bits.view(np.bool_))
    return filled[found // _WORD_BITS] * _WORD_BITS + found % _WORD_BITS


def _odd_so_far(words: Words) -> Words:
    """Set each bit for which the number of ones up to and including it is odd."""
    parity = words.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        parity ^= parity << np.uint64(shift)
    whole = np.bitwise_xor.accumulate(parity >> np.uint64(_WORD_BITS - 1))
    parity[1:] ^= whole[:-1] * _ALL
    return parity


def _next_bits(words: Words) -> Words:
    """Set each bit to that of the byte after."""
    moved = words >> _ONE
    moved[:-1] |= words[1:] << np.uint64(_WORD_BITS - 1)
    return moved
