"""Feed tests: their results, against real servers, and that they change nothing."""

import gzip
import random

import pytest
from tests.support.feed_rows import ADMIN, PATH, allow_loopback, make_feed
from tests.support.feeds import HEADER, row
from tests.support.feeds import feed as written
from tests.support.ftp_server import FtpServer
from tests.support.jobs import change
from tests.support.sftp_server import SftpServer
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.feeds import feed_test, jobs, verbs
from harvester.feeds.models import Feed

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "feeds").mkdir()
    return tmp_path


@pytest.fixture
def server(root, settings):
    allow_loopback(settings)
    with SftpServer(root) as running:
        yield running


def put(root, data):
    (root / PATH.lstrip("/")).write_bytes(data if isinstance(data, bytes) else data.encode())


def approved(server, **columns):
    return make_feed(port=server.port, host_keys=str(server.host_key), **columns)


def tried(feed):
    """The result of a test run."""
    made = verbs.test_run(ADMIN, feed.id)
    run_until_idle()
    job = Job.objects.get(id=made.job_id)
    assert job.state == "succeeded", job.error
    return job.result


def everything_but_jobs():
    """What a test run must leave as it is; `updated_at` and all."""
    return [rows(f"SELECT * FROM {table}") for table in ("feeds", "sources", "sealed_secrets", "runs", "offers")]


def test_a_test_run_gives_notice_of_columns_that_may_matter_and_are_not_read(server, root):
    put(root, written(*([*row(number), "EUR", "x"] for number in range(5)), header=[*HEADER, "Money Currency", "Size"]))
    (notice,) = tried(approved(server))["notices"]
    assert (notice["code"], notice["examples"]) == ("UNBOUND_COLUMNS", ["Money Currency (looks like: currency)"])


def test_a_test_run_shows_what_a_run_would_make_of_the_file(server, root):
    put(root, written(*(row(number) for number in range(100, 350))))
    feed = approved(server)
    before = everything_but_jobs()
    found = tried(feed)
    assert everything_but_jobs() == before
    assert (found["success"], found["error"]) == (True, None)
    assert (found["rows_detected"], found["rows_valid"], found["has_more_rows"]) == (100, 100, True)
    assert (found["is_whole"], found["compression"]) == (True, "NONE")
    assert (found["dialect"]["delimiter_name"], found["dialect"]["encoding"]) == ("tab", "utf-8")
    assert found["dialect"]["header"] == HEADER
    assert found["binding"]["title"] == ["Name"]
    assert found["family"] is None
    assert [line["sku"] for line in found["rows"]] == [f"S-{number}" for number in range(100, 110)]
    assert found["rows"][0] == {
        "item_id": None, "sku": "S-100", "title": "Thing 100", "amount": "1.00", "currency": "USD",
        "url": "https://shop.example/p/100", "in_stock": True,
    }  # fmt: skip
    assert found["host_keys"][0]["fingerprint"] == server.host_key.fingerprint


def test_rejected_and_odd_rows_are_counted_and_shown(server, root):
    odd = [row(2, Price="free"), row(3, Name=""), row(4, Availability="perhaps"), *(row(n, Price="") for n in range(9))]
    put(root, written(row(1), *odd))
    found = tried(approved(server))
    assert found["rejects"] == {"INVALID_PRICE": 1, "MISSING_TITLE": 1, "MISSING_PRICE": 9}
    assert found["warnings"] == {"UNKNOWN_STOCK": 1}
    [sample] = found["samples"]["INVALID_PRICE"]
    assert sample["line"] == 3
    assert sample["row"].startswith("S-2\tThing 2")
    assert len(found["samples"]["MISSING_PRICE"]) == 3
    assert (found["rows_detected"], found["rows_valid"], found["has_more_rows"]) == (13, 2, False)


def test_of_a_large_file_only_the_beginning_is_read(server, root, monkeypatch):
    monkeypatch.setattr(feed_test, "MOST_BYTES", 100_000)
    noise = random.Random(7)
    lines = [row(number, Name=f"Thing {noise.randbytes(60).hex()}") for number in range(1, 60_000)]
    put(root, gzip.compress(written(*lines).encode()))
    found = tried(approved(server))
    assert (found["success"], found["compression"], found["is_whole"]) == (True, "GZIP", False)
    assert found["bytes_read"] < 2_000_000
    assert found["rows_detected"] == 100


def test_a_feed_is_tried_by_ftp(root, settings):
    allow_loopback(settings, allow_plain_ftp=True)
    put(root, written(row(1), header=["SKU", "Product Name", *HEADER[2:]]))
    with FtpServer(root) as server:
        found = tried(make_feed(transport="FTP", port=server.port))
    assert (found["success"], found["host_keys"], found["family"]) == (True, [], "A (IR)")


def test_an_unknown_host_key_is_shown_and_kept_for_approval(server, root):
    put(root, written(row(1)))
    feed = make_feed(port=server.port)
    found = tried(feed)
    assert (found["success"], found["error"]["code"]) == (False, "HOST_KEY_UNKNOWN")
    assert found["seen_host_key"] == {
        "type": server.host_key.type,
        "fingerprint": server.host_key.fingerprint,
        "line": str(server.host_key),
    }
    assert server.attempts == []
    assert Feed.objects.get().seen_host_key == str(server.host_key)
    verbs.approve_host_key(ADMIN, feed.id, found["seen_host_key"]["fingerprint"])
    assert tried(feed)["success"]


def test_a_changed_host_key_is_shown_next_to_the_approved_one(server):
    feed = approved(server)
    before = server.host_key
    server.restart_with_another_key()
    found = tried(feed)
    assert found["error"]["code"] == "HOST_KEY_CHANGED"
    assert found["seen_host_key"]["fingerprint"] == server.host_key.fingerprint
    assert found["host_keys"][0]["fingerprint"] == before.fingerprint
    assert Feed.objects.get().host_keys == str(before)


PROBLEMS = {
    "REMOTE_FILE_NOT_FOUND": (None, "There is no '/feeds/catalog.csv'"),
    "HTML_INSTEAD_OF_CSV": (b"<!doctype html><html><body>Login</body></html>", "web page"),
    "HEADER_UNREADABLE": (b"colour,size\nred,4\n", "a column for the title"),
    "EMPTY_FILE": (b"", "The file is empty"),
    "BAD_GZIP": (gzip.compress(b"x" * 100)[:10] + b"\xff" * 50, "damaged"),
    "TRUNCATED_GZIP": (gzip.compress(written(*map(row, range(50))).encode())[:-30], "ends"),
    "NO_VALID_PRODUCTS": (written(row(1, Price="")).encode(), "None of the first 1 rows"),
}


@pytest.mark.parametrize("code", PROBLEMS)
def test_what_is_wrong_with_a_feed_is_a_result(server, root, code):
    data, message = PROBLEMS[code]
    if data is not None:
        put(root, data)
    found = tried(approved(server))
    assert (found["success"], found["error"]["code"]) == (False, code)
    assert message in found["error"]["message"]


def test_wrong_credentials_are_reported_without_showing_them(server, root):
    put(root, written(row(1)))
    found = tried(approved(server, password="canary-5521-wrong"))
    assert found["error"]["code"] == "AUTH_FAILED"
    assert "canary-5521" not in str(rows("SELECT args, result, error, progress FROM jobs"))


def test_a_feed_that_is_gone_fails_its_test(server):
    feed = approved(server)
    made = verbs.test_run(ADMIN, feed.id)
    Feed.objects.all().delete()
    run_until_idle()
    assert Job.objects.get(id=made.job_id).error_type == "NOT_FOUND"


def test_wide_and_long_files_have_a_result_of_bearable_size(server, root):
    wide = [*HEADER, *(f"Column {number} " + "x" * 500 for number in range(2000))]
    lines = [[*row(number, Name="T" * 50_000), *[""] * 2000] for number in range(1, 20)]
    put(root, written(*lines, *([*row(1, Price=""), *["y"] * 2000] for _ in range(80)), header=wide))
    found = tried(approved(server))
    assert len(found["rows"]) == 10
    assert len(found["rows"][0]["title"]) == feed_test.SHOWN_CHARACTERS
    assert len(found["unbound"]) == feed_test.SHOWN_COLUMNS


def test_results_are_forgotten_after_a_day(server, root):
    put(root, written(row(1)))
    feed = approved(server)
    tried(feed)
    tried(feed)
    old, new = Job.objects.filter(kind="feeds.test").order_by("id").values_list("id", flat=True)
    change(old, "finished_at = clock_timestamp() - interval '25 hours'")
    change(new, "finished_at = clock_timestamp() - interval '23 hours'")
    enqueue(jobs.FORGET_TESTS)
    run_until_idle()
    assert Job.objects.get(id=old).result is None
    assert Job.objects.get(id=old).state == "succeeded"
    assert Job.objects.get(id=new).result is not None
