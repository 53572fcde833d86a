"""Parsing: from the bytes of a catalog to rows that can be matched.

    bytes ─ encoding ─ UTF-8 ─ dialect ─ header, binding
                          └─── blocks ── records ─ columns ─ rows ─ frames of valid rows
                                 │ ragged, too long,   │ faults and warnings,
                                 └ undecodable         └ counted, with samples

`Parsing` is the door; `finishing.SCHEMA` is what comes out. With `known` rows of an earlier file, only records that are
new are parsed.
"""

from harvester.pipeline.parse.finishing import ROW_COLUMNS, SCHEMA
from harvester.pipeline.parse.reading import TEST_ROWS, ParseLimits, ParseReport, Parsing, file_chunks, parse_file
from harvester.pipeline.parse.rows import ParseSettings

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
