"""The row cache: whatever is cached of the last file, the rows of the next file are exactly the same."""

from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_network

import numpy as np
import polars as pl
import pytest
from tests.support.dirty_feeds import dirty_row, seeded, write_feed
from tests.support.feeds import HEADER as PLAIN_HEADER
from tests.support.feeds import MOMENT, feed, quoted_feed, row
from tests.support.generated import seeds
from tests.support.small_disk import files_no_larger_than

from harvester.feeds.networks import network_named
from harvester.feeds.reader import ROW_COLUMNS, ParseLimits, ParseSettings, Parsing
from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.quoting import SAMPLE_BYTES
from harvester.feeds.reader.row_cache import reuse
from harvester.feeds.reader.row_cache.file import KEY, MAGIC, CachedRows, CacheWriter, Hashes, hash_records
from harvester.feeds.reader.row_cache.reuse import FIRST_BLOCKS, RowCache
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.network import Field
from harvester.kernel.stock import UnknownStock

HEADER = [
    *("Unique Merchant SKU", "Product Name", "Product URL", "Image URL", "Current Price", "Original Price", "Currency"),
    *("Stock Availability", "EAN", "MPN", "Manufacturer", "Category", "Description", "Promotions"),
]
DIALECTS = [("\t", "none"), (",", "needed"), ("|", "all"), (";", "needed")]
ROWS = 250


class Caching:
    """A place for the cached rows of the last file."""

    def __init__(self, directory):
        self.path = directory / "rows"
        self._part = directory / "part"

    def parse(self, data, settings=None, *, network="impact", uses=True, **options):
        """Return rows, report, and the lines of cached rows."""
        settings = settings or ParseSettings(moment=MOMENT)
        parsing = Parsing([data], network_named(network), settings, **{"encoding": "utf-8", **options})
        if not uses or parsing.key is None:
            return taken(parsing)
        kept = CachedRows.open(self.path, parsing.key)
        with CacheWriter(self._part, parsing.key) as writer:
            parsing.use(RowCache(kept, writer))
            result = taken(parsing)
        if kept:
            kept.close()
        writer.publish(self.path)
        return result


def taken(parsing):
    parts = list(parsing.parts())
    rows = pl.concat([part.rows.select(ROW_COLUMNS) for part in parts])
    parsed = {line for part in parts for line in part.parsed["line"].to_list()}
    known = set(rows["line"].to_list()) - parsed
    assert len(known) == sum(part.cached for part in parts)
    return rows, parsing.report, known


def figures(report):
    found, duplicates = report.findings, report.duplicates
    return {
        "rows": (report.rows_read, report.rows_valid, report.encoding),
        "counts": dict(found.counts),
        "samples": {code: kept for code, kept in found.samples.items() if kept},
        "products": (duplicates.products, duplicates.url_hash_products),
        "lost": (duplicates.superseded.to_list(), duplicates.samples),
    }


@pytest.fixture
def caching(tmp_path):
    return Caching(tmp_path)


def mixed_row(rng, number):
    """Return a row that is mostly valid."""
    dirty = dirty_row(rng, HEADER)
    clean = [
        *(f"N-{number}", f"Thing {number}, red", f"https://shop.example/p/{number}?utm_source=x", "", "19.99", "25.00"),
        *("USD", rng.choice(["InStock", "OutofStock"]), "", f"M-{number}", "Acme", "Tools", "text", ""),
    ]
    if rng.random() < 0.6:
        return clean
    if rng.random() < 0.5:
        return [mine if rng.random() < 0.85 else theirs for mine, theirs in zip(clean, dirty, strict=True)]
    return [f"N-{rng.randint(0, number)}" if rng.random() < 0.3 else dirty[0], *dirty[1:]]


def mutated(rng, table):
    """Return the table of the next day: with removed, new, changed, moved and repeated rows."""
    table = [cells for cells in table if rng.random() > 0.03]
    for _ in range(len(table) // 25):
        place = rng.randrange(len(table))
        kind = rng.random()
        if kind < 0.3:
            table[place] = [*table[place][:4], f"{rng.randint(1, 9999) / 100}", *table[place][5:]]
        elif kind < 0.5:
            table.insert(place, mixed_row(rng, rng.randint(1000, 2000)))
        elif kind < 0.7:
            table.insert(rng.randrange(len(table)), table.pop(place))
        else:
            table.insert(rng.randrange(len(table)), table[place])
    return [*table[rng.randrange(20) :], *table[:10]] if rng.random() < 0.3 else table


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in seeds(6, 8))])
def test_the_cache_does_not_change_the_rows_of_a_file(caching, seed):
    rng = seeded(seed)
    delimiter, quoting = DIALECTS[seed % len(DIALECTS)]
    settings = ParseSettings(moment=datetime(2024, 6, 1, tzinfo=UTC), default_currency=rng.choice([None, "USD"]))
    ends, block, threads = rng.choice(["\n", "\r\n"]), rng.choice([3_000, 20_000, 4_000_000]), rng.choice([1, 3])
    table = [mixed_row(rng, number) for number in range(ROWS)]
    known = 0
    for _ in range(3):
        data = write_feed(rng, HEADER, table, delimiter=delimiter, quoting=quoting, line_end=ends)
        options = {"block_bytes": block, "threads": threads}
        rows, report, lines = caching.parse(data, settings, **options)
        plain_rows, plain_report, none = caching.parse(data, settings, uses=False, **options)
        assert not none
        assert rows.equals(plain_rows)
        assert figures(report) == figures(plain_report)
        assert report.rows_cached == len(lines)
        known += len(lines)
        table = mutated(rng, table)
    assert known > ROWS


def many(*numbers, **changed):
    return [row(number, **changed) for number in numbers]


def test_only_records_without_findings_are_cached(caching):
    rows = [
        row(1),
        row(2, Name=""),
        row(3, Availability="perhaps"),
        row(4, SKU=""),
        row(5, Price="7.00"),
        row(5),
        *many(*range(10, 20)),
    ]
    assert caching.parse(feed(*rows).encode())[2] == set()
    _, report, lines = caching.parse(feed(*rows).encode())
    assert lines == {2, 7, *range(8, 18)}
    assert report.findings.counts == {"MISSING_TITLE": 1, "UNKNOWN_STOCK": 1}
    assert (report.findings.unknown_stock, report.stock_cells) == ({"perhaps": 1}, 15)
    assert report.duplicates.superseded.to_list() == [6]


def test_records_with_an_identifier_of_another_column_are_counted_each_time(caching):
    header = ["Catalog Item Id", "Item Id", *PLAIN_HEADER]
    rows = [[f"I-{number}", "", *row(number)] for number in range(1, 20)] + [["", "J-20", *row(20)]]
    for _ in range(2):
        _, report, lines = caching.parse(feed(*rows, header=header).encode())
        assert report.findings.spared == {Field.ITEM_ID: 1}
    assert len(lines) == 19


def test_a_cached_row_is_found_anywhere_and_has_its_new_line(caching):
    caching.parse(feed(*many(*range(1, 50))).encode(), block_bytes=500)
    rows, _, lines = caching.parse(feed(*many(70, *range(49, 0, -1))).encode(), block_bytes=700)
    assert lines == set(range(3, 52))
    assert dict(rows.select("identity_value", "line").iter_rows())["S-49"] == 3


def test_records_with_line_feeds_within_are_cached_too(caching):
    rows = [row(number, Name=f"two\nlines {number}") for number in range(1, 30)]
    data = quoted_feed(*rows).encode()
    caching.parse(data)
    assert len(caching.parse(data)[2]) == 29
    other = data.replace(b"two\nlines 7", b"two lines 7")
    assert len(caching.parse(other)[2]) == 28


@pytest.mark.parametrize(
    "other",
    [
        {"settings": ParseSettings(moment=MOMENT, default_currency="EUR")},
        {"settings": ParseSettings(moment=MOMENT, decimal_style=",")},
        {"settings": ParseSettings(moment=MOMENT, unknown_stock=UnknownStock.OUT_OF_STOCK)},
        {"settings": ParseSettings(moment=MOMENT, kept_parameters=("ref",))},
        {"settings": ParseSettings(moment=MOMENT, allowed_networks=(ip_network("10.0.0.0/8"),))},
        {"data": feed(*many(*range(1, 9)), delimiter=",").encode()},
        {"data": feed(*many(*range(1, 9))).replace("Name", "Title", 1).encode()},
        {"data": quoted_feed(*many(*range(1, 9)), delimiter="\t").encode()},
        {"network": replace(network_named("impact"), name="other")},
        {"network": replace(network_named("impact"), links=LinkRules(tracking_names=frozenset({"x"})))},
    ],
    ids=[
        "currency",
        "decimals",
        "unknown stock",
        "kept parameters",
        "allowed networks",
        "delimiter",
        "header",
        "quotes",
        "network",
        "links",
    ],
)
def test_anything_else_that_rows_depend_on_makes_the_cache_invalid(caching, other):
    data = feed(*many(*range(1, 9))).encode()
    caching.parse(data)
    key = Parsing([data], network_named("impact"), ParseSettings(moment=MOMENT)).key
    parsing = Parsing(
        [other.get("data", data)],
        other.get("network", network_named("impact")),
        other.get("settings", ParseSettings(moment=MOMENT)),
    )
    assert parsing.key not in (None, key)
    assert CachedRows.open(caching.path, parsing.key) is None
    assert len(caching.parse(data)[2]) == 8


@pytest.mark.parametrize("name", ["ROWS_VERSION", "CONTENT_VERSION"])
def test_another_version_makes_the_cache_invalid(caching, monkeypatch, name):
    data = feed(*many(*range(1, 9))).encode()
    caching.parse(data)
    monkeypatch.setattr(reuse, name, 99)
    assert caching.parse(data)[2] == set()


def test_rows_that_depend_on_the_moment_are_never_cached():
    header = b"id\ttitle\tlink\tprice\tsale_price\tsale_price_effective_date\n"
    assert Parsing([header + b"1\tx\thttps://shop.example/1\t5.00 USD\t\t\n"], network_named("google_merchant"),
                   ParseSettings(moment=MOMENT)).key is None  # fmt: skip


def test_another_moment_and_other_limits_change_nothing(caching):
    data = feed(*many(*range(1, 9))).encode()
    caching.parse(data)
    settings = ParseSettings(moment=datetime(2030, 1, 1, tzinfo=UTC))
    assert len(caching.parse(data, settings, limits=ParseLimits(rows=10))[2]) == 8


def test_a_damaged_cache_is_never_used(caching):
    data = feed(*many(*range(1, 120))).encode()
    expected = caching.parse(data, block_bytes=2_000)[0]
    whole = caching.path.read_bytes()
    rng = seeded(1)
    damages = [whole[:length] for length in (0, 5, len(whole) // 2, len(whole) - 1)]
    first, second, behind = len(MAGIC), len(MAGIC) + KEY.itemsize, len(MAGIC) + 2 * KEY.itemsize
    damages.append(whole[:first] + whole[second:behind] + whole[first:second] + whole[behind:])
    places = [*(rng.randrange(len(whole)) for _ in range(60)), *range(len(whole) - 300, len(whole), 9)]
    damages += [whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :] for at in places]
    for damaged in damages:
        caching.path.write_bytes(damaged)
        rows, _, lines = caching.parse(data, block_bytes=2_000)
        assert rows.equals(expected)
        assert len(lines) < 119
    assert len(caching.parse(data)[2]) == 119


def test_a_file_that_is_not_a_cache_is_ignored(caching):
    caching.path.mkdir()
    assert CachedRows.open(caching.path, "key") is None
    caching.path.rmdir()
    assert CachedRows.open(caching.path, "key") is None


def test_with_a_full_disk_nothing_is_cached_and_the_rows_are_right(caching):
    data = feed(*many(*range(1, 500))).encode()
    with files_no_larger_than(20_000), pytest.raises(OSError, match="too large"):
        caching.parse(data)
    assert not caching.path.exists()


def test_a_file_that_was_not_read_to_its_end_is_not_cached(caching, tmp_path):
    data = feed(*many(*range(1, 50))).encode()
    parsing = Parsing([data], network_named("impact"), ParseSettings(moment=MOMENT), block_bytes=500)
    with CacheWriter(tmp_path / "unfinished", "key") as writer:
        parsing.use(RowCache(None, writer))
        next(parsing.parts())
        with pytest.raises(OSError, match="not read to its end"):
            writer.publish(caching.path)


def test_the_cache_is_not_used_further_when_most_has_changed(caching, monkeypatch):
    count = 60 * FIRST_BLOCKS
    caching.parse(feed(*many(*range(1, count))).encode(), block_bytes=1_000)
    looks = []
    monkeypatch.setattr(CachedRows, "places", lambda _, hashes: looks.append(1) or np.full(len(hashes.first), -1))
    forgotten = []
    monkeypatch.setattr(CachedRows, "forget", lambda _: forgotten.append(1))
    expensive = feed(*many(*range(1, count), Price="77.00")).encode()
    assert caching.parse(expensive, block_bytes=1_000, threads=1)[2] == set()
    assert FIRST_BLOCKS <= len(looks) < 2 * FIRST_BLOCKS
    assert len(forgotten) == 1


def test_a_dropped_cache_finds_no_records(caching):
    data = feed(*many(*range(1, 50))).encode()
    caching.parse(data)
    parsing = Parsing([data], network_named("impact"), ParseSettings(moment=MOMENT), encoding="utf-8")
    with CachedRows.open(caching.path, parsing.key) as kept:
        (block,) = parsing._blocks()
        assert (kept.places(hash_records(block)) >= 0).all()
        kept.forget()
        assert (kept.places(hash_records(block)) == -1).all()


def test_records_scattered_over_the_whole_last_file_are_parsed(caching):
    rng = seeded(3)
    numbers = list(range(1, 2000))
    caching.parse(feed(*many(*numbers)).encode(), block_bytes=2_000)
    rng.shuffle(numbers)
    data = feed(*many(*numbers)).encode()
    rows, _, lines = caching.parse(data)
    assert rows.equals(caching.parse(data, uses=False)[0])
    assert lines == set()


@pytest.mark.parametrize("place", [0, 1], ids=["first", "second"])
def test_one_equal_hash_is_not_enough_to_find_a_record(caching, monkeypatch, place):
    def alike(block):
        hashes = list(hash_records(block))
        hashes[place] = np.zeros_like(hashes[place])
        return Hashes(*hashes)

    monkeypatch.setattr(reuse, "hash_records", alike)
    caching.parse(feed(*many(*range(1, 50))).encode())
    rows, _, lines = caching.parse(feed(*many(*range(1, 50), Price="9.00")).encode())
    assert lines == set()
    assert rows["amount"].unique().to_list() == [9]


@pytest.mark.parametrize("times", [1, 20, 20_000])
def test_hashes_of_a_record_do_not_depend_on_its_block(times):
    once = [b"a\tb\n", b'"x\ny"\tz\n', b'"x\\ny"\tz\n', b'"x\r\ny"\tz\n', b"a\tb \n", "caf\u00e9\t1\n".encode()]
    hashes = hash_records(block_of(once * times))
    alone = [hash_records(block_of([record])) for record in once]
    assert hashes.first.tolist() == [one.first[0] for one in alone] * times
    assert hashes.second.tolist() == [one.second[0] for one in alone] * times
    for each in hashes:
        assert len(set(each.tolist())) == len(once)
    assert len(hash_records(block_of([])).first) == 0


def test_records_are_the_same_however_their_lines_end(caching):
    lines = feed(*many(*range(1, 50))).encode()
    assert b"\r" not in lines
    rows = caching.parse(lines)[0]
    again, _, known = caching.parse(lines.replace(b"\n", b"\r\n"))
    assert len(known) == rows.height
    assert again.equals(rows.select(again.columns))
    assert caching.parse(lines.replace(b"\n", b"\r\n"), uses=False)[0].equals(rows)


def block_of(records):
    ends = np.cumsum([len(record) for record in records]).astype(np.int64)
    return Block(b"".join(records), ends, np.arange(len(records)), len(records), Findings())


def test_cached_rows_are_not_used_where_quotes_mean_something_else(caching):
    early = [row(number) for number in range(1000, 1000 + SAMPLE_BYTES // 50)]
    enclosed = row(9001, SKU='"S-9001"')
    # In the first file another row shows that quotes are text; the row in quotes is the same in both.
    as_text = feed(*early, row(9000, Name='"A" Is for Alibi'), enclosed).encode()
    as_quotes = feed(*early, row(9000), enclosed).encode()
    for data, sku in ((as_text, '"S-9001"'), (as_quotes, "S-9001"), (as_quotes, "S-9001"), (as_text, '"S-9001"')):
        rows, report, _ = caching.parse(data)
        expected, plain, _ = caching.parse(data, uses=False)
        assert rows.equals(expected)
        assert figures(report) == figures(plain)
        assert rows["identity_value"].to_list()[-1] == sku
