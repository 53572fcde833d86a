"""Records are cut where they end, whatever the chunks, and what is not a record loses its line and no other."""

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.feeds import cents, counts, feed, lines, parse, quoted_feed, row
from tests.support.slow_parse import slow_record, slow_records

from harvester.feeds.reader.blocks import BLOCK_BYTES, LONGEST_RECORD_BYTES, RecordCutter, Shape
from harvester.feeds.reader.errors import RowCountLimitExceeded, TruncatedFile
from harvester.feeds.reader.records import Record, read_record
from harvester.feeds.reader.survey import lines_alone, survey

#: Everything that matters to the structure of a file, and little else.
STRUCTURE = st.text(st.sampled_from('",\n\rab '), max_size=200).map(str.encode)


def cut(data, *, columns=2, quoted=True, chunk=None, most_rows=10**9):
    shape = Shape(delimiter=b",", quoted=quoted, columns=columns)
    chunks = [data[start : start + chunk] for start in range(0, len(data), chunk)] if chunk else [data]
    return [block for block in RecordCutter(shape, most_rows=most_rows).blocks(chunks) if block.rows_read]


@given(STRUCTURE)
def test_a_survey_of_regular_data_finds_its_records(data):
    found = survey(data, b",", quoted=True)
    expected = []
    position = 0
    while isinstance(record := read_record(data, position, b","), Record):
        expected.append((record.end, len(record.fields) - 1, data.count(b"\n", 0, position)))
        position = record.end + 1
    if found.is_regular:
        assert list(zip(found.ends, found.delimiters, found.lines, strict=True)) == expected


@given(STRUCTURE)
def test_data_is_regular_if_quotes_only_enclose_fields(data):
    fields = data.replace(b'"', b"").replace(b"\r", b"").split(b"\n")
    quoted = b"".join(b",".join(b'"' + field + b'"' for field in line.split(b",")) + b"\r\n" for line in fields)
    assert survey(quoted, b",", quoted=True).is_regular


@given(STRUCTURE)
def test_a_line_by_itself_is_a_record(data):
    feeds, troubled = lines_alone(data, b",")
    starts = [0, *(feeds[:-1] + 1)] if len(feeds) else []
    for number, start in enumerate(starts):
        if number not in troubled:
            assert read_record(data, int(start), b",").end == feeds[number]


@given(STRUCTURE)
def test_the_fast_record_reader_agrees_with_the_slow_one(data):
    record = read_record(data + b"\n", 0, b",")
    try:
        fields, behind = slow_record(data + b"\n", 0, b",")
    except AssertionError:
        assert not isinstance(record, Record)
        return
    if fields is None:
        assert not isinstance(record, Record)
    else:
        assert (list(record.fields), record.end + 1) == (fields, behind)


def slow_good(data, *, quoted):
    """Line and fields of the records of two columns, read slowly; nothing if the last record is not whole."""
    try:
        records = list(slow_records(data, b",", quoted=quoted, columns=2))
    except AssertionError:
        return None
    return [(line + 1, fields) for line, raw, fields in records if fields and len(fields) == 2]


@given(STRUCTURE, st.integers(1, 60), st.booleans())
def test_cutting_chunks_anywhere_gives_the_same_records(data, chunk, quoted):
    data += b"\n"
    expected = slow_good(data, quoted=quoted)
    if expected is None:
        with pytest.raises(TruncatedFile):
            cut(data, quoted=quoted, chunk=chunk)
        return
    blocks = cut(data, quoted=quoted, chunk=chunk)
    found = [(int(line), block.record(place)) for block in blocks for place, line in enumerate(block.lines)]
    assert [line for line, _ in found] == [line for line, _ in expected]
    for (_, raw), (_, fields) in zip(found, expected, strict=True):
        reread = slow_record(raw, 0, b",")[0] if quoted else raw.rstrip(b"\n").removesuffix(b"\r").split(b",")
        assert reread == fields


def test_blocks_have_the_lines_of_their_records():
    (block,) = cut(b'1,"a\nb"\n\n2\n3,c\n')
    assert block.lines.tolist() == [2, 6]
    assert (block.record(0), block.record(1)) == (b'1,"a\nb"\n', b"3,c\n")
    assert block.rows_read == 3
    assert np.array_equal(block.ends, [8, 12])


@pytest.mark.parametrize("blank", ["\n", "\r\n", "  \n", " \r\n"])
@pytest.mark.parametrize("title", ["Thing", '5" nail'], ids=["regular quotes", "a quote inside a field"])
def test_blank_lines_are_dropped_and_every_line_number_stays_exact(blank, title):
    good = quoted_feed(row(101), row(102), row(103, Name="two\n\n  \nlines")).splitlines(keepends=True)
    good.append(",".join(row(104)) + "\n")
    odd = ",".join(row(105, Name=title, Price="free")) + "\n"
    data = good[0] + blank * 5 + good[1] + good[2] + blank * 1000 + "".join(good[3:]) + blank + odd + blank * 3
    for chunk in (None, 64, 5):
        frame, report = parse(data, chunk=chunk)
        assert frame["line"].to_list() == [7, 8, 1009, 1013]
        assert frame["title"].to_list()[2] == "two\n\n  \nlines"
        assert (lines(report), report.rows_read) == ({"INVALID_PRICE": [1015]}, 5)


def peak_of(data, *, quoted):
    """The most memory that was taken while a file of these bytes was cut into records."""
    shape = Shape(delimiter=b",", quoted=quoted, columns=2)
    chunks = [data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES)]
    tracemalloc.start()
    try:
        for _ in RecordCutter(shape, most_rows=10**9).blocks(chunks):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("blank", [b"\n", b" \n", b"\r\n"])
@pytest.mark.parametrize(("begin", "quoted"), [(b"1,a\n", False), (b'1,"a"\n', True), (b'1,5" nail\n', True)])
def test_blank_lines_take_no_more_memory_than_ordinary_rows(begin, quoted, blank):
    rows = BLOCK_BYTES // 40
    ordinary = peak_of(begin + b"".join(b"%d,%s\n" % (number, b"x" * 32) for number in range(rows)), quoted=quoted)
    assert peak_of(begin + blank * (BLOCK_BYTES // len(blank)), quoted=quoted) < ordinary * 1.2


def test_a_long_and_a_short_row_are_not_taken_for_two_good_rows():
    data = feed(row(101), [*row(102), "more"], row(103)[:-1], row(104))
    frame, report = parse(data)
    assert cents(frame) == {"S-101": 101, "S-104": 104}
    assert lines(report) == {"RAGGED_ROW": [3, 4]}


def test_a_quoted_field_that_does_not_end_where_it_should_loses_its_line():
    rows = quoted_feed(row(101), row(102), row(103)).splitlines(keepends=True)
    rows[2] = rows[2].replace('Thing 102"', "Thing 102")
    frame, report = parse("".join(rows))
    assert cents(frame) == {"S-101": 101, "S-103": 103}
    assert lines(report) == {"RAGGED_ROW": [3]}


def test_a_quote_inside_an_unquoted_field_is_text():
    data = feed(row(101, Name='"a, b"'), row(102, Name='5" nail'), row(103, Name='x"'), delimiter=",")
    frame, report = parse(data)
    assert report.dialect.quoted
    assert frame["title"].to_list() == ["a, b", '5" nail', 'x"']


@pytest.mark.parametrize(("bad", "code"), [(10_000, "FIELD_TOO_LONG"), (59_000, "RAGGED_ROW"), (59_998, "RAGGED_ROW")])
def test_a_quote_that_is_never_closed_loses_its_line_and_not_the_rest_of_the_file(bad, code):
    count = 60_000
    rows = [row(number) for number in range(1, count + 1)]
    rows[bad][1] = '"Never closed'
    rows[3][1] = '"a, b"'
    frame, report = parse(feed(*rows, delimiter=","))
    assert report.dialect.quoted
    assert counts(report) == {code: 1}
    assert lines(report) == {code: [bad + 2]}
    assert frame.height == count - 1


def test_a_quote_that_is_open_at_the_end_of_the_file_means_that_the_file_is_incomplete():
    whole = quoted_feed(row(101), row(102, Name="a\nb\nc"))
    for length in range(whole.index("a\nb"), whole.rindex(",")):
        with pytest.raises(TruncatedFile, match="line 3"):
            parse(whole[:length])


@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_a_file_that_ends_inside_its_last_record_is_incomplete(write):
    whole = write(*(row(number) for number in range(101, 110)))
    last = whole.rindex("\n", 0, -1) + 1
    for length in range(last + 1, whole.rindex("USD")):
        with pytest.raises(TruncatedFile, match="line 10"):
            parse(whole[:length])


@pytest.mark.parametrize("write", [feed, quoted_feed])
@pytest.mark.parametrize("end", ["", "\n", "\n\n  \n", "\r\n"])
def test_the_last_line_feed_may_be_missing_or_doubled(write, end):
    frame, report = parse(write(row(101), row(102)).rstrip("\n") + end)
    assert cents(frame) == {"S-101": 101, "S-102": 102}
    assert not counts(report)


def test_rows_up_to_the_limit_are_read_and_one_more_fails():
    data = b"1,2\n" * 10 + b"\n\n" + b"ragged\n" * 2
    assert sum(block.rows_read for block in cut(data, most_rows=12)) == 12
    for chunk in (1, 7, 1000):
        with pytest.raises(RowCountLimitExceeded, match="more than 11 rows"):
            cut(data, most_rows=11, chunk=chunk)


@pytest.mark.parametrize("quoted", [True, False])
@pytest.mark.parametrize("chunk", [100_000, 3_000_000])
def test_a_row_of_the_maximum_length_is_read_and_a_longer_one_is_rejected(quoted, chunk):
    def long_row(length):
        filling = length - len(b"1,") - 2 * quoted
        return b"1," + (b'"' * quoted) + b"x" * filling + (b'"' * quoted) + b"\n"

    data = b"0,a\n" + long_row(LONGEST_RECORD_BYTES) + b"2,b\n" + long_row(LONGEST_RECORD_BYTES + 1) + b"3,c\n"
    blocks = cut(data, quoted=quoted, chunk=chunk)
    assert [int(line) for block in blocks for line in block.lines] == [2, 3, 4, 6]
    assert sum(block.rows_read for block in blocks) == 5
    samples = [sample.line for block in blocks for kept in block.findings.samples.values() for sample in kept]
    assert samples == [5]


def test_random_damage_is_survived(request):
    seed = 20250601
    rng = random.Random(seed)
    clean = quoted_feed(*(row(number) for number in range(101, 301))).encode()
    for _ in range(60):
        damaged = bytearray(clean)
        for _ in range(rng.randint(1, 5)):
            damaged[rng.randrange(200, len(damaged))] = rng.choice(b'",\n\r\x00\xff')
        try:
            frame, _ = parse(bytes(damaged), chunk=rng.choice([50, 700, 100_000]))
        except TruncatedFile:
            continue
        wrong = {sku: value for sku, value in cents(frame).items() if sku.startswith("S-") and sku[2:] != str(value)}
        assert len(wrong) <= 5, f"seed {seed}"
