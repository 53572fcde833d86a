"""The last valid row of a product wins, over the whole file, with a few bytes for each row.

Rows are passed on as they are read, so what is superseded is known only at the end: the lines that lost.
"""

from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.errors import UniqueProductLimitExceeded
from harvester.feeds.reader.findings import MOST_SAMPLES
from harvester.feeds.reader.lookup import collected
from harvester.kernel.identity import NUMBERS, IdentityType

#: Two numbers stand for an identity, of 64 and of 32 bits. With the first alone, two of a million products would be
#: taken for the same in every forty millionth file.
_SEEDS: dict[int, type[np.generic]] = {0: np.uint64, 1: np.uint32}
#: Room that there is from the beginning; few files have more.
FIRST_ROWS = 1 << 20
_BY_URL = NUMBERS[IdentityType.URL_HASH]
#: Links that are kept as text, to show some of those that come to one product; all others are kept as a number.
MOST_LINK_TEXTS = 10_000
#: Products of which links are shown.
COLLAPSED_SAMPLES = 10


class Superseded(NamedTuple):
    """A row that a later row of the same product replaces."""

    line: int
    by_line: int


class ShownRow(NamedTuple):
    """A valid row as a sample shows it, before redaction.

    Attributes:
        identity: type and value.
        row: identity, price and what else is known, in one line.
    """

    identity: str
    row: str


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """What the whole file says about its products.

    Attributes:
        products: how many there are.
        url_hash_products: how many of them are known by their address only.
        superseded: lines of the rows that lost, ascending.
        samples: the first of them.
        shown: line -> identity and row of a sample, filled in when the rows are staged.
        collapsed: how many products that are known by their address have links that differ in parameters that are
            shown: those may be several products.
        collapsed_links: such links, without their scheme, of some of them.
    """

    products: int
    url_hash_products: int
    superseded: pl.Series
    samples: list[Superseded]
    shown: dict[int, ShownRow] = field(default_factory=dict)
    collapsed: int = 0
    collapsed_links: tuple[tuple[str, ...], ...] = ()

    @property
    def count(self) -> int:
        """How many rows lost."""
        return len(self.superseded)


class _Column:
    """Values of all rows, in memory of its own: pages that nothing was written to take no room.

    In the heap, what lives until the end would keep the room between it, which large blocks come and go in, from being
    used again.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = np.dtype(dtype)
        self._values = self._room(FIRST_ROWS)
        self._count = 0

    def _room(self, rows: int) -> NDArray[Any]:
        return np.frombuffer(mmap(-1, rows * self._dtype.itemsize), self._dtype)

    def add(self, values: NDArray[Any]) -> None:
        behind = self._count + len(values)
        if behind > len(self._values):
            more = self._room(2 * behind)
            more[: self._count] = self.values
            self._values = more
        self._values[self._count : behind] = values
        self._count = behind

    @property
    def values(self) -> NDArray[Any]:
        return self._values[: self._count]


class ProductTracker:
    """Remembers which products were seen, and in which lines."""

    def __init__(self, most_products: int) -> None:
        self._most = most_products
        self._lines = _Column(np.uint32)
        self._by_url = _Column(np.bool_)
        self._keys = [_Column(dtype) for dtype in _SEEDS.values()]
        self._links: list[pl.DataFrame] = []
        self._texts_left = MOST_LINK_TEXTS

    def add(self, rows: pl.DataFrame, links: pl.DataFrame | None = None) -> None:
        """Note the valid rows of a block, and `rows.Rows.links`; blocks come in the order of the file."""
        identity = pl.struct("identity_type", "identity_value")
        hashes = collected(rows.lazy().select(identity.hash(seed).alias(str(seed)) for seed in _SEEDS))
        for kept, column, dtype in zip(self._keys, hashes.iter_columns(), _SEEDS.values(), strict=True):
            kept.add(column.to_numpy().astype(dtype))
        self._lines.add(rows["line"].to_numpy())
        self._by_url.add((rows["identity_type"] == _BY_URL).to_numpy())
        if links is not None:
            by_url = pl.lit(_BY_URL, pl.Int8).alias("identity_type")
            text = pl.when(pl.int_range(pl.len()) < self._texts_left).then("link")
            key = pl.struct(by_url, "identity_value").hash(0).alias("key")
            self._links.append(links.select(key, pl.col("link").hash(0).alias("link_key"), text))
            self._texts_left -= min(self._texts_left, links.height)

    def finish(self) -> Duplicates:
        """What the whole file says.

        Raises:
            UniqueProductLimitExceeded: there are too many products.
        """
        key = self._keys[0].values
        if not _equals_next(np.sort(key)).any():
            return self._all_different(len(key))
        order, is_lost = self._compared(key)
        products = len(order) - int(is_lost.sum())
        self._refuse_more_than_allowed(products)
        lines = self._lines.values[order]
        collapsed, links = self._collapsed()
        return Duplicates(
            products=products,
            url_hash_products=int(self._by_url.values[order[~is_lost]].sum()),
            superseded=pl.Series(np.sort(lines[is_lost]).astype(np.int64)),
            samples=_samples(lines, is_lost),
            collapsed=collapsed,
            collapsed_links=links,
        )

    def _all_different(self, products: int) -> Duplicates:
        """Most files name no product twice, and for those nothing has to be put in order."""
        self._refuse_more_than_allowed(products)
        by_url = int(self._by_url.values.sum())
        none = pl.Series([], dtype=pl.Int64)
        return Duplicates(products=products, url_hash_products=by_url, superseded=none, samples=[])

    def _collapsed(self) -> tuple[int, tuple[tuple[str, ...], ...]]:
        """How many products have several links, and some of those links."""
        if not self._links:
            return 0, ()
        rows = pl.Series("key", self._keys[0].values).value_counts(name="rows")
        products = (
            pl.concat(self._links)
            .group_by("key", maintain_order=True)
            .agg(pl.col("link_key").n_unique().alias("links"), pl.len(), pl.col("link").drop_nulls().unique())
            .join(rows, on="key", maintain_order="left")
            # A row that is not among the links has the address without any of these parameters.
            .filter(pl.col("links") + (pl.col("rows") > pl.col("len")).cast(pl.UInt32) > 1)
        )
        shown = products.filter(pl.col("link").list.len() > 0)["link"].head(COLLAPSED_SAMPLES)
        return products.height, tuple(tuple(sorted(links)[:3]) for links in shown.to_list())

    def _refuse_more_than_allowed(self, products: int) -> None:
        if products > self._most:
            raise UniqueProductLimitExceeded(
                f"The file has {products:,} products, and the feed may have {self._most:,} (max_products). Nothing of "
                "it is used. Check that it is the right file; if it is, raise the limit."
            )

    def _compared(self, key: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """An order in which the rows of a product stand together, the last one behind, and which of them lost."""
        # A stable sort leaves the rows of a product in the order of the file.
        order = np.argsort(key, kind="stable")  # mutant: duplicates-sorted
        is_lost = _equals_next(key[order])
        for other in self._keys[1:]:
            is_lost &= _equals_next(other.values[order])
        return order, is_lost


def _equals_next(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.append(values[:-1] == values[1:], np.zeros(min(len(values), 1), bool))


def _samples(lines: NDArray[np.uint32], is_lost: NDArray[np.bool_]) -> list[Superseded]:
    """The first lines that lost, of lines in which those of a product stand together, the last one the winner."""
    lost = np.flatnonzero(is_lost)
    first = lost[np.argsort(lines[lost])[:MOST_SAMPLES]]
    winners = np.flatnonzero(~is_lost)
    return [Superseded(int(lines[place]), int(lines[winners[np.searchsorted(winners, place)]])) for place in first]
