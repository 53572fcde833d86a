"""The catalogs that the demo sends: the same every time, and read as they are meant."""

import gzip

import pytest
from tests.support.feeds import cents, counts, parse

from harvester.cli.demo.catalog import ARRIVAL, FIRST, HARBOUR, LEAVER, SECOND, SHRUNK


@pytest.mark.parametrize("edition", [FIRST, SECOND, SHRUNK])
def test_every_product_is_read_at_its_price_and_the_one_without_a_price_is_refused(edition):
    frame, report = parse(gzip.decompress(edition.file()))
    assert cents(frame) == {product.sku: product.price for product in edition.products}
    assert counts(report) == {"PRICE_WITHHELD": 1}
    assert report.rows_read == len(edition.products) + 1
    assert frame["gtin"].null_count() == 0
    assert set(frame["currency"]) == {"EUR"}


def test_the_files_are_the_same_in_every_demo_and_no_two_look_alike_to_a_server():
    assert FIRST.file() == FIRST.file()
    assert len({len(edition.file()) for edition in (FIRST, SECOND, SHRUNK)}) == 3


def test_a_day_changes_some_prices_brings_one_product_and_takes_one():
    before, after = FIRST.amounts, SECOND.amounts
    assert after.keys() - before.keys() == {ARRIVAL.sku}
    assert before.keys() - after.keys() == {LEAVER.sku}
    changed = [product for product in SECOND.products if before.get(product.sku, product.amount) != product.amount]
    assert len(changed) == 323
    assert all(product.original == before[product.sku] * 100 for product in changed)


def test_the_other_shop_sells_a_part_of_the_same_goods_at_prices_of_its_own():
    frame, report = parse(HARBOUR.file(), network="google_merchant")
    assert dict(zip(frame["item_id"], frame["amount"], strict=True)) == HARBOUR.amounts
    assert counts(report) == {}
    theirs, _ = parse(gzip.decompress(FIRST.file()))
    shared = set(frame["gtin"]) & set(theirs["gtin"])
    assert len(shared) > 1_000
    assert len(shared) < theirs.height
