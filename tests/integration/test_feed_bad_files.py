"""A file that cannot be read: the failed run says what was expected, what was found, and what to do."""

import gzip

import pytest
from tests.support.feed_world import OLGA, World, allow_loopback
from tests.support.feeds import HEADER, feed, row
from tests.support.sftp_server import SftpServer

from harvester.engine.models import Job
from harvester.feeds import verbs
from harvester.feeds.models import Feed, FeedRunSample
from harvester.ops.models import Alert

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(database, settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        yield World(server)


GOOD = feed(*(row(number) for number in range(100, 110)))
WANTED = "Expected is text, plain or gzip, whose first line names the columns."
MIXED = (
    feed(*(row(number, Name="Größe") for number in range(40_000))).encode("latin-1")
    + feed(*(row(number, Name="Größe") for number in range(40_000)), header=row(5)).encode()
)

#: What the partner put there -> the code, and what the message has to say.
FILES = {
    "nothing": (b"", "EMPTY_FILE", ["It has no bytes", WANTED, "still writing"]),
    "blank lines": (b"\n \r\n", "EMPTY_FILE", ["only 4 blanks", WANTED]),
    "nothing, compressed": (gzip.compress(b""), "EMPTY_FILE", ["It has no bytes", WANTED]),
    "a login page": (
        *(b"<!DOCTYPE html>\n<html><title>Log in</title>", "HTML_INSTEAD_OF_CSV"),
        ["a web page", r"begins with '<!DOCTYPE html>\n<html>", WANTED, "path of the feed"],
    ),
    "a compressed error page": (
        *(gzip.compress(b"<html><body>503</body></html>"), "HTML_INSTEAD_OF_CSV"),
        ["a web page", "begins with '<html><body>503"],
    ),
    "JSON": (
        b'{"error": "not found"}',
        "HEADER_UNREADABLE",
        ["is JSON", 'begins with \'{"error": "not found"}', WANTED],
    ),
    "XML": (b"<?xml version='1.0'?><rss/>", "HEADER_UNREADABLE", ["is XML", 'begins with "<?xml', WANTED]),
    "an archive": (
        b"PK\x03\x04\x14\0\0\0\x08\0",
        "HEADER_UNREADABLE",
        ["a ZIP archive", r"begins with 'PK\x03", WANTED],
    ),
    "compressed twice": (
        *(gzip.compress(gzip.compress(GOOD.encode())), "HEADER_UNREADABLE"),
        ["compressed twice", WANTED],
    ),
    "an error in words": (
        *(b"catalog is being generated, try later\n", "HEADER_UNREADABLE"),
        [
            "no column name that Impact uses",
            "(tab, comma, pipe, semicolon)",
            "column for the title (such as ",
            "begins with 'catalog is being generated",
            "Check the path",
        ],
    ),
    "an unknown delimiter": (
        *(GOOD.replace("\t", "^").encode(), "HEADER_UNREADABLE"),
        ["whichever delimiter is tried", "begins with 'SKU^Name^Url^Price"],
    ),
    "a column too few": (
        *(b"SKU,Name,Url\n1,x,https://shop.example/1\n", "HEADER_UNREADABLE"),
        [
            "lacks a column for the sale price or list price (such as Sale Price",
            "comma fits best and gives 3 columns",
            "'SKU', 'Name', 'Url'",
            "'Name' for the title",
        ],
    ),
    "two columns of one name": (
        *(b"SKU,Name,Name,Url,Price\n1,x,y,https://shop.example/1,5 USD\n", "HEADER_UNREADABLE"),
        ["the same name for the title: 'Name', 'Name'", "Ask the partner"],
    ),
    "UTF-32": (
        *(GOOD.encode("utf-32"), "ENCODING_UNREADABLE"),
        ["is UTF-32", "bytes ff fe 00 00", "Expected is UTF-8, Windows-1252 or UTF-16"],
    ),
    "bytes that are not text": (
        *(b"\x01\0\x02\0\0\0\xff\xff" * 20, "ENCODING_UNREADABLE"),
        ["not text in UTF-8, Windows-1252 or UTF-16", r"begins with '\x01\x00", WANTED],
    ),
    "two encodings": (
        *(MIXED, "ENCODING_UNREADABLE"),
        ["partly Windows-1252 and partly UTF-8", "The first ", "one encoding"],
    ),
    "a header alone": (feed().encode(), "NO_VALID_PRODUCTS", ["a header and no row"]),
    "no row of use": (
        *(feed(row(1, Price="none"), row(2, Price="nothing"), row(3, Name="")).encode(), "NO_VALID_PRODUCTS"),
        ["Not one of the file's 3 rows", "INVALID_PRICE 2, MISSING_TITLE 1", "line by line"],
    ),
    "half a row": (GOOD[:-20].encode(), "TRUNCATED", ["begins in line 11 is incomplete"]),
    "half a compressed file": (gzip.compress(GOOD.encode())[:-10], "TRUNCATED_GZIP", ["ends in the middle"]),
    "a damaged compressed file": (
        *(gzip.compress(GOOD.encode())[:-8] + bytes(8), "BAD_GZIP"),
        ["damaged after", "bytes"],
    ),
}


@pytest.mark.parametrize(("data", "code", "said"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read_says_what_was_expected_and_what_was_found(world, data, code, said):
    world.put_bytes(data)
    run = world.run()
    assert (run.status, run.error_code, run.stage) == ("FAILED", code, "parse")
    assert [words for words in said if words not in run.error] == [], run.error
    assert len(run.error) < 2000
    assert world.shown() == {}
    assert run.error in Alert.objects.get(kind="RUN_FAILED").body, "the alert says the same"


LIMITS = {
    "max_file_bytes": (100, "FILE_SIZE_LIMIT_EXCEEDED", ["at most 100 are allowed", "raise the limit"]),
    "max_rows": (9, "ROW_COUNT_LIMIT_EXCEEDED", ["more than 9 rows", "max_rows", "raise the limit"]),
    "max_products": (9, "UNIQUE_PRODUCT_LIMIT_EXCEEDED", ["10 products", "limit of 9 (max_products)"]),
}


@pytest.mark.parametrize(("setting", "most", "code", "said"), [(name, *rest) for name, rest in LIMITS.items()])
def test_a_file_beyond_a_limit_says_which_limit_it_is(world, setting, most, code, said):
    Feed.objects.update(**{setting: most})
    world.put_bytes(GOOD.encode())
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", code, 1)
    assert [words for words in said if words not in run.error] == [], run.error
    assert world.shown() == {}
    assert Alert.objects.get().kind == "LIMIT_EXCEEDED"


@pytest.mark.parametrize(("setting", "enough"), [("max_rows", 10), ("max_products", 10), ("max_file_bytes", len(GOOD))])
def test_a_file_of_exactly_the_limit_is_read(world, setting, enough):
    Feed.objects.update(**{setting: enough})
    world.put_bytes(GOOD.encode())
    assert world.run().outcome == "PROMOTED"


@pytest.mark.parametrize("name", ["{group}", "[group]", "7z", "PK\x03\x04", "a\0b"])
def test_a_header_that_begins_like_another_kind_of_file_is_read_all_the_same(world, name):
    world.put_bytes(feed(*(["x", *row(number)] for number in (100, 101)), header=[name, *HEADER]).encode())
    assert world.run().outcome == "PROMOTED"


def test_a_test_run_shows_a_nul_as_what_is_no_character(world):
    Feed.objects.update(secret_fields=["password"])
    world.put_bytes(feed(["x", *row(100)], header=["a\0b", *HEADER]).encode())
    made = verbs.test_run(OLGA, world.feed.id)
    world.work(made.job_id)
    assert Job.objects.get(pk=made.job_id).result["unbound"] == ["a\ufffdb"]


def test_a_row_with_a_nul_in_it_is_one_rejected_row(world):
    world.put(*range(100, 140), row(141, Name="a\0b"))
    run = world.run()
    assert (run.outcome, world.figures(run).rejects) == ("PROMOTED", {"BAD_ENCODING": 1})
    [sample] = FeedRunSample.objects.filter(run_id=run.id)
    assert (sample.line, sample.row[:10]) == (42, "S-141\ta\ufffdb\t")
