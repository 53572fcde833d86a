"""Prices as shops write them, each with what a person reads: a table that was written without the reader.

Each line of `tests/fixtures/price_strings.tsv` has a text with JSON's escapes, the feed's default currency, and the
price, or the code under which the text is refused.
"""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from tests.support.feeds import MOMENT, feed, parse

from harvester.feeds.reader import ParseSettings
from harvester.kernel.money import parse_price
from harvester.kernel.rejects import Rejected

TABLE = Path(__file__).parent.parent / "fixtures" / "price_strings.tsv"
HEADER = ["SKU", "Name", "Url", "Price"]


def table():
    """Text, default currency and outcome of each line."""
    for line in TABLE.read_text("ascii").splitlines()[1:]:
        text, default, outcome = line.split("\t")
        yield json.loads(f'"{text}"'), default or None, outcome


def read(text, default):
    try:
        return str(parse_price(text, default_currency=default))
    except Rejected as refusal:
        return refusal.code.value


def test_every_price_string_reads_as_a_person_reads_it():
    strings = list(table())
    assert len(strings) > 1000
    different = [(text, default, outcome, read(text, default)) for text, default, outcome in strings]
    assert [one for one in different if one[2] != one[3]] == []


@pytest.mark.parametrize("default", ["USD", "EUR", "GBP", None])
def test_price_strings_read_the_same_in_a_file(default):
    strings = [(text, outcome) for text, said, outcome in table() if said == default and not set(text) & set('\t\n"')]
    rows = [[f"S-{at}", "x", "https://shop.example/", text] for at, (text, _) in enumerate(strings)]
    said = ParseSettings(moment=MOMENT, default_currency=default)
    frame, report = parse(feed(*rows, header=HEADER), settings=said, encoding="utf-8")
    skus = [f"S-{at}" for at in range(len(strings))]
    prices = {sku: outcome.split() for sku, (_, outcome) in zip(skus, strings, strict=True) if outcome[0].isdigit()}
    read_in_file = {sku: (amount, code) for sku, amount, code in frame.select("sku", "amount", "currency").iter_rows()}
    assert read_in_file == {sku: (Decimal(amount), code) for sku, (amount, code) in prices.items()}
    assert report.findings.counts == Counter(outcome for _, outcome in strings if not outcome[0].isdigit())
