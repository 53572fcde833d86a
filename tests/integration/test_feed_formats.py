"""The same catalog however it is fetched and written: the same offers, to the letter and to the cent."""

import gzip
from dataclasses import replace
from decimal import Decimal

import asyncssh
import pytest
from tests.support import ftp_server
from tests.support.feed_world import LOOPBACK, World
from tests.support.feeds import feed, quoted_feed, row
from tests.support.ftp_server import FtpServer
from tests.support.sftp_server import PASSWORD, SftpServer
from tests.support.tables import rows

from harvester.feeds.models import Feed
from harvester.guards import secrets

pytestmark = pytest.mark.usefixtures("database")

#: SKU -> title and price. The last title has a separator, which needs quotes where it separates.
CATALOG = {
    "S-1": ("Kühlschrank größer als Überseekoffer", "1299.99"),
    "S-2": ("Crème brûlée à la carte, façon Ñandú", "0.07"),
    "S-3": ("Smørrebrød 3|4", "999999.95"),
    "S-4": ('Bildschirm 27" matt', "70.10"),
    "S-5": ("Plain", "5"),
}
ROWS = [row(number, Name=title, Price=price) for number, (title, price) in enumerate(CATALOG.values(), start=1)]


@pytest.fixture
def world(database, settings, tmp_path):
    settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK)
    with SftpServer(tmp_path) as server:
        yield World(server)


def offers():
    """What consumers see: the number of the product -> title and price."""
    found = rows(
        "SELECT coalesce(p.item_id, p.sku), p.title, v.amount, v.currency FROM visible_offers v "
        "JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id"
    )
    assert {currency for *_, currency in found} == {"USD"}
    return {number: (title, amount) for number, title, amount, _ in found}


def check_promoted(run):
    assert (run.outcome, run.error) == ("PROMOTED", None)
    assert offers() == {number: (title, Decimal(price)) for number, (title, price) in CATALOG.items()}


#: delimiter -> how files with it are written; what needs quotes has them.
WRITTEN = {"tab": feed(*ROWS), "comma": quoted_feed(*ROWS), "pipe": quoted_feed(*ROWS, delimiter="|")}
ENCODED = {
    "utf-8": lambda text: text.encode(),
    "utf-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "latin-1": lambda text: text.encode("latin-1"),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16 without a mark": lambda text: text.encode("utf-16-be"),
}


@pytest.mark.parametrize("encode", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_catalog_is_read_however_it_is_written(world, text, encode):
    data = encode(text)
    world.put_bytes(data)
    check_promoted(world.run())
    # The same content compressed is another file, which is read again and has nothing new.
    world.put_bytes(data, compressed=True)
    again = world.run()
    check_promoted(again)
    figures = world.figures(again)
    assert (figures.products_new, figures.products_changed, figures.prices_written) == (0, 0, 0)
    assert figures.rows_read == len(CATALOG)


_KEY = asyncssh.generate_private_key("ssh-ed25519")
PUBLIC = _KEY.export_public_key().decode()
CREDENTIALS = {
    "a password": {"password": PASSWORD},
    "a private key": {"private_key": _KEY.export_private_key().decode()},
    "a private key with a passphrase": {
        "private_key": _KEY.export_private_key(passphrase="open sesame", rounds=1, ignore_few_rounds=True).decode(),
        "passphrase": "open sesame",
    },
    "a key that is not accepted and a password": {
        "private_key": asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode(),
        "password": PASSWORD,
    },
}


@pytest.mark.parametrize("credentials", CREDENTIALS.values(), ids=CREDENTIALS)
def test_a_catalog_is_fetched_over_sftp_with(settings, tmp_path, credentials):
    settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK)
    with SftpServer(tmp_path, client_keys=[PUBLIC]) as server:
        world = World(server)
        secrets.put("feed", world.feed.id, credentials)
        world.put_bytes(WRITTEN["tab"].encode(), compressed=True)
        check_promoted(world.run())
        methods = [attempt.method for attempt in server.attempts]
        assert ("publickey" in methods) == ("private_key" in credentials)
        assert ("password" in methods) == ("password" in credentials)


@pytest.fixture
def ftp_world(world, tmp_path):
    with FtpServer(tmp_path) as server:
        Feed.objects.update(transport="FTP", port=server.port, host_keys="")
        secrets.put("feed", world.feed.id, {"password": ftp_server.PASSWORD})
        yield world, server


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_a_catalog_is_fetched_over_ftp_where_that_is_allowed(ftp_world, settings, compressed):
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)
    world, server = ftp_world
    world.put_bytes(WRITTEN["comma"].encode(), compressed=compressed)
    check_promoted(world.run())
    assert any(line.startswith(("PASV", "EPSV")) for line in server.commands), "passive"
    assert world.run().outcome == "SKIPPED", "FTP reports size and time too"


def test_plain_ftp_that_is_switched_off_is_a_config_error_and_nothing_is_connected(ftp_world):
    world, server = ftp_world
    world.put_bytes(WRITTEN["comma"].encode())
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", "PLAIN_FTP_FORBIDDEN", 1)
    assert "AFFILIATE_FEED_ALLOW_PLAIN_FTP" in run.error
    assert server.commands == []


GOOGLE_HEADER = ["id", "title", "description", "link", "image link", "price", "sale price", "availability", "gtin"]


def google(number, title, price, **changed):
    cells = {
        "id": number,
        "title": title,
        "description": "Prüfling",
        "link": f"https://shop.example/p/{number}",
        "image link": f"https://shop.example/p/{number}.png",
        "price": f"{price} USD",
        "sale price": "",
        "availability": "in_stock",
        "gtin": "4006381333931",
    }
    return [(cells | changed)[name] for name in GOOGLE_HEADER]


def test_a_google_merchant_catalog_is_fetched_over_sftp(world):
    Feed.objects.update(network="google_merchant")
    lines = [google(number, title, price) for number, (title, price) in CATALOG.items()]
    world.put_bytes(feed(*lines, header=GOOGLE_HEADER).encode())
    run = world.run()
    check_promoted(run)
    assert rows("SELECT DISTINCT identity_type, gtin FROM source_products") == [(1, "4006381333931")]


def test_a_google_merchant_catalog_with_a_currency_column_is_not_read_in_the_default_currency(world):
    Feed.objects.update(network="google_merchant", default_currency="USD")
    lines = [
        [f"G-{number}", "Thing", f"https://shop.example/{number}", "12.99", "EUR", "in stock", "9.99"]
        for number in range(40)
    ]
    header = ["id", "title", "link", "price", "currency", "availability", "final_price"]
    world.put_bytes(feed(*lines, header=header).encode())
    run = world.run()
    assert rows("SELECT currency, count(*) FROM prices GROUP BY currency") == [("EUR", 40)]
    (notice,) = world.figures(run).notices
    assert (notice["code"], notice["count"]) == ("UNBOUND_COLUMNS", 1)
    assert notice["examples"] == ["final_price (looks like: price)"]


def manifest(records, location="/Shop/catalog.txt"):
    return (
        "<?xml version='1.0'?><catalogs><catalog><name>Shop</name><format>CSV</format>"
        f"<location>{location}</location><numRecords>{records}</numRecords></catalog></catalogs>"
    ).encode()


def test_a_manifest_with_the_right_count_lets_the_file_pass(world):
    (world.server.root / "catalogs_info_file.xml").write_bytes(manifest(len(CATALOG)))
    world.put_bytes(WRITTEN["tab"].encode())
    run = world.run()
    check_promoted(run)
    assert world.figures(run).manifest_rows == len(CATALOG)


def test_a_manifest_about_another_file_says_nothing_about_this_one(world):
    (world.server.root / "catalogs_info_file.xml").write_bytes(manifest(99, "/Other/catalog.txt"))
    world.put_bytes(WRITTEN["tab"].encode())
    run = world.run()
    check_promoted(run)
    assert world.figures(run).manifest_rows is None


def test_a_manifest_with_another_count_fails_the_run_after_all_its_attempts(world):
    (world.server.root / "catalogs_info_file.xml").write_bytes(manifest(len(CATALOG) + 1))
    world.put_bytes(WRITTEN["tab"].encode())
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", "COUNT_MISMATCH", 3)
    assert "5 rows" in run.error
    assert "says 6" in run.error
    assert rows("SELECT count(*) FROM source_products") == [(0,)]
    Feed.objects.update(use_manifest=False)
    check_promoted(world.run())


def test_what_the_bytes_say_counts_and_not_what_the_name_or_the_feed_says(world):
    Feed.objects.update(compression="NONE")
    world.put_bytes(gzip.compress(WRITTEN["tab"].encode()))
    check_promoted(world.run())
    Feed.objects.update(compression="GZIP")
    world.put_bytes(WRITTEN["pipe"].encode())
    check_promoted(world.run())
