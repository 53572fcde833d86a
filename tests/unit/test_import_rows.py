"""Lists of pages as people have them: good lines are read, bad ones are refused with a reason, nothing is guessed."""

import datetime as dt
import io
import tracemalloc
import zipfile
import zlib

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.generated import examples

from harvester.kernel.errors import InvalidInput
from harvester.scraping import import_rows
from harvester.scraping.import_rows import ImportRow, read_list, read_text

URL = "https://shop.example/a"


def urls(found):
    return [(row.line, row.url) for row in found.rows]


def reasons(found):
    return [(refused.line, refused.reason) for refused in found.refused]


def workbook(*rows, sheets=(), hidden=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name in (*sheets, *hidden):
        book.create_sheet(name).append(["x"])
    for name in hidden:
        book[name].sheet_state = "hidden"
    body = io.BytesIO()
    book.save(body)
    return body.getvalue()


# -- pasted addresses ---


def test_pasted_addresses_one_per_line():
    found = read_text(f"{URL}\r\n\n  https://www.other.example/b?x=1#y  \n")
    assert urls(found) == [(1, URL), (3, "https://www.other.example/b?x=1#y")]
    assert (found.refused, found.not_read) == ((), ())


def test_several_addresses_in_a_line():
    found = read_text(f"{URL} {URL}1, {URL}2;{URL}3|{URL}4\t{URL}5,")
    assert urls(found) == [(1, URL), *((1, f"{URL}{number}") for number in range(1, 6))]


def test_marks_around_addresses_are_left_out():
    assert urls(read_text(f'"{URL}"\n<{URL}1>\n"{URL}2",\n')) == [(1, URL), (2, f"{URL}1"), (3, f"{URL}2")]


def test_an_address_in_an_address_stays_in_it():
    address = "https://goto.example/c?u=https://shop.example/a"
    assert urls(read_text(address)) == [(1, address)]


@pytest.mark.parametrize("address", [f"{URL},b.html", f"{URL};b/c", f"{URL}?x=1,2&y=3"])
def test_delimiters_that_can_only_belong_to_an_address_stay(address):
    assert urls(read_text(address)) == [(1, address)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("shop.example/a", r"^url: .*https://"),
        ("ftp://shop.example/a", r"^url: "),
        ("https://me:secret@shop.example/a", r"^url: .*password"),
        ("hello", r"^url: "),
        (f"{URL} B-12", "more than an address.*first line"),
        (f"{URL}\tB-12", "more than an address.*first line"),
        (f'{URL},"B-12"', "more than an address.*first line"),
        (f"{URL},B-12", "end may belong"),
        (f"{URL};12345", "end may belong"),
        (f"{URL}?a=1|x", "end may belong"),
        ("https://shop.example/" + "a" * 5000, r"^url: .*4096"),
    ],
)
def test_what_is_not_only_an_address_is_refused(line, reason):
    found = read_text(f"{URL}1\n{line}\n{URL}2\n")
    assert urls(found) == [(1, f"{URL}1"), (3, f"{URL}2")]
    [refused] = found.refused
    assert (refused.line, refused.text) == (2, line[:200])
    with pytest.raises(ValueError, match=reason):
        raise ValueError(refused.reason)


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_an_empty_list_has_nothing(text):
    assert read_text(text) == read_list(text.encode()) == import_rows.ImportedList(rows=(), refused=())


# -- CSV ---

FULL = ImportRow(
    line=2,
    url=URL,
    sku="00-A,1",
    gtin="020892215511",
    product_id="77",
    schedule="0 */4 * * *",
    priority=-5,
    notes="brass; new",
)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_columns_are_found_by_their_names_with_any_usual_delimiter(delimiter, end):
    header = delimiter.join(["Notes", "SKU", "UPC", "Product ID", "Priority", "Cron", "URL"])
    cells = delimiter.join(['"brass; new"', '"00-A,1"', "0 20892-21551 1", "77", "-5", "0 */4 * * *", URL])
    assert read_text(f"{header}{end}{cells}{end}").rows == (FULL,)


@pytest.mark.parametrize("name", ["url", "URL", "Address", "Link", "product_url", "Product URL", "page", '"url"'])
def test_names_of_the_column_of_addresses(name):
    assert urls(read_text(f"{name}\n{URL},b;c\n")) == [(2, f"{URL},b;c")]


@pytest.mark.parametrize(
    ("charset", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("cp1252", b""),
    ],
)
def test_the_charsets_of_spreadsheets(charset, mark):
    found = read_list(mark + f"url;notes\n{URL};M\u00fcnchen \u20ac\n".encode(charset))
    assert [row.notes for row in found.rows] == ["M\u00fcnchen \u20ac"]


def test_a_line_that_names_the_delimiter_is_left_out():
    assert urls(read_text(f"sep=;\nurl;sku\n{URL};1\n")) == [(3, URL)]


def test_cells_may_be_empty_or_missing():
    found = read_text(f"url,sku,gtin,schedule,priority,notes\n{URL},,,,,\n{URL}1\n")
    assert found.rows == (ImportRow(line=2, url=URL), ImportRow(line=3, url=f"{URL}1"))


def test_columns_that_are_not_read_are_named():
    assert read_text(f"url,Price,sku,\n{URL},9.99,A,\n").not_read == ('the column "Price"',)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (",A,,,", "url: there is no URL"),
        ("nowhere,A,,,", "url: "),
        (f"{URL},{'A' * 256},,,", "sku: it has at most 255"),
        (f"{URL},A\x07,,,", "sku: it has at most 255"),
        (f"{URL},A,123,,", "gtin: "),
        (f"{URL},A,8.85E+11,,", "gtin: .*spreadsheet"),
        (f"{URL},A,020892215519,,", "gtin: "),
        (f"{URL},A,,hourly,", "schedule: "),
        (f"{URL},A,,* * * *,", "schedule: "),
        (f"{URL},A,,0 0 30 2 *,", "schedule: "),
        (f"{URL},A,,*/5 * * * * *,", "schedule: .*five"),
        (f"{URL},A,,,high", "priority: "),
        (f"{URL},A,,,101", "priority: .*100"),
        (f"{URL},A,,,1.5", "priority: "),
        (f"{URL},A,,,1,more", "6 cells, and the first line names 5"),
        (f'{URL},"A,,,', "a quote is not closed"),
        (f'{URL},"A"B,,,', "a quote is not closed, or text follows it"),
        (f"{URL},{'A' * 30_000},,,", "a line has at most 20000"),
    ],
)
def test_a_bad_line_is_refused_with_its_reason_and_the_others_are_read(cells, reason):
    found = read_text(f"url,sku,gtin,schedule,priority\n{URL}1,A,,,1\n{cells}\n{URL}2,B,,,2\n")
    assert urls(found) == [(2, f"{URL}1"), (4, f"{URL}2")]
    [refused] = found.refused
    assert refused.line == 3
    assert len(refused.text) <= 200
    with pytest.raises(ValueError, match=reason):
        raise ValueError(refused.reason)


def test_notes_are_not_longer_than_a_thousand_characters():
    assert reasons(read_text(f"url,notes\n{URL},{'x' * 1001}\n"))[0][0] == 2
    assert len(read_text(f"url,notes\n{URL},{'x' * 1000}\n").rows) == 1


def test_a_note_may_have_several_lines():
    found = read_text(f'url,notes\n{URL},"first\nsecond, ""third"""\n{URL}1,x\n')
    assert [(row.line, row.notes) for row in found.rows] == [(2, 'first\nsecond, "third"'), (4, "x")]


def test_an_open_quote_never_swallows_a_page():
    lines = [f'{URL}{number},"x' if number % 3 == 0 else f"{URL}{number},x" for number in range(30)]
    found = read_text("\n".join(["url,notes", *lines]))
    assert [refused.line for refused in found.refused] == [number + 2 for number in range(30) if number % 3 == 0]
    assert len(found.rows) == 20


def test_a_text_of_several_lines_never_contains_a_page():
    found = read_text(f'url,notes\n{URL}1,"x\n{URL}2,y"\n{URL}3,z\n')
    assert urls(found) == [(3, f"{URL}2"), (4, f"{URL}3")]
    assert reasons(found) == [(2, "a quote is not closed, or text follows it")]


def test_inches_within_a_cell_are_text():
    assert read_text(f'url,notes\n{URL},a 5" barrel\n').rows[0].notes == 'a 5" barrel'


def test_two_columns_of_the_same_meaning_are_refused():
    with pytest.raises(InvalidInput, match='"UPC" and "EAN" mean the same; nothing was imported'):
        read_text(f"url,UPC,EAN\n{URL},1,2\n")


def test_a_list_without_addresses_is_refused():
    with pytest.raises(InvalidInput, match="No column has addresses; nothing was imported"):
        read_text("sku,gtin\nA,020892215511\n")


def test_lists_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(import_rows, "MOST_ROWS", 3)
    monkeypatch.setattr(import_rows, "MOST_SHEET_ROWS", 10)
    three, four = [[f"{URL}{number}"] for number in range(3)], [[f"{URL}{number}"] for number in range(4)]
    assert len(read_list(workbook(["url"], *three)).rows) == 3
    assert len(read_text("url\n" + "\n".join(line for [line] in three)).rows) == 3
    for list_of_four in (
        "\n".join(line for [line] in four).encode(),
        ("url\n" + "\n".join(line for [line] in four)).encode(),
        workbook(["url"], *four),
    ):
        with pytest.raises(InvalidInput, match="more than 3 lines; nothing was imported"):
            read_list(list_of_four)
    monkeypatch.setattr(import_rows, "MOST_BYTES", 1 << 20)
    for body in (b"x" * ((1 << 20) + 1), b"PK\x03\x04" + bytes(1 << 20)):
        with pytest.raises(InvalidInput, match="larger than 1 MB"):
            read_list(body)


def test_long_runs_of_delimiters_take_linear_time():
    """In quadratic time this would not end before the test's time is up."""
    assert read_text(f"{URL}\n" + ", " * 5_000_000).rows[0].url == URL


# -- workbooks ---


def test_a_workbook():
    found = read_list(
        workbook(
            ["URL", "SKU", "GTIN", "Product ID", "Schedule", "Priority", "Notes", "Added"],
            [URL, "00-A,1", "020892215511", 77, "0 */4 * * *", -5.0, "brass; new", dt.date(2026, 1, 2)],
            [],
            [f"{URL}2", 12.5],
            sheets=["More"],
            hidden=["Lists"],
        )
    )
    assert found.rows == (FULL, ImportRow(line=4, url=f"{URL}2", sku="12.5"))
    assert found.refused == ()
    assert found.not_read == ('the column "Added"', 'the sheet "More"')


def test_a_workbook_without_names_of_columns():
    found = read_list(workbook([URL], [f"{URL}1"], ["x"], [f"{URL}2", "A-1"]))
    assert urls(found) == [(1, URL), (2, f"{URL}1")]
    assert [line for line, _ in reasons(found)] == [3, 4]


@pytest.mark.parametrize(
    ("number", "form", "sku"),
    [(123, "00000", "00123"), (123.0, "00000", "00123"), (123456, "00000", "123456"), (123, "#,##0", "123")],
)
def test_a_number_keeps_the_zeros_with_which_it_is_shown(number, form, sku):
    found = read_list(formatted(number, form))
    assert [row.sku for row in found.rows] == [sku]


def test_a_number_that_is_shown_with_zeros_at_its_end_is_refused():
    assert reasons(read_list(formatted(12.5, "0.00"))) == [
        (2, "sku: the number is not stored as it is shown; paste it as text")
    ]


def formatted(number, form):
    """A workbook whose only article number is a number in a format of its own."""
    book = openpyxl.Workbook()
    book.active.append(["url", "sku"])
    book.active.append([URL, number])
    book.active["B2"].number_format = form
    body = io.BytesIO()
    book.save(body)
    return body.getvalue()


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([f'=HYPERLINK("{URL}")', "A"], "url: the cell has a formula"),
        ([URL, "=1+1"], "sku: the cell has a formula"),
        ([URL, True], "sku: the cell has neither text nor a number"),
        ([URL, dt.datetime(2026, 1, 2, tzinfo=None)], "sku: the cell has neither text nor a number"),  # noqa: DTZ001
        ([URL, 1e20], "sku: the number is not stored as it is shown"),
        ([URL, 12345678901234567890], "sku: the number is not stored as it is shown"),
        ([URL, 5e-7], "sku: the number is not stored as it is shown"),
        ([URL, "#N/A"], "sku: the cell has neither text nor a number"),
        (["A", URL], "url: a URL starts with"),
        ([None, "A"], "url: there is no URL"),
        ([URL, "A", "more"], "3 cells, and the first line names 2"),
    ],
)
def test_a_bad_line_of_a_workbook_is_refused_with_its_reason(cells, reason):
    found = read_list(workbook(["url", "sku"], [f"{URL}1", "B"], cells, [f"{URL}2", "C"]))
    assert urls(found) == [(2, f"{URL}1"), (4, f"{URL}2")]
    [(line, refused)] = reasons(found)
    assert line == 3
    assert refused.startswith(reason) or reason in refused


def repacked(body, change):
    """The workbook with each part changed: name and content to content, or to nothing."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if (content := change(name, old.read(name))) is not None:
                new.writestr(name, content)
    return changed.getvalue()


GOOD = workbook(["url"], [URL])


def test_a_bomb_is_refused_by_what_it_says(monkeypatch):
    monkeypatch.setattr(import_rows, "MOST_UNPACKED", 1 << 20)
    bomb = repacked(GOOD, lambda name, content: content + b" " * (2 << 20) if "sheet1" in name else content)
    assert len(bomb) < 50_000
    with pytest.raises(InvalidInput, match="more than 1 MB when it is unpacked"):
        read_list(bomb)


@pytest.mark.parametrize("has_right_checksum", [False, True])
def test_a_bomb_that_names_a_smaller_size_is_read_no_further(has_right_checksum):
    named = 1000

    def change(name, content):
        return content.ljust(50 << 20) if "sheet1" in name else content

    bomb = repacked(GOOD, change)
    with zipfile.ZipFile(io.BytesIO(bomb)) as archive:
        part = archive.getinfo("xl/worksheets/sheet1.xml")
        begin = archive.read(part)[:named]
    bomb = bomb.replace(part.file_size.to_bytes(4, "little"), named.to_bytes(4, "little"))
    if has_right_checksum:
        bomb = bomb.replace(part.CRC.to_bytes(4, "little"), zlib.crc32(begin).to_bytes(4, "little"))
    tracemalloc.start()
    try:
        try:
            found = urls(read_list(bomb))
        except InvalidInput as problem:
            found = str(problem)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    # The named part of the sheet is whole; the blanks behind it are not looked at.
    assert found == [(2, URL)] if has_right_checksum else "cannot be read" in found


def test_parts_that_are_not_text_do_not_count(monkeypatch):
    monkeypatch.setattr(import_rows, "MOST_UNPACKED", 1 << 20)
    picture = io.BytesIO(GOOD)
    with zipfile.ZipFile(picture, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/image1.png", bytes(5 << 20))
    assert urls(read_list(picture.getvalue())) == [(2, URL)]


def test_a_workbook_with_too_many_parts_is_refused(monkeypatch):
    monkeypatch.setattr(import_rows, "MOST_PARTS", 3)
    with pytest.raises(InvalidInput, match="nothing was imported"):
        read_list(GOOD)


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le"])
def test_a_workbook_that_declares_entities_is_refused(charset):
    declaration = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'.encode(charset)
    # The last is behind blanks, so that it begins in one piece of what is read at once and ends in the next.
    for start in (b"", b" " * ((1 << 20) - 4)):
        document = start + declaration
        body = repacked(GOOD, lambda name, content: document + content if "sheet1" in name else content)  # noqa: B023
        with pytest.raises(InvalidInput, match="declares entities"):
            read_list(body)


@pytest.mark.parametrize(
    "body",
    [
        b"PK\x03\x04",
        b"PK\x03\x04" + bytes(1000),
        GOOD[:-100],
        GOOD[: len(GOOD) // 2],
        repacked(GOOD, lambda name, content: None if "workbook.xml" in name else content),
        repacked(GOOD, lambda name, content: b"<a" if "sheet1" in name else content),
        repacked(GOOD, lambda name, content: b""),
    ],
)
def test_a_broken_workbook_is_refused(body):
    with pytest.raises(InvalidInput, match="cannot be read; nothing was imported"):
        read_list(body)


def test_a_workbook_of_an_old_format_is_refused_with_what_to_do():
    with pytest.raises(InvalidInput, match="Save it as XLSX or CSV"):
        read_list(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000))


def test_a_sheet_that_claims_a_million_columns_and_lines_is_read_as_it_is():
    claim = b'<dimension ref="A1:XFD1048576"/>'

    def change(name, content):
        return content.replace(b'<dimension ref="A1:A2"/>', claim) if "sheet1" in name else content

    body = repacked(GOOD, change)
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert claim in archive.read("xl/worksheets/sheet1.xml")
    assert urls(read_list(body)) == [(2, URL)]


def test_a_workbook_is_read_no_further_than_the_most_lines():
    line = b"<row><c t='inlineStr'><is><t>%s%d</t></is></c></row>"

    def change(name, content):
        if "sheet1" not in name:
            return content
        lines = b"".join(line % (URL.encode(), number) for number in range(30_000))
        return content.partition(b"<sheetData>")[0] + b"<sheetData>" + lines + b"<broken"

    with pytest.raises(InvalidInput, match="more than 20,000 lines; nothing was imported"):
        read_list(repacked(GOOD, change))


# -- anything ---


@settings(max_examples=examples(300))
@given(st.binary(max_size=300))
def test_no_file_is_an_unexpected_error(body):
    for text in (body, b"url,sku\n" + body):
        try:
            found = read_list(text)
        except InvalidInput:
            continue
        assert all(row.url.lower().startswith("http") for row in found.rows)


cell = st.text('ab,;|\t"\u00e9 ', max_size=6)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(cell, cell), max_size=6), st.sampled_from(",;\t|"))
def test_what_a_spreadsheet_writes_is_read_as_it_was(cells, delimiter):
    import csv

    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["url", "sku", "notes"])
    for number, (sku, notes) in enumerate(cells):
        writer.writerow([f"{URL}{number}", sku.replace("\t", ""), notes])
    found = read_text(text.getvalue())
    assert not found.refused
    expected = [(sku.replace("\t", "").strip() or None, notes.strip() or None) for sku, notes in cells]
    assert [(row.sku, row.notes) for row in found.rows] == expected


@pytest.mark.parametrize("body", [b"%PDF-1.7\n" + bytes(range(1, 200)) * 20, bytes(range(256)) * 40])
def test_a_file_that_is_no_text_is_refused_as_a_whole(body):
    with pytest.raises(InvalidInput, match="neither a text nor an XLSX workbook"):
        read_list(body)


def test_a_text_in_another_charset_is_still_read():
    assert read_list("https://shop.example/молоток".encode("utf-16")).rows
    stray = read_list(b"https://shop.example/a\x01\nhttps://shop.example/b")
    assert (len(stray.rows), len(stray.refused)) == (1, 1), "a stray byte refuses its line"
