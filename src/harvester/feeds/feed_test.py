"""A test run: what a run would make of the feed, found out on the first rows. It makes no run and changes nothing.

The one exception is the key of a server that nobody approved: it is kept on the feed, so that it can be.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any, cast

import structlog
from django.conf import settings
from django.db import connection

from harvester.engine import sql
from harvester.engine.errors import JobSignal
from harvester.engine.job import RunningJob
from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.file_end import EndRule, FileFacts, end_rule, prove_whole
from harvester.feeds.findings import dialect_of
from harvester.feeds.ingest import limits_of
from harvester.feeds.jobs import TEST
from harvester.feeds.manifest import Expected, read_expected
from harvester.feeds.models import Feed
from harvester.feeds.networks import network_named
from harvester.feeds.notices import Notice, of_report
from harvester.feeds.partner_connection import approved_keys, note_host_key, open_remote
from harvester.feeds.reader import TEST_ROWS, ParseReport, ParseSettings, Parsing
from harvester.feeds.reader.blocks import OpenEnd
from harvester.feeds.reader.encoding import Encoding
from harvester.feeds.reader.findings import storable
from harvester.feeds.run_context import fields_of
from harvester.feeds.states import Compression, Transport
from harvester.feeds.verbs.locked_feed import database_now
from harvester.guards.host_keys import HostKey, HostKeyChanged, HostKeyUnknown
from harvester.guards.inflate import InflateLimitExceeded, InflateLimits, inflate, is_gzip
from harvester.guards.redaction import redact_text
from harvester.guards.remote import TransferLimits
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import HarvesterError, NotFound
from harvester.kernel.numerals import DecimalStyle
from harvester.kernel.rejects import RejectCode, WarningCode
from harvester.kernel.stock import UnknownStock

log = structlog.get_logger(__name__)

#: Enough for the first hundred rows of any catalog.
MOST_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 64 * 1024
_INFLATED = InflateLimits(output_bytes=64 * 1024 * 1024)
#: Somebody sits in front of it.
_LIMITS = TransferLimits(total=120.0)
SHOWN_ROWS, SHOWN_SAMPLES, SHOWN_COLUMNS, SHOWN_CHARACTERS = 10, 3, 100, 200
_SHOWN = ("item_id", "sku", "title", "amount", "currency", "url", "in_stock")
KEPT_HOURS = 24


def test_feed(job: RunningJob, feed_id: str) -> dict[str, Any]:
    """Try the feed. Whatever is wrong with it is a result too."""
    feed = Feed.objects.select_related("source").filter(pk=feed_id).first()
    if feed is None:
        raise NotFound(f"There is no feed {feed_id} any more.")
    found: dict[str, Any] = {"host_keys": _host_keys(feed)}
    try:
        data, expected = _download(job, feed)
        found |= {"bytes_read": len(data), "is_whole": expected is not None, "compression": _compression(data)}
        found |= _look(feed, data, expected)
    except JobSignal:
        raise
    except HarvesterError as problem:
        found |= _refusal(job, feed, problem)
    error = (found.get("error") or {}).get("code")
    log.info("FEED_TESTED", **fields_of(feed), stage="test", success=found["success"], error=error)
    return found


def forget_tests(job: RunningJob) -> dict[str, int]:
    """Rows of partners' files are kept with runs, not with tests."""
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(sql.FORGET_RESULTS, {"kind": TEST, "hours": KEPT_HOURS})
        return {"forgotten": cursor.rowcount}


class _Enough(Exception):
    """There is enough of the file to look at. No error: the rest is not needed."""


def _download(job: RunningJob, feed: Feed) -> tuple[bytes, Expected | None]:
    """The beginning of the file, and if that is all of it, what the manifest says about it."""
    sink = BytesIO()

    def note(done: int, total: int | None) -> None:
        job.check()
        job.progress(min(done, MOST_BYTES), min(total or MOST_BYTES, MOST_BYTES), "downloading")
        if done >= MOST_BYTES and done != total:
            raise _Enough

    job.progress(0, None, "connecting")
    with open_remote(feed, limits=_LIMITS) as remote:
        try:
            remote.download(feed.path, sink, cap_bytes=feed.max_file_bytes or MAX_FILE_BYTES, on_progress=note)
        except _Enough:
            return sink.getvalue(), None
        return sink.getvalue(), read_expected(feed, remote, log)


def _look(feed: Feed, data: bytes, expected: Expected | None) -> dict[str, Any]:
    """What the first rows come to, read by the code that runs use. A whole file is judged to its end, as a run does."""
    if expected is None:
        parsing = _parsing(feed, data, first_rows=TEST_ROWS, may_be_cut=True)
        return _told(parsing.report, _rows(parsing), [])
    sha256 = hashlib.sha256(data).hexdigest()
    end = end_rule(feed, FileFacts(sha256=sha256, size=len(data), is_gzip=is_gzip(data), expected=expected))
    notices = expected.notices()
    with suppress(InflateLimitExceeded):
        # Without its cap, which is far below that of a run.
        checked = _parsing(feed, data, end=end).check_records()
        prove_whole(checked, expected.rows)
        notices += end.notices(checked)
    parsing = _parsing(feed, data, first_rows=TEST_ROWS, may_be_cut=False, end=end)
    return _told(parsing.report, _rows(parsing), notices)


def _parsing(
    feed: Feed, data: bytes, *, first_rows: int | None = None, may_be_cut: bool = False, end: EndRule | None = None
) -> Parsing:
    said = ParseSettings(
        moment=database_now(),
        default_currency=feed.default_currency or None,
        decimal_style=cast("DecimalStyle | None", feed.decimal_style or None),
        unknown_stock=UnknownStock(feed.unknown_stock),
        kept_parameters=tuple(feed.kept_parameters),
        allowed_networks=settings.CONFIG.egress_networks,
    )
    chunks = inflate(_chunks(data), limits=_INFLATED, block_bytes=_BLOCK_BYTES, may_be_cut=may_be_cut)
    return Parsing(
        chunks,
        network_named(feed.network),
        said,
        limits=limits_of(feed),
        encoding=cast("Encoding | None", feed.encoding or None),
        first_rows=first_rows,
        may_be_cut=may_be_cut,
        open_end=end.open_end if end else OpenEnd.TAKE,
        suspicion=end.suspicion if end else "",
        block_bytes=_BLOCK_BYTES,
    )


def _rows(parsing: Parsing) -> list[dict[str, Any]]:
    """The first valid rows of a file that is parsed for a test."""
    frames = [frame.select(_SHOWN) for frame in parsing]
    return [row for frame in frames for row in frame.head(SHOWN_ROWS).iter_rows(named=True)][:SHOWN_ROWS]


def _chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _BLOCK_BYTES):
        yield data[start : start + _BLOCK_BYTES]


def _told(report: ParseReport, rows: list[dict[str, Any]], notices: list[Notice]) -> dict[str, Any]:
    counts = report.findings.counts
    return {
        "success": report.rows_valid > 0,
        "error": None if report.rows_valid else _nothing_usable(report),
        "rows_detected": report.rows_read,
        "rows_valid": report.rows_valid,
        "has_more_rows": report.rows_read >= TEST_ROWS,
        "dialect": _dialect(report),
        "family": report.binding.family,
        "binding": {name: [_cut(column) for column in columns] for name, columns in report.binding.names.items()},
        "unbound": [_cut(name) for name in report.binding.unbound[:SHOWN_COLUMNS]],
        "rejects": {code.value: counts[code] for code in RejectCode if counts[code]},
        "warnings": {code.value: counts[code] for code in WarningCode if counts[code]},
        "notices": [notice.as_json() for notice in (*of_report(report), *notices)],
        "samples": _samples(report),
        "rows": [_row(row) for row in rows],
    }


def _nothing_usable(report: ParseReport) -> dict[str, str]:
    message = f"Not one of the first {report.rows_read} rows can be used; the rejected rows say why."
    return {"code": "NO_VALID_PRODUCTS", "message": message}


def _dialect(report: ParseReport) -> dict[str, Any]:
    dialect = dialect_of(report)
    return {
        **dialect,
        "delimiter_name": report.dialect.delimiter_name,
        "header": [_cut(name) for name in dialect["header"][:SHOWN_COLUMNS]],
    }


def _samples(report: ParseReport) -> dict[str, list[dict[str, Any]]]:
    return {
        code.value: [{"line": item.line, "row": item.row, "reason": item.reason} for item in samples[:SHOWN_SAMPLES]]
        for code, samples in report.findings.samples.items()
    }


def _refusal(job: RunningJob, feed: Feed, problem: HarvesterError) -> dict[str, Any]:
    told: dict[str, Any] = {"success": False, "error": {"code": problem.code, "message": redact_text(str(problem))}}
    if isinstance(problem, HostKeyUnknown | HostKeyChanged):
        with job.transaction():
            note_host_key(feed, problem.seen)
        told["seen_host_key"] = _key(problem.seen)
    return told


def _host_keys(feed: Feed) -> list[Mapping[str, str]]:
    """The keys by which the server may prove itself; a server that is asked for its files has shown one of them."""
    return [_key(key) for key in approved_keys(feed)] if feed.transport == Transport.SFTP else []


def _key(key: HostKey) -> dict[str, str]:
    return {"type": key.type, "fingerprint": key.fingerprint, "line": str(key)}


def _compression(data: bytes) -> str:
    return Compression.GZIP.value if is_gzip(data) else Compression.NONE.value


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for people: texts cut, the amount with the decimals of its currency."""
    shown = {name: _cut(value) if isinstance(value, str) else value for name, value in row.items()}
    return {**shown, "amount": f"{row['amount']:.{MINOR_UNITS[row['currency']]}f}"}


def _cut(text: str) -> str:
    text = storable(text)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 4]} ..."
