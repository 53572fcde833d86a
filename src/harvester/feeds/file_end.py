"""Whether a file may be cut in its last record, and what to do with that record.

Without a line feed at its end, `1299.99` may have become `1.00` and the SKU `S-1009` may have become `S-100`, and the
record still looks complete. Compressed files are exempt, because their trailer proves the end, unless they
consist of several parts, each with a trailer: then the last record is left out for one run.
"""

from dataclasses import dataclass

from django.db.models import Q

from harvester.feeds.errors import CountMismatch
from harvester.feeds.manifest import Expected
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.notices import Notice, NoticeCode
from harvester.feeds.reader import ParseReport
from harvester.feeds.reader.blocks import OpenEnd
from harvester.feeds.reader.errors import TruncatedFile
from harvester.feeds.states import FileEnd
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

#: Codes that `EndRule.notices` checks.
NOTICES = (NoticeCode.FILE_TAKEN_AS_IS, NoticeCode.LAST_RECORD_LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What is known about a file before it is read.

    Attributes:
        sha256: its hash.
        size: bytes.
        is_gzip: whether it is compressed.
        expected: what the manifest says about it.
        is_settled: size and time were the same at two checks before the download.
    """

    sha256: str
    size: int
    is_gzip: bool
    expected: Expected
    is_settled: bool = True


@dataclass(frozen=True, kw_only=True)
class EndRule:
    """What to do if no line feed ends the last record of a file.

    Attributes:
        open_end: take the record, leave it out, or refuse the file.
        meaning: the end of the file that is recorded then.
        suspicion: why the file is refused or was before, as a sentence.
        whatever_end: the suspicion also holds for a file that ends with a line feed.
        reason: why the file is imported in spite of the suspicion, as a sentence.
    """

    open_end: OpenEnd
    meaning: FileEnd
    suspicion: str = ""
    whatever_end: bool = False
    reason: str = "The file was still the same at a later run, so it was imported."

    def end_of(self, report: ParseReport) -> FileEnd:
        """Return how a file ended that was read under this rule."""
        if report.left_out is not None:
            return FileEnd.LEFT_OUT
        return self.meaning if report.is_open_ended else FileEnd.NEWLINE

    def notices(self, report: ParseReport) -> list[Notice]:
        """Return notices about the end of a file that was read under this rule."""
        if report.left_out is not None:
            message = (
                f"No line feed ends the last row, in line {report.left_out:,}, so it may be cut. Its product counts as "
                "seen and did not change."
            )
            return [Notice(code=NoticeCode.LAST_RECORD_LEFT_OUT, message=message)]
        if self.suspicion and (report.is_open_ended or self.whatever_end):
            return [Notice(code=NoticeCode.FILE_TAKEN_AS_IS, message=f"{self.suspicion} {self.reason}")]
        return []


_UNLIKE_EARLIER = "Earlier files of this feed ended with a line feed and this one does not, so it may be cut."
_PROVEN = EndRule(open_end=OpenEnd.TAKE_IF_PROVEN, meaning=FileEnd.PROVEN)
_TAKEN = EndRule(open_end=OpenEnd.TAKE, meaning=FileEnd.TAKEN)
_LEFT_OUT = EndRule(open_end=OpenEnd.LEAVE_OUT, meaning=FileEnd.LEFT_OUT)


def end_rule(feed: Feed, facts: FileFacts, run: Run | None = None) -> EndRule:
    """Return the rule for a file that was fetched by a run or a feed test.

    Raises:
        TruncatedFile: the manifest has another size, and no number of rows to check.
    """
    size = facts.expected.size
    if facts.sha256 == feed.last_content_hash and leaves_record_to_take(feed):
        return _TAKEN
    if facts.is_gzip or size == facts.size:
        return _PROVEN
    suspicion = _suspicion(feed, facts)
    whatever_end = size is not None and facts.expected.rows is None
    if feed.takes_file_as_is and run is not None and run.trigger != RunTrigger.SCHEDULED:
        return EndRule(
            open_end=OpenEnd.TAKE,
            meaning=FileEnd.TAKEN,
            suspicion=suspicion or "No line feed ends the last row of the file, so it may be cut.",
            whatever_end=whatever_end,
            reason="The run was forced, so the file was imported.",
        )
    refused = FeedRun.objects.filter(
        feed=feed, fetched_hash=facts.sha256, run__status=RunStatus.FAILED, run__error_code=TruncatedFile.code
    )
    if not _is_requested(feed, run) and (refused.filter(run__no__lt=run.no) if run else refused).exists():
        suspicion = suspicion or "No line feed ends the only row of the file, so it may be cut."
        return EndRule(open_end=OpenEnd.TAKE, meaning=FileEnd.TAKEN, suspicion=suspicion, whatever_end=whatever_end)
    if not suspicion or (suspicion == _UNLIKE_EARLIER and _previous_ended_like_this(feed, facts.sha256, run)):
        return _LEFT_OUT
    if whatever_end:
        raise TruncatedFile(
            f"{suspicion} Nothing was changed. If the file is still the same at the next scheduled run, it is "
            "imported; `harvester feed run FEED --force` imports it now."
        )
    return EndRule(open_end=OpenEnd.REFUSE, meaning=FileEnd.TAKEN, suspicion=suspicion)


def rule_of_verified(figures: FeedRun) -> EndRule:
    """Return the rule for reading the file of a run again, with the same treatment of its last record."""
    return _LEFT_OUT if figures.file_end == FileEnd.LEFT_OUT else _TAKEN


def prove_whole(report: ParseReport, manifest_rows: int | None) -> None:
    """Refuse a file with another number of rows than in the manifest, or with a single row that may be cut.

    Raises:
        CountMismatch, TruncatedFile: the partner may still be writing the file.
    """
    if manifest_rows is not None and report.rows_read != manifest_rows:  # mutant: manifest-rows
        raise CountMismatch(
            f"The file has {report.rows_read:,} rows, but the partner's manifest says {manifest_rows:,}. Nothing was "
            "changed. If this persists, ask the partner, or switch the feed's manifest check off."
        )
    if report.left_out is not None and report.rows_read == 1:
        raise TruncatedFile(
            "No line feed ends the only row of the file, so it may be cut. Nothing was changed. If the file is still "
            "the same at the next scheduled run, it is imported; `harvester feed run FEED --force` imports it now."
        )


def leaves_record_to_take(feed: Feed) -> bool:
    """Return whether the last record of the last ingested file was left out, so that the file is read again."""
    last = FeedRun.objects.filter(run__no=feed.last_ingested_run_no or 0, file_end=FileEnd.LEFT_OUT)
    return last.filter(run__ignored_at__isnull=True).exclude(run__outcome=RunOutcome.REJECTED).exists()


def _suspicion(feed: Feed, facts: FileFacts) -> str:
    """Return the evidence that the file is cut, as a sentence."""
    size = facts.expected.size
    if size is not None:
        return f"The file has {facts.size:,} bytes, but the partner's manifest says {size:,}."
    if not facts.is_settled:
        return "Its size or time changed shortly before it was fetched, so the partner may still be writing it."
    ingested = FeedRun.objects.filter(feed=feed, run__status=RunStatus.SUCCEEDED, file_end__isnull=False)
    before = ingested.exclude(file_end=FileEnd.PROVEN).order_by("-run__no").values_list("file_end", flat=True).first()
    return _UNLIKE_EARLIER if before == FileEnd.NEWLINE else ""


def _previous_ended_like_this(feed: Feed, sha256: str, run: Run | None) -> bool:
    """Return whether the previous run refused another file only for its missing line feed: the partner's new habit.

    Runs that failed before they had a file do not count, nor, for a feed with a schedule, failed runs between two
    scheduled ones.
    """
    if _is_requested(feed, run):
        return False
    had_file = Q(fetched_hash__isnull=False)
    if feed.schedule_hours is not None:
        had_file &= Q(run__trigger=RunTrigger.SCHEDULED)
    earlier = FeedRun.objects.filter(had_file | Q(run__status=RunStatus.SUCCEEDED), feed=feed)
    if run is not None:
        earlier = earlier.filter(run__no__lt=run.no)
    last = earlier.select_related("run").order_by("-run__no").first()
    if last is None or (last.run.status, last.run.error_code) != (RunStatus.FAILED, TruncatedFile.code):
        return False
    return _UNLIKE_EARLIER in (last.run.error or "") and last.fetched_hash != sha256


def _is_requested(feed: Feed, run: Run | None) -> bool:
    """Return whether a person requested the run of a feed with a schedule, perhaps right after a file was refused."""
    return run is not None and feed.schedule_hours is not None and run.trigger != RunTrigger.SCHEDULED
