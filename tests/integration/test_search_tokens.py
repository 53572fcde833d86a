"""Search tokens that are made in columns equal those that the server makes, letter for letter."""

import random
from uuid import UUID

import polars as pl
import pytest
from tests.support.dirty_feeds import NASTY, TITLES
from tests.support.tables import rows

from harvester.pipeline.tokens import made_tokens

SOURCE = UUID("01900000-0000-7000-8000-000000000001")
#: What plain titles consist of, with what comes close to numbers in it.
PLAIN = "aBcEe x  0159 ,()'\"!#%*&"
ROWS = 4_000
_DIFFERENT = """
SELECT t, b, c, v FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS n (t, b, c, v)
WHERE v IS NOT NULL AND v::tsvector <> offer_tokens(%s, t, b, c)
"""


def frame(*products):
    return pl.DataFrame(products, schema=dict.fromkeys(("title", "brand", "category"), pl.String), orient="row")


def differing(products):
    tokens = made_tokens(products, SOURCE)
    columns = [products[name].to_list() for name in products.columns]
    return rows(_DIFFERENT, *columns, tokens.to_list(), SOURCE)


def text(chance, letters, most):
    return "".join(chance.choices(letters, k=chance.randint(1, most))).strip() or "x"


@pytest.mark.parametrize("letters", [PLAIN, PLAIN + NASTY], ids=["plain", "nasty"])
def test_they_are_what_the_server_makes(database, letters):
    chance = random.Random(1)
    made = [
        (text(chance, letters, 60), *(chance.choice([None, text(chance, letters, 30)]) for _ in range(2)))
        for _ in range(ROWS)
    ]
    made += [(title, "Brand", "Sporting Goods > Ammo") for title in TITLES]
    assert differing(frame(*made)) == []


@pytest.mark.parametrize(
    ("title", "is_made"),
    [
        ("Alder Rain Jacket 4711, forest green (set of 2)", True),
        ("9mm 50rd", True),
        ("T-Shirt", False),
        ("1e5", False),
        ("Café", False),
        ("3.5 mm", False),
        ("x " * 251, False),
    ],
)
def test_only_plain_titles_are_made_in_columns(title, is_made):
    tokens = made_tokens(frame((title, "Brand", None), ("Other", None, None)), SOURCE)
    assert [token is not None for token in tokens] == [is_made, True]


def test_a_frame_without_rows_has_no_tokens():
    assert made_tokens(frame(), SOURCE).to_list() == []


@pytest.mark.parametrize("products", [[("!!!", None, None)], [("((", "**", "it's \\ o'clock"), ("a", "b", "c" * 300)]])
def test_titles_without_words_are_found_by_their_names_alone(database, products):
    assert made_tokens(frame(*products), SOURCE).null_count() == 0
    assert differing(frame(*products)) == []
