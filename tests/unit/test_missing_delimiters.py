"""A row without the delimiter before a quoted field is rejected, although it has as many fields as the others."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.feeds import counts, feed, lines, parse, quoted_feed, row
from tests.support.slow_parse import slow_quoted, slow_torn

from harvester.feeds.reader.blocks import LONGEST_RECORD_BYTES
from harvester.feeds.reader.errors import TruncatedFile
from harvester.feeds.reader.quoting import SAMPLE_BYTES, quoted_columns
from harvester.feeds.reader.records import Record, read_record, torn_places

#: What decides about fields, and little else.
STRUCTURE = st.text(st.sampled_from('"",,ab\n\r'), max_size=60).map(str.encode)


def comma_feed(*rows):
    """A feed in which the fields with a comma or a quote are quoted."""
    return feed(*([_written(cell) for cell in cells] for cells in rows), delimiter=",")


def _written(cell):
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\n') else cell


def damaged(data, sku):
    """The feed without the delimiter behind this SKU."""
    return data.replace(f"\n{sku},", f"\n{sku}")


GOOD = [row(number, Name=f"Thing, {number}") for number in range(101, 111)]


@pytest.mark.parametrize(
    "title",
    ["Red, blue", 'Nail, 5"', 'A "best", pan', 'Sizes 5",7"', '"Best", pan', "Red, blue ", "Red,", 'Rod 5"",'],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_row_without_the_delimiter_before_a_quoted_field_is_rejected(title, line_end):
    data = damaged(comma_feed(*GOOD, row(205, Name=title), row(206, Name="Last, one")), "S-205")
    frame, report = parse(data.replace("\n", line_end))
    assert frame["sku"].to_list() == [f"S-{number}" for number in [*range(101, 111), 206]]
    assert lines(report) == {"RAGGED_ROW": [12]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("broken", ['S-205"', 'S"-205', '"S-205""', 'S-205"x"'])
@pytest.mark.parametrize("empty", ['""', ""])
@pytest.mark.parametrize("first", [False, True])
def test_a_field_without_its_first_quote_gets_the_row_refused_where_the_column_is_quoted(
    delimiter, broken, empty, first
):
    rows = [row(n, Availability="") for n in (*range(101, 104), 205, 206)]
    data = quoted_feed(*(rows[3:] + rows[:3] if first else rows), delimiter=delimiter).replace('""', empty)
    damaged = data.replace('"S-205"', broken)
    assert damaged != data
    frame, report = parse(damaged)
    assert sorted(frame["sku"]) == ["S-101", "S-102", "S-103", "S-206"]
    assert lines(report)["RAGGED_ROW"] == [2 if first else 5]


def test_a_quote_inside_stays_text_where_other_rows_have_the_column_without_quotes():
    plain = row(205, Name='5" nail')
    for others in ([row(101), *GOOD], [row(n, Name=f'{n}" nail') for n in (101, 102)]):
        data = comma_feed(*GOOD[:2]) + feed(*others, plain, delimiter=",").partition("\n")[2].replace("Thing, ", "")
        frame, report = parse(data)
        assert frame["title"].to_list()[-1] == '5" nail'
        assert "RAGGED_ROW" not in counts(report)


def test_the_reason_names_the_delimiter():
    _, report = parse(damaged(comma_feed(*GOOD, row(205, Name="Red, blue")), "S-205"))
    (sample,) = [sample for kept in report.findings.samples.values() for sample in kept]
    assert sample.reason == "the delimiter in front of a quoted field seems to be missing"
    assert sample.row.startswith('S-205"Red, blue",https://')


def test_a_row_without_two_delimiters_is_rejected_too():
    data = comma_feed(*GOOD, row(205, Name="Red, blue", Url="https://shop.example/a,b"))
    torn = damaged(data, "S-205").replace('blue",', 'blue"')
    assert torn.endswith('\nS-205"Red, blue""https://shop.example/a,b",2.05,USD,in stock\n')
    frame, report = parse(torn)
    assert (frame.height, lines(report)) == (10, {"RAGGED_ROW": [12]})


@pytest.mark.parametrize(
    ("title", "stock"),
    [('5" nail', "in stock"), ('27" x 14" screen', "in stock"), ('5"', 'in stock, 7"'), ('A "best" pan', "in stock")],
)
def test_a_quote_that_does_not_end_a_text_stays_text(title, stock):
    plain = row(205, Name=title, Availability="in stock")
    data = comma_feed(*GOOD, row(206, Availability=stock)) + ",".join(plain) + "\n"
    frame, report = parse(data)
    assert frame["title"].to_list()[-1] == title
    assert "RAGGED_ROW" not in counts(report)


def test_signs_for_inches_in_two_columns_stay_text_where_the_second_is_never_quoted():
    header = ["SKU", "Name", "Manufacturer", "Url", "Price", "Currency"]
    rows = [[f"S-{n}", '27" screen', 'Twenty 27"', f"https://shop.example/{n}", "1.00", "USD"] for n in range(50)]
    for odd in ('"Wide, screen"', '"Surely"', "Plain"):
        rows[7][1] = odd
        for delimiter in ("|", ",", ";"):
            frame, report = parse(feed(*rows, header=header, delimiter=delimiter))
            assert counts(report) == {}, (odd, delimiter)
            assert frame["title"].to_list()[8] == '27" screen'


@pytest.mark.parametrize("chunk", [None, 100_000, 64 * 1024, 4096])
def test_rejected_rows_do_not_depend_on_how_the_file_is_cut_for_reading(chunk):
    """The only quoted row is the last of the first rows, so a sample that is a little shorter does not have it."""
    header = len(comma_feed())
    early = comma_feed(*(row(number) for number in range(1000, 1000 + SAMPLE_BYTES // 50)))
    early = early[: early.rindex("\n", 0, header + SAMPLE_BYTES - 200) + 1]
    quoted = comma_feed(row(9001, Name="Red, blue"))[header:]
    padding = "x" * (header + SAMPLE_BYTES - len(early) - len(quoted) - len(comma_feed(row(9000, Name=""))[header:]))
    late = comma_feed(row(9002, Name='5" nail'), row(9003, Name="Red, blue"), row(9004))[header:]
    data = early + comma_feed(row(9000, Name=padding))[header:] + quoted
    assert len(data) == header + SAMPLE_BYTES
    data += damaged("\n" + late, "S-9003")[1:].replace('"5"" nail"', '5" nail')
    for block in (5_000, 4_000_000):
        frame, report = parse(data, chunk=chunk, block_bytes=block)
        assert frame["sku"].to_list()[-4:] == ["S-9000", "S-9001", "S-9002", "S-9004"]
        assert lines(report) == {"RAGGED_ROW": [data.count("\n") - 1]}


def test_a_file_that_is_cut_inside_such_a_row_is_incomplete():
    data = damaged(comma_feed(*GOOD, row(205, Name="Red, blue")), "S-205")
    for length in range(data.index(' blue"'), data.rindex(",")):
        with pytest.raises(TruncatedFile, match="line 12"):
            parse(data[:length])


@settings(max_examples=400)
@given(STRUCTURE)
@example(b'a"b,c"')
@example(b'a"b,"",c"')
@example(b'a"b,""",c"')
@example(b'a"b"",c""d,e"""')
def test_torn_fields_are_those_of_the_slow_reader(data):
    record = read_record(data + b"\n", 0, b",")
    if isinstance(record, Record):
        assert torn_places(record) == slow_torn((data + b"\n")[: record.end + 1], b",")
    for columns in (1, 2, 3):
        assert quoted_columns(data + b"\n", b",", columns) == slow_quoted(data + b"\n", b",", columns)


@pytest.mark.parametrize("cell", [b'a"', b'a"b', b'a""b', b'a"b""', b'""', b'"x"'])
def test_quotes_in_a_row_of_the_maximum_length_do_not_slow_it_down(cell):
    """Every field is looked at once: if each looked through all behind it, this would take hours."""
    data = b'a"b,' + b",".join([cell] * (LONGEST_RECORD_BYTES // (len(cell) + 1) - 4)) + b',z"\n'
    record = read_record(data, 0, b",")
    assert isinstance(record, Record)
    assert len(torn_places(record)) <= len(record.fields)
