"""Which columns mean what in the feeds of Impact: the tables of section 7.1.1 of the specification, name by name."""

from itertools import pairwise

import pytest
from tests.support.feeds import MOMENT, counts, feed, parse

from harvester.feeds.networks import network_named
from harvester.feeds.reader import ParseSettings
from harvester.feeds.reader.binding import bind
from harvester.kernel.network import Field

#: Names of one meaning, the one that counts first in front; a group has the spellings of one name.
COLUMNS = {
    Field.SALE_PRICE: [["SalePrice", "Sale Price"], ["CurrentPrice", "Current Price"]],
    Field.LIST_PRICE: [["Price", "price"], ["ListPrice", "List Price"]],
    Field.ORIGINAL_PRICE: [["OriginalPrice", "Original Price"], ["MSRP"], ["RetailPrice", "Retail Price"]],
    Field.TITLE: [["Name"], ["ProductName", "Product Name"], ["title", "Title"]],
    Field.URL: [["Url", "URL", "url"], ["ProductURL", "Product URL"], ["Link", "link"]],
    Field.SKU: [["SKU", "sku"], ["MerchantSKU", "merchant_sku"], ["ProductSKU"], ["Unique Merchant SKU"]],
    Field.ITEM_ID: [["CatalogItemId", "catalogItemId"], ["ItemId", "item_id"]],
    Field.BRAND: [["Manufacturer", "manufacturer"], ["Brand", "brand"]],
    Field.IMAGE_URL: [["ImageUrl", "ImageURL", "Image URL"], ["Image"], ["PrimaryImage"]],
    Field.DESCRIPTION: [["Description"], ["ProductDescription", "Product Description"]],
    Field.CATEGORY: [["Category", "category"], ["ProductCategory"], ["Product Type"]],
    Field.CURRENCY: [["Currency", "currency"], ["CurrencyCode"]],
    Field.CURRENCY_SYMBOL: [["CurrencySymbol", "Currency Symbol", "currency_symbol"]],
    Field.STOCK: [["StockAvailability", "Stock Availability"], ["Availability"], ["InStock"]],
    Field.GTIN: [["Gtin", "GTIN", "gtin"], ["UPC", "upc"], ["EAN", "ean"]],
    Field.ISBN: [["ISBN"]],
}
NAMES = [(name, field) for field, groups in COLUMNS.items() for group in groups for name in group]
RANKED = [(better[0], worse[0], field) for field, groups in COLUMNS.items() for better, worse in pairwise(groups)]
IMPACT = network_named("impact")


@pytest.mark.parametrize(("name", "field"), NAMES)
def test_a_column_is_bound_as_in_the_table(name, field):
    assert bind([name], IMPACT).columns == {field: (0,)}


@pytest.mark.parametrize(("better", "worse", "field"), RANKED)
def test_the_column_that_is_first_in_the_table_counts(better, worse, field):
    assert bind([worse, better], IMPACT).columns[field][0] == 1


def only(cells, **settings):
    """The only row of a feed with these cells and those that every row needs, and the warnings."""
    whole = {"SKU": "S-1", "Name": "Federal 9mm 50rd", "Url": "https://shop.example/p", "Currency": "USD", **cells}
    whole = {name: text for name, text in whole.items() if text is not None}
    frame, report = parse(feed(list(whole.values()), header=list(whole)), **settings)
    return frame.to_dicts(), counts(report)


#: Row of the table -> cells, what a customer pays, what it cost before.
PRICES = {
    "1, sale price": ({"SalePrice": "15.99"}, "15.99", None),
    "1, current price": ({"Current Price": "15.99"}, "15.99", None),
    "1 before 2": ({"Price": "18.99", "SalePrice": "15.99"}, "15.99", "18.99"),
    "2, price": ({"Price": "18.99"}, "18.99", None),
    "2, list price": ({"ListPrice": "18.99"}, "18.99", None),
    "2, because the sale price is empty": ({"SalePrice": "", "Price": "18.99"}, "18.99", None),
    "3, with a price": ({"Price": "18.99", "MSRP": "21.99"}, "18.99", "21.99"),
    "3 before 4": ({"SalePrice": "15.99", "Price": "18.99", "RetailPrice": "21.99"}, "15.99", "21.99"),
    "3 is never what a customer pays": ({"SalePrice": "", "Price": "", "OriginalPrice": "21.99"}, None, None),
    "4, because 3 is empty": ({"SalePrice": "15.99", "Price": "18.99", "Original Price": ""}, "15.99", "18.99"),
    "4, list price": ({"Current Price": "15.99", "List Price": "18.99"}, "15.99", "18.99"),
}


@pytest.mark.parametrize(("cells", "now", "before"), PRICES.values(), ids=PRICES)
def test_the_current_price_and_the_original_price(cells, now, before):
    rows, found = only(cells)
    if now is None:
        assert (rows, found) == ([], {"MISSING_PRICE": 1})
        return
    [row] = rows
    shown = [row["amount"], row["original_amount"]]
    assert [amount and f"{amount:.2f}" for amount in shown] == [now, before]


#: What stands in the column -> the number that is kept, and whether people are warned of it.
TRADE_NUMBERS = [
    ("020892215511", "020892215511", False),
    ("0 20892-21551 1", "020892215511", False),
    ("020892215513", "020892215513", True),  # the table's own example, whose check digit is wrong
    ("0 20892-21551 3", "020892215513", True),
    ("20892215511", None, True),
    ("N/A", None, True),
    ("", None, False),
]


@pytest.mark.parametrize("name", ["Gtin", "UPC", "EAN", "ISBN"])
@pytest.mark.parametrize(("written", "kept", "is_bad"), TRADE_NUMBERS)
def test_a_trade_number_keeps_its_leading_zeros(name, written, kept, is_bad):
    [row], found = only({"Price": "18.99", name: written})
    assert (row["gtin"], found) == (kept, {"BAD_GTIN": 1} if is_bad else {})


def test_a_valid_trade_number_is_preferred_to_an_invalid_one():
    [row], found = only({"Price": "18.99", "Gtin": "020892215513", "EAN": "4006381333931"})
    assert (row["gtin"], found) == ("4006381333931", {})


@pytest.mark.parametrize(
    ("column", "default", "currency"),
    [("CAD", "EUR", "CAD"), (None, "EUR", "EUR"), ("", "EUR", "EUR"), (None, None, None)],
)
def test_the_currency_comes_from_the_row_or_the_feed_and_is_never_guessed(column, default, currency):
    settings = ParseSettings(moment=MOMENT, default_currency=default)
    rows, found = only({"Price": "18.99", "Currency": column}, settings=settings)
    assert [row["currency"] for row in rows] == ([currency] if currency else [])
    assert found == ({} if currency else {"MISSING_CURRENCY": 1})
