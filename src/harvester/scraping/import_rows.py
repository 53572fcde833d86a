"""Reads lists of product pages that people paste or upload: text, CSV and XLSX.

Bad lines are refused with their number and a reason, and good ones are kept. Nothing is guessed: what could be read in
two ways is refused, and formulas are never evaluated.
"""

import codecs
import csv
import io
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, Final

import openpyxl

from harvester.engine.cron import next_moment
from harvester.kernel.errors import ConfigError, InvalidInput
from harvester.kernel.gtin import normalize_gtin
from harvester.kernel.text import CONTROLS, trim
from harvester.kernel.urls import split_url

#: Bytes of a file or text; 20,000 lines with an address have about 2 MB.
MOST_BYTES: Final = 20 * 2**20
#: Lines; a sheet is read no further, because somebody waits for the response.
MOST_ROWS: Final = 20_000
#: Bytes of a workbook's parts when they are unpacked, and how many parts there are.
MOST_UNPACKED: Final = 100 * 2**20
MOST_PARTS: Final = 1000
#: Lines of a sheet that are looked at, empty ones included.
MOST_SHEET_ROWS: Final = 200_000
#: Up to here every whole number is exact in the numbers of a spreadsheet.
EXACT_FLOATS: Final = 2**53
#: Columns that are looked at.
MOST_COLUMNS: Final = 50
#: Characters of a line, of an article number, and of a note.
LONGEST_LINE, LONGEST_NUMBER, LONGEST_NOTE = 20_000, 255, 1000
#: Lines that a text in quotes may have; a quote that is never closed would swallow the rest of the file.
MOST_QUOTED_LINES: Final = 10
#: Characters of a refused line that are shown.
SHOWN: Final = 200
#: Field -> lowest and highest value.
NUMBERS: Final = {"harvester_id": (1, 10**18 - 1), "priority": (-100, 100)}
DELIMITERS: Final = "\t;,|"
CRON_FIELDS: Final = 5

#: Names of columns, in lower case and without anything but letters -> the field.
COLUMNS: Final = {
    **dict.fromkeys(("url", "address", "link", "producturl", "productlink", "page", "pageurl", "webaddress"), "url"),
    **dict.fromkeys(("sku", "articlenumber", "itemnumber"), "sku"),
    **dict.fromkeys(("gtin", "upc", "ean", "barcode"), "gtin"),
    **dict.fromkeys(("productid", "pid"), "product_id"),
    **dict.fromkeys(("harvesterid", "harvesterproductid"), "harvester_id"),
    **dict.fromkeys(("schedule", "cron"), "schedule"),
    "priority": "priority",
    **dict.fromkeys(("notes", "note", "comment", "comments"), "notes"),
}
_HELP: Final = (
    "Name the columns in the first line: url, sku, gtin, product id, harvester id, schedule, priority, notes."
)
#: Begins only where a run of delimiters does: otherwise a long run would be looked at from each of its characters.
_NEXT_ADDRESS: Final = re.compile(r"(?<![\s,;|])[\s,;|]+(?=[Hh][Tt][Tt][Pp][Ss]?://)")
#: The end of "https://shop.example/a,B-12" may belong to the address or be an article number.
_AMBIGUOUS_END: Final = re.compile(r"[,;|][^,;|/.=&]*$")
#: Bytes that no text has but by accident, and the share of them above which a file is none; some tools pad with NUL.
_BINARY: Final = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
MOST_BINARY, FEW_BINARY = 0.01, 10
_MARKS: Final = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, kw_only=True)
class ImportRow:
    """A page to be read, as somebody listed it.

    Attributes:
        line: its number in the file, from 1.
        url: as given.
        sku, gtin, product_id: by which the page is linked to a product of a feed; the id is the shop's own.
        harvester_id: the product itself, by its id in Harvester; it wins over the others.
        schedule: a cron line in UTC; none: that of the source.
        priority: higher is read first.
        notes: for people.
    """

    line: int
    url: str
    sku: str | None = None
    gtin: str | None = None
    product_id: str | None = None
    harvester_id: int | None = None
    schedule: str | None = None
    priority: int | None = None
    notes: str | None = None


@dataclass(frozen=True, kw_only=True)
class RefusedLine:
    """A line that is not imported, and why."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ImportedList:
    """What a list contains.

    Attributes:
        rows: the good lines in their order.
        refused: the bad lines in their order.
        not_read: columns and sheets that were not looked at, such as 'the column "Price"'.
    """

    rows: tuple[ImportRow, ...]
    refused: tuple[RefusedLine, ...]
    not_read: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Line:
    """The cells of a line, why the line is refused whatever they are, and why single cells cannot be used."""

    number: int
    cells: Sequence[str]
    fault: str = ""
    faults: Mapping[int, str] = field(default_factory=dict)


def read_list(body: bytes) -> ImportedList:
    """Read an uploaded file: a workbook if it is one, otherwise text or CSV.

    Raises:
        InvalidInput: it is too large, not readable as a whole, or its columns are not clear.
    """
    _check_size(len(body))
    if body.startswith(b"PK\x03\x04"):
        return _read_workbook(body)
    if body.startswith(b"\xd0\xcf\x11\xe0"):
        raise InvalidInput("This is a workbook of an old format or with a password. Save it as XLSX or CSV.")
    if not body.startswith(tuple(_MARKS)) and len(_BINARY.findall(body)) > max(len(body) * MOST_BINARY, FEW_BINARY):
        raise InvalidInput("This is neither a text nor an XLSX workbook; nothing was imported. Save it as XLSX or CSV.")
    return read_text(_decoded(body))


def read_text(text: str) -> ImportedList:
    """Read pasted text or CSV: one address per line, or columns that are named in the first line.

    Raises:
        InvalidInput: it is too large, or its columns are not clear.
    """
    _check_size(len(text))
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").split("\n")
    # The first line of some spreadsheets names the delimiter, which the names of columns show anyway.
    first = next((place for place, line in enumerate(lines) if not re.fullmatch(r'\s*("?sep=.?"?)?\s*', line)), None)
    if first is None:
        return ImportedList(rows=(), refused=())
    delimiter = _header_delimiter(lines[first])
    if delimiter is None:
        return _read_addresses(lines)
    header = next(csv.reader([lines[first]], delimiter=delimiter)) if delimiter else [lines[first]]
    return _read_table(header, _split(lines, first + 1, delimiter))


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise InvalidInput(f"The list is larger than {MOST_BYTES >> 20} MB; nothing was imported. Split it.")


def _check_rows(count: int) -> None:
    if count > MOST_ROWS:
        raise InvalidInput(f"it has more than {MOST_ROWS:,} lines; nothing was imported. Split it.", field="file")


def _decoded(body: bytes) -> str:
    for mark, charset in _MARKS.items():
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError:
        # What spreadsheets write; only notes have anything but ASCII.
        return body.decode("cp1252", "replace")


def _header_delimiter(line: str) -> str | None:
    """Return the delimiter by which most columns have a known name; empty for one column, none if there is no header.

    The addresses of one column may have any delimiter in them.
    """
    if "://" in line:
        return None
    names = {delimiter: sum(_field_of(name) is not None for name in line.split(delimiter)) for delimiter in DELIMITERS}
    best = max(names, key=lambda delimiter: names[delimiter])
    if not names[best]:
        return None
    return best if best in line else ""


def _field_of(column: str) -> str | None:
    return COLUMNS.get(re.sub("[^a-z]", "", column.lower()))


def _read_addresses(lines: Sequence[str]) -> ImportedList:
    """Read lines of addresses without names of columns; several in a line are possible."""
    rows, refused = [], []
    for number, line in enumerate(lines, 1):
        for piece in _NEXT_ADDRESS.split(line):
            text = trim(piece).rstrip(",;|").strip('"<> \t')
            if not text:
                continue
            found: ImportRow | str
            if re.search(r'[\s"]', text):
                found = f"there is more than an address. {_HELP}"
            elif _AMBIGUOUS_END.search(text):
                found = f"the end may belong to the address or be another column. {_HELP}"
            else:
                found = _row(number, {"url": text})
            if isinstance(found, str):
                refused.append(RefusedLine(line=number, text=trim(piece)[:SHOWN], reason=found))
            else:
                rows.append(found)
            _check_rows(len(rows) + len(refused))
    return ImportedList(rows=tuple(rows), refused=tuple(refused))


def _split(lines: Sequence[str], start: int, delimiter: str) -> Iterator[_Line]:
    """Split the lines of a CSV file into cells."""
    place = start
    while place < len(lines):
        line, number, count = lines[place], place + 1, 1
        if not line.strip():
            pass
        elif len(line) > LONGEST_LINE:
            yield _Line(number=number, cells=[line], fault=f"a line has at most {LONGEST_LINE} characters")
        elif not delimiter:
            yield _Line(number=number, cells=[line.strip().strip('"')])
        elif (found := _record(lines[place : place + MOST_QUOTED_LINES], delimiter)) is None:
            yield _Line(number=number, cells=[line], fault="a quote is not closed, or text follows it")
        else:
            cells, count = found
            yield _Line(number=number, cells=cells)
        place += count


def _record(lines: Sequence[str], delimiter: str) -> tuple[list[str], int] | None:
    """Return the cells of the first line, and of how many lines they are; none if a quote is never closed."""
    for count in range(1, len(lines) + 1):
        if count > 1 and "://" in lines[count - 1]:
            return None  # a page that an open quote would swallow
        record = [f"{line}\n" for line in lines[:count]]
        try:
            return next(csv.reader(record, delimiter=delimiter, strict=True)), count
        except csv.Error:
            continue
    return None


def _read_table(header: Sequence[str], lines: Iterable[_Line]) -> ImportedList:
    """Read lines whose columns are named."""
    names = [trim(name) for name in header[:MOST_COLUMNS]]
    fields = [_field_of(name) for name in names]
    for twice in sorted({name for name in fields if name and fields.count(name) > 1}):
        same = " and ".join(f'"{name}"' for name, found in zip(names, fields, strict=True) if found == twice)
        raise InvalidInput(f"The columns {same} mean the same; nothing was imported. Rename or remove one.")
    if "url" not in fields:
        raise InvalidInput(f"No column has addresses; nothing was imported. {_HELP}")
    rows, refused = [], []
    for line in lines:
        used = {place: name for place, name in enumerate(fields) if name and place < len(line.cells)}
        found: ImportRow | str = line.fault
        if not found:
            found = next((f"{name}: {line.faults[place]}" for place, name in used.items() if place in line.faults), "")
        if not found and any(map(trim, line.cells[len(header) :])):
            found = f"there are {len(line.cells)} cells, and the first line names {len(header)}. {_HELP}"
        found = found or _row(line.number, {name: line.cells[place] for place, name in used.items()})
        if isinstance(found, str):
            refused.append(RefusedLine(line=line.number, text=" | ".join(line.cells)[:SHOWN], reason=found))
        else:
            rows.append(found)
        _check_rows(len(rows) + len(refused))
    not_read = tuple(
        f'the column "{name[:50]}"' for name, known in zip(names, fields, strict=True) if name and not known
    )
    return ImportedList(rows=tuple(rows), refused=tuple(refused), not_read=not_read)


def _row(line: int, cells: Mapping[str, str]) -> ImportRow | str:
    """Return the page of a line, or why it is refused."""
    given = {name: trim(cell) for name, cell in cells.items() if trim(cell)}
    try:
        url = str(split_url(given.get("url")))
    except InvalidInput as problem:
        return f"url: {problem.reason}"
    for name, longest in (("sku", LONGEST_NUMBER), ("product_id", LONGEST_NUMBER), ("notes", LONGEST_NOTE)):
        value = given.get(name, "")
        if len(value) > longest or (name != "notes" and re.search(CONTROLS, value)):
            return f"{name}: it has at most {longest} characters and no control characters"
    gtin = normalize_gtin(given.get("gtin"))
    if gtin and not gtin.valid:
        return "gtin: this is not a GTIN, UPC or EAN; a spreadsheet may have changed its digits"
    schedule = given.get("schedule")
    if schedule and not _is_cron(schedule):
        return "schedule: write a cron line with five fields in UTC, such as 0 */4 * * *"
    for name, (lowest, highest) in NUMBERS.items():
        text = given.get(name, "1")
        if not re.fullmatch("[+-]?[0-9]{1,18}", text) or not lowest <= int(text) <= highest:
            return f"{name}: write a whole number from {lowest} to {highest}"
    return ImportRow(
        line=line,
        url=url,
        sku=given.get("sku"),
        gtin=gtin.value if gtin else None,
        product_id=given.get("product_id"),
        harvester_id=int(given["harvester_id"]) if "harvester_id" in given else None,
        schedule=schedule,
        priority=int(given["priority"]) if "priority" in given else None,
        notes=given.get("notes"),
    )


def _is_cron(text: str) -> bool:
    if len(text.split()) != CRON_FIELDS:
        return False
    try:
        next_moment(text, datetime.now(UTC))
    except ConfigError:
        return False
    return True


# -- workbooks ------------------------------------------------------------------------------------------------------


def _read_workbook(body: bytes) -> ImportedList:
    with tempfile.TemporaryFile() as copy, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and the like
        try:
            _copy_parts(body, copy)
            book = openpyxl.load_workbook(copy, read_only=True)
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            lines = list(_sheet_lines(sheets[0])) if sheets else []
        except InvalidInput:
            raise
        except Exception:  # noqa: BLE001 - zipfile and openpyxl raise whatever a broken file provokes
            raise InvalidInput("The workbook cannot be read; nothing was imported. Save it again, or as CSV.") from None
    others = tuple(f'the sheet "{sheet.title}"' for sheet in sheets[1:])
    if not lines:
        return ImportedList(rows=(), refused=(), not_read=others)
    header = lines[0].cells
    if any(map(_field_of, header)) and not any("://" in name for name in header):
        width = max(place for place, name in enumerate(header, 1) if trim(name))
        found = _read_table(header[:width], lines[1:])
    else:
        found = _read_table(["url"], lines)
    return replace(found, not_read=found.not_read + others)


def _copy_parts(body: bytes, copy: IO[bytes]) -> None:
    """Copy the texts of a workbook into an archive that is what it says.

    An archive may unpack to a thousand times its size, also if it names a smaller size: each part is read in pieces,
    and no further than the named size.
    """
    with zipfile.ZipFile(io.BytesIO(body)) as archive, zipfile.ZipFile(copy, "w") as target:
        parts = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels"))]
        if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
            raise InvalidInput(
                f"The workbook has more than {MOST_UNPACKED >> 20} MB when it is unpacked; nothing was imported. "
                "Save the addresses as CSV."
            )
        for part in parts:
            with archive.open(part) as packed, target.open(part.filename, "w") as plain:
                end = b""
                while piece := packed.read(2**20):
                    # No program declares entities in a workbook; they could let its texts multiply.
                    if b"<!DOCTYPE" in (end + piece).replace(b"\0", b""):
                        raise InvalidInput("The workbook declares entities; nothing was imported. Save it as CSV.")
                    end = piece[-20:]
                    plain.write(piece)


def _sheet_lines(sheet: Any) -> Iterator[_Line]:
    """Return the lines of a sheet that have anything, as texts."""
    # A file may claim any size; without a claim, lines end where the sheet does.
    sheet.reset_dimensions()
    count = 0
    for number, row in enumerate(islice(sheet.iter_rows(max_col=MOST_COLUMNS), MOST_SHEET_ROWS), 1):
        cells: list[str] = []
        faults = {}
        for place, cell in enumerate(row):
            value = cell.value
            if cell.data_type == "f":
                faults[place] = "the cell has a formula; paste it as a value"
            elif cell.data_type == "e" or isinstance(value, bool) or not isinstance(value, str | int | float | None):
                faults[place] = "the cell has neither text nor a number"
            elif isinstance(value, int | float):
                # A number may be shown with zeros in front or behind, and only they make it the article number.
                form, is_whole = cell.number_format or "General", float(value).is_integer()
                if abs(value) >= EXACT_FLOATS or "e" in str(value) or not (is_whole or form == "General"):
                    faults[place] = "the number is not stored as it is shown; paste it as text"
                elif is_whole:
                    value = str(int(value)).zfill(len(form) if re.fullmatch("0+", form) else 1)
            if value is not None:
                cells += [""] * (place - len(cells)) + [str(value)]
        if any(map(trim, cells)):
            count += 1
            _check_rows(count - 1)
            yield _Line(number=number, cells=cells, faults=faults)
