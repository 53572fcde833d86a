"""Files that are not a complete catalog: runs fail or are held with a reason, and consumers see no change."""

import gzip
from collections import Counter

import pytest
from tests.support.feed_oracle import picture
from tests.support.feed_world import World, allow_loopback
from tests.support.feeds import HEADER, feed, row
from tests.support.sftp_server import SftpServer
from tests.support.tables import rows

CATALOG = [row(number) for number in range(100, 160)]
WHOLE = gzip.compress(feed(*CATALOG).encode())
#: What consumers see, and what it is made of.
SEEN = ("source_products", "offers", "prices", "run_absences", "product_links")
MANIFEST = b"<catalogs><catalog><location>/Shop/catalog.txt</location><numRecords>60</numRecords></catalog></catalogs>"


def with_header(**renamed):
    return feed(*CATALOG, header=[renamed.get(name, name) for name in HEADER]).encode()


#: What the partner puts there, and the code of the failed run, or the gate that holds it.
FILES = {
    "a truncated gzip": (WHOLE[:-200], "TRUNCATED_GZIP"),
    "a gzip with a wrong checksum": (WHOLE[:-8] + bytes(4) + WHOLE[-4:], "BAD_GZIP"),
    "rows that the manifest does not know": (feed(*CATALOG, row(500)).encode(), "COUNT_MISMATCH"),
    "nothing": (b"", "EMPTY_FILE"),
    "a header alone": (feed().encode(), "COUNT_MISMATCH"),
    "an error page": (b"<!doctype html><html><head><title>502 Bad Gateway</title>", "HTML_INSTEAD_OF_CSV"),
    "a record that breaks off": (feed(*CATALOG).encode()[:-30], "TRUNCATED"),
    "a column with another name": (with_header(Price="Betrag"), "HEADER_UNREADABLE"),
    "half the rows": (feed(*CATALOG[:30], *[CATALOG[0]] * 30).encode(), "EXPIRY_SPIKE"),
    "swapped columns": (with_header(Price="Name", Name="Price"), "NO_VALID_PRODUCTS"),
}


@pytest.fixture
def world(database, settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        made = World(server)
        made.put(*CATALOG)
        (tmp_path / "catalogs_info_file.xml").write_bytes(MANIFEST)
        assert made.run().outcome == "PROMOTED"
        yield made


@pytest.mark.parametrize(("file", "code"), FILES.values(), ids=FILES)
def test_a_bad_file_changes_nothing_that_consumers_see_and_raises_one_alert(world, file, code):
    before, shown = consumers_picture(world), world.shown()
    world.put_bytes(file)
    run = world.run()
    assert code in {run.error_code, *held_by(world, run)}, (run.error_code, run.error)
    world.run()
    assert (consumers_picture(world), world.shown()) == (before, shown)
    assert open_alerts() == 1
    world.put(*CATALOG)
    assert world.run().status == "SUCCEEDED"
    assert open_alerts() == 0


#: Rows that cannot be used, and why.
BAD_ROWS = [
    (row(901, Price="-5.00"), "INVALID_PRICE"),
    (row(902, Price="NaN"), "INVALID_PRICE"),
    (row(903, Price="1e309"), "INVALID_PRICE"),
    (row(904, Price="0"), "PRICE_WITHHELD"),
    (row(905, Currency=""), "MISSING_CURRENCY"),
    (row(906, Name=""), "MISSING_TITLE"),
    (row(907)[:3], "RAGGED_ROW"),
]


def test_bad_rows_are_counted_with_line_and_code_and_the_good_ones_are_exact_to_the_cent(world):
    cents = {number: number + 1 for number in range(100, 153)}
    good = [row(number, Price=f"1.{amount - 100:02}") for number, amount in cents.items()]
    world.put(*good[:20], *(cells for cells, _ in BAD_ROWS), *good[20:])
    run = world.run()
    assert run.outcome == "PROMOTED"
    shown = world.shown()
    assert {number: shown[f"S-{number}"][1] for number in cents} == {
        number: amount / 100 for number, amount in cents.items()
    }
    assert not {sku for sku in shown if sku.startswith("S-9")}
    assert world.figures(run).rejects == Counter(code for _, code in BAD_ROWS)
    samples = rows("SELECT line, code FROM feed_run_samples WHERE run_id = %s ORDER BY line", run.id)
    assert samples == [(22 + place, code) for place, (_, code) in enumerate(BAD_ROWS)]


def consumers_picture(world):
    found = picture(world)
    return {name: found[name] for name in SEEN}


def held_by(world, run):
    """The gates that hold the run."""
    return [finding["gate"] for finding in world.figures(run).run.verdict if finding["holds"]]


def open_alerts():
    return rows("SELECT count(*) FROM alerts WHERE resolved_at IS NULL")[0][0]
