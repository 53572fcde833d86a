"""What a run found in its file, stored with the run: counts by code, and the first rows of each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harvester.feeds import notices
from harvester.feeds.models import FeedRun, FeedRunSample
from harvester.feeds.networks import networks
from harvester.feeds.reader import ParseReport
from harvester.feeds.reader.errors import HeaderUnreadable
from harvester.feeds.reader.findings import SAMPLE_CHARACTERS, storable
from harvester.feeds.run_context import FeedRunContext
from harvester.guards.redaction import redact_text
from harvester.kernel.network import Field
from harvester.kernel.rejects import RejectCode, WarningCode
from harvester.runs.models import Run
from harvester.runs.states import RunStatus

#: The figures of a run that are shown in one line.
SUMMARY = (
    *("download_bytes", "rows_read", "rows_parsed", "products_upserted", "products_new", "products_changed"),
    *("products_missing", "products_expired", "products_rejected", "prices_written", "error_count"),
    *("duplicate_key_count", "skipped_reason"),
)
#: Characters of a column's name that are kept of a header that could not be read.
_NAME_CHARACTERS = 100
UPGRADE = "IDENTITY_UPGRADE_DETECTED"
URL_ONLY = "URL_HASH_FALLBACK"
DUPLICATE = "DUPLICATE_ROW_SAME_IDENTITY"


class HeaderRow(NamedTuple):
    """One field of a header that could not be read: the names that it may have, and its columns."""

    field: str
    wanted: str
    found: str
    last_good: str
    is_missing: bool


class MoreSample(NamedTuple):
    """A sample row that was found after parsing."""

    code: str
    line: int
    row: str
    reason: str


def keep_findings(context: FeedRunContext, report: ParseReport, *, more: Sequence[MoreSample] = ()) -> None:
    """Write counts and samples, in place of those of an earlier attempt. The transaction is the caller's."""
    counts = report.findings.counts
    rejected, binding = report.rows_rejected, report.binding
    columns = {name: [storable(column) for column in found] for name, found in binding.names.items()}
    unbound = [storable(name) for name in binding.unbound[:200]]
    context.note(
        rows_read=report.rows_read,
        rows_parsed=report.rows_valid,
        products_rejected=rejected,
        error_count=rejected,
        duplicate_key_count=report.duplicates.count if report.duplicates else 0,
        rejects={code.value: counts[code] for code in RejectCode if counts[code]},
        warnings={code.value: counts[code] for code in WarningCode if counts[code]},
        dialect={**dialect_of(report), "family": binding.family, "columns": columns, "unbound": unbound},
    )
    notices.store(context.run, notices.of_report(report), checked=notices.OF_REPORT)
    FeedRunSample.objects.filter(run_id=context.run.pk).delete()
    FeedRunSample.objects.bulk_create(_samples(context, report, more))


def summary_of(run: Run) -> dict[str, int | str]:
    """Return the figures of a run that are known."""
    found = FeedRun.objects.filter(pk=run.pk).values(*SUMMARY).get()
    return {name: value for name, value in found.items() if value is not None}


def dialect_of(report: ParseReport) -> dict[str, Any]:
    """Return how the file is written, for people."""
    return {
        "delimiter": report.dialect.delimiter,
        "quoted": report.dialect.quoted,
        "encoding": report.encoding,
        "header": [storable(name) for name in report.binding.header[:200]],
    }


def header_of(error: HeaderUnreadable) -> dict[str, Any]:
    """Return what a header lacks and has, in the form of a run's dialect."""

    def clean(name: str) -> str:
        return storable(redact_text(name))[:_NAME_CHARACTERS]

    return {
        "header": [clean(name) for name in error.header[:200]],
        "columns": {field: [clean(name) for name in names] for field, names in error.names.items()},
        "missing": [[field.value for field in group] for group in error.missing],
    }


def last_good_columns(run: Run) -> dict[str, list[str]]:
    """Return field -> its columns in the last file before this run that could be read; empty if there is none."""
    before = FeedRun.objects.filter(run__source_id=run.source_id, run__no__lt=run.no, run__status=RunStatus.SUCCEEDED)
    with_columns = before.filter(dialect__columns__isnull=False).order_by("-run__no")
    found = with_columns.values_list("dialect", flat=True).first()
    return dict(found["columns"]) if found else {}


def header_check(run: Run, dialect: Mapping[str, Any]) -> list[HeaderRow]:
    """Return the columns that a file needs or had: wanted, found, and in the last good file."""
    if not dialect.get("missing"):
        return []
    found, good = dialect.get("columns") or {}, last_good_columns(run)
    groups = [tuple(group) for group in dialect["missing"]]
    lacking = {field for group in groups for field in group}
    network = networks().get(FeedRun.objects.values_list("feed__network", flat=True).get(pk=run.pk))

    def row(fields: Sequence[str], *, is_missing: bool) -> HeaderRow:
        aliases = [name for field in fields for name in (network.aliases.get(Field(field), ()) if network else ())]
        return HeaderRow(
            field=" or ".join(field.replace("_", " ") for field in fields),
            wanted=", ".join(aliases[:4]) if is_missing else "",
            found=", ".join(name for field in fields for name in found.get(field, ())),
            last_good=", ".join(name for field in fields for name in good.get(field, ())),
            is_missing=is_missing,
        )

    others = [field.value for field in Field if field.value in {*found, *good} - lacking]
    return [*(row(group, is_missing=True) for group in groups), *(row([field], is_missing=False) for field in others)]


def _samples(context: FeedRunContext, report: ParseReport, more: Sequence[MoreSample]) -> list[FeedRunSample]:
    found = [
        FeedRunSample(
            run_id=context.run.pk, code=code.value, place=place, line=item.line, row=item.row, reason=item.reason
        )
        for code, kept in report.findings.samples.items()
        for place, item in enumerate(kept)
    ]
    # The first rows that a later row replaced, with identity and row if they were staged.
    replaced = []
    for line, by_line in report.duplicates.samples if report.duplicates else ():
        shown = report.duplicates.shown.get(line) if report.duplicates else None
        reason = f"replaced by line {by_line}" + (f": {shown.identity}" if shown else "")
        replaced.append(MoreSample(DUPLICATE, line, shown.row if shown else "", reason))
    places: Counter[str] = Counter()
    for item in (*replaced, *more):
        row, reason = redact_text(item.row)[:SAMPLE_CHARACTERS], redact_text(item.reason)
        place, places[item.code] = places[item.code], places[item.code] + 1
        found.append(
            FeedRunSample(run_id=context.run.pk, code=item.code, place=place, line=item.line, row=row, reason=reason)
        )
    return found
