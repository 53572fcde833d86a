"""Read the file of a run, judge it, and promote or hold it. No facts are written before the verdict."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from django.conf import settings
from django.db import DatabaseError, connection

from harvester.catalog.search_index import come_later
from harvester.engine.errors import LeaseLost
from harvester.engine.outcomes import DATABASE_LOST
from harvester.engine.side_session import MAY_WAIT, in_side_session
from harvester.feeds import file_end, notices
from harvester.feeds.errors import NoValidProducts
from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.file_end import EndRule, prove_whole, rule_of_verified
from harvester.feeds.files import artifact_store
from harvester.feeds.findings import UPGRADE, URL_ONLY, MoreSample, keep_findings
from harvester.feeds.gates import GATES, RunFacts, Thresholds
from harvester.feeds.log_events import (
    ParseProgress,
    UpsertBatches,
    header_logged,
    log_header,
    log_judged,
    log_judging,
    log_matched,
    log_parsed,
)
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.notices import NoticeCode
from harvester.feeds.reader import ParseLimits, ParseReport, ParseSettings, Parsing
from harvester.feeds.reader.encoding import Encoding
from harvester.feeds.reader.load import (
    Position,
    add_new_products,
    count_missing_contents,
    find_upgrades,
    first_by_url,
    stage,
    stage_contents,
)
from harvester.feeds.reader.row_cache.file import CacheWriter
from harvester.feeds.reader.row_cache.store import publish_cache, use_cache
from harvester.feeds.reader.spool import Spool
from harvester.feeds.run_context import FeedRunContext
from harvester.feeds.run_endings import ENDINGS, Endings, lock_feed_and_source
from harvester.guards.inflate import GzipEnd, InflateLimits, inflate
from harvester.kernel.numerals import DecimalStyle
from harvester.kernel.stock import UnknownStock
from harvester.pipeline.baseline import Baseline, read_baseline
from harvester.pipeline.hold import hold
from harvester.pipeline.match import Match, Repeats, count_repeats, match, tenfold_prices
from harvester.pipeline.promote import Difference, Promotion, promote
from harvester.pipeline.staging import Slot, staging
from harvester.runs.gates import Verdict, judge
from harvester.runs.states import RunOutcome

READ_BYTES = 1024 * 1024
#: Catalogs compress to a fifth or less. A feed with a low download limit may still have a file that compresses well.
INFLATED_TIMES, LEAST_INFLATED_BYTES = 8, 1024**3
#: The lines of a file are counted in 32 bits.
MOST_INFLATED_BYTES = 4 * 1024**3


#: By default, the allocator returns every large piece to the kernel at once and requests it again for the next block: a
#: third of the kernel's time while a catalog is read.
_LIBC = ctypes.CDLL(None)
#: From <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Bytes that may be free at the end of the heap; more than a run ever frees.
_KEPT_FREE: Final = 256 << 20
#: Pieces from this size are mapped separately; the most that the library allows.
_MAPPED_FROM: Final = 32 << 20
#: The default of both.
_DEFAULT: Final = 128 << 10

_lock = threading.Lock()
_runs = 0


class RunFile(NamedTuple):
    """The file of a run.

    Attributes:
        sha256: its name in the store.
        manifest_rows: the number of rows in the partner's manifest.
        end: what to do if no line feed ends its last record; None for a file that the run has verified before.
    """

    sha256: str
    manifest_rows: int | None
    end: EndRule | None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a run found, and the verdict of the gates."""

    baseline: Baseline
    match: Match
    report: ParseReport
    verdict: Verdict
    upgrades: int


def ingest(
    context: FeedRunContext,
    sha256: str,
    *,
    manifest_rows: int | None,
    end: EndRule | None = None,
    endings: Endings = ENDINGS,
) -> None:
    """Read the file of a run and end the run: promoted, or held."""
    file = RunFile(sha256, manifest_rows, end)
    with memory_kept(), staging(context.job) as slot:
        if not _ingest(context, slot, file, endings, looks=True):
            _ingest(context, slot, file, endings, looks=False)


def _ingest(context: FeedRunContext, slot: Slot, file: RunFile, endings: Endings, *, looks: bool) -> bool:
    """Read a file, with or without the row cache; return False if the content of cached rows is needed."""
    with Spool(spool_directory()) as spool:
        report, written = _read(context, slot, spool, file, looks=looks)
        judged = _judge(context, slot, spool, report)
        if judged is None:
            return False
        if judged.verdict.passed:  # mutant: verdict-passed
            _promote(context, slot, spool, judged, endings)
            publish_cache(context, written)
        else:
            if judged.match.new or judged.match.content:
                with context.step("upsert"):
                    stage_contents(context.job, slot, spool, with_new=True)
            with context.step("promote"), context.job.transaction(), connection.cursor() as cursor:
                feed, baseline = lock_feed_and_source(cursor, context.feed)
                hold(cursor, slot, baseline, context.run.no)
                endings.held(context, feed, judged.verdict, baseline)
    return True


def spool_directory() -> Path:
    return settings.CONFIG.home / "spool"


def thresholds_of(context: FeedRunContext) -> Thresholds:
    """Return the feed's thresholds, with defaults for those that are not set."""
    return Thresholds(**{**context.feed.thresholds, "accepts_url_identity": context.feed.accepts_url_identity})


def _read(
    context: FeedRunContext, slot: Slot, spool: Spool, kept: RunFile, *, looks: bool
) -> tuple[ParseReport, CacheWriter | None]:
    """Parse and stage the file and check that it is complete; from here on the run cannot read another file."""
    end = kept.end or rule_of_verified(FeedRun.objects.get(pk=context.run.pk))
    with context.step("parse"), artifact_store().open(kept.sha256) as file:
        with header_logged(context):
            parsing = _parsing(context, file, end)
        log_header(context, parsing)
        report = parsing.report
        with _kept_anyway(context, report), use_cache(context, parsing, spool, looks=looks) as written:
            stage(context.job, slot, parsing, spool, Position(file), on_block=ParseProgress(context, report))
        log_parsed(context, report)
        prove_whole(report, kept.manifest_rows)
        if not report.rows_read:
            raise NoValidProducts(
                "The file has a header and no row. Nothing was changed; ask the partner whether the shop sells nothing."
            )
        if not report.rows_valid:
            counts = ", ".join(f"{code.value} {count:,}" for code, count in report.findings.counts.most_common(5))
            raise NoValidProducts(
                f"Not one of the file's {report.rows_read:,} rows can be used ({counts}). Nothing was changed. The "
                "run's rejected rows say why, line by line; what is missing in all of them can often be set on the "
                "feed, such as the currency."
            )
    with context.job.transaction():
        context.run.artifact_hash = kept.sha256
        context.run.save(update_fields=["artifact_hash"])
        if kept.end:
            context.note(file_end=end.end_of(report).value)
            notices.store(context.run, end.notices(report), checked=file_end.NOTICES)
    return report, written


@contextmanager
def _kept_anyway(context: FeedRunContext, report: ParseReport) -> Iterator[None]:
    """Store the findings with the run even if parsing fails; an attempt that lost its job writes nothing."""
    try:
        yield
    except LeaseLost:
        raise
    except Exception:
        # If the database does not answer, the first error says more.
        with suppress(DatabaseError, *DATABASE_LOST), context.job.transaction():
            keep_findings(context, report)
        raise
    with context.job.transaction():
        keep_findings(context, report)


def _parsing(context: FeedRunContext, file: BinaryIO, end: EndRule) -> Parsing:
    feed = context.feed
    with connection.cursor() as cursor:
        moment = read_baseline(cursor, feed.source_id).moment
    encoding = cast("Encoding | None", feed.encoding or None)
    gzip_end, chunks = GzipEnd(), iter(partial(file.read, READ_BYTES), b"")
    return Parsing(
        inflate(chunks, limits=inflate_limits_of(feed), end=gzip_end), context.network,
        parse_settings_of(feed, moment), limits=limits_of(feed), encoding=encoding, open_end=end.open_end,
        suspicion=end.suspicion, may_lack_parts=lambda: gzip_end.may_lack_parts,
    )  # fmt: skip


def parse_settings_of(feed: Feed, moment: datetime) -> ParseSettings:
    """How the feed's files are read."""
    return ParseSettings(
        moment=moment,
        default_currency=feed.default_currency or None,
        decimal_style=cast("DecimalStyle | None", feed.decimal_style or None),
        unknown_stock=UnknownStock(feed.unknown_stock),
        kept_parameters=tuple(feed.kept_parameters),
        allowed_networks=settings.CONFIG.egress_networks,
    )


def limits_of(feed: Feed) -> ParseLimits:
    """Return the feed's limits, with defaults for those that are not set."""
    return ParseLimits(rows=feed.max_rows or ParseLimits.rows, products=feed.max_products or ParseLimits.products)


def inflate_limits_of(feed: Feed) -> InflateLimits:
    """Return the limit for decompressed files: eight times that for downloads, with a minimum."""
    most = max(INFLATED_TIMES * (feed.max_file_bytes or MAX_FILE_BYTES), LEAST_INFLATED_BYTES)
    return InflateLimits(output_bytes=min(most, MOST_INFLATED_BYTES))


def _judge(context: FeedRunContext, slot: Slot, spool: Spool, report: ParseReport) -> Judged | None:
    """Compare with the catalog; return None if the content of rows is needed that were cached and not parsed."""
    thresholds = thresholds_of(context)
    with context.step("circuit_breaker"):
        context.job.progress(0, None, "comparing with the catalog")
        with context.job.transaction(), connection.cursor() as cursor:
            baseline = read_baseline(cursor, context.feed.source_id)
            log_judging(context, baseline)
            found = match(
                context.job, cursor, slot, baseline,
                rows=report.rows_valid, run_type=context.kind.name, shock_move=thresholds.shock_move,
                seen_only=report.left_out_identity,
            )  # fmt: skip
            repeats = count_repeats(cursor, slot, context.feed.source_id)
            moved = tenfold_prices(cursor, slot, context.feed.source_id) if found.tenfold else []
        if unread := count_missing_contents(slot, spool, found):
            context.log.info("KNOWN_ROWS_NOT_ENOUGH", rows=unread)
            return None
        upgrades, shown = find_upgrades(slot, spool, context.feed.source_id) if found.new else (0, [])
        noticed = [
            *notices.of_upgrades(upgrades, found.products),
            *notices.of_tenfold(found.tenfold, found.known, moved),
        ]
        samples = [MoreSample(UPGRADE, *upgrade) for upgrade in shown]
        by_url = first_by_url(slot, spool) if found.url_hash else []
        samples += [MoreSample(URL_ONLY, line, url, "neither an item id nor a SKU") for line, url in by_url]
        verdict = judge(GATES, _facts(found, report, baseline, repeats), thresholds)
        judged = Judged(baseline=baseline, match=found, report=report, verdict=verdict, upgrades=upgrades)
        with context.job.transaction():
            context.note(**_figures(judged))
            context.note_verdict(verdict)
            keep_findings(context, report, more=samples)
            notices.store(context.run, noticed, checked=[NoticeCode.IDENTITY_UPGRADES, NoticeCode.TENFOLD_PRICES])
        log_matched(context, found, upgrades)
        log_judged(context, found, verdict)
    return judged


def _facts(found: Match, report: ParseReport, baseline: Baseline, repeats: Repeats) -> RunFacts:
    return RunFacts(
        rows_read=report.rows_read,
        rows_rejected=report.rows_rejected,
        products=found.products,
        url_hash_products=found.url_hash,
        known_products=found.known,
        shocked_products=found.shocked,
        active_before=found.active_before,
        active_seen=found.active_seen,
        promoted_before=baseline.last_promoted_count,
        **asdict(repeats),
    )  # mutant: run-facts


def _figures(judged: Judged) -> dict[str, object]:
    found = judged.match
    return {
        "products_upserted": found.products,
        "products_new": found.new,
        "products_changed": found.content,
        "products_back": found.back,
        "products_missing": found.absent,
        "prices_due": found.prices_due,
        "url_hash_fallback_count": found.url_hash,
        "identity_upgrades": judged.upgrades,
        "known_products": found.known,
        "shocked_products": found.shocked,
        "active_count_before": found.active_before,
        "seen_success_count": found.active_seen,
        "would_expire_count": max(0, found.active_before - found.active_seen),
    }  # mutant: run-figures


def _promote(context: FeedRunContext, slot: Slot, spool: Spool, judged: Judged, endings: Endings) -> None:
    new = judged.match.new
    batches = UpsertBatches(context, new)
    products = add_new_products(context.job, slot, spool, judged.baseline, context.run.no, around_block=batches)
    # The promotion reads new products only to write their words itself.
    is_in_parallel = come_later(new)
    with context.step("upsert"):
        if judged.match.content:
            stage_contents(context.job, slot, spool, with_new=False)
        if new and not is_in_parallel:
            for _ in products:
                pass  # mutant: products-early
    with (
        context.step("promote"),
        in_side_session(products if is_in_parallel else ()) as products_are_there,
        context.job.transaction(),
        connection.cursor() as cursor,
    ):
        if is_in_parallel:
            cursor.execute(MAY_WAIT)
        context.log.info("PROMOTE_START", products_to_promote=judged.match.products)
        context.job.progress(0, None, "promoting")
        feed, baseline = lock_feed_and_source(cursor, context.feed)
        promoted = promote(cursor, Difference.staged(slot), baseline, promotion_of(context, judged.match.products))
        products_are_there()  # mutant: products-awaited
        endings.promoted(context, feed, baseline, promoted)  # mutant: promotion-ends


def promotion_of(context: FeedRunContext, products: int, *, accept_absence: bool = False) -> Promotion:
    held = FeedRun.objects.filter(pk=context.run.pk, run__outcome=RunOutcome.HELD)
    fetched_at = held.values_list("fetched_at", flat=True).first()  # mutant: fetched-at
    return Promotion(
        run_no=context.run.no,
        run_type=context.kind.name,
        accept_absence=accept_absence,
        products=products,
        artifact_hash=context.run.artifact_hash,
        fetched_at=fetched_at,
    )


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep freed memory with the process while a run reads its file; return it when the last run ends."""
    _count_runs(1)
    try:
        yield
    finally:
        _count_runs(-1)


def _count_runs(change: int) -> None:
    """Keep memory from the first run on, and return it after the last. C libraries other than GNU's are left alone."""
    global _runs
    with _lock:
        before, _runs = _runs, _runs + change
        if bool(before) == bool(_runs) or not hasattr(_LIBC, "malloc_trim"):
            return
        _LIBC.mallopt(_MMAP_THRESHOLD, _MAPPED_FROM if _runs else _DEFAULT)
        _LIBC.mallopt(_TRIM_THRESHOLD, _KEPT_FREE if _runs else _DEFAULT)
        if not _runs:
            _LIBC.malloc_trim(0)
