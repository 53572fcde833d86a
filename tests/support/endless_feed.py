"""Parses a feed that is made up while it is read, and prints what came of it and the memory that it took.

Usage: python -m tests.support.endless_feed rows COUNT | field BYTES | lines BYTES
"""

import json
import sys
from pathlib import Path

from harvester.feeds.networks import network_named
from harvester.feeds.reader import ParseLimits, ParseSettings, Parsing
from tests.support.feeds import HEADER, MOMENT, feed, quoted_feed, row

CHUNK = 1024 * 1024


def many_rows(count):
    """Rows of half a kilobyte, so that few of them fill more blocks than are read side by side."""
    yield feed(header=[*HEADER, "Description"]).encode()
    for start in range(0, count, 1000):
        rows = ([*row(number), f"{number} words " * 40] for number in range(start + 1, start + 1001))
        yield "".join("\t".join(cells) + "\n" for cells in rows).encode()


def one_field(size, filling=b"x"):
    """Good rows around one row with a field of that size."""
    yield quoted_feed(row(101)).encode()
    yield b'"S-102","'
    for _ in range(size // CHUNK):
        yield filling * (CHUNK // len(filling))
    yield b'","https://shop.example/p/102","1.02","USD","in stock"\n'
    yield quoted_feed(row(103)).partition("\n")[2].encode()


def peak_memory():
    """In megabytes. What getrusage says may be the peak of the process that started this one."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def main(kind, amount):
    sources = {
        "rows": many_rows,
        "field": one_field,
        "lines": lambda size: one_field(size, b"a description of many lines\n"),
    }
    parsing = Parsing(
        sources[kind](amount),
        network_named("impact"),
        ParseSettings(moment=MOMENT),
        limits=ParseLimits(rows=10**9, products=10**9),
    )
    cents = [int(amount * 100) for frame in parsing for amount in frame["amount"].tail(3)]
    found = {
        "cents": cents[-3:],
        "counts": parsing.report.findings.counts,
        "lines": {code: [sample.line for sample in kept] for code, kept in parsing.report.findings.samples.items()},
        "rows_read": parsing.report.rows_read,
        "peak_mb": peak_memory(),
    }
    print(json.dumps(found))  # noqa: T201 - it is read by the test


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
