"""Whether a file may be cut in its last record, and what to do with that record.

Without a line feed at its end, `1299.99` may have become `1.00` and the SKU `S-1009` may have become `S-100`, and the
record still looks complete. Compressed files are exempt: their trailer proves the end.
"""

from dataclasses import dataclass

from django.db.models import Q

from harvester.catalog.models import Run
from harvester.catalog.states import RunOutcome, RunStatus
from harvester.feeds.errors import CountMismatch
from harvester.feeds.manifest import Expected
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.notices import Notice, NoticeCode
from harvester.feeds.reader import ParseReport
from harvester.feeds.reader.blocks import OpenEnd
from harvester.feeds.reader.errors import TruncatedFile
from harvester.feeds.states import FileEnd, Trigger

#: Codes that `EndRule.notices` judges.
NOTICES = (NoticeCode.FILE_TAKEN_AS_IS, NoticeCode.LAST_RECORD_LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What is known about a file before it is read.

    Attributes:
        sha256: its hash.
        size: bytes.
        is_gzip: whether it is compressed.
        expected: what the manifest says about it.
        is_settled: size and time were the same at two checks in front of the download.
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
        meaning: how the file ends then.
        suspicion: why it is refused or was before, as a sentence.
        whatever_end: the suspicion holds for a file that ends with a line feed too.
        reason: why the file is taken in spite of the suspicion, as a sentence.
    """

    open_end: OpenEnd
    meaning: FileEnd
    suspicion: str = ""
    whatever_end: bool = False
    reason: str = "The file was still the same at a later run, so it was taken as it is."

    def end_of(self, report: ParseReport) -> FileEnd:
        """Return how a file ended that was read by this rule."""
        return self.meaning if report.is_open_ended else FileEnd.NEWLINE

    def notices(self, report: ParseReport) -> list[Notice]:
        """Return what people should know about the end of a file that was read by this rule."""
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
_PROVEN = EndRule(open_end=OpenEnd.TAKE, meaning=FileEnd.PROVEN)
_TAKEN = EndRule(open_end=OpenEnd.TAKE, meaning=FileEnd.TAKEN)
_LEFT_OUT = EndRule(open_end=OpenEnd.LEAVE_OUT, meaning=FileEnd.LEFT_OUT)


def end_rule(feed: Feed, facts: FileFacts, run: Run | None = None) -> EndRule:
    """Return the rule for a file that a run fetched, or that a feed test did.

    Raises:
        TruncatedFile: the manifest gives another size and no number of rows to check by.
    """
    size = facts.expected.size
    if facts.is_gzip or size == facts.size:
        return _PROVEN
    if facts.sha256 == feed.last_content_hash and leaves_record_to_take(feed):
        return _TAKEN
    suspicion = _suspicion(feed, facts)
    whatever_end = size is not None and facts.expected.rows is None
    if feed.takes_file_as_is and run is not None and run.trigger != Trigger.SCHEDULED:
        return EndRule(
            open_end=OpenEnd.TAKE,
            meaning=FileEnd.TAKEN,
            suspicion=suspicion or "No line feed ends the last row of the file, so it may be cut.",
            whatever_end=whatever_end,
            reason="The run was forced, so the file was taken as it is.",
        )
    if _was_refused_before(feed, facts.sha256, run):
        suspicion = suspicion or "No line feed ends the only row of the file, so it may be cut."
        return EndRule(open_end=OpenEnd.TAKE, meaning=FileEnd.TAKEN, suspicion=suspicion, whatever_end=whatever_end)
    if not suspicion or (suspicion == _UNLIKE_EARLIER and _ended_so_before(feed, facts.sha256, run)):
        return _LEFT_OUT
    if whatever_end:
        raise TruncatedFile(
            f"{suspicion} Nothing was changed. If it is still the same at the next scheduled run, it is taken as it "
            "is; `harvester feed run FEED --force` takes it at once."
        )
    return EndRule(open_end=OpenEnd.REFUSE, meaning=FileEnd.TAKEN, suspicion=suspicion)


def rule_of_verified(figures: FeedRun) -> EndRule:
    """Return the rule for reading the file of a run again: its last record is treated as it was."""
    return _LEFT_OUT if figures.file_end == FileEnd.LEFT_OUT else _TAKEN


def prove_whole(report: ParseReport, manifest_rows: int | None) -> None:
    """Refuse a file that has other rows than the manifest says, or a single one that may be cut.

    Raises:
        CountMismatch, TruncatedFile: it may still be on its way.
    """
    if manifest_rows is not None and report.rows_read != manifest_rows:  # mutant: manifest-rows
        raise CountMismatch(
            f"The file has {report.rows_read:,} rows, but the partner's manifest says {manifest_rows:,}. Nothing was "
            "changed. If this stays, ask the partner, or switch the feed's manifest check off."
        )
    if report.left_out is not None and report.rows_read == 1:
        raise TruncatedFile(
            "No line feed ends the only row of the file, so it may be cut. Nothing was changed. If it is "
            "still the same at the next scheduled run, it is taken as it is; `harvester feed run FEED --force` takes "
            "it at once."
        )


def leaves_record_to_take(feed: Feed) -> bool:
    """Whether the last ingested file has a last record that changed nothing, so that the file is to be read again."""
    last = FeedRun.objects.filter(run__no=feed.last_ingested_run_no or 0, file_end=FileEnd.LEFT_OUT)
    return last.filter(run__ignored_at__isnull=True).exclude(run__outcome=RunOutcome.REJECTED).exists()


def _suspicion(feed: Feed, facts: FileFacts) -> str:
    """Return what says that the file is cut, as a sentence."""
    size = facts.expected.size
    if size is not None:
        return f"The file has {facts.size:,} bytes, but the partner's manifest says {size:,}."
    if not facts.is_settled:
        return "Its size or time changed shortly before it was fetched, so it may still be on its way."
    ingested = FeedRun.objects.filter(feed=feed, run__status=RunStatus.SUCCEEDED, file_end__isnull=False)
    before = ingested.exclude(file_end=FileEnd.PROVEN).order_by("-run__no").values_list("file_end", flat=True).first()
    if before != FileEnd.NEWLINE:
        return ""
    return _UNLIKE_EARLIER


def _was_refused_before(feed: Feed, sha256: str, run: Run | None) -> bool:
    """Whether an earlier run refused this very file, and this run is one that takes it."""
    if _is_impatient(feed, run):
        return False
    earlier = FeedRun.objects.filter(
        feed=feed, fetched_hash=sha256, run__status=RunStatus.FAILED, run__error_code=TruncatedFile.code
    )
    return (earlier.filter(run__no__lt=run.no) if run is not None else earlier).exists()


def _ended_so_before(feed: Feed, sha256: str, run: Run | None) -> bool:
    """Whether the run before refused another file only because no line feed ended it: the partner writes them so now.

    Runs that failed before they had a file do not count, nor, for a feed with a schedule, failed runs between two
    scheduled ones.
    """
    if _is_impatient(feed, run):
        return False
    had_file = Q(fetched_hash__isnull=False)
    if feed.schedule_hours is not None:
        had_file &= Q(run__trigger=Trigger.SCHEDULED)
    earlier = FeedRun.objects.filter(had_file | Q(run__status=RunStatus.SUCCEEDED), feed=feed)
    if run is not None:
        earlier = earlier.filter(run__no__lt=run.no)
    last = earlier.select_related("run").order_by("-run__no").first()
    if last is None or (last.run.status, last.run.error_code) != (RunStatus.FAILED, TruncatedFile.code):
        return False
    return _UNLIKE_EARLIER in (last.run.error or "") and last.fetched_hash != sha256


def _is_impatient(feed: Feed, run: Run | None) -> bool:
    """Whether a person asked for the run of a feed with a schedule, perhaps right after a file was refused."""
    return run is not None and feed.schedule_hours is not None and run.trigger != Trigger.SCHEDULED
