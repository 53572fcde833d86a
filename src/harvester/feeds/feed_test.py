"""The feed test: connect, read the first rows as a run would, and report the result. It changes nothing.

The one exception is a host key that is not approved: it is stored with the feed, so that it can be.
"""

import hashlib
from contextlib import suppress
from io import BytesIO
from typing import Any, cast

import structlog
from django.db import connection

from harvester.engine import sql
from harvester.engine.errors import JobSignal
from harvester.engine.job import RunningJob
from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.file_end import EndRule, FileFacts, end_rule, prove_whole
from harvester.feeds.findings import dialect_of
from harvester.feeds.ingest import limits_of, parse_settings_of
from harvester.feeds.jobs import TEST
from harvester.feeds.manifest import Expected, read_expected
from harvester.feeds.models import Feed
from harvester.feeds.networks import network_named
from harvester.feeds.notices import Notice, of_report
from harvester.feeds.partner_connection import approved_keys, note_host_key, open_remote
from harvester.feeds.reader import TEST_ROWS, Parsing
from harvester.feeds.reader.blocks import OpenEnd
from harvester.feeds.reader.encoding import Encoding
from harvester.feeds.reader.findings import storable
from harvester.feeds.run_context import log_fields
from harvester.feeds.states import Compression, Transport
from harvester.feeds.verbs.locked_feed import database_now
from harvester.guards.host_keys import HostKey, HostKeyChanged, HostKeyUnknown
from harvester.guards.inflate import GzipEnd, InflateLimitExceeded, InflateLimits, inflate, is_gzip
from harvester.guards.redaction import redact_text
from harvester.guards.remote import TransferLimits
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import HarvesterError, NotFound
from harvester.kernel.rejects import RejectCode, WarningCode

log = structlog.get_logger(__name__)

#: Enough for the first hundred rows of any catalog.
MOST_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 64 * 1024
_INFLATED = InflateLimits(output_bytes=64 * 1024 * 1024)
#: A person waits for the result.
_LIMITS = TransferLimits(total=120.0)
SHOWN_ROWS, SHOWN_SAMPLES, SHOWN_COLUMNS, SHOWN_CHARACTERS = 10, 3, 100, 200
_SHOWN = ("item_id", "sku", "title", "amount", "currency", "url", "in_stock")
KEPT_HOURS = 24


def test_feed(job: RunningJob, feed_id: str) -> dict[str, Any]:
    """Test the feed; problems of the feed are results, not errors."""
    feed = Feed.objects.select_related("source").filter(pk=feed_id).first()
    if feed is None:
        raise NotFound(f"The feed {feed_id} was deleted.")
    # A server that sends files has shown one of these keys.
    keys = approved_keys(feed) if feed.transport == Transport.SFTP else []
    found: dict[str, Any] = {"host_keys": [_key(key) for key in keys]}
    try:
        data, expected = _download(job, feed)
        compression = Compression.GZIP if is_gzip(data) else Compression.NONE
        found |= {"bytes_read": len(data), "is_whole": expected is not None, "compression": compression.value}
        found |= _read(feed, data, expected)
    except JobSignal:
        raise
    except HarvesterError as problem:
        found |= {"success": False, "error": {"code": problem.code, "message": redact_text(str(problem))}}
        if isinstance(problem, HostKeyUnknown | HostKeyChanged):
            with job.transaction():
                note_host_key(feed, problem.seen)
            found["seen_host_key"] = _key(problem.seen)
    error = (found.get("error") or {}).get("code")
    log.info("FEED_TESTED", **log_fields(feed), stage="test", success=found["success"], error=error)
    return found


def forget_tests(job: RunningJob) -> dict[str, int]:
    """Delete the results of old feed tests, which have rows of partners' files."""
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(sql.FORGET_RESULTS, {"kind": TEST, "hours": KEPT_HOURS})
        return {"forgotten": cursor.rowcount}


class _Enough(Exception):
    """Enough of the file was read."""


def _download(job: RunningJob, feed: Feed) -> tuple[bytes, Expected | None]:
    """Return the beginning of the file, and if that is the whole file, what the manifest says about it."""
    sink = BytesIO()

    def report(done: int, total: int | None) -> None:
        job.check()
        job.progress(min(done, MOST_BYTES), min(total or MOST_BYTES, MOST_BYTES), "downloading")
        if done >= MOST_BYTES and done != total:
            raise _Enough

    job.progress(0, None, "connecting")
    with open_remote(feed, limits=_LIMITS) as remote:
        try:
            remote.download(feed.path, sink, cap_bytes=feed.max_file_bytes or MAX_FILE_BYTES, on_progress=report)
        except _Enough:
            return sink.getvalue(), None
        return sink.getvalue(), read_expected(feed, remote, log)


def _read(feed: Feed, data: bytes, expected: Expected | None) -> dict[str, Any]:
    """Return what the first rows have, read by the code of runs. A whole file is checked to its end, like in a run."""
    if expected is None:
        parsing = _parsing(feed, data, first_rows=TEST_ROWS, may_be_cut=True)
        return _result(parsing, [])
    sha256 = hashlib.sha256(data).hexdigest()
    end = end_rule(feed, FileFacts(sha256=sha256, size=len(data), is_gzip=is_gzip(data), expected=expected))
    notices = expected.notices()
    with suppress(InflateLimitExceeded):
        # The limit of a feed test is far below that of a run, so reaching it says nothing about the file.
        checked = _parsing(feed, data, end=end).check_records()
        prove_whole(checked, expected.rows)
        notices += end.notices(checked)
    parsing = _parsing(feed, data, first_rows=TEST_ROWS, may_be_cut=False, end=end)
    return _result(parsing, notices)


def _parsing(
    feed: Feed, data: bytes, *, first_rows: int | None = None, may_be_cut: bool = False, end: EndRule | None = None
) -> Parsing:
    pieces = (data[start : start + _BLOCK_BYTES] for start in range(0, len(data), _BLOCK_BYTES))
    gzip_end = GzipEnd()
    chunks = inflate(pieces, limits=_INFLATED, block_bytes=_BLOCK_BYTES, may_be_cut=may_be_cut, end=gzip_end)
    return Parsing(
        chunks,
        network_named(feed.network),
        parse_settings_of(feed, database_now()),
        limits=limits_of(feed),
        encoding=cast("Encoding | None", feed.encoding or None),
        first_rows=first_rows,
        may_be_cut=may_be_cut,
        open_end=end.open_end if end else OpenEnd.TAKE,
        suspicion=end.suspicion if end else "",
        may_lack_parts=lambda: gzip_end.may_lack_parts,
        block_bytes=_BLOCK_BYTES,
    )


def _result(parsing: Parsing, notices: list[Notice]) -> dict[str, Any]:
    frames = [frame.select(_SHOWN) for frame in parsing]
    rows = [row for frame in frames for row in frame.head(SHOWN_ROWS).iter_rows(named=True)][:SHOWN_ROWS]
    report = parsing.report
    error, counts, dialect = None, report.findings.counts, dialect_of(report)
    if not report.rows_valid:
        message = f"None of the first {report.rows_read} rows can be used; the rejected rows say why."
        error = {"code": "NO_VALID_PRODUCTS", "message": message}
    return {
        "success": report.rows_valid > 0,
        "error": error,
        "rows_detected": report.rows_read,
        "rows_valid": report.rows_valid,
        "has_more_rows": report.rows_read >= TEST_ROWS,
        "dialect": {
            **dialect,
            "delimiter_name": report.dialect.delimiter_name,
            "header": [_cut(name) for name in dialect["header"][:SHOWN_COLUMNS]],
        },
        "family": report.binding.family,
        "binding": {name: [_cut(column) for column in columns] for name, columns in report.binding.names.items()},
        "unbound": [_cut(name) for name in report.binding.unbound[:SHOWN_COLUMNS]],
        "rejects": {code.value: counts[code] for code in RejectCode if counts[code]},
        "warnings": {code.value: counts[code] for code in WarningCode if counts[code]},
        "notices": [notice.as_json() for notice in (*of_report(report), *notices)],
        "samples": {
            code.value: [{"line": one.line, "row": one.row, "reason": one.reason} for one in samples[:SHOWN_SAMPLES]]
            for code, samples in report.findings.samples.items()
        },
        "rows": [
            {name: _cut(value) if isinstance(value, str) else value for name, value in row.items()}
            | {"amount": f"{row['amount']:.{MINOR_UNITS[row['currency']]}f}"}
            for row in rows
        ],
    }


def _key(key: HostKey) -> dict[str, str]:
    return {"type": key.type, "fingerprint": key.fingerprint, "line": str(key)}


def _cut(text: str) -> str:
    text = storable(text)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 4]} ..."
