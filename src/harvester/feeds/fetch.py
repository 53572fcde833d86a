"""Download the file of a feed to the artifact store, unless it is the file that was read before."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from harvester.catalog import ignored_runs
from harvester.feeds import notices
from harvester.feeds.file_end import EndRule, FileFacts, end_rule, leaves_record_to_take
from harvester.feeds.files import artifact_store
from harvester.feeds.manifest import Expected, read_expected
from harvester.feeds.models import Feed
from harvester.feeds.notices import NoticeCode
from harvester.feeds.partner_connection import note_host_key, open_remote, port_of
from harvester.feeds.run_context import FeedRunContext
from harvester.feeds.states import Compression, SkipReason
from harvester.guards.host_keys import HostKeyChanged, HostKeyUnknown
from harvester.guards.inflate import GZIP_MAGIC, is_gzip
from harvester.guards.remote import RemoteFiles, RemoteStat
from harvester.guards.transfer import stat_if_allowed
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome

#: Bytes of a file, unless the feed says otherwise.
MAX_FILE_BYTES = 500 * 1024 * 1024  # mutant: max-file-bytes
#: A file that was read this long after its modification time has not changed unless the time changes. Two seconds would
#: be enough if the partner's clock were known to be right.
SETTLING_TIME = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A file that was downloaded.

    Attributes:
        sha256: its hash, which is its name in the store.
        size: bytes.
        manifest_rows: the number of rows in the partner's manifest, if it has one.
        end: what to do if no line feed ends its last record.
    """

    sha256: str
    size: int
    manifest_rows: int | None
    end: EndRule


def fetch(context: FeedRunContext) -> Fetched | SkipReason:
    """Download the feed's file, or return why that is not necessary."""
    feed, log = context.feed, context.log
    log.info("DOWNLOAD_START", host=feed.host, port=port_of(feed), path=feed.path, transport=feed.transport)
    try:
        session = open_remote(feed)
    except (HostKeyUnknown, HostKeyChanged) as refusal:
        with context.job.transaction():
            note_host_key(feed, refusal.seen)
        raise
    with session as remote:
        log.debug("FTP_CONNECTED", host=feed.host, connection_time_ms=context.elapsed_ms())
        stat = stat_if_allowed(remote, feed.path)
        log.debug(
            "FILE_STAT",
            remote_mtime=_text(stat.mtime),
            remote_size=stat.size,
            last_known_mtime=_text(feed.last_remote_mtime),
            last_known_size=feed.last_remote_size,
        )
        # mutant: same-time-and-size
        if is_unchanged(feed, stat, log.debug) and not (leaves_record_to_take(feed) or _was_read_early(feed, stat)):
            return _skipped(context, SkipReason.UNCHANGED_MTIME)
        return _download(context, remote, stat, read_expected(feed, remote, log))


def is_unchanged(feed: Feed, stat: RemoteStat, say: Callable[..., object]) -> bool:
    """Return whether the server has the file that was read last. A missing time or size counts as changed."""
    if stat.mtime is None or stat.size is None:
        say("STAT_INCOMPLETE", mtime=_text(stat.mtime), size=stat.size)
        return False
    # mutant: size-compared
    if feed.last_content_hash is None or (feed.last_remote_mtime, feed.last_remote_size) != (stat.mtime, stat.size):
        return False
    say("STAT_UNCHANGED", mtime=_text(stat.mtime), size=stat.size)
    return True


def _was_read_early(feed: Feed, stat: RemoteStat) -> bool:
    """Return whether the file was only read so soon after it was written that a later write may have been missed.

    Times have whole seconds, so the same time and size prove nothing then, and the hash is compared.
    """
    late = Run.objects.filter(source_id=feed.source_id, started_at__gte=stat.mtime + SETTLING_TIME)  # type: ignore[operator]
    same = {"remote_mtime": stat.mtime, "fetched_hash": feed.last_content_hash}
    return not late.filter(**{f"feed_run__{name}": value for name, value in same.items()}).exists()


def _download(
    context: FeedRunContext, remote: RemoteFiles, first: RemoteStat, expected: Expected
) -> Fetched | SkipReason:
    feed, cap = context.feed, context.feed.max_file_bytes or MAX_FILE_BYTES
    began = context.elapsed_ms()
    with artifact_store().writer() as writer:
        downloaded = remote.download(feed.path, writer, cap_bytes=cap, on_progress=_Progress(context))
        artifact = writer.commit()
    stat = downloaded.stat
    # The compression in the feed may be outdated.
    with artifact_store().open(artifact.sha256) as file:
        compression = Compression.GZIP if is_gzip(file.read(len(GZIP_MAGIC))) else Compression.NONE
    context.log.info(
        "DOWNLOAD_COMPLETE",
        bytes=downloaded.size,
        duration_ms=context.elapsed_ms() - began,
        compression_type=compression.value,
    )
    with context.job.transaction():
        context.note(
            download_bytes=downloaded.size, remote_mtime=stat.mtime, remote_size=stat.size,
            manifest_rows=expected.rows, fetched_hash=artifact.sha256, fetched_at=Now(),
        )  # fmt: skip
        notices.store(context.run, expected.notices(), checked=[NoticeCode.MANIFEST_UNUSABLE])
    if ignored_runs.refuses(feed.source_id, artifact.sha256):  # mutant: ignored-file
        context.log.info("DOWNLOAD_SKIPPED_UNCHANGED", reason=SkipReason.UNCHANGED_IGNORED.value, hash=artifact.sha256)
        return SkipReason.UNCHANGED_IGNORED
    if artifact.sha256 == feed.last_content_hash and not leaves_record_to_take(feed):  # mutant: hash-decides
        return _skipped(context, SkipReason.UNCHANGED_HASH)
    facts = FileFacts(
        sha256=artifact.sha256, size=artifact.size, is_gzip=compression is Compression.GZIP, expected=expected,
        is_settled=first == stat,
    )  # fmt: skip
    end = end_rule(feed, facts, context.run)
    return Fetched(sha256=artifact.sha256, size=artifact.size, manifest_rows=expected.rows, end=end)


def _skipped(context: FeedRunContext, reason: SkipReason) -> SkipReason:
    """Log that the file is unchanged; the reason shows if a person rejected it before."""
    last = Run.objects.filter(no=context.feed.last_ingested_run_no or 0).values_list("outcome", flat=True).first()
    reason = SkipReason.UNCHANGED_REJECTED if last == RunOutcome.REJECTED else reason
    context.log.info("DOWNLOAD_SKIPPED_UNCHANGED", reason=reason.value, hash=context.feed.last_content_hash)
    return reason


class _Progress:
    """Reports the progress of a download: always to the job, to the log at every tenth."""

    def __init__(self, context: FeedRunContext) -> None:
        self._context = context
        self._logged = 0

    def __call__(self, done: int, total: int | None) -> None:
        self._context.job.check()
        self._context.job.progress(done, total, "downloading")
        tenth = done * 10 // total if total else 0
        if total and tenth > self._logged:
            self._logged = tenth
            self._context.log.debug(
                "DOWNLOAD_PROGRESS", bytes_downloaded=done, total_bytes=total, percent_complete=tenth * 10
            )


def _text(moment: object) -> str | None:
    return str(moment) if moment is not None else None
