"""The reader: from the bytes of a catalog to rows that can be matched.

    bytes ─ encoding ─ UTF-8 ─ dialect ─ header, binding
                          └─── blocks ── records ─ columns ─ rows ─ frames of valid rows
                                 │ ragged, too long,   │ faults and warnings,
                                 └ undecodable         └ counted, with samples

`Parsing` is the interface; the columns of its rows are in `output_rows.SCHEMA`. With a row cache of an earlier file,
only new records are parsed.
"""

from harvester.feeds.reader.output_rows import ROW_COLUMNS, SCHEMA
from harvester.feeds.reader.parser import TEST_ROWS, ParseLimits, ParseReport, Parsing, file_chunks, parse_file
from harvester.feeds.reader.rows import ParseSettings

__all__ = [
    "ROW_COLUMNS",
    "SCHEMA",
    "TEST_ROWS",
    "ParseLimits",
    "ParseReport",
    "ParseSettings",
    "Parsing",
    "file_chunks",
    "parse_file",
]
