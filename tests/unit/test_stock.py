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
    "5", "17", "2", "1,000", "1.000", "5.00", "0.5", "+5", "10+", ">10", "> 10", ">0", "over 20", "more than 5",
    "5 in stock", "17+ in stock", ">10 in stock", "In Stock (5)", "In Stock: 5", "in stock - 5", "Only 3 left in stock",
    "5 pcs", "qty=4", "Stock: 12", "3 units available", "In Stock!", "In stock.", '"In Stock"', "[in stock]",
    "In Stock: Yes", "In stock? Yes", "available: true", "is in stock", "currently available", "available online",
    "https://schema.org/InStock", "http://schema.org/InStock", "https://www.schema.org/LimitedAvailability/",
    "schema.org/InStock", "schema:InStock", "OnlineOnly", "\u2713", "\u2714\ufe0f In Stock", "back in stock", "\uff15",
    "Availability: In Stock", "Stock status: available", "stock: limited",
]  # fmt: skip
OUT = [
    "n", "N", "no", "false", "0", "out of stock", "outofstock", "OutofStock", "out_of_stock", "unavailable",
    "backordered", "backorder", "BackOrder", "back-order", "preorder", "PreOrder", "pre-order", "pre order",
    "sold out", "soldout", "SoldOut", "discontinued",
    "-1", "- 1", "\u22121", "-0", "00", "0.0", "0,00", "-12.5", "0 in stock", "-1 in stock", "In Stock: -1",
    "In stock: - 1", "In Stock (0)", "In stock: 0 pcs", "stock: 0", "Out of Stock.", "Sold Out!", "OOS", "No stock",
    "not available", "Not Available Online", "no longer available", "currently unavailable", "not in stock",
    "notinstock", "none left", "isn't available", "is not currently available", "temporarily out of stock",
    "Temporarily_Out_Of_Stock", "This item is currently unavailable", "Sorry, this item is no longer available.",
    "In Stock: No", "in stock - no", "Available: false", "\u2717", "\u274c In Stock", "on order", "Coming soon",
    "available on backorder", "available for pre-order", "in stock soon", "Out of stock (5)",
    "Out of stock until 12.05.2024", "Preorder, ships 2024-05-01", "Discontinued by manufacturer", "-out of stock-",
    "https://schema.org/OutOfStock", "http://www.schema.org/SoldOut", "schema.org/PreOrder", "schema:BackOrder",
    "Availability: out of stock", "Stock status: sold out", "Stock not available", "stock: no longer available",
    "Preorder available", "backorder available",
]  # fmt: skip
#: Nothing here may be taken for in stock, because somebody could mean the opposite.
UNKNOWN = [
    None, "", " ", "-", "maybe", "n/a", "none", "?", "in stock?", "in stock -", "- in stock", "In Stock*",
    "2024-05-01", "12.05.2024", "12.05.", "5/1/2024", "20240501", "available 12.05", "back in stock 05.06", "May 2024",
    "5-", "5 -", "5-10", "(5)", "1e3", "0x5", "x5", "$5", "5%", "<5", ">=0", "0+", "up to 5", "no more than 5",
    "less than 3", "2 days", "5 sold", "not sold out", "never out of stock", "out of stock: no", "not discontinued",
    "almost sold out", "in stock, not available", "in store only", "https://schema.org/InStoreOnly", "yes/no",
    "https://shop.example/InStock", "https://schema.org/", "\u2753", "in stock " * 20,
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "stock"),
    [(text, Stock.IN) for text in IN]
    + [(text, Stock.OUT) for text in OUT]
    + [(text, Stock.UNKNOWN) for text in UNKNOWN],
)
def test_a_stock_text_is_read_as_people_read_it(text, stock):
    assert read_stock(text) is stock


def test_the_tables_do_not_contradict_each_other():
    assert not IN_STOCK & OUT_OF_STOCK
    assert all(normalize_header(word) == word for word in STOCK_WORDS)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{}", "{} in stock", "In Stock: {}", "In stock ({})", "qty {}"]))
def test_a_number_above_zero_is_in_stock_and_any_other_is_out(number, said):
    if not 19000101 <= number <= 20991231:  # a day written in digits
        assert read_stock(said.format(number)) is (Stock.IN if number > 0 else Stock.OUT)


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
def test_case_blanks_marks_and_hyphens_between_words_never_matter(word, data):
    noise = st.text(st.sampled_from(" _-.,!\t\u00a0"), max_size=2)
    spelled = "".join(data.draw(noise) + data.draw(st.sampled_from([c, c.upper()])) for c in word) + data.draw(noise)
    # A hyphen at either end may be a minus or a dash without the rest of the sentence.
    assert read_stock(spelled.strip("- \t\u00a0")) is STOCK_WORDS[word]


@given(st.text())
def test_any_text_has_an_answer(text):
    assert read_stock(text) in Stock


@pytest.mark.timeout(60)
def test_a_megabyte_is_unknown():
    assert read_stock("in stock " * 120_000) is Stock.UNKNOWN
    assert normalize_header(" _-" * 400_000) == ""
