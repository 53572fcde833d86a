"""The form in which rows leave the reader, with their identities and hashes.

Hashes are exactly those that `kernel.signature` and `kernel.urls` compute for one row.
"""

from dataclasses import fields
from functools import lru_cache
from typing import Final

import polars as pl
import polars_hash  # noqa: F401 - registers the expressions `chash` and `nchash`

from harvester.feeds.reader.expressions import collect
from harvester.feeds.reader.prices import AMOUNT
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.identity import NUMBERS, IdentityType
from harvester.kernel.signature import DIGITS, Content, field_hash, field_seed

#: The columns of a row. Missing texts are null.
SCHEMA: Final = pl.Schema(
    {
        "line": pl.Int64(),
        "identity_type": pl.Int8(),
        "identity_value": pl.String(),
        "item_id": pl.String(),
        "sku": pl.String(),
        "gtin": pl.String(),
        "mpn": pl.String(),
        "url_hash": pl.String(),
        "title": pl.String(),
        "url": pl.String(),
        "tracked_url": pl.String(),
        "image_url": pl.String(),
        "brand": pl.String(),
        "category": pl.String(),
        "description": pl.String(),
        "amount": AMOUNT,
        "currency": pl.String(),
        "original_amount": AMOUNT,
        "promotion": pl.String(),
        "in_stock": pl.Boolean(),
        "content_hash": pl.Int64(),
        "signature": pl.String(),
    }
)
#: The columns that are compared with stored products. The others are content.
ROW_COLUMNS: Final = (
    *("line", "identity_type", "identity_value", "content_hash", "amount", "currency", "original_amount"),
    *("promotion", "in_stock", "signature"),
)
_OPTIONAL: Final = (
    *("item_id", "sku", "gtin", "mpn", "tracked_url", "image_url", "brand", "category", "description", "promotion"),
)
_BY_ITEM_ID: Final = NUMBERS[IdentityType.NETWORK_ITEM_ID]
_BY_SKU: Final = NUMBERS[IdentityType.SKU]
BY_URL: Final = NUMBERS[IdentityType.URL_HASH]
#: Field of `Content` -> column of the rows.
_COLUMN_OF: Final = {"image": "image_url"}


def finish(rows: pl.DataFrame) -> pl.DataFrame:
    """Add identities and hashes; return the rows in the columns of `SCHEMA`."""
    present = frozenset(name for name in _OPTIONAL if name in rows.columns)
    spares = frozenset(name for name in ("item_id", "sku") if f"{name}_spare" in rows.columns)
    finished = rows.lazy()
    for step in _steps(present, spares, frozenset(rows["price_currency"].unique().to_list())):
        finished = finished.with_columns(step)
    return collect(finished.select(SCHEMA.names()))


@lru_cache(maxsize=256)
def _steps(present: frozenset[str], spares: frozenset[str], currencies: frozenset[str]) -> list[list[pl.Expr]]:
    """Return the steps for rows with some of the optional columns and prices in these currencies.

    Spare identifiers fill empty cells only after identities are made, so that they are content and nothing else.
    """
    by_item, by_sku = pl.col("item_id") != "", pl.col("sku") != ""
    identity_type = pl.when(by_item).then(_BY_ITEM_ID).when(by_sku).then(_BY_SKU).otherwise(BY_URL)
    # mutant: identity-value
    identity_value = pl.when(by_item).then("item_id").when(by_sku).then("sku").otherwise("url_hash")
    return [
        [
            _sha256(pl.col("identity")).alias("url_hash"),
            pl.col("price_currency").alias("currency"),
            *(pl.lit("").alias(name) for name in _OPTIONAL if name not in present),
        ],
        [
            identity_type.cast(pl.Int8).alias("identity_type"),
            identity_value.alias("identity_value"),
            *(pl.when(pl.col(name) != "").then(name).otherwise(f"{name}_spare").alias(name) for name in sorted(spares)),
        ],
        [
            _content_hash(present | {"title", "url", "url_hash"}).alias("content_hash"),
            _signature(currencies).alias("signature"),
        ],
        [
            pl.when(pl.col(name) != "").then(pl.col(name)) if name in present else pl.lit(None, pl.String).alias(name)
            for name in _OPTIONAL
        ],
    ]


def _sha256(texts: pl.Expr) -> pl.Expr:
    """Return 64 hexadecimal digits."""
    return texts.chash.sha2_256()  # type: ignore[attr-defined]


def _signature(currencies: frozenset[str]) -> pl.Expr:
    """Return the price signature of rows in these currencies, whose promotion may be empty but not null."""
    decimals = sorted({MINOR_UNITS[code] for code in currencies})
    text = pl.format(
        "{}|{}|{}|{}|{}",
        _amount_text("amount", decimals),
        "currency",
        _amount_text("original_amount", decimals).fill_null(""),
        pl.when("in_stock").then(pl.lit("in")).otherwise(pl.lit("out")),
        "promotion",
    )  # mutant: signature-parts
    return _sha256(text).str.head(DIGITS)


def _amount_text(column: str, decimals: list[int]) -> pl.Expr:
    """Return the amount with exactly the decimals of its currency."""
    text = pl.col(column).cast(pl.String)
    chosen = text
    for count in decimals:
        # Without decimals the point is left out too.
        shortened = text.str.head(-(AMOUNT.scale - count + (count == 0)))
        codes = [code for code, units in MINOR_UNITS.items() if units == count]
        chosen = (
            pl.when(pl.col("currency").is_in(codes)).then(shortened).otherwise(chosen) if decimals[1:] else shortened
        )
    return chosen


def _content_hash(columns: frozenset[str]) -> pl.Expr:
    """Return the content hash of rows with these columns, whose texts may be empty but not null."""
    present: list[pl.Expr] = []
    absent = 0
    for place, field in enumerate(fields(Content)):
        column = _COLUMN_OF.get(field.name, field.name)
        if column in columns:
            present.append(pl.col(column).nchash.xxhash64(seed=field_seed(place)))  # type: ignore[attr-defined]
        else:
            absent += field_hash(place, None)
    return pl.sum_horizontal(*present, pl.lit(absent % 2**64, pl.UInt64)).reinterpret(signed=True)
