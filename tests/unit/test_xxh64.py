"""The hash is the one that everybody else computes."""

import polars as pl
import polars_hash  # noqa: F401 - registers the expressions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.signature import xxh64


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_published_values_are_met(data, seed, expected):
    assert xxh64(data, seed) == expected


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=150), min_size=1), st.integers(0, 2**32))
def test_columns_hash_like_this(texts, seed):
    column = pl.DataFrame({"text": texts}).select(pl.col("text").nchash.xxhash64(seed=seed))["text"]
    assert column.to_list() == [xxh64(text.encode(), seed) for text in texts]
