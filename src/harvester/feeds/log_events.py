"""The log events of a run about its file; docs/feed-events.md lists all events."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import DatabaseError

from harvester.feeds.reader import ParseReport, Parsing
from harvester.feeds.reader.errors import HeaderUnreadable
from harvester.feeds.reader.load import Position
from harvester.feeds.run_context import FeedRunContext
from harvester.kernel.network import REQUIRED, Field
from harvester.kernel.rejects import RejectCode
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.match import Match
from harvester.runs.gates import Finding, Verdict

#: More names than a catalog has columns; a longer header is a mistake and would fill the log.
SHOWN_COLUMNS: Final = 200
#: Columns without which a catalog can be read but is incomplete: one of each group.
EXPECTED: Final = ((Field.ITEM_ID, Field.SKU), (Field.STOCK,), (Field.IMAGE_URL,), (Field.BRAND,))


@contextmanager
def header_logged(context: FeedRunContext) -> Iterator[None]:
    """Log the expected columns before the header is read, and the missing ones if it cannot be read."""
    feed = context.feed
    expected = [_words(group) for group in REQUIRED]
    context.log.info("PARSE_START", format=feed.format, encoding=feed.encoding or "auto", expected_columns=expected)
    try:
        yield
    except HeaderUnreadable as problem:
        if problem.missing:
            columns = [_words(group) for group in problem.missing]
            context.log.warning("PARSE_COLUMN_MISSING", columns=columns, required=True)
        raise


def log_header(context: FeedRunContext, parsing: Parsing) -> None:
    report = parsing.report
    context.log.debug(
        "PARSE_HEADERS",
        headers=list(report.binding.header[:SHOWN_COLUMNS]),
        mapped_columns=report.binding.names,
        family=report.binding.family,
        delimiter=report.dialect.delimiter_name,
        quoted=report.dialect.quoted,
        encoding=parsing.encoding,
    )
    missing = [_words(group) for group in EXPECTED if not any(field in report.binding.columns for field in group)]
    if missing:
        context.log.warning("PARSE_COLUMN_MISSING", columns=missing, required=False)


def _words(group: tuple[Field, ...]) -> str:
    return " or ".join(field.value for field in group)


class ParseProgress:
    """Reports the progress in the file after each block."""

    def __init__(self, context: FeedRunContext, report: ParseReport) -> None:
        self._context = context
        self._report = report
        self._blocks = 0

    def __call__(self, position: Position) -> None:
        report = self._report
        self._blocks += 1
        self._context.log.debug(
            "PARSE_PROGRESS",
            batch_number=self._blocks,
            rows_read=report.rows_read,
            rows_parsed=report.rows_valid,
            rows_skipped=report.rows_rejected,
            percent_complete=100 * position.done // position.total if position.total else 100,
            duration_ms=self._context.elapsed_ms(),
        )


def log_parsed(context: FeedRunContext, report: ParseReport) -> None:
    skipped = report.rows_rejected
    counts = {code.value: report.findings.counts[code] for code in RejectCode if report.findings.counts[code]}
    if skipped:
        context.log.warning("PARSE_ROW_SKIPPED", count=skipped, by_code=counts)
    if report.duplicates and report.duplicates.count:
        context.log.warning("DUPLICATE_ROW_SAME_IDENTITY", count=report.duplicates.count)
    context.log.info(
        "PARSE_COMPLETE",
        total_rows=report.rows_read,
        parsed_rows=report.rows_valid,
        skipped_rows=skipped,
        known_rows=report.rows_cached,
        encoding=report.encoding,
        duration_ms=context.elapsed_ms(),
    )


def log_matched(context: FeedRunContext, found: Match, upgrades: int) -> None:
    """Log the counts of rows, without one event per row."""
    log = context.log
    log.debug("PRICE_SIGNATURE", compared=found.known, due=found.prices_due, shocked=found.shocked)
    if found.heartbeats:
        log.debug("PRICE_HEARTBEAT_DUE", count=found.heartbeats)
    if found.url_hash:
        log.warning("URL_HASH_FALLBACK", count=found.url_hash, created=found.new_url_hash, products=found.products)
    if upgrades:
        log.info("IDENTITY_UPGRADE_DETECTED", count=upgrades, products=found.products)


def log_judging(context: FeedRunContext, baseline: Baseline) -> None:
    context.log.info("CIRCUIT_BREAKER_START", t0=baseline.moment.isoformat(), expiry_hours=baseline.expiry_hours)


def log_judged(context: FeedRunContext, found: Match, verdict: Verdict) -> None:
    log = context.log
    before, seen = found.active_before, found.active_seen
    counts = {"active_count_before": before, "seen_success_count": seen}
    log.debug("CIRCUIT_BREAKER_COUNTS", **counts, **_would_expire(before, seen))
    if seen > before:
        log.warning("CIRCUIT_BREAKER_NEGATIVE_EXPIRE_COUNT", **counts, raw_expire_count=before - seen)
    for finding in verdict.holding:
        name = "DATA_QUALITY_URL_HASH_SPIKE" if finding.gate == "URL_HASH" else "CIRCUIT_BREAKER_TRIPPED"
        log.warning(name, reason=finding.gate, **_would_expire(before, seen), **_thresholds(finding))
    if verdict.passed:
        log.info("CIRCUIT_BREAKER_PASSED", **_would_expire(before, seen), **_thresholds(verdict.findings[0]))


def _would_expire(before: int, seen: int) -> dict[str, float]:
    count = max(0, before - seen)
    return {"would_expire_count": count, "expire_percent": round(100 * count / before, 2) if before else 0.0}


def _thresholds(finding: Finding) -> dict[str, float]:
    """Return the figures of a gate, with the names that its thresholds have in the log."""
    figures = dict(finding.figures)
    if "threshold_share" in figures:
        figures["threshold_percent"] = round(100 * figures.pop("threshold_share"), 2)
    if "threshold_most" in figures:
        figures["threshold_absolute"] = figures.pop("threshold_most")
    return figures


class UpsertBatches:
    """Logs each block of new products: before it is copied, and when it was copied or failed."""

    def __init__(self, context: FeedRunContext, products: int) -> None:
        self._context = context
        self._left = products
        self._number = 0

    @contextmanager
    def __call__(self, size: int) -> Iterator[None]:
        self._number, self._left = self._number + 1, self._left - size
        # Very many new products are copied while the run is at its next stage.
        log, began = self._context.log.bind(batch_number=self._number, stage="upsert"), time.monotonic()
        log.info("UPSERT_BATCH_START", batch_size=size, products_left=self._left)
        try:
            yield
        except DatabaseError as error:
            log.error("UPSERT_BATCH_FAILED", error=str(error), rolled_back=True)
            raise
        log.info("UPSERT_BATCH_COMPLETE", products_upserted=size, duration_ms=round((time.monotonic() - began) * 1000))
