"""Stock words and column names are compared without what people change about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.headers import normalize_header
from harvester.kernel.stock import IN_STOCK, OUT_OF_STOCK, STOCK_WORDS, Stock, read_stock

IN = [
    "y", "Y", "yes", "true", "TRUE", "1", "in stock", "instock", "InStock", "in_stock", "In-Stock", " IN STOCK ",
    "available", "low stock", "lowstock", "low_stock", "limited", "Limited", "LimitedAvailability",
    "limited availability", "in\u00a0stock", "in\u2011stock",
]  # fmt: skip
OUT = [
    "n", "N", "no", "false", "0", "out of stock", "outofstock", "OutofStock", "out_of_stock", "unavailable",
    "backordered", "backorder", "BackOrder", "back-order", "preorder", "PreOrder", "pre-order", "pre order",
    "sold out", "soldout", "SoldOut", "discontinued",
]  # fmt: skip
UNKNOWN = [None, "", " ", "-", "maybe", "17", "17+ in stock", "in stock soon", "2", "00", "https://schema.org/InStock"]


@pytest.mark.parametrize(
    ("text", "stock"),
    [(text, Stock.IN) for text in IN]
    + [(text, Stock.OUT) for text in OUT]
    + [(text, Stock.UNKNOWN) for text in UNKNOWN],
)
def test_a_stock_text_is_looked_up(text, stock):
    assert read_stock(text) is stock


def test_only_out_is_not_in_stock():
    assert [stock.in_stock for stock in (Stock.IN, Stock.OUT, Stock.UNKNOWN)] == [True, False, True]


def test_the_tables_are_in_the_form_that_is_compared_and_do_not_contradict():
    assert not IN_STOCK & OUT_OF_STOCK
    assert all(normalize_header(word) == word for word in STOCK_WORDS)


@pytest.mark.parametrize(
    "header",
    ["Current Price", "current_price", "CURRENT-PRICE", "CurrentPrice", " current  price ", "\ufeffCurrent\u00a0Price"],
)
def test_a_column_has_one_name_however_it_is_written(header):
    assert normalize_header(header) == "currentprice"


@given(st.text())
def test_normalizing_a_header_again_changes_nothing(text):
    assert normalize_header(normalize_header(text)) == normalize_header(text)


@given(st.sampled_from(sorted(STOCK_WORDS)), st.data())
def test_case_blanks_underscores_and_hyphens_never_matter(word, data):
    noise = st.text(st.sampled_from(" _-\t\u00a0"), max_size=2)
    spelled = "".join(data.draw(noise) + data.draw(st.sampled_from([c, c.upper()])) for c in word) + data.draw(noise)
    assert read_stock(spelled) is STOCK_WORDS[word]


@given(st.text())
def test_any_text_has_an_answer(text):
    assert read_stock(text) in Stock


@pytest.mark.timeout(60)
def test_a_megabyte_is_unknown():
    assert read_stock("in stock " * 120_000) is Stock.UNKNOWN
    assert normalize_header(" _-" * 400_000) == ""
