"""The last valid row of a product in a file wins. Finding it takes a few bytes of memory per row.

Rows are passed on as they are read, so the superseded lines are known only at the end.
"""

from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.errors import UniqueProductLimitExceeded
from harvester.feeds.reader.expressions import collect
from harvester.feeds.reader.findings import MOST_SAMPLES
from harvester.kernel.identity import NUMBERS, IdentityType

#: Two hashes stand for an identity, of 64 and 32 bits. With the first alone, two of a million products would be taken
#: for the same one in every forty-millionth file.
_SEEDS: dict[int, type[np.generic]] = {0: np.uint64, 1: np.uint32}
#: Rows that fit into the memory reserved at the start; few files have more.
FIRST_ROWS = 1 << 20
_BY_URL = NUMBERS[IdentityType.URL_HASH]
#: Links that are kept as text, to show some of those that count as one product; the others are kept as hashes.
MOST_LINK_TEXTS = 10_000
#: Products whose links are shown.
COLLAPSED_SAMPLES = 10


class Superseded(NamedTuple):
    """A row that a later row of the same product replaces."""

    line: int
    by_line: int


class ShownRow(NamedTuple):
    """A valid row as shown in a sample, before redaction.

    Attributes:
        identity: type and value.
        row: identity, price and other known values, in one line.
    """

    identity: str
    row: str


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """The products of a whole file, and the rows that later rows replace.

    Attributes:
        products: number of products.
        url_hash_products: how many of them are identified by their address only.
        superseded: lines of the replaced rows, ascending.
        samples: the first of them.
        shown: line -> identity and row of a sample, filled in when the rows are staged.
        collapsed: number of products identified by their address whose links differ in parameters that are shown: each
            may be several products.
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
        """Number of replaced rows."""
        return len(self.superseded)


class _Column:
    """Values of all rows in a memory mapping, whose unused pages take no memory.

    On the heap, long-lived values would fragment the memory that large blocks use again and again.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = np.dtype(dtype)
        self._values = self._map(FIRST_ROWS)
        self._count = 0

    def _map(self, rows: int) -> NDArray[Any]:
        return np.frombuffer(mmap(-1, rows * self._dtype.itemsize), self._dtype)

    def add(self, values: NDArray[Any]) -> None:
        end = self._count + len(values)
        if end > len(self._values):
            more = self._map(2 * end)
            more[: self._count] = self.values
            self._values = more
        self._values[self._count : end] = values
        self._count = end

    @property
    def values(self) -> NDArray[Any]:
        return self._values[: self._count]


class ProductTracker:
    """Records which products were seen, and in which lines."""

    def __init__(self, most_products: int) -> None:
        self._most = most_products
        self._lines = _Column(np.uint32)
        self._by_url = _Column(np.bool_)
        self._keys = [_Column(dtype) for dtype in _SEEDS.values()]
        self._links: list[pl.DataFrame] = []
        self._texts_left = MOST_LINK_TEXTS

    def add(self, rows: pl.DataFrame, links: pl.DataFrame | None = None) -> None:
        """Add the valid rows of a block, and `rows.Rows.links`; blocks come in the order of the file."""
        identity = pl.struct("identity_type", "identity_value")
        hashes = collect(rows.lazy().select(identity.hash(seed).alias(str(seed)) for seed in _SEEDS))
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
        """Return the products and duplicates of the whole file.

        Raises:
            UniqueProductLimitExceeded: there are too many products.
        """
        key = self._keys[0].values
        if not _equals_next(np.sort(key)).any():
            # Most files have each product once, and then nothing has to be compared.
            self._check_limit(len(key))
            by_url = int(self._by_url.values.sum())
            superseded = pl.Series([], dtype=pl.Int64)
            return Duplicates(products=len(key), url_hash_products=by_url, superseded=superseded, samples=[])
        # A stable sort puts the rows of a product together and leaves them in the order of the file.
        order = np.argsort(key, kind="stable")  # mutant: duplicates-sorted
        is_lost = _equals_next(key[order])
        for other in self._keys[1:]:
            is_lost &= _equals_next(other.values[order])
        products = len(order) - int(is_lost.sum())
        self._check_limit(products)
        lines = self._lines.values[order]
        lost, winners = np.flatnonzero(is_lost), np.flatnonzero(~is_lost)
        first = lost[np.argsort(lines[lost])[:MOST_SAMPLES]]
        collapsed, links = self._collapsed()
        return Duplicates(
            products=products,
            url_hash_products=int(self._by_url.values[order[~is_lost]].sum()),
            superseded=pl.Series(np.sort(lines[is_lost]).astype(np.int64)),
            samples=[
                Superseded(int(lines[place]), int(lines[winners[np.searchsorted(winners, place)]])) for place in first
            ],
            collapsed=collapsed,
            collapsed_links=links,
        )

    def _check_limit(self, products: int) -> None:
        if products > self._most:
            raise UniqueProductLimitExceeded(
                f"The file has {products:,} products, more than the feed's limit of {self._most:,} (max_products). "
                "Nothing was changed. Check that it is the right file; if it is, raise the limit."
            )

    def _collapsed(self) -> tuple[int, tuple[tuple[str, ...], ...]]:
        """Return how many products have several links, and some of those links."""
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


def _equals_next(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.append(values[:-1] == values[1:], np.zeros(min(len(values), 1), bool))
