"""What a run found in its file, kept with the run: counts by code, and the first rows of each."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from harvester.catalog.models import Run
from harvester.feeds import notices
from harvester.feeds.models import FeedRun, FeedRunSample
from harvester.feeds.work import Work
from harvester.guards.redaction import redact_text
from harvester.kernel.rejects import RejectCode, WarningCode
from harvester.pipeline.parse import ParseReport
from harvester.pipeline.parse.findings import SAMPLE_CHARACTERS, storable

#: What people want to know of a run in one line.
SUMMARY = (
    *("download_bytes", "rows_read", "rows_parsed", "products_upserted", "products_new", "products_changed"),
    *("products_missing", "products_expired", "products_rejected", "prices_written", "error_count"),
    *("duplicate_key_count", "skipped_reason"),
)
UPGRADE = "IDENTITY_UPGRADE_DETECTED"
URL_ONLY = "URL_HASH_FALLBACK"
DUPLICATE = "DUPLICATE_ROW_SAME_IDENTITY"


class MoreSample(NamedTuple):
    """A row to look at that was found behind the parser."""

    code: str
    line: int
    row: str
    reason: str


def keep_findings(work: Work, report: ParseReport, *, more: Sequence[MoreSample] = ()) -> None:
    """Write counts and samples, in place of what an earlier attempt wrote. The transaction is the caller's."""
    counts = report.findings.counts
    rejected = report.rows_rejected
    work.note(
        rows_read=report.rows_read,
        rows_parsed=report.rows_valid,
        products_rejected=rejected,
        error_count=rejected,
        duplicate_key_count=report.duplicates.count if report.duplicates else 0,
        rejects={code.value: counts[code] for code in RejectCode if counts[code]},
        warnings={code.value: counts[code] for code in WarningCode if counts[code]},
        dialect={**dialect_of(report), **_binding_of(report)},
    )
    notices.keep(work.run, notices.of_report(report), judged=notices.OF_REPORT)
    FeedRunSample.objects.filter(run_id=work.run.pk).delete()
    FeedRunSample.objects.bulk_create(_samples(work, report, more))


def summary_of(run: Run) -> dict[str, int | str]:
    """The figures of a run that are known."""
    found = FeedRun.objects.filter(pk=run.pk).values(*SUMMARY).get()
    return {name: value for name, value in found.items() if value is not None}


def dialect_of(report: ParseReport) -> dict[str, Any]:
    """How the file is written, for people."""
    return {
        "delimiter": report.dialect.delimiter,
        "quoted": report.dialect.quoted,
        "encoding": report.encoding,
        "header": [storable(name) for name in report.binding.header[:200]],
    }


def _binding_of(report: ParseReport) -> dict[str, Any]:
    """Which column was read as what."""
    binding = report.binding
    columns = {name: [storable(column) for column in found] for name, found in binding.names.items()}
    return {"family": binding.family, "columns": columns, "unbound": [storable(name) for name in binding.unbound[:200]]}


def _samples(work: Work, report: ParseReport, more: Sequence[MoreSample]) -> list[FeedRunSample]:
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
    places: Counter[str] = Counter()
    for item in more:
        row = redact_text(item.row)[:SAMPLE_CHARACTERS]
        place, places[item.code] = places[item.code], places[item.code] + 1
        found.append(
            FeedRunSample(run_id=work.run.pk, code=item.code, place=place, line=item.line, row=row, reason=item.reason)
        )
    return found
