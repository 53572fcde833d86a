"""Files that no partner should send: each is refused with a reason or read around, and the good rows are exact.

The inputs of `FAULTS.md` 13 and 14, as far as parsing decides them.
"""

import codecs
import json
import subprocess
import sys

import pytest
from tests.support.feeds import HEADER, MOMENT, cents, counts, feed, lines, parse, quoted_feed, row

from harvester.feeds.reader import ParseLimits, ParseSettings
from harvester.feeds.reader.errors import (
    EmptyFile,
    HeaderUnreadable,
    HtmlInsteadOfCsv,
    RowCountLimitExceeded,
    TruncatedFile,
    UniqueProductLimitExceeded,
)

GOOD = [row(number) for number in range(1999, 2009)]
EXACT = {f"S-{number}": number for number in range(1999, 2009)}
#: More than the imports and a few blocks need, and less than any of the inputs below would take if it were held.
MOST_MEGABYTES = 250


def among_good(*bad, write=feed, **options):
    """Good rows, the bad ones behind the fifth, and what they come to."""
    return parse(write(*GOOD[:5], *bad, *GOOD[5:]), **options)


def only_cost(bad, code, **options):
    """One bad row in line 7 is refused under that code, and all others are exact."""
    frame, report = among_good(bad, **options)
    assert cents(frame) == EXACT
    assert counts(report) == {code: 1}
    assert lines(report) == {code: [7]}
    assert report.rows_read == len(GOOD) + 1


def run_endless(kind, amount):
    command = [sys.executable, "-m", "tests.support.endless_feed", kind, str(amount)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=250).stdout)


# 13


def test_an_empty_file():
    with pytest.raises(EmptyFile):
        parse(b"")


def test_a_header_alone():
    frame, report = parse(feed())
    assert (frame.height, report.rows_read) == (0, 0)


def test_an_error_page():
    with pytest.raises(HtmlInsteadOfCsv, match="503 Service Unavailable"):
        parse(b"<html><head><title>503 Service Unavailable</title></head></html>")


@pytest.mark.parametrize("name", ["Name", "Url", "Price"])
def test_a_renamed_column(name):
    header = ["renamed" if column == name else column for column in HEADER]
    with pytest.raises(HeaderUnreadable, match="'renamed'"):
        parse(feed(*GOOD, header=header))


def test_swapped_columns():
    swapped = [{"Price": "Url", "Url": "Price"}.get(column, column) for column in HEADER]
    frame, report = parse(feed(*GOOD, header=swapped))
    assert frame.height == 0
    assert counts(report) == {"INVALID_URL": len(GOOD)}


@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_half_a_file(write):
    whole = write(*GOOD)
    with pytest.raises(TruncatedFile):
        parse(whole[: len(whole) // 2])


# 14


@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_nul_bytes(write):
    only_cost(row(1, Name="a\0b"), "BAD_ENCODING", write=write)
    only_cost(row(1, SKU="\0"), "BAD_ENCODING", write=write)


def test_a_byte_order_mark():
    frame, report = parse(feed(*GOOD).encode("utf-8-sig"))
    assert (cents(frame), counts(report), report.binding.header[0]) == (EXACT, {}, "SKU")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_utf16(encoding, mark):
    frame, report = parse((mark + feed(*GOOD, row(1, Name="\u20ac\u00e9\u65e5"))).encode(encoding))
    assert cents(frame) == EXACT | {"S-1": 1}
    assert (frame["title"][-1], report.encoding) == ("\u20ac\u00e9\u65e5", encoding)


def test_latin1():
    frame, report = parse(feed(*GOOD, row(1, Name="Gr\u00f6\u00dfe \u00bd")).encode("latin-1"))
    assert cents(frame) == EXACT | {"S-1": 1}
    assert (frame["title"][-1], report.encoding) == ("Gr\u00f6\u00dfe \u00bd", "cp1252")


def test_bytes_that_are_no_text():
    data = feed(*GOOD[:5], row(1, Name="\u00e9\u00e9\u00e9"), row(2, Name="?"), *GOOD[5:]).encode()
    frame, report = parse(data.replace(b"\t?\t", b"\t\xff\t"))
    assert cents(frame) == EXACT | {"S-1": 1}
    assert lines(report) == {"BAD_ENCODING": [8]}


@pytest.mark.parametrize("name", ['"open', 'op"en', 'open"', '"'])
def test_an_unclosed_quote_without_quoting(name):
    frame, report = among_good(row(1, Name=name))
    assert cents(frame) == EXACT | {"S-1": 1}
    assert (frame["title"][5], counts(report)) == (name, {})


def test_an_unclosed_quote_with_quoting():
    rows = quoted_feed(*GOOD[:5], row(1), *GOOD[5:]).splitlines(keepends=True)
    rows[6] = rows[6].replace('Thing 1"', "Thing 1")
    frame, report = parse("".join(rows))
    assert (cents(frame), lines(report)) == (EXACT, {"RAGGED_ROW": [7]})


def test_an_unclosed_quote_at_the_end_of_the_file():
    with pytest.raises(TruncatedFile, match="line 11"):
        parse(quoted_feed(*GOOD).rstrip('\n"') + '","never closed')


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["field", "lines"])
def test_a_field_of_a_gigabyte_takes_no_memory(kind):
    size = {"field": 1024, "lines": 100}[kind] * 1024 * 1024
    found = run_endless(kind, size)
    assert found["cents"] == [101, 103]
    assert found["lines"]["FIELD_TOO_LONG"] == [3]
    assert found["peak_mb"] < MOST_MEGABYTES


@pytest.mark.slow
def test_half_a_million_rows_take_hardly_more_memory_than_a_tenth_of_them():
    few, many = run_endless("rows", 100_000), run_endless("rows", 500_000)
    assert many["cents"] == [499_998, 499_999, 500_000]
    assert many["peak_mb"] < min(few["peak_mb"] * 1.25, MOST_MEGABYTES)


def test_a_row_of_ten_thousand_columns():
    only_cost(row(1) + ["x"] * 10_000, "RAGGED_ROW")


def test_a_file_of_ten_thousand_columns():
    filling = ["x"] * (10_000 - len(HEADER))
    header = [*HEADER, *(f"c{number}" for number in range(len(filling)))]
    frame, report = parse(feed(*([*cells, *filling] for cells in GOOD), header=header))
    assert (cents(frame), counts(report)) == (EXACT, {})


@pytest.mark.parametrize("length", [100_001, 1_500_000])
@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_a_field_that_is_too_long(length, write):
    only_cost(row(1, Name="x" * length), "FIELD_TOO_LONG", write=write)


def test_a_field_as_long_as_may_be():
    frame, _ = among_good(row(1, Name="x" * 100_000))
    assert cents(frame) == EXACT | {"S-1": 1}


@pytest.mark.parametrize("price", ["NaN", "nan", "Infinity", "-inf", "1e309", "1e3", "0x10", "-5.00", "(5.00)", "5-"])
def test_numbers_that_are_no_prices(price):
    only_cost(row(1, Price=price), "INVALID_PRICE")


@pytest.mark.parametrize(
    ("price", "value"),
    [("1.299,00", 129_900), ("1,299.00", 129_900), ("$1,299.00", 129_900), ("1 299,00", 129_900), ("19,99", 1999)],
)
def test_prices_of_other_countries_are_exact(price, value):
    frame, report = among_good(row(1, Price=price))
    assert (cents(frame), counts(report)) == (EXACT | {"S-1": value}, {})


@pytest.mark.parametrize("price", ["1.299", "1,299", "12.345"])
def test_a_price_with_two_readings_is_refused_unless_the_feed_says_which(price):
    only_cost(row(1, Price=price), "INVALID_PRICE")
    said = ParseSettings(moment=MOMENT, decimal_style=",")
    frame, _ = among_good(row(1, Price="1.299"), settings=said)
    assert cents(frame) == EXACT | {"S-1": 129_900}


def test_a_missing_currency():
    only_cost(row(1, Currency=""), "MISSING_CURRENCY")
    frame, _ = among_good(row(1, Currency=""), settings=ParseSettings(moment=MOMENT, default_currency="EUR"))
    assert frame.filter(frame["sku"] == "S-1")["currency"].to_list() == ["EUR"]


@pytest.mark.parametrize("currency", ["XXX", "Doubloons", "BTC"])
def test_an_unknown_currency(currency):
    only_cost(row(1, Currency=currency), "INVALID_CURRENCY")


def test_a_price_of_zero_is_withheld():
    only_cost(row(1, Price="0.00"), "PRICE_WITHHELD")


def test_duplicate_keys_the_last_valid_row_wins():
    again = [row(150, SKU="S-2000"), row(1, SKU="S-2000", Price=""), row(151, SKU="S-2001"), row(152, SKU="S-2001")]
    frame, report = parse(feed(*GOOD, *again))
    duplicates = report.duplicates
    assert duplicates.superseded.to_list() == [3, 4, 14]
    assert (duplicates.count, duplicates.products, duplicates.url_hash_products) == (3, len(GOOD), 0)
    assert duplicates.samples == [(3, 12), (4, 15), (14, 15)]
    kept = frame.filter(~frame["line"].is_in(duplicates.superseded.to_list()))
    assert cents(kept) == EXACT | {"S-2000": 150, "S-2001": 152}


def test_products_known_by_their_address_only_are_counted():
    _, report = parse(feed(row(1, SKU=""), row(2, SKU="n/a"), row(2, SKU=""), *GOOD))
    assert report.duplicates.url_hash_products == 2


@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_ragged_rows(write):
    for bad in (row(1)[:-1], [*row(1), ""], ["only"], row(1)[1:]):
        only_cost(bad, "RAGGED_ROW", write=write)


def test_too_many_rows():
    parse(feed(*GOOD), limits=ParseLimits(rows=len(GOOD)))
    with pytest.raises(RowCountLimitExceeded, match="more than 9 rows"):
        parse(feed(*GOOD), limits=ParseLimits(rows=len(GOOD) - 1))


def test_too_many_products():
    again = [row(1, SKU="S-2000")] * 5
    parse(feed(*GOOD, *again), limits=ParseLimits(products=len(GOOD)))
    with pytest.raises(UniqueProductLimitExceeded, match="10 products, more than the feed's limit of 9"):
        parse(feed(*GOOD, *again), limits=ParseLimits(products=len(GOOD) - 1))


def test_utf16_with_everything_wrong_at_once():
    rows = [*GOOD[:5], row(1, Name="a\0b"), row(2)[:-1], row(3, Price="NaN"), *GOOD[5:]]
    frame, report = parse(codecs.BOM_UTF16_LE + feed(*rows).encode("utf-16-le"), chunk=77)
    assert cents(frame) == EXACT
    assert lines(report) == {"BAD_ENCODING": [7], "RAGGED_ROW": [8], "INVALID_PRICE": [9]}
