"""Quotes that occur late in a file mean the same as elsewhere."""

import pytest
from tests.support.feeds import counts, feed, lines, parse, row

from harvester.feeds.reader.quoting import SAMPLE_BYTES, Quotes, late_quotes

#: More rows than the sample that decides about quotes at first.
EARLY = [row(number) for number in range(1000, 1000 + SAMPLE_BYTES // 50)]


def late(*odd):
    text = feed(*EARLY)
    assert len(text) > SAMPLE_BYTES
    return text + feed(*odd, header=[])[1:]


def quoted(cells):
    return ['"' + cell.replace('"', '""') + '"' for cell in cells]


@pytest.mark.parametrize("chunk", [None, 100_000, 4096])
def test_a_cell_that_is_quoted_late_is_read_without_its_quotes(chunk):
    plain = row(9005)
    odd = row(9006, Availability="out of stock", Name='two\n\nlines, 5" wide')
    frame, report = parse(late(quoted(odd), plain, quoted(row(9007))), chunk=chunk)
    found = frame.tail(3).select("sku", "title", "in_stock", "line").rows()
    line = len(EARLY) + 2
    assert found == [
        ("S-9006", 'two\n\nlines, 5" wide', False, line),
        ("S-9005", "Thing 9005", True, line + 3),
        ("S-9007", "Thing 9007", True, line + 4),
    ]
    assert (report.dialect.quoted, counts(report), frame.height) == (True, {}, len(EARLY) + 3)


@pytest.mark.parametrize("place", range(0, 70, 5))
def test_the_row_in_which_the_first_sample_ends_is_read_like_those_after_it(place):
    header, rows = feed(), feed(*EARLY, header=[])[1:]
    early = rows[: rows.rindex("\n", 0, SAMPLE_BYTES - 140) + 1]
    padding = row(8000, Name="x" * (SAMPLE_BYTES - len(early) - len(feed(row(8000, Name=""), header=[])) + 1 - place))
    odd = row(9006, SKU='"S-9006"', Availability='"out of stock"')
    behind = early + feed(padding, odd, row(9007), header=[])[1:]
    assert SAMPLE_BYTES - behind.index('"') == place
    frame, report = parse(header + behind)
    assert frame.tail(2).select("sku", "in_stock").rows() == [("S-9006", False), ("S-9007", True)]
    assert (report.dialect.quoted, counts(report)) == (True, {})


def test_inch_signs_around_the_first_cell_in_quotes_stay_text():
    inches = [row(8000 + place, Name=f'{place}" nail') for place in range(1, 100)]
    odd = [row(9006, SKU='"S-9006"', Name='"12"" x 5"" board"', Availability='"out of stock"')]
    frame, report = parse(late(*inches, *odd, *inches))
    found = frame.tail(199)
    titles = [cells[1] for cells in inches]
    assert found["title"].to_list() == [*titles, '12" x 5" board', *titles]
    assert found.filter(~found["in_stock"]).select("sku", "line").rows() == [("S-9006", len(EARLY) + 101)]
    assert counts(report) == {}


@pytest.mark.parametrize("title", ['5" nail', '"Best" pan', '"Not closed'])
def test_a_late_quote_that_is_text_stays_text(title):
    frame, report = parse(late(row(9006, Name=title), row(9007)))
    assert frame.tail(2)["title"].to_list() == [title, "Thing 9007"]
    assert (report.dialect.quoted, counts(report)) == (False, {})


BOOKS = [
    '"Surely You Are Joking"',
    '"A" Is for Alibi',
    '"Not closed',
    'Closed"',
    '"Nobody"',
    '5" nail',
    '"Not closed either',
]


@pytest.mark.parametrize("block", [300, 1000, 20_000, 4_000_000])
def test_a_title_in_quotes_does_not_get_later_rows_refused_or_joined(block):
    odd = [row(9000 + place, Name=BOOKS[place // 10]) if place % 10 == 0 else row(9000 + place) for place in range(70)]
    whole = feed(*EARLY) + feed(*odd, header=[])[1:]
    frame, report = parse(whole, block_bytes=block)
    assert (counts(report), frame.height, report.rows_read) == ({}, len(EARLY) + 70, len(EARLY) + 70)
    found = frame.tail(70)
    assert found["sku"].to_list() == [f"S-{9000 + place}" for place in range(70)]
    assert found["amount"].to_list() == parse(feed(*odd))[0]["amount"].to_list()
    # Quotes around a whole title may be taken for what they usually are; everything else stays as it is.
    assert [title.strip('"') for title in found["title"].to_list()[::10]] == [title.strip('"') for title in BOOKS]


def test_once_quotes_were_needed_they_count_to_the_end():
    odd = [quoted(row(9000, Name="two\nlines")), *(row(9000 + place) for place in range(1, 200)), quoted(row(9300))]
    broken = row(9301, Name='"A" broken')
    frame, report = parse(late(*odd, broken, quoted(row(9302))), block_bytes=4000)
    assert frame.tail(2)["sku"].to_list() == ["S-9300", "S-9302"]
    assert (lines(report), report.rows_valid) == ({"RAGGED_ROW": [len(EARLY) + 204]}, len(EARLY) + 202)


@pytest.mark.parametrize("length", range(6, 15))
def test_a_cell_of_several_lines_is_recognized_wherever_the_file_is_cut_for_reading(length):
    cut = b'S-1\t"two\n\n\nlines"\tx\n'[:length]
    expected = Quotes.NEEDED if b"\n" in cut else Quotes.UNKNOWN
    assert late_quotes(cut, b"\t", 3) is expected
