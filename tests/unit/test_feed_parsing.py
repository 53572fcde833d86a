"""Parsing: one iterator, one report."""

import os
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest
from tests.support.feeds import HEADER, MOMENT, cents, counts, feed, lines, parse, quoted_feed, row

from harvester.feeds.networks import network_named
from harvester.feeds.reader import ParseLimits, ParseSettings, Parsing, duplicates, file_chunks, parse_file
from harvester.feeds.reader.duplicates import ProductTracker
from harvester.feeds.reader.errors import RowCountLimitExceeded
from harvester.kernel.network import Field
from harvester.kernel.stock import UnknownStock

SETTINGS = ParseSettings(moment=MOMENT)


def many(count):
    return [row(number) for number in range(1, count + 1)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block", [300, 5_000, 10**6])
@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_rows_come_in_the_order_of_the_file_however_it_is_cut(threads, block, write):
    frame, report = parse(write(*many(500)), threads=threads, block_bytes=block)
    assert frame["line"].to_list() == list(range(2, 502))
    assert cents(frame) == {f"S-{number}": number for number in range(1, 501)}
    assert (report.rows_read, report.rows_valid, report.duplicates.products) == (500, 500, 500)


def test_a_file_is_read_and_the_bytes_are_counted(tmp_path: Path):
    path = tmp_path / "feed.txt"
    path.write_text(feed(*many(50)))
    parsing = parse_file(path, network_named("impact"), SETTINGS)
    assert sum(frame.height for frame in parsing) == 50
    assert parsing.bytes_read == path.stat().st_size
    assert b"".join(file_chunks(path, 7)) == path.read_bytes()


def test_findings_are_counted_exactly_and_sampled_from_the_first():
    rows = [row(number, Name="" if number % 2 else "x") for number in range(1, 401)]
    _, report = parse(feed(*rows), block_bytes=700)
    samples = report.findings.samples["MISSING_TITLE"]
    assert counts(report) == {"MISSING_TITLE": 200}
    assert [sample.line for sample in samples] == list(range(2, 102, 2))


def test_an_error_in_the_middle_reaches_the_reader_and_leaves_no_thread():
    with pytest.raises(RowCountLimitExceeded):
        parse(feed(*many(500)), limits=ParseLimits(rows=400), block_bytes=300)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("parse")]


def test_a_reader_may_stop_early():
    frames = iter(Parsing([feed(*many(500)).encode()], network_named("impact"), SETTINGS, block_bytes=300))
    assert next(frames).height
    frames.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("parse")]


def test_a_moment_needs_its_offset():
    with pytest.raises(ValueError, match="offset"):
        ParseSettings(moment=datetime(2025, 1, 1))  # noqa: DTZ001 - that is the mistake


@pytest.mark.parametrize("room", [1, 100, 1000])
def test_products_are_recognized_however_many_there_are(monkeypatch, room):
    monkeypatch.setattr("harvester.feeds.reader.duplicates.FIRST_ROWS", room)
    _, report = parse(feed(*many(500), *many(300)), block_bytes=300)
    assert report.duplicates.products == 500
    assert report.duplicates.superseded.to_list() == list(range(2, 302))


def test_a_tracker_without_rows_has_no_products():
    duplicates = ProductTracker(10).finish()
    assert (duplicates.products, duplicates.count, duplicates.samples) == (0, 0, [])


@pytest.mark.parametrize(
    ("cells", "cents_now", "cents_before"),
    [
        ({"Sale Price": "15.99", "Price": "18.99"}, 1599, 1899),
        ({"Sale Price": "0.00", "Price": "18.99"}, 1899, None),
        ({"Sale Price": "0", "Current Price": "17.99", "Price": "18.99"}, 1799, 1899),
        ({"Sale Price": "USD 0.00", "Current Price": "17.99"}, 1799, None),
        ({"Sale Price": "15.99", "Current Price": "17.99"}, 1599, None),
        ({"Price": "18.99", "Original Price": "0.00", "MSRP": "20.00"}, 1899, 2000),
    ],
)
def test_after_a_price_of_zero_the_next_column_counts(cells, cents_now, cents_before):
    header = ["SKU", "Name", "Url", "Currency", *cells]
    frame, report = parse(feed(["S-1", "x", "https://shop.example/p", "USD", *cells.values()], header=header))
    before = [original and int(original * 100) for original in frame["original_amount"]]
    assert (cents(frame), before) == ({"S-1": cents_now}, [cents_before])
    assert counts(report) == {}


def test_unknown_stock_is_counted_only_if_there_is_a_stock_column():
    data = feed(row(1, Availability="in stock"), row(2, Availability="perhaps"), row(3, Availability=""))
    untold = feed(*(row(number)[:-1] for number in (1, 2)), header=HEADER[:-1])
    assert counts(parse(data)[1]) == {"UNKNOWN_STOCK": 2}
    frame, report = parse(untold)
    assert (frame["in_stock"].to_list(), counts(report)) == ([True, True], {})


STOCKED = feed(
    *(
        row(number, Availability=text)
        for number, text in enumerate(["5", "-1", "ask us", "", "ask us", "12.05.2024"], 1)
    )
)


@pytest.mark.parametrize(
    ("meaning", "in_stock", "found"),
    [
        (UnknownStock.IN_STOCK, [True, False, True, True, True, True], {"UNKNOWN_STOCK": 4}),
        (UnknownStock.OUT_OF_STOCK, [True, False, False, False, False, False], {"UNKNOWN_STOCK": 4}),
        (UnknownStock.REJECT, [True, False], {"UNREADABLE_STOCK": 4}),
    ],
)
def test_the_feed_decides_the_meaning_of_an_unknown_stock_text(meaning, in_stock, found):
    frame, report = parse(STOCKED, settings=ParseSettings(moment=MOMENT, unknown_stock=meaning))
    assert (frame["in_stock"].to_list(), counts(report)) == (in_stock, found)
    assert report.findings.unknown_stock == {"ask us": 2, "12.05.2024": 1}
    assert (report.findings.unknown_stock_cells, report.stock_cells) == (3, 5), "the empty cell says nothing"


def test_stock_of_rows_that_are_rejected_for_another_reason_is_not_counted():
    _, report = parse(feed(row(1, Availability="perhaps", Name=""), row(2, Availability="perhaps")))
    assert (report.findings.unknown_stock, report.stock_cells) == ({"perhaps": 1}, 1)


def linked(*queries, **more):
    """A feed whose products are known by their links alone, and what is said of links that are one product."""
    rows = [row(number, SKU="", Url=f"https://shop.example/{query}") for number, query in enumerate(queries, 1)]
    frame, report = parse(feed(*rows), settings=ParseSettings(moment=MOMENT, **more))
    return frame, report.duplicates


def test_links_that_differ_in_an_ignored_parameter_give_a_notice():
    frame, found = linked(
        "a?ref=1", "a?ref=2", "a", "b?ref=1", "b?ref=1&gclid=7", "c?gclid=1", "c?gclid=2", "d", "d?aff=1"
    )
    assert (found.products, found.collapsed) == (4, 2)
    assert found.collapsed_links == (
        ("shop.example/a?ref=1", "shop.example/a?ref=2"),
        ("shop.example/d?aff=1",),
    )
    assert frame["url"].to_list()[:2] == ["https://shop.example/a?ref=1", "https://shop.example/a?ref=2"]


def test_a_parameter_that_the_feed_keeps_separates_products():
    _, found = linked("a?ref=1", "a?ref=2", "a", kept_parameters=("ref",))
    assert (found.products, found.collapsed) == (3, 0)


def test_products_with_an_identifier_can_have_any_links():
    rows = [row(1, Url=f"https://shop.example/p?ref={number}") for number in range(3)]
    assert parse(feed(*rows))[1].duplicates.collapsed == 0


def test_links_are_counted_beyond_those_that_are_kept_as_text(monkeypatch):
    monkeypatch.setattr(duplicates, "MOST_LINK_TEXTS", 2)
    _, found = linked("a?ref=1", "a?ref=2", "b?ref=1", "b?ref=2")
    assert (found.collapsed, found.collapsed_links) == (2, (("shop.example/a?ref=1", "shop.example/a?ref=2"),))


def test_an_identifier_of_another_column_is_stored_but_does_not_identify_products():
    header = ["SKU", "Unique Merchant SKU", "Id", *HEADER[1:]]
    given = [("A-1", "M-1", ""), ("", "M-2", "7"), ("n/a", "", "8"), ("", "", ""), ("", "x" * 256, "")]
    rows = [[*skus, *row(number)[1:]] for number, skus in enumerate(given, 1)]
    frame, report = parse(feed(*rows, header=header))
    assert frame["sku"].to_list() == ["A-1", "M-2", "8", None, None]
    assert frame["identity_type"].to_list() == [3, 4, 4, 4, 4], "one column of the file is the SKU"
    assert (report.findings.spared, counts(report)) == ({Field.SKU: 2}, {})
    assert report.binding.unbound == []


def test_a_row_with_a_stronger_identity_is_not_counted_as_a_gap():
    header = ["Catalog Item Id", "SKU", "Unique Merchant SKU", *HEADER[1:]]
    rows = [["I-1", "", "M-1", *row(1)[1:]], ["", "", "M-2", *row(2)[1:]]]
    frame, report = parse(feed(*rows, header=header))
    assert frame.select("item_id", "sku").rows() == [("I-1", "M-1"), (None, "M-2")]
    assert report.findings.spared == {Field.SKU: 1}


NOT_UTF8, NUL = "\udcff", "\x00"
LACKS = {
    "no title": (row(1, Name=" "), "MISSING_TITLE"),
    "no URL": (row(1, Url=""), "MISSING_URL"),
    "another scheme": (row(1, Url="ftp://shop.example/1"), "INVALID_URL"),
    "no host": (row(1, Url="https:///p/1"), "INVALID_URL"),
    "no whole address": (row(1, Url="http://127.1/p/1"), "INVALID_URL"),
    "a link to this machine": (row(1, Url="http://localhost:3000/p/1"), "INVALID_URL"),
    "no price": (row(1, Price=""), "MISSING_PRICE"),
    "a word": (row(1, Price="free"), "INVALID_PRICE"),
    "below zero": (row(1, Price="-1.00"), "INVALID_PRICE"),
    "zero": (row(1, Price="0.00"), "PRICE_WITHHELD"),
    "no currency": (row(1, Currency=""), "MISSING_CURRENCY"),
    "no such currency": (row(1, Currency="XXX"), "INVALID_CURRENCY"),
    "a field too few": (row(1)[:-1], "RAGGED_ROW"),
    "a field too many": ([*row(1), "x"], "RAGGED_ROW"),
    "no text": (row(1, Name=NOT_UTF8), "BAD_ENCODING"),
    "a NUL": (row(1, Name=NUL), "BAD_ENCODING"),
    "a long field": (row(1, Name="x" * 100_001), "FIELD_TOO_LONG"),
}


@pytest.mark.parametrize(("bad", "code"), LACKS.values(), ids=LACKS)
def test_a_row_lacks_something_that_is_required(bad, code):
    frame, report = parse(feed(row(7), bad, row(8)).encode(errors="surrogateescape"), encoding="utf-8")
    assert frame["sku"].to_list() == ["S-7", "S-8"]
    assert (counts(report), lines(report)) == ({code: 1}, {code: [3]})


@pytest.mark.parametrize(
    ("cells", "default", "currency"),
    [
        ({"Currency": "EUR"}, None, "EUR"),
        ({"Currency": "", "Price": "1.00 GBP"}, None, "GBP"),
        ({"Currency": ""}, "CHF", "CHF"),
        ({"Currency": "EUR"}, "CHF", "EUR"),
        ({"Currency": "", "Price": "1.00 GBP"}, "CHF", "GBP"),
    ],
)
def test_a_currency_is_found_in_its_column_in_the_price_or_as_the_default(cells, default, currency):
    frame, _ = parse(feed(row(1, **cells)), settings=ParseSettings(moment=MOMENT, default_currency=default))
    assert frame["currency"].to_list() == [currency]


NOTICED = {
    "UNKNOWN_STOCK": {"Availability": "perhaps"},
    "BAD_GTIN": {"Gtin": "4006381333932"},
    "BAD_IMAGE_URL": {"Image URL": "nowhere"},
    "BAD_ORIGINAL_PRICE": {"Original Price": "0.50"},
}


@pytest.mark.parametrize("code", NOTICED)
def test_a_warning_is_counted_and_rejects_nothing(code):
    more = {"Gtin": "4006381333931", "Image URL": "https://shop.example/1.png", "Original Price": "2.00"}
    cells = dict(zip(HEADER, row(100), strict=True)) | more | NOTICED[code]
    frame, report = parse(feed(list(cells.values()), header=list(cells)))
    assert frame.select("sku", "in_stock").rows() == [("S-100", True)]
    assert counts(report) == {code: 1}


def test_polars_has_one_thread_in_addition_to_those_that_read_blocks():
    program = "import harvester.feeds.reader.load, polars; print(polars.thread_pool_size())"
    environment = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
