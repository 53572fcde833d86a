"""Small feeds for tests about parsing."""

from datetime import UTC, datetime

import polars as pl

from harvester.feeds.networks import network_named
from harvester.feeds.reader import SCHEMA, ParseSettings, Parsing

MOMENT = datetime(2025, 6, 1, tzinfo=UTC)
HEADER = ["SKU", "Name", "Url", "Price", "Currency", "Availability"]


def row(number, **changed):
    """A good row; its price in cents is its number."""
    cells = {
        "SKU": f"S-{number}",
        "Name": f"Thing {number}",
        "Url": f"https://shop.example/p/{number}",
        "Price": f"{number // 100}.{number % 100:02}",
        "Currency": "USD",
        "Availability": "in stock",
    }
    return [(cells | changed)[name] for name in HEADER]


def feed(*rows, header=HEADER, delimiter="\t", line_end="\n"):
    return "".join(delimiter.join(cells) + line_end for cells in [header, *rows])


def quoted_feed(*rows, header=HEADER, delimiter=",", line_end="\n"):
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in cells] for cells in [header, *rows]]
    return "".join(delimiter.join(cells) + line_end for cells in quoted)


def parse(data, *, network="impact", chunk=None, settings=None, **options):
    """All valid rows of a feed as one frame, and the report."""
    data = data.encode() if isinstance(data, str) else data
    chunks = [data[start : start + chunk] for start in range(0, len(data), chunk)] if chunk else [data]
    parsing = Parsing(chunks, network_named(network), settings or ParseSettings(moment=MOMENT), **options)
    frames = list(parsing)
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA), parsing.report


def cents(frame):
    """The amounts in cents by SKU."""
    return {sku: int(amount * 100) for sku, amount in frame.select("sku", "amount").iter_rows()}


def lines(report):
    """Lines of the samples by code."""
    return {code.value: [sample.line for sample in kept] for code, kept in report.findings.samples.items()}


def counts(report):
    return {code.value: count for code, count in report.findings.counts.items()}
