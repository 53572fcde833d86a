"""What a run found in its file, kept with the run: counts by code, and the first rows of each."""

from typing import Any

from harvester.feeds.models import FeedRunSample
from harvester.feeds.work import Work
from harvester.kernel.rejects import RejectCode, WarningCode
from harvester.pipeline.parse import ParseReport

UPGRADE = "IDENTITY_UPGRADE_DETECTED"
DUPLICATE = "DUPLICATE_ROW_SAME_IDENTITY"


def keep_findings(work: Work, report: ParseReport, *, upgrades: list[tuple[int, str]] | None = None) -> None:
    """Write counts and samples, in place of what an earlier attempt wrote. The transaction is the caller's."""
    counts = report.findings.counts
    rejected = report.rows_read - report.rows_valid
    work.note(
        rows_read=report.rows_read,
        rows_parsed=report.rows_valid,
        products_rejected=rejected,
        error_count=rejected,
        duplicate_key_count=report.duplicates.count if report.duplicates else 0,
        rejects={code.value: counts[code] for code in RejectCode if counts[code]},
        warnings={code.value: counts[code] for code in WarningCode if counts[code]},
        dialect=dialect_of(report),
    )
    FeedRunSample.objects.filter(run_id=work.run.pk).delete()
    FeedRunSample.objects.bulk_create(_samples(work, report, upgrades or []))


def dialect_of(report: ParseReport) -> dict[str, Any]:
    """How the file is written, for people."""
    return {
        "delimiter": report.dialect.delimiter,
        "quoted": report.dialect.quoted,
        "encoding": report.encoding,
        "header": list(report.binding.header)[:200],
    }


def _samples(work: Work, report: ParseReport, upgrades: list[tuple[int, str]]) -> list[FeedRunSample]:
    found = [
        FeedRunSample(
            run_id=work.run.pk, code=code.value, place=place, line=item.line, row=item.row, reason=item.reason
        )
        for code, kept in report.findings.samples.items()
        for place, item in enumerate(kept)
    ]
    duplicates = report.duplicates.samples if report.duplicates else []
    for place, lost in enumerate(duplicates):
        reason = f"replaced by line {lost.by_line}"
        found.append(
            FeedRunSample(run_id=work.run.pk, code=DUPLICATE, place=place, line=lost.line, row="", reason=reason)
        )
    for place, (line, reason) in enumerate(upgrades):
        found.append(FeedRunSample(run_id=work.run.pk, code=UPGRADE, place=place, line=line, row="", reason=reason))
    return found
