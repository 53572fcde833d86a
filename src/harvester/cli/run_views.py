"""What commands show of the runs of feeds. Needs Django."""

import shlex
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.exposure import exposure_of, missed_by
from harvester.catalog.holds import choices
from harvester.cli.job_views import database_now, find
from harvester.cli.output import cell, count_text, pairs, span, stacked, table, when
from harvester.feeds import files
from harvester.feeds.advice import advice_for
from harvester.feeds.findings import header_check
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.notices import titled
from harvester.feeds.run_details import FIGURES, difference_of, samples_of
from harvester.kernel.errors import NotFound
from harvester.pipeline.held_difference import KINDS
from harvester.runs.models import Run
from harvester.runs.states import PROMOTED, RunOutcome, RunStatus

_OF_RUN = (
    "no", "id", "trigger", "status", "outcome", "stage", "attempt", "started_at", "finished_at", "duration_ms",
    "job_id",
    "error_code", "error", "decided_at", "decided_by", "decision_reason", "ignored_at", "ignored_by",
    "ignored_reason", "verdict", "timings",
)  # fmt: skip
_OF_FEED_RUN = (
    *FIGURES,
    "skipped_reason",
    "manifest_rows",
    "rejects",
    "warnings",
    "notices",
    "dialect",
)


#: Rows of one kind that people are shown; JSON has all that were kept.
SAMPLES_SHOWN = 10


def run_numbered(run_no: int) -> Run:
    run = Run.objects.filter(no=run_no, feed_run__isnull=False).first()
    if run is None:
        raise NotFound(f"There is no run {run_no} of a feed; `harvester feed runs NAME` lists those of a feed.")
    return run


def run_of_job(job_id: int) -> Run | None:
    return Run.objects.filter(job_id=job_id).first()


def newest(feed: Feed | None, limit: int, **wanted: Any) -> list[dict[str, Any]]:
    """The newest runs of a feed, or of all, newest first; only those whose status, outcome or trigger is wanted."""
    given = {"feed": feed, **{f"run__{name}": value for name, value in wanted.items()}}
    filters = {name: value for name, value in given.items() if value is not None}
    found = FeedRun.objects.filter(**filters).select_related("run", "feed__source").order_by("-run__no")[:limit]
    return [{"feed": str(figures.feed), **_as_dict(figures)} for figures in found]


def summary(run_no: int) -> dict[str, Any]:
    """One run with its figures."""
    figures = FeedRun.objects.select_related("run", "feed__source").get(pk=run_numbered(run_no).pk)
    advice = advice_for(figures.run.error_code) if figures.run.status == RunStatus.FAILED else None
    more = {"advice": advice.action if advice else None, "file_kept": files.is_kept(figures.run)}
    return {"feed": str(figures.feed), **_as_dict(figures), **more, **_for_consumers(figures)}


def _for_consumers(figures: FeedRun) -> dict[str, Any]:
    """Return what a held run's decisions lead to, which offers disappear, and why consumers see nothing of a run."""
    run, source = figures.run, figures.feed.source
    is_last = run.no == source.last_promoted_run_no
    return {
        "header_check": [row._asdict() for row in header_check(run, figures.dialect)],
        "choices": asdict(choices(source.pk, run.no)) if run.outcome == RunOutcome.HELD else None,
        "disappearing": asdict(missed_by(source.pk, run.no)) if run.outcome in PROMOTED else None,
        "not_visible_because": exposure_of(source.pk).not_visible_because if is_last else None,
    }


def choices_sentences(run: dict[str, Any]) -> str:
    """Return what an approval and a rejection lead to, now and later."""
    told = run["choices"]
    approval = "Approve: changes go live now."
    if told["removes"]:
        count, by = count_text(told["removes"]), moment(told["removed_by"])
        approval += f" {count} missing products disappear by {by} unless a later file contains them."
    rejection = "Reject: nothing changes now, and these changes are discarded."
    if told["offers_expire_at"] and not told["is_expired"]:
        rejection += f" Without a new file, all offers disappear on {moment(told['offers_expire_at'])}."
    return f"{approval}\n{rejection}"


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _disappearing(run: dict[str, Any]) -> RenderableType | None:
    told = run.get("disappearing")
    if not told or not told["offers"]:
        return None
    count, by = count_text(told["offers"]), moment(told["disappear_by"])
    return Text(f"{count} offers disappear by {by} unless a later file contains them.", style="yellow")


def inspected(run_no: int) -> dict[str, Any]:
    """One run with its figures, the first rows that were refused or looked odd, and what it would change if held."""
    run = run_numbered(run_no)
    return {**summary(run_no), "samples": samples_of(run), "difference": difference_of(run)}


def inspected_view(run: dict[str, Any]) -> RenderableType:
    difference = run["difference"]
    return stacked(
        summary_view(run),
        *(difference_tables(difference) if difference else ()),
        samples_table(run["samples"], SAMPLES_SHOWN),
    )


def difference_tables(found: dict[str, Any]) -> list[RenderableType]:
    """What a held run would change: products of each kind, and where in the catalog that is."""
    changes = [
        (kind, item["title"], item["price_before"], item["price"])
        for kind in KINDS
        for item in found["samples"][kind][:SAMPLES_SHOWN]
    ]
    columns = ("change", "product", "price before", "price in the file")
    tables: list[RenderableType] = [table(columns, changes, right=columns[2:], title="What would change")]
    for name, told in (("categories", "category"), ("brands", "brand")):
        rows = [
            (group["name"] or "(none)", *(count_text(group[kind]) for kind in KINDS)) for group in found[name]["shown"]
        ]
        if rows:
            tables.append(table((told, *KINDS), rows, right=KINDS))
    return tables


def samples_table(samples: dict[str, list[dict[str, Any]]], most: int | None = None) -> RenderableType | None:
    rows = [
        (code, item["line"], item["reason"], item["row"]) for code, items in samples.items() for item in items[:most]
    ]
    return table(("code", "line", "why", "row"), rows, right=("line",)) if rows else None


def _as_dict(figures: FeedRun) -> dict[str, Any]:
    run = {name: getattr(figures.run, name) for name in _OF_RUN}
    return {**run, **{name: getattr(figures, name) for name in _OF_FEED_RUN}}


def list_table(
    runs: list[dict[str, Any]], *, of_one: bool = True, empty: str = "The feed has not run yet."
) -> RenderableType:
    if not runs:
        return Text(empty)
    now = database_now()
    rows = [
        (
            run["no"],
            *(() if of_one else (run["feed"],)),
            run["trigger"],
            state_of(run),
            when(run["started_at"], now),
            _took(run),
            count_text(run["rows_read"]),
            count_text(run["products_upserted"]),
            count_text(run["prices_written"]),
            count_text(run["products_missing"]),
            run["error_code"] or run["skipped_reason"] or "",
        )
        for run in runs
    ]
    first = ("run",) if of_one else ("run", "feed")
    columns = (*first, "trigger", "state", "started", "took", "rows", "products", "prices", "missing", "remark")
    return table(columns, rows, right=("run", "took", "rows", "products", "prices", "missing"))


def state_of(run: dict[str, Any]) -> Text:
    """The word that says most, in its colour."""
    word = "IGNORED" if run["ignored_at"] else run["outcome"] or run["status"]
    styles = {"FAILED": "bold red", "HELD": "yellow", "PROMOTED": "green", "APPROVED": "green", "RUNNING": "bold blue"}
    return Text(word, style=styles.get(word, ""))


def summary_view(run: dict[str, Any]) -> RenderableType:
    heading = Text.assemble((f"run {run['no']} of {run['feed']}", "bold"), "  ", state_of(run))
    figures = [(told, count_text(run[name])) for name, told in FIGURES.items() if run[name] is not None]
    facts = [("trigger", run["trigger"]), ("took", _took(run)), ("skipped", run["skipped_reason"])]
    return stacked(
        heading,
        pairs([(name, value) for name, value in facts if value]),
        table(("figure", "count"), figures, right=("count",)) if any(run[name] for name in FIGURES) else None,
        _gates(run),
        counts_table("rejected rows", run["rejects"]),
        counts_table("warnings", run["warnings"]),
        notices_table(run["notices"]),
        _trouble(run),
        _disappearing(run),
        Text(run["not_visible_because"], style="yellow") if run.get("not_visible_because") else None,
        _where_rows_are(run),
    )


def _where_rows_are(run: dict[str, Any]) -> RenderableType | None:
    if "samples" in run or not (run["rejects"] or run["warnings"]):
        return None
    return Text(f"The rows and their lines: harvester feed inspect {run['no']}")


def _gates(run: dict[str, Any]) -> RenderableType | None:
    holding = [(item["gate"], item["reason"]) for item in run["verdict"] if item["holds"]]
    if not holding:
        return None
    heading = "Held by" if run["outcome"] == "HELD" else "Was held by"
    return table(("gate", "why"), holding, title=heading)


def counts_table(title: str, counts: dict[str, int]) -> RenderableType | None:
    return table((title, "count"), counts.items(), right=("count",)) if counts else None


def notices_table(stored: list[dict[str, Any]]) -> RenderableType | None:
    rows = [(notice["title"], notice["message"], "; ".join(notice["examples"])) for notice in titled(stored)]
    return table(("warning", "what", "examples"), rows, title="About the run as a whole") if rows else None


def _trouble(run: dict[str, Any]) -> RenderableType | None:
    if run["error"]:
        rows = [(row["field"], row["wanted"], row["found"], row["last_good"]) for row in run.get("header_check") or ()]
        said = (
            "The first line of the file lacks columns that are needed. Nothing was changed." if rows else run["error"]
        )
        columns = table(("field", "wanted", "found", "in the last good file"), rows) if rows else None
        error = stacked(Text.assemble((f"{run['error_code']}: ", "bold red"), cell(said)), columns)
        advice = Text(f"What to do: {run['advice']}") if run.get("advice") else None
        again = Text(f"The file: harvester feed file {run['no']}") if run.get("file_kept") else None
        return stacked(error, advice, again)
    if run["outcome"] == "HELD":
        told = f"{choices_sentences(run)}\n" if run.get("choices") else ""
        return Text(
            f"{told}Decide: harvester feed approve {run['no']}, or harvester feed reject {run['no']} --reason WHY"
        )
    return None


def ending_of_job(job_id: int) -> dict[str, Any]:
    """How a job ended that made no run."""
    job = find(job_id)
    result = job.result if isinstance(job.result, dict) else {}
    return {
        "job_id": job_id,
        "state": job.state,
        "note": result.get("note"),
        "code": job.error_type,
        "error": job.error,
    }


def ending_sentence(ending: dict[str, Any], feed: str) -> str:
    if ending["error"]:
        return f"Job {ending['job_id']} {ending['state']}: {ending['error']}"
    told = f"There was no run of its own: {ending['note'] or ending['state']}."
    return f"{told} One that began before this request is followed by another. See: {command_line('runs', feed)}"


def command_line(verb: str, feed: str, *words: str) -> str:
    """A command about a feed, to be copied as it stands."""
    return shlex.join(("harvester", "feed", verb, feed, *words))


def _took(run: dict[str, Any]) -> str:
    return span(run["duration_ms"] / 1000) if run["duration_ms"] is not None else ""
