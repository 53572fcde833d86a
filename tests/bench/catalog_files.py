"""Catalogs of a made-up shop: the same seed makes the same rows, and each case is a small change to them."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from tests.bench.seeding.words import BRANDS, COLOURS, MODELS, SIZES, THINGS

#: As partners compress.
LEVEL = 6
COLUMNS = (
    *("Unique Merchant SKU", "Product Name", "Product URL", "Image URL", "Current Price", "Original Price"),
    *("Currency", "Stock Availability", "Gtin", "MPN", "Manufacturer", "Category", "Product Description"),
)
_WORDS = (
    *("light", "durable", "soft", "daily", "classic", "washed", "padded", "recycled", "reinforced", "breathable"),
    *("cotton", "leather", "steel", "glass", "wool", "bamboo", "canvas", "rubber", "ceramic", "linen"),
    *("with", "for", "from", "and", "under", "over", "made", "tested", "designed", "finished"),
    *("pocket", "handle", "seam", "collar", "base", "cover", "strap", "buckle", "lining", "sole"),
)
#: Words of a description; about 150 characters.
_LENGTH = 22


class Catalog:
    """The rows of a shop."""

    def __init__(self, rows: int, seed: int = 1) -> None:
        self._chance = np.random.default_rng(seed)
        self._seed = seed
        self.frame = self._made(rows)

    def _made(self, rows: int) -> pl.DataFrame:
        number = pl.Series(np.arange(rows))
        brand, model, colour, size = (self._drawn(words, rows) for words in (BRANDS, MODELS, COLOURS, SIZES))
        kind = self._chance.integers(0, len(THINGS), rows)
        thing, category = (pl.Series([entry[place] for entry in THINGS]).gather(kind) for place in (0, 1))
        cents = pl.Series(self._chance.integers(500, 50_000, rows))
        words = [self._drawn(_WORDS, rows) for _ in range(_LENGTH)]
        made = pl.DataFrame(
            {"n": number, "brand": brand, "model": model, "colour": colour, "size": size, "cents": cents}
        )
        page = pl.format("{}-{}-{}", pl.lit(self._seed), pl.col("model").str.to_lowercase(), "n")
        return made.with_columns(thing=thing, category=category, page=page).select(
            pl.format("SKU-{}-{}", pl.lit(self._seed), pl.col("n") + 10_000_000).alias(COLUMNS[0]),
            pl.format("{} {} {} {}, {}, {}", "brand", "model", "thing", "n", "colour", "size").alias(COLUMNS[1]),
            pl.format(
                "https://shop.example/p/{}?color={}&utm_source=impact&utm_medium=affiliate&utm_campaign=c{}",
                "page", pl.col("colour").str.to_lowercase().str.replace_all(" ", "+"), pl.col("n") % 97,
            ).alias(COLUMNS[2]),
            pl.format("https://shop.example/images/{}.jpg", "page").alias(COLUMNS[3]),
            _money(pl.col("cents")).alias(COLUMNS[4]),
            pl.when(pl.col("n") % 5 > 0).then(pl.lit("")).otherwise(_money(pl.col("cents") * 5 // 4)).alias(COLUMNS[5]),
            pl.lit("USD").alias(COLUMNS[6]),
            pl.when(pl.col("n") % 17 > 0).then(pl.lit("in stock")).otherwise(pl.lit("sold out")).alias(COLUMNS[7]),
            _gtin(number).alias(COLUMNS[8]),
            pl.format("MP-{}", "n").alias(COLUMNS[9]),
            pl.col("brand").alias(COLUMNS[10]),
            pl.col("category").alias(COLUMNS[11]),
            pl.concat_str(words, separator=" ").alias(COLUMNS[12]),
        )  # fmt: skip

    def _drawn(self, words: tuple[str, ...], rows: int) -> pl.Series:
        return pl.Series(words).gather(self._chance.integers(0, len(words), rows))


def _gtin(number: pl.Series) -> pl.Series:
    """Thirteen digits of the range for examples, with their check digit."""
    body = 952 * 10**9 + number.cast(pl.Int64)
    odd = sum(body // 10**place % 10 for place in range(0, 12, 2))
    even = sum(body // 10**place % 10 for place in range(1, 12, 2))
    return (body * 10 + (10 - (3 * odd + even) % 10) % 10).cast(pl.String)


def _money(cents: pl.Expr) -> pl.Expr:
    return pl.format("{}.{}", cents // 100, (cents % 100).cast(pl.String).str.zfill(2))


def _cheaper(every: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Every so manieth price is a cent and two percent lower."""
    cents = (pl.col(COLUMNS[4]).str.replace(".", "", literal=True).cast(pl.Int64) * 49) // 50 - 1

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        chosen = pl.int_range(pl.len()) % every == 0
        return frame.with_columns(pl.when(chosen).then(_money(cents)).otherwise(COLUMNS[4]).alias(COLUMNS[4]))

    return change


def _other_titles(frame: pl.DataFrame) -> pl.DataFrame:
    chosen = pl.int_range(pl.len()) % 2 == 0
    title = pl.col(COLUMNS[1])
    return frame.with_columns(pl.when(chosen).then(title + " (new)").otherwise(title).alias(COLUMNS[1]))


def _longer_by_a_byte(frame: pl.DataFrame) -> pl.DataFrame:
    """A blank behind one description: another file with the same content."""
    description = pl.col(COLUMNS[12])
    first = pl.int_range(pl.len()) == 0
    return frame.with_columns(pl.when(first).then(description + " ").otherwise(description).alias(COLUMNS[12]))


def _without_a_fifth(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.int_range(pl.len()) % 5 != 4)


#: What each case does to the catalog that the one before left.
CHANGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "cold": lambda frame: frame,
    "unchanged": _longer_by_a_byte,
    "changed5": _cheaper(20),
    "changed100": _cheaper(1),
    "heartbeat": _longer_by_a_byte,
    "titles50": _other_titles,
    "missing20": _without_a_fifth,
}


def write_all(directory: Path, rows: int, seed: int = 1) -> dict[str, Path]:
    """The file of each case, compressed."""
    frame = Catalog(rows, seed).frame
    paths = {}
    for case, change in CHANGES.items():
        frame = change(frame)
        paths[case] = write(frame, directory / f"{case}-{rows}-{seed}.csv.gz")
    return paths


def write(frame: pl.DataFrame, path: Path) -> Path:
    """Compressing takes longer than most cases; what was written before is the same."""
    if path.exists():
        return path
    with gzip.open(path, "wb", compresslevel=LEVEL) as file:
        frame.write_csv(file)
    return path
