"""Identities and hashes of the rows that are valid, and the form in which rows leave parsing."""

from functools import lru_cache
from typing import Final

import polars as pl

from harvester.feeds.reader.fingerprints import content_hash, sha256, signature
from harvester.feeds.reader.lookup import collected
from harvester.feeds.reader.prices import AMOUNT
from harvester.kernel.identity import NUMBERS, IdentityType

#: What a row comes to. Texts that are missing are null.
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
#: What is needed of a row to compare it with what is known. The rest is its content.
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


def finished(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with identities and hashes, in the form that is promised."""
    present = frozenset(name for name in _OPTIONAL if name in rows.columns)
    spares = frozenset(name for name in ("item_id", "sku") if f"{name}_spare" in rows.columns)
    finished = rows.lazy()
    for step in _finishing(present, spares, frozenset(rows["price_currency"].unique().to_list())):
        finished = finished.with_columns(step)
    return collected(finished.select(SCHEMA.names()))


@lru_cache(maxsize=256)
def _finishing(present: frozenset[str], spares: frozenset[str], currencies: frozenset[str]) -> list[list[pl.Expr]]:
    """Steps to identities and hashes, over rows with some of the optional columns and prices in these currencies.

    Spare identifiers take the empty places when identities are made, so that they are part of the content alone.
    """
    by_item, by_sku = pl.col("item_id") != "", pl.col("sku") != ""
    identity_type = pl.when(by_item).then(_BY_ITEM_ID).when(by_sku).then(_BY_SKU).otherwise(BY_URL)
    # mutant: identity-value
    identity_value = pl.when(by_item).then("item_id").when(by_sku).then("sku").otherwise("url_hash")
    return [
        [
            sha256(pl.col("identity")).alias("url_hash"),
            pl.col("price_currency").alias("currency"),
            *(pl.lit("").alias(name) for name in _OPTIONAL if name not in present),
        ],
        [
            identity_type.cast(pl.Int8).alias("identity_type"),
            identity_value.alias("identity_value"),
            *(pl.when(pl.col(name) != "").then(name).otherwise(f"{name}_spare").alias(name) for name in sorted(spares)),
        ],
        [
            content_hash(present | {"title", "url", "url_hash"}).alias("content_hash"),
            signature(currencies).alias("signature"),
        ],
        [
            pl.when(pl.col(name) != "").then(pl.col(name)) if name in present else pl.lit(None, pl.String).alias(name)
            for name in _OPTIONAL
        ],
    ]
