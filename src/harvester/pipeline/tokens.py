"""Search tokens of many products at once, exactly as the database's `offer_tokens` makes one.

The server's parser knows addresses, hyphenated words, numbers with signs and much more. Most titles have none of that,
only words between blanks, and for those a tsvector is written down in columns; the others are left to the server.
"""

from typing import Final
from uuid import UUID

import numpy as np
import polars as pl

from harvester.pipeline.parse.lookup import collected

#: ASCII words between characters that never belong to a token. Any other character may change what its neighbours mean.
_PLAIN: Final = r"""\A[A-Za-z0-9 ,()'"!#%*&]*\z"""
#: A number in scientific notation ends where its exponent does, whatever follows.
_POWER: Final = "[0-9][Ee][0-9]"
_WORD: Final = "[a-z0-9]+"
#: Characters; a tsvector keeps 255 places of a word at most, and shorter texts have fewer words.
_LONGEST: Final = 500
#: As in `offer_tokens`.
_LONGEST_NAME: Final = 200


def made_tokens(products: pl.DataFrame, source_id: UUID) -> pl.Series:
    """Of rows with title, brand and category: a tsvector as text, or null where the server has to make it."""
    rows = collected(products.lazy().select(_text(), _is_plain().alias("is_plain"), _names(source_id).alias("names")))
    words = rows["text"].str.to_lowercase().str.extract_all(_WORD)
    counts = words.list.len()
    told = words.explode(empty_as_null=False).drop_nulls() + ":" + pl.Series(_places(counts.to_numpy())).cast(pl.String)
    owner = pl.Series(np.repeat(np.arange(len(counts)), counts.to_numpy()))
    joined = (
        pl.DataFrame({"owner": owner, "word": told})
        .group_by("owner", maintain_order=True)
        .agg(pl.col("word").str.join(" "))
    )
    texts = pl.Series([None], dtype=pl.String).extend_constant(None, max(rows.height - 1, 0))
    texts = texts.scatter(joined["owner"], joined["word"]).fill_null("") if rows.height else texts.clear()
    return (texts + " " + rows["names"]).zip_with(rows["is_plain"], pl.Series([None], dtype=pl.String)).alias("tsv")


def _text() -> pl.Expr:
    return pl.concat_str(pl.col("title"), pl.lit(" "), pl.col("brand").fill_null("")).alias("text")


def _is_plain() -> pl.Expr:
    text = pl.concat_str(pl.col("title"), pl.lit(" "), pl.col("brand").fill_null(""))
    # Lower case is the server's own business outside ASCII.
    is_ascii = pl.col("category").fill_null("").str.contains(r"\A[ -~]*\z")
    return text.str.contains(_PLAIN) & ~text.str.contains(_POWER) & (text.str.len_bytes() <= _LONGEST) & is_ascii


def _names(source_id: UUID) -> pl.Expr:
    """Source, category and brand as words that no text has."""
    return pl.concat_str(
        pl.lit(f"'source:{source_id}'"), _name("category"), _name("brand"), separator=" ", ignore_nulls=True
    )


def _name(column: str) -> pl.Expr:
    value = pl.col(column).str.to_lowercase().str.head(_LONGEST_NAME)
    escaped = value.str.replace_all("\\", "\\\\", literal=True).str.replace_all("'", "''", literal=True)
    return pl.format(f"'{column}:{{}}'", escaped)


def _places(counts: np.ndarray) -> np.ndarray:
    """One, two, three and so on for the words of each text."""
    ends = np.cumsum(counts, dtype=np.int64)
    starts = np.repeat(ends - counts, counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - starts + 1
