"""Runs of files that end without a line feed: refused, left out for one run, or taken, and never taken for whole."""

import gzip
import os

import pytest
from tests.support.feed_world import CallsBack, World, allow_loopback
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.jobs import change
from tests.support.sftp_server import SftpServer
from tests.support.workers import run_until_idle

from harvester.engine.models import Job
from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.kernel.actor import Actor
from harvester.ops import jobs
from harvester.ops.models import Alert
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")

OLGA = Actor(kind="person", id="olga", name="Olga")
NUMBERS = range(100, 110)


@pytest.fixture
def world(tmp_path, settings):
    allow_loopback(settings)
    with SftpServer(tmp_path, behaviour=CallsBack) as server:
        made = World(server)
        made.change(status="ENABLED", schedule_hours=24)
        yield made


def file_of(*numbers, **last):
    """A file of these rows without its last line feed; the last row is changed."""
    *others, final = numbers
    return written(*(row(number) for number in others), row(final, **last)).encode()[:-1]


def codes(world, run):
    stored = [notice["code"] for notice in world.figures(run).notices]
    return [code for code in stored if code != "UNKNOWN_STOCK_TEXTS"]


def manifest(world, *entries):
    texts = ""
    for entry in entries:
        values = {"location": "/Shop/catalog.txt", **entry}
        texts += f"<catalog>{''.join(f'<{name}>{value}</{name}>' for name, value in values.items())}</catalog>"
    (world.server.root / "catalogs_info_file.xml").write_text(f"<catalogs>{texts}</catalogs>")


def test_a_file_that_ends_unlike_earlier_ones_is_refused_and_imported_if_it_stays(world):
    world.put(*NUMBERS)
    assert world.run().outcome == "PROMOTED"
    before = world.shown()
    # 1.09 was 1.0 and a digit.
    world.put_bytes(file_of(*NUMBERS, Price="1.0", Availability="out of stoc"))
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", "TRUNCATED", 3)
    assert "Earlier files of this feed ended with a line feed" in run.error
    assert world.shown() == before
    world.change(manual_run_requested_at="2026-01-01T00:00Z")
    assert world.run("MANUAL").error_code == "TRUNCATED", "a person who is impatient does not make it whole"
    run = world.run()
    assert (run.outcome, codes(world, run)) == ("PROMOTED", ["FILE_TAKEN_AS_IS"])
    assert world.figures(run).file_end == "TAKEN"
    assert Alert.objects.filter(kind="FILE_TAKEN_AS_IS", resolved_at=None).exists()
    assert world.shown()["S-109"][1] == 1.0
    assert world.run().outcome == "SKIPPED"


def test_a_partner_who_no_longer_ends_files_is_refused_once_and_then_read_without_the_last_record(world):
    world.put(*NUMBERS)
    world.run()
    before = world.shown()
    world.put_bytes(file_of(*NUMBERS, Name="Thing of Monday"))
    run = world.run()
    assert run.error_code == "TRUNCATED"
    assert "`harvester feed run FEED --force` imports it now" in run.error
    world.put_bytes(file_of(*NUMBERS, Name="Thing of Monday noon"))
    world.change(manual_run_requested_at="2026-01-01T00:00Z")
    assert world.run("MANUAL").error_code == "TRUNCATED", "a person who is impatient does not make it whole"
    for name in ["Thing of Tuesday", "Thing of Wednesday"]:
        world.put_bytes(file_of(*NUMBERS, Name=name, Price="1.0"))
        run = world.run()
        assert (run.outcome, codes(world, run)) == ("PROMOTED", ["LAST_RECORD_LEFT_OUT"])
        assert world.figures(run).file_end == "LEFT_OUT"
        assert world.shown() == before
    assert (Feed.objects.get().status, Feed.objects.get().consecutive_failures) == ("ENABLED", 0)


def test_a_run_without_a_file_in_between_does_not_get_the_next_open_end_refused(world):
    world.put(*NUMBERS)
    world.run()
    before = world.shown()
    world.put_bytes(file_of(*NUMBERS, Name="Thing of Monday"))
    assert world.run().error_code == "TRUNCATED"
    world.file.unlink()
    run = world.run()
    assert (run.status, world.figures(run).fetched_hash) == ("FAILED", None)
    world.put_bytes(file_of(*NUMBERS, Name="Thing of Wednesday", Price="1.0"))
    run = world.run()
    assert (run.outcome, codes(world, run)) == ("PROMOTED", ["LAST_RECORD_LEFT_OUT"])
    assert world.shown() == before


def test_only_a_file_refused_for_the_same_reason_right_before_makes_an_open_end_usual(world):
    world.put(*NUMBERS)
    world.run()
    cut = file_of(*NUMBERS)
    world.put_bytes(cut[: cut.rindex(b"\t")])
    assert "is incomplete" in world.run().error
    world.put_bytes(file_of(*NUMBERS, Name="One"))
    assert world.run().error_code == "TRUNCATED"
    world.put(*NUMBERS, 120)
    assert world.run().outcome == "PROMOTED"
    world.put_bytes(file_of(*NUMBERS, Name="Two"))
    assert world.run().error_code == "TRUNCATED", "a file with a line feed came in between"


def test_a_feed_without_a_schedule_takes_a_refused_file_at_its_next_run(world):
    world.change(schedule_hours=None, next_run_at=None)
    world.put(*NUMBERS)
    world.run()
    world.put_bytes(file_of(*NUMBERS))
    assert world.run().error_code == "TRUNCATED"
    world.change(manual_run_requested_at="2026-01-01T00:00Z")
    assert world.run("MANUAL").outcome == "PROMOTED"


def test_an_upload_that_is_completed_meanwhile_is_taken_by_the_retry(world):
    world.put(*NUMBERS)
    world.run()
    world.put_bytes(file_of(*NUMBERS, 120))
    job = world.ask()
    world.attempt(job)
    world.put(*NUMBERS, 120)
    world.attempt(job)
    assert Job.objects.get(pk=job).state == "succeeded"
    assert "S-120" in world.shown()


@pytest.mark.parametrize(
    "last", [{"Price": "1.0", "Availability": "out of stoc", "Name": "Thi"}, {"Price": ""}, {"SKU": "S-10"}]
)
def test_where_nothing_reveals_a_cut_the_last_record_is_seen_and_changes_nothing(world, last):
    world.put_bytes(file_of(*NUMBERS))
    first = world.run()
    assert (first.outcome, world.figures(first).file_end) == ("PROMOTED", "LEFT_OUT")
    assert "S-109" not in world.shown(), "a new product is not made of it"
    assert world.run().outcome == "PROMOTED"
    before = world.shown()
    assert "S-109" in before
    world.put_bytes(file_of(*NUMBERS, **last))
    run = world.run()
    figures = world.figures(run)
    assert (run.outcome, codes(world, run), figures.file_end) == ("PROMOTED", ["LAST_RECORD_LEFT_OUT"], "LEFT_OUT")
    assert (figures.rows_read, figures.rows_parsed, figures.products_rejected) == (10, 9, 0)
    assert figures.prices_written == 0
    assert world.shown() == before
    if "SKU" not in last:
        assert (figures.products_missing, figures.products_upserted) == (0, 10)


def test_the_next_run_of_the_same_file_takes_the_record_and_the_one_after_it_is_skipped(world):
    world.put_bytes(file_of(*NUMBERS))
    world.run()
    run = world.run()
    assert (run.outcome, world.figures(run).file_end, codes(world, run)) == ("PROMOTED", "TAKEN", [])
    assert world.names() == {f"S-{number}" for number in NUMBERS}
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_MTIME"


def test_a_record_that_is_left_out_replaces_no_earlier_row_of_its_product(world):
    world.put_bytes(file_of(*NUMBERS))
    world.run()
    world.run()
    # S-1009 was cut to S-100, which has a row of its own with a new price.
    rows = [row(100, Price="7.00"), *(row(number) for number in range(101, 110)), row(1009, SKU="S-100")]
    world.put_bytes(written(*rows).encode()[:-1])
    assert world.run().outcome == "PROMOTED"
    assert world.shown()["S-100"] == ("Thing 100", 7.0, True)


def test_a_rejected_file_is_not_read_again_for_its_last_record(world):
    world.put_bytes(file_of(*range(100, 140)))
    world.run()
    world.run()
    world.put_bytes(file_of(100, 101, 102))
    held = world.run()
    assert held.outcome == "HELD"
    world.reject(held)
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_REJECTED"


def test_compressed_files_are_exempt(world):
    world.put(*NUMBERS, compressed=True)
    world.run()
    world.put_bytes(file_of(*NUMBERS, Price="9.99"), compressed=True)
    run = world.run()
    assert (run.outcome, world.figures(run).file_end) == ("PROMOTED", "PROVEN")
    assert world.shown()["S-109"][1] == 9.99


def parts(*pieces):
    """A gzip file of several members, as block-wise writers make it."""
    return b"".join(map(gzip.compress, pieces))


def test_a_compressed_file_of_several_parts_may_be_cut_between_two(world):
    data = written(*(row(number, Availability="out of stock") for number in NUMBERS)).encode()
    world.put_bytes(parts(data[:400], data[400:]))
    assert world.run().outcome == "PROMOTED"
    before = world.shown()
    # The part with "k" and the line feed is not there yet.
    world.put_bytes(parts(data[:400], data[400:-2]))
    tested = verbs.test_run(OLGA, world.feed.id).job_id
    run_until_idle()
    assert "LAST_RECORD_LEFT_OUT" in [notice["code"] for notice in Job.objects.get(pk=tested).result["notices"]]
    run = world.run()
    assert (run.outcome, codes(world, run)) == ("PROMOTED", ["LAST_RECORD_LEFT_OUT"])
    assert (world.figures(run).file_end, world.shown()) == ("LEFT_OUT", before)
    run = world.run()
    assert (run.outcome, world.figures(run).file_end) == ("PROMOTED", "TAKEN")


def test_an_empty_last_part_proves_the_end_of_a_compressed_file(world):
    """Writers of block-wise gzip (BGZF) end their files like this."""
    data = file_of(*NUMBERS, Price="9.99")
    world.put_bytes(parts(data[:400], data[400:], b""))
    run = world.run()
    assert (run.outcome, world.figures(run).file_end) == ("PROMOTED", "PROVEN")
    assert world.shown()["S-109"][1] == 9.99


def test_the_size_in_the_manifest_proves_a_file_or_refuses_it(world):
    world.put(*NUMBERS)
    world.run()
    data = file_of(*NUMBERS, Price="9.99")
    manifest(world, {"numRecords": 10, "size": len(data)})
    world.put_bytes(data)
    run = world.run()
    assert (run.outcome, world.figures(run).file_end) == ("PROMOTED", "PROVEN")
    world.put_bytes(data[:-1])
    run = world.run()
    assert run.error_code == "TRUNCATED"
    assert f"has {len(data) - 1} bytes, but the partner's manifest says {len(data)}" in run.error


def test_without_a_number_of_rows_the_size_in_the_manifest_counts_for_every_plain_file(world):
    world.put(*NUMBERS)
    manifest(world, {"size": world.file.stat().st_size + 50})
    assert world.run().error_code == "TRUNCATED"
    run = world.run()
    assert (run.outcome, codes(world, run)) == ("PROMOTED", ["FILE_TAKEN_AS_IS"])


def test_a_file_that_grows_between_two_checks_is_refused(world):
    manifest(world)
    world.put_bytes(file_of(100, 101))
    # The manifest is read between the two looks at the file.
    world.meanwhile(lambda: world.put_bytes(file_of(*NUMBERS)))
    run = world.attempt(world.ask())
    assert "changed shortly before it was fetched" in run.error
    change(run.pk, "run_at = now()")
    run_until_idle()
    assert world.names() == {f"S-{number}" for number in NUMBERS if number != 109}


def test_a_forced_run_takes_the_file_of_a_partner_who_never_ends_it(world):
    world.put(*NUMBERS)
    world.run()
    world.put_bytes(file_of(*NUMBERS, Price="9.99"))
    assert world.run().error_code == "TRUNCATED"
    job = verbs.run_now(OLGA, world.feed.id, force=True).job_id
    world.work(job)
    assert world.shown()["S-109"][1] == 9.99
    run = Run.objects.get(job_id=job)
    [message] = [notice["message"] for notice in world.figures(run).notices if notice["code"] == "FILE_TAKEN_AS_IS"]
    assert "ended with a line feed and this one does not" in message
    assert "The run was forced" in message
    assert Feed.objects.get().takes_file_as_is is False, "for one file only"
    assert world.run().outcome == "SKIPPED"


def refuses_a_cut_file(world):
    """Whether the next scheduled run judges a file that looks cut as if nobody had ever forced one."""
    before = world.shown()
    world.put_bytes(file_of(*NUMBERS, Price="1.0"))
    return world.run().error_code == "TRUNCATED" and world.shown() == before


def test_force_ends_with_its_run_also_if_that_fails(world):
    world.put(*NUMBERS)
    world.run()
    world.file.unlink()
    job = verbs.run_now(OLGA, world.feed.id, force=True).job_id
    world.work(job)
    assert Run.objects.get(job_id=job).error_code == "REMOTE_FILE_NOT_FOUND"
    assert Feed.objects.get().takes_file_as_is is False
    assert refuses_a_cut_file(world)


def test_force_ends_when_the_feed_is_paused_or_its_job_is_cancelled(world):
    world.put(*NUMBERS)
    world.run()
    verbs.run_now(OLGA, world.feed.id, force=True)
    verbs.pause(OLGA, world.feed.id)
    assert Feed.objects.get().takes_file_as_is is False
    verbs.resume(OLGA, world.feed.id)
    run_until_idle()
    job = verbs.run_now(OLGA, world.feed.id, force=True).job_id
    jobs.cancel(OLGA, job)
    assert Feed.objects.get().takes_file_as_is is False


def test_a_scheduled_run_does_not_use_up_the_force_that_a_person_asked_for(world):
    world.put(*NUMBERS)
    world.run()
    world.put_bytes(file_of(*NUMBERS, Price="9.99"))
    scheduled = world.ask()
    verbs.run_now(OLGA, world.feed.id, force=True)
    world.work(scheduled)
    assert Run.objects.get(job_id=scheduled).error_code == "TRUNCATED"
    world.hurry()
    assert world.shown()["S-109"][1] == 9.99
    feed = Feed.objects.get()
    assert (feed.takes_file_as_is, feed.manual_run_requested_at) == (False, None)
    runs = Run.objects.count()
    run_until_idle()
    assert Run.objects.count() == runs, "nothing is left to be done"


def test_a_file_with_nothing_but_an_open_record_is_refused_and_taken_if_it_stays(world):
    world.put_bytes(file_of(100))
    assert world.run().error_code == "TRUNCATED"
    assert world.run().outcome == "PROMOTED"
    assert world.names() == {"S-100"}


@pytest.mark.parametrize("records", ["9" * 20, "9" * 5000, "-1", "4.0", "4,000"])
def test_an_entry_of_the_manifest_that_cannot_be_used_is_reported_and_fails_nothing(world, records):
    manifest(world, {"location": "/Other/a.csv", "numRecords": "9" * 5000}, {"numRecords": records})
    world.put(*NUMBERS)
    run = world.run()
    assert (run.outcome, codes(world, run)) == ("PROMOTED", ["MANIFEST_UNUSABLE"])
    assert world.figures(run).notices[0]["message"].startswith("The manifest has an entry for /Shop/catalog.txt that")


def test_a_manifest_that_cannot_be_parsed_is_transient_and_named(world):
    world.put(*NUMBERS)
    (world.server.root / "catalogs_info_file.xml").write_text("<catalogs><catalog>")
    job = world.attempt(world.ask())
    assert (job.state, job.error_type) == ("retryable", "MANIFEST_UNREADABLE")
    assert "/catalogs_info_file.xml" in job.error


def tried(world):
    made = verbs.test_run(OLGA, world.feed.id)
    run_until_idle()
    return Job.objects.get(pk=made.job_id).result


@pytest.mark.parametrize("numbers", [NUMBERS, range(100, 400)], ids=["few rows", "more than a test shows"])
def test_a_feed_test_judges_the_end_of_a_file_as_a_run_does(world, numbers):
    world.put_bytes(file_of(*numbers))
    found = tried(world)
    assert (found["success"], [notice["code"] for notice in found["notices"]]) == (True, ["LAST_RECORD_LEFT_OUT"])
    world.put(*numbers)
    world.run()
    world.put_bytes(file_of(*numbers))
    assert tried(world)["error"]["code"] == "TRUNCATED"
    data = written(*(row(number) for number in numbers)).encode()
    world.put_bytes(data[: data.rindex(b"\t")])
    assert tried(world)["error"]["code"] == "TRUNCATED"
    world.put_bytes(data, compressed=True)
    whole = world.file.read_bytes()
    world.file.write_bytes(whole[:-4])
    os.utime(world.file)
    assert tried(world)["error"]["code"] == "TRUNCATED_GZIP"
    world.put(*numbers)
    manifest(world, {"numRecords": len(numbers) + 1})
    assert tried(world)["error"]["code"] == "COUNT_MISMATCH"
