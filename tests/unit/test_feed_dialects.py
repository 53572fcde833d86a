"""The header and the first rows decide how a file is written."""

import pytest
from tests.support.feeds import HEADER, cents, counts, feed, lines, parse, quoted_feed, row

from harvester.feeds.networks import network_named
from harvester.feeds.reader import TEST_ROWS
from harvester.feeds.reader.dialect import MOST_COLUMNS, open_file
from harvester.feeds.reader.errors import EmptyFile, HeaderUnreadable, HtmlInsteadOfCsv

ROWS = [row(number) for number in range(101, 111)]


def dialect(data):
    return open_file([data.encode()], network_named("impact")).dialect


@pytest.mark.parametrize("delimiter", ["\t", ",", "|", ";"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_delimiter_and_line_ends_are_found(write, delimiter, line_end):
    frame, report = parse(write(*ROWS, delimiter=delimiter, line_end=line_end))
    assert (report.dialect.delimiter, report.dialect.line_end) == (delimiter, line_end)
    assert cents(frame) == {f"S-{number}": number for number in range(101, 111)}
    assert frame["line"].to_list() == list(range(2, 12))
    assert not counts(report)


def test_a_header_of_few_known_names_beats_a_delimiter_that_is_frequent_in_one_name():
    header = ["SKU", "Name", "Url", "Price", "a,b,c,d,e,f,g,h,i,j"]
    data = "\t".join(header) + "\n" + "1\tx\thttps://shop.example/1\t5 USD\t\n"
    assert dialect(data).delimiter == "\t"


def test_the_header_is_found_after_a_mark_blank_lines_and_spaces():
    data = "\n\r\n" + feed(*ROWS, header=[f" {name} " for name in HEADER])
    frame, report = parse(data.encode("utf-8-sig"))
    assert frame["line"].to_list() == list(range(4, 14))
    assert report.binding.header == tuple(HEADER)


#: what is said about quotes, the rows, and whether quotes mean anything
QUOTING = [
    ("tab files without quotes", feed(row(1)), False),
    ("comma files without quotes", feed(row(1), delimiter=","), True),
    ("a quoted header", quoted_feed(delimiter="\t"), True),
    ("a quote inside a tab field", feed(row(1, Name='5" nail')), False),
    ("a quote at the beginning of a tab field", feed(row(1, Name='"Best" coffee'), row(2)), False),
    ("a quote never closed in a tab file", feed(row(1, Name='"Best coffee'), row(2), row(3)), False),
    ("two such quotes in two rows", feed(row(1, Name='"Best'), row(2, Name='coffee"'), row(3)), False),
    ("a tab inside quotes", feed(row(1, Name='"a\tb"'), row(2)), True),
    ("a line feed inside quotes", feed(row(1, Name='"a\nb"'), row(2)), True),
    ("fields quoted for no reason", feed(row(1, Name='"a"'), row(2, Name='"b"')), True),
    ("a comma inside quotes", feed(row(1, Name='"a, b"'), delimiter=","), True),
    ("a quote never closed in a comma file", feed(row(1, Name='"Best'), row(2), row(3), delimiter=","), False),
]


@pytest.mark.parametrize(("data", "quoted"), [case[1:] for case in QUOTING], ids=[case[0] for case in QUOTING])
def test_the_first_rows_decide_whether_quotes_enclose_cells(data, quoted):
    assert dialect(data).quoted == quoted


def test_a_lone_quote_in_a_file_without_quoting_is_text():
    frame, report = parse(feed(row(101, Name='5" nail'), row(102, Name='"Best" coffee'), row(103, Name='"')))
    assert frame["title"].to_list() == ['5" nail', '"Best" coffee', '"']
    assert not counts(report)


def test_quoted_fields_keep_delimiters_quotes_and_line_feeds():
    name = 'He said "a,\r\nb"\nand left'
    frame, _ = parse(quoted_feed(row(101, Name=name), row(102)))
    assert frame["title"].to_list() == [name, "Thing 102"]
    assert frame["line"].to_list() == [2, 5]


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><body>503</body></html>",
        "\n  <html><head><title>Login</title>",
        "<HTML>\nSKU\tName",
    ],
)
def test_a_web_page_is_recognized(page):
    with pytest.raises(HtmlInsteadOfCsv) as refused:
        parse(page)
    assert repr(page.encode()[:20].decode())[1:-1] in str(refused.value)


@pytest.mark.parametrize("nothing", ["", "\n\n", "  \r\n\t\n", "\ufeff"])
def test_an_empty_file_is_reported_as_empty(nothing):
    with pytest.raises(EmptyFile):
        parse(nothing)


@pytest.mark.parametrize("header", [feed(), feed().rstrip("\n")])
def test_a_header_alone_is_a_file_without_rows(header):
    frame, report = parse(header)
    assert (frame.height, report.rows_read, report.duplicates.products) == (0, 0, 0)


def test_an_error_about_missing_columns_says_what_was_expected_and_found():
    with pytest.raises(HeaderUnreadable) as refused:
        parse("sku;colour;password=hunter2\n1;red;x\n")
    message = str(refused.value)
    assert "title (such as Name, Product Name" in message
    assert "url" in message
    assert "sale price or list price" in message
    assert "semicolon" in message
    assert "'colour'" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "data", ["\x1f\x8b\x08\x00binary\n", '{"error": "no such file"}', "PK\x03\x04\n", "%PDF-1.4\n"]
)
def test_anything_else_is_not_a_header(data):
    with pytest.raises(HeaderUnreadable, match="begins with"):
        parse(data)


def test_a_first_line_without_end_is_not_a_header():
    with pytest.raises(HeaderUnreadable):
        parse(b"x" * 3_000_000, chunk=100_000)


def test_two_columns_with_one_important_name_are_refused():
    with pytest.raises(HeaderUnreadable, match="list_price: 'Price', 'price'"):
        parse(feed(header=[*HEADER, "price"]))


def test_of_two_columns_with_another_name_the_first_filled_one_counts():
    frame, _ = parse(feed([*row(101), "", "b"], [*row(102), "a", "b"], header=[*HEADER, "Description", "description"]))
    assert frame["description"].to_list() == ["b", "a"]


def test_too_many_columns_are_refused_and_the_maximum_is_read():
    header = [*HEADER, *(f"extra {number}" for number in range(MOST_COLUMNS - len(HEADER)))]
    frame, _ = parse(feed([*row(101), *[""] * (MOST_COLUMNS - len(HEADER))], header=header))
    assert cents(frame) == {"S-101": 101}
    with pytest.raises(HeaderUnreadable, match="more than 10,000 columns"):
        parse(feed(header=[*header, "one more"]))


def test_a_feed_test_reads_a_hundred_rows():
    many = [row(number) for number in range(101, 401)]
    many[3] = many[3][:-1]
    frame, report = parse(feed(*many)[:-5], first_rows=TEST_ROWS)
    assert (report.rows_read, report.rows_valid, frame.height) == (TEST_ROWS, TEST_ROWS - 1, TEST_ROWS - 1)
    assert lines(report) == {"RAGGED_ROW": [5]}
    assert report.duplicates is None


def test_a_feed_test_of_a_cut_file_leaves_the_last_row_out():
    frame, report = parse(feed(row(101), row(102))[:-12], first_rows=TEST_ROWS)
    assert cents(frame) == {"S-101": 101}
    assert not counts(report)
