"""Parsing as it would be written for a hundred rows: byte by byte and cell by cell, every rule a call of the kernel.

What the columnar pipeline makes of a file has to equal what this makes of it.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from harvester.feeds.reader.quoting import SAMPLE_BYTES
from harvester.kernel.gtin import normalize_gtin, normalize_isbn
from harvester.kernel.headers import normalize_header
from harvester.kernel.identity import NUMBERS, clean_identifier, identity_of
from harvester.kernel.money import offered_prices, sale_holds_at
from harvester.kernel.network import FROM_ONE_COLUMN, Field
from harvester.kernel.rejects import Fault, Rejected, WarningCode
from harvester.kernel.signature import Content, content_hash, price_signature
from harvester.kernel.stock import Stock, UnknownStock, read_stock
from harvester.kernel.text import trim
from harvester.kernel.urls import canonical_url, identity_url, is_public_url, url_hash

TEXTS = (Field.MPN, Field.BRAND, Field.CATEGORY, Field.DESCRIPTION, Field.PROMOTION)


@dataclass
class Slow:
    """What a file comes to."""

    rows: list[dict] = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    lines: dict = field(default_factory=dict)
    rows_read: int = 0

    def note(self, code, line):
        self.counts[code] += 1
        self.lines.setdefault(code, []).append(line)


def slow_parse(data, network, settings, *, delimiter, quoted):
    """Parse a file in UTF-8 with line feeds; the first line is the header."""
    columns = len(slow_record(data, 0, delimiter.encode())[0])
    records = list(slow_records(data, delimiter.encode(), quoted=quoted, columns=columns))
    header = [name.decode() for name in records[0][2]]
    places = slow_places(header, network)
    slow = Slow()
    quoted_places = None
    for line, raw, fields in records[1:]:
        if not raw.strip(b" \r\n"):
            continue
        slow.rows_read += 1
        if quoted and fields and len(fields) == columns:
            cells = slow_raw_cells(raw, delimiter.encode())
            torn = slow_torn(raw, delimiter.encode())
            inside = {place for place, cell in enumerate(cells) if b'"' in cell and not cell.startswith(b'"')}
            if quoted_places is None:
                quoted_places = slow_quoted(data[len(records[0][1]) :][:SAMPLE_BYTES], delimiter.encode(), columns)
            if torn & quoted_places[0] or inside & quoted_places[1]:
                slow.note(Fault.ROW_DELIMITER.code, line)
                continue
        try:
            row, warnings = slow_row(slow_cells(fields, len(header)), places, network, settings)
        except Rejected as refusal:
            slow.note(refusal.code, line)
        else:
            slow.rows.append({"line": line, **row})
            for code in warnings:
                slow.note(code, line)
    return slow


def slow_records(data, delimiter, *, quoted, columns=None):
    """Line number, bytes and fields of each record; no fields if the quotes are wrong."""
    position, line = 0, 1
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        if not quoted:
            yield line, data[position:end], data[position:end].removesuffix(b"\r").split(delimiter)
            position, line = end + 1, line + 1
            continue
        try:
            fields, behind = slow_record(data, position, delimiter)
        except AssertionError:
            if not are_rows(data[end + 1 :], delimiter, columns):
                raise
            fields, behind = None, None
        behind = behind or end + 1
        yield line, data[position:behind], fields
        line += data.count(b"\n", position, behind)
        position = behind


def are_rows(data, delimiter, columns):
    """Whether every line is a record by itself, with all its fields."""
    for line in data.rstrip(b" \r\n").split(b"\n"):
        try:
            fields, _ = slow_record(line + b"\n", 0, delimiter)
        except AssertionError:
            return False
        if fields is None or len(fields) != columns:
            return False
    return True


def slow_record(data, position, delimiter):
    fields, current = [], bytearray()
    state = "start"
    while position < len(data):
        byte = data[position : position + 1]
        at_end = byte == b"\n" or data[position : position + 2] == b"\r\n"
        if state == "inside" and byte == b'"':
            state = "behind"
        elif state == "inside" or (state == "behind" and byte == b'"'):
            current += byte
            state = "inside"
        elif byte == delimiter or at_end:
            fields.append(bytes(current))
            current.clear()
            state = "start"
            if at_end:
                return fields, position + (1 if byte == b"\n" else 2)
        elif state == "behind":
            return None, None
        elif state == "start" and byte == b'"':
            state = "inside"
        else:
            current += byte
            state = "plain"
        position += 1
    raise AssertionError("the file ends inside a record")


def slow_raw_cells(raw, delimiter):
    """The cells of a record with their quotes."""
    cells, is_inside = [b""], False
    for byte in raw.removesuffix(b"\n").removesuffix(b"\r"):
        one = bytes([byte])
        if one == delimiter and not is_inside:
            cells.append(b"")
            continue
        cells[-1] += one
        if one == b'"' and cells[-1].startswith(b'"'):
            is_inside = not is_inside
    return cells


def slow_torn(raw, delimiter):
    """Places behind a cell with a quote inside that opens a text which ends exactly where a later cell does."""
    cells = slow_raw_cells(raw, delimiter)
    return {
        place + 1
        for place, cell in enumerate(cells)
        for start, byte in enumerate(cell)
        if byte == 34 and not cell.startswith(b'"') and cell[start:].strip(b'"')
        if slow_ends_later(cell[start + 1 :], cells[place + 1 :])
    }


def slow_ends_later(rest, later):
    for number, cell in enumerate([rest, *later]):
        place = 0
        while place < len(cell):
            if cell[place : place + 2] == b'""':
                place += 2
            elif cell[place : place + 1] == b'"':
                return number > 0 and place == len(cell) - 1
            else:
                place += 1
    return False


def slow_quoted(rows, delimiter, columns):
    """Places with a cell in quotes, and those with such cells alone, in rows of a sample that have all their cells."""
    table, position = [], 0
    rows = rows[: rows.rfind(b"\n") + 1] or rows + b"\n"
    while position < len(rows):
        try:
            fields, behind = slow_record(rows, position, delimiter)
        except AssertionError:
            fields = None
        if fields is None:
            behind = rows.index(b"\n", position) + 1
        elif len(fields) == columns:
            table.append(slow_raw_cells(rows[position:behind], delimiter))
        position = behind
    kinds = [Counter(map(slow_kind, cells)) for cells in zip(*table, strict=True)]
    always = {
        place for place, kind in enumerate(kinds) if not kind["plain"] and kind["quoted"] > max(1, kind["inside"])
    }
    return {place for place, kind in enumerate(kinds) if kind["quoted"]}, always


def slow_kind(cell):
    if cell.startswith(b'"'):
        return "quoted"
    return "inside" if b'"' in cell else "plain" if cell.strip() else "empty"


def slow_cells(fields, columns):
    if fields is None:
        raise Rejected(Fault.ROW_QUOTES)
    try:
        text = [part.decode() for part in fields]
    except UnicodeDecodeError:
        raise Rejected(Fault.ROW_UNDECODABLE) from None
    if any("\0" in part for part in text):
        raise Rejected(Fault.ROW_NUL)
    if len(text) != columns:
        raise Rejected(Fault.ROW_RAGGED)
    return text


def slow_places(header, network):
    """Field -> the columns that it may stand in, the best first."""
    columns = [normalize_header(column) for column in header]
    found = {}
    for meant in Field:
        names = [normalize_header(alias) for alias in network.aliases.get(meant, ())]
        places = [place for name in names for place, column in enumerate(columns) if column == name]
        found[meant] = places[:1] if meant in FROM_ONE_COLUMN else places
        found[meant, "spare"] = places[1:]
    return found


def slow_row(texts, places, network, settings):
    def all_of(meant):
        return [texts[place] for place in places[meant]]

    def one(meant):
        return next((text for text in all_of(meant) if trim(text)), "")

    def charged(meant):
        given = [text for text in all_of(meant) if trim(text)]
        return next((text for text in given if not re.fullmatch("[^1-9]*0[^1-9]*", text, re.DOTALL)), one(meant))

    numbers = [*all_of(Field.GTIN), *all_of(Field.ISBN)]
    if any(len(trim(text)) > 100_000 for text in [*map(one, Field), *numbers]):
        raise Rejected(Fault.TEXT_TOO_LONG)
    if not trim(one(Field.TITLE)):
        raise Rejected(Fault.NO_TITLE)
    landing = one(Field.LANDING_URL) or one(Field.URL)
    links = replace(
        network.links, kept_names=frozenset(settings.kept_parameters), allowed_networks=settings.allowed_networks
    )
    url = canonical_url(landing, links)
    offered = slow_prices(one, all_of, charged, settings)
    item_id, sku = clean_identifier(one(Field.ITEM_ID)), clean_identifier(one(Field.SKU))
    identity = identity_of(item_id=item_id, sku=sku, url=landing, rules=links)
    gtin, bad_gtin = slow_gtin(all_of(Field.GTIN), all_of(Field.ISBN))
    image = trim(one(Field.IMAGE_URL))
    link = trim(one(Field.URL) or one(Field.LANDING_URL))
    stock = read_stock(one(Field.STOCK))
    is_unknown = bool(all_of(Field.STOCK)) and stock is Stock.UNKNOWN
    if is_unknown and settings.unknown_stock is UnknownStock.REJECT:
        raise Rejected(Fault.STOCK_UNREADABLE)
    means_out = is_unknown and settings.unknown_stock is UnknownStock.OUT_OF_STOCK
    in_stock = stock is not Stock.OUT and not means_out
    content = {
        "title": trim(one(Field.TITLE)),
        "url": url,
        "tracked_url": link if link != url and is_public_url(link, links) else None,
        "image_url": image if is_public_url(image, links) else None,
        "item_id": item_id or slow_spare(all_of((Field.ITEM_ID, "spare"))),
        "sku": sku or slow_spare(all_of((Field.SKU, "spare"))),
        "gtin": gtin,
        "url_hash": url_hash(identity_url(landing, links)),
        **{meant.value: trim(one(meant)) or None for meant in TEXTS},
    }
    promotion = content.pop("promotion")
    renamed = {("image" if name == "image_url" else name): value for name, value in content.items()}
    row = {
        **content,
        "identity_type": NUMBERS[identity.type],
        "identity_value": identity.value,
        "promotion": promotion,
        "amount": offered.price.amount,
        "currency": offered.price.currency,
        "original_amount": offered.original.amount if offered.original else None,
        "in_stock": in_stock,
        "content_hash": content_hash(Content(**renamed)),
        "signature": price_signature(offered.price, in_stock=in_stock, original=offered.original, promotion=promotion),
    }
    noticed = {
        WarningCode.UNKNOWN_STOCK: is_unknown,
        WarningCode.BAD_GTIN: bad_gtin,
        WarningCode.BAD_IMAGE_URL: bool(image) and not is_public_url(image, links),
    }
    return row, [*offered.warnings, *(code for code, is_so in noticed.items() if is_so)]


def slow_spare(texts):
    try:
        return clean_identifier(next((text for text in texts if trim(text)), "")) or None
    except Rejected:
        return None


def slow_prices(one, all_of, charged, settings):
    sale = charged(Field.SALE_PRICE)
    if sale and not sale_holds_at(one(Field.SALE_PERIOD), settings.moment):
        sale = ""
    currency = " ".join(trim(text) for text in all_of(Field.CURRENCY))
    return offered_prices(
        sale,
        charged(Field.LIST_PRICE),
        charged(Field.ORIGINAL_PRICE),
        currency=currency if trim(currency) else trim(one(Field.CURRENCY_SYMBOL)),
        default_currency=settings.default_currency,
        decimal_style=settings.decimal_style,
    )


def slow_gtin(gtins, isbns):
    results = [result for result in (*map(normalize_gtin, gtins), *map(normalize_isbn, isbns)) if result]
    ranked = sorted(results, key=lambda result: not result.valid)
    number = next((result.kept for result in ranked if result.kept), None)
    return number, bool(results) and not ranked[0].valid
