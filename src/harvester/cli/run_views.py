"""What commands show of runs. Needs Django."""

import shlex
from collections import Counter
from collections.abc import Iterable
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
from harvester.feeds.findings import header_check
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.notices import titled
from harvester.feeds.run_details import difference_of, samples_of
from harvester.pipeline.held_difference import KINDS
from harvester.runs import queries
from harvester.runs.kinds import RunKind, kind_or_none
from harvester.runs.models import Run
from harvester.runs.states import PROMOTED, RunOutcome

_OF_RUN = (
    "no", "id", "kind", "trigger", "status", "outcome", "stage", "attempt", "started_at", "finished_at", "duration_ms",
    "job_id",
    "error_code", "error", "decided_at", "decided_by", "decision_reason", "ignored_at", "ignored_by",
    "ignored_reason", "verdict", "timings",
)  # fmt: skip
_OF_FEED_RUN = ("manifest_rows", "rejects", "warnings", "notices", "dialect")
#: Columns of lists with figures; see `RunKind.list_columns`.
_COUNTS = ("rows", "products", "prices", "missing")
#: Rows of one kind that people are shown; JSON has all that were kept.
SAMPLES_SHOWN = 10
#: The same for parts.
PARTS_SHOWN = 50


def run_of_job(job_id: int) -> Run | None:
    return Run.objects.filter(job_id=job_id).first()


def as_dicts(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Runs with their figures, as JSON has them."""
    described = queries.described(runs)
    of_feeds = {
        found.pop("run_id"): found
        for found in FeedRun.objects.filter(pk__in=[each.run.pk for each in described]).values("run_id", *_OF_FEED_RUN)
    }
    return [
        {
            "subject": {"id": each.run.subject_id, "name": each.subject_name, "type": each.subject_type},
            "feed": each.subject_name if each.run.pk in of_feeds else None,
            **each.figures,
            **of_feeds.get(each.run.pk, {}),
            **{name: getattr(each.run, name) for name in _OF_RUN},
            "advice": each.advice,
        }
        for each in described
    ]


def newest(feed: Feed, limit: int) -> list[dict[str, Any]]:
    """The newest runs of a feed, newest first."""
    return as_dicts(queries.runs(queries.RunQuery(kind="AFFILIATE_FEED", subject_id=feed.pk, most=limit)))


def summary(run_no: int) -> dict[str, Any]:
    """One run with its figures; of a feed with the effects of deciding about it, and what consumers do not see."""
    run = queries.run(run_no)
    found = as_dicts([run])[0]
    figures = FeedRun.objects.select_related("run", "feed__source").filter(pk=run.pk).first()
    if figures is None:
        return found
    run, source = figures.run, figures.feed.source
    is_last = run.no == source.last_promoted_run_no
    return {
        **found,
        "file_kept": files.is_kept(run),
        "header_check": [row._asdict() for row in header_check(run, figures.dialect)],
        "choices": asdict(choices(source.pk, run.no)) if run.outcome == RunOutcome.HELD else None,
        "disappearing": asdict(missed_by(source.pk, run.no)) if run.outcome in PROMOTED else None,
        "not_visible_because": exposure_of(source.pk).not_visible_because if is_last else None,
    }


def choices_sentences(run: dict[str, Any]) -> str:
    """Return the effects of an approval and of a rejection, now and later."""
    effects = run["choices"]
    approval = "Approve: changes go live now."
    if effects["removes"]:
        count, by = count_text(effects["removes"]), moment(effects["removed_by"])
        approval += f" {count} missing products disappear by {by} unless a later file contains them."
    rejection = "Reject: nothing changes now, and these changes are discarded."
    if effects["offers_expire_at"] and not effects["is_expired"]:
        rejection += f" Without a new file, all offers disappear on {moment(effects['offers_expire_at'])}."
    return f"{approval}\n{rejection}"


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def inspected(run_no: int) -> dict[str, Any]:
    """Return one run with its figures, sample rows, parts and, if it is held, its changes."""
    run = queries.run(run_no)
    parts = [
        {
            "name": each.name,
            "outcome": each.outcome,
            "detail": each.part.detail,
            "found": each.found,
            "ended_at": each.part.ended_at,
        }
        for each in queries.parts(run)
    ]
    return {**summary(run_no), "samples": samples_of(run), "difference": difference_of(run), "parts": parts}


def inspected_view(run: dict[str, Any]) -> RenderableType:
    difference = run["difference"]
    parts = [(part["name"], part["outcome"], part["found"]) for part in run["parts"][:PARTS_SHOWN]]
    hidden = len(run["parts"]) - len(parts)
    counts = Counter(part["outcome"] for part in run["parts"]).most_common()
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in counts)
    return stacked(
        summary_view(run),
        *(difference_tables(difference) if difference else ()),
        samples_table(run["samples"], SAMPLES_SHOWN),
        table(("part", "outcome", "found"), parts) if parts else None,
        Text(f"Outcomes: {outcomes}. Shown: {len(parts):,} parts; --json lists all.") if hidden else None,
    )


def difference_tables(found: dict[str, Any]) -> list[RenderableType]:
    """Return tables of the changes of a held run: products of each kind, categories and brands."""
    changes = [
        (kind, item["title"], item["price_before"], item["price"])
        for kind in KINDS
        for item in found["samples"][kind][:SAMPLES_SHOWN]
    ]
    columns = ("change", "product", "price before", "price in the file")
    tables: list[RenderableType] = [table(columns, changes, right=columns[2:], title="Held changes")]
    for name, label in (("categories", "category"), ("brands", "brand")):
        rows = [
            (group["name"] or "(none)", *(count_text(group[kind]) for kind in KINDS)) for group in found[name]["shown"]
        ]
        if rows:
            tables.append(table((label, *KINDS), rows, right=KINDS))
    return tables


def samples_table(samples: dict[str, list[dict[str, Any]]], most: int | None = None) -> RenderableType | None:
    rows = [
        (code, item["line"], item["reason"], item["row"]) for code, items in samples.items() for item in items[:most]
    ]
    return table(("code", "line", "why", "row"), rows, right=("line",)) if rows else None


def list_table(
    runs: list[dict[str, Any]], *, of_one: bool = True, empty: str = "The feed has not run yet."
) -> RenderableType:
    if not runs:
        return Text(empty)
    now = database_now()
    shown = [(run, kind_or_none(run["kind"])) for run in runs]
    rows = [
        (
            run["no"],
            *(() if of_one else (kind.label if kind else run["kind"], run["subject"]["name"] or "")),
            run["trigger"],
            state_of(run),
            when(run["started_at"], now),
            _took(run),
            *(count_text(_column(run, kind, name)) for name in _COUNTS),
            run["error_code"] or _column(run, kind, "remark") or "",
        )
        for run, kind in shown
    ]
    first = ("run",) if of_one else ("run", "kind", "subject")
    columns = (*first, "trigger", "state", "started", "took", *_COUNTS, "remark")
    return table(columns, rows, right=("run", "took", *_COUNTS))


def _column(run: dict[str, Any], kind: RunKind | None, name: str) -> Any:
    return run.get(kind.list_columns.get(name, "")) if kind else None


def state_of(run: dict[str, Any]) -> Text:
    """The word that says most, in its colour."""
    word = "IGNORED" if run["ignored_at"] else run["outcome"] or run["status"]
    styles = {"FAILED": "bold red", "HELD": "yellow", "PROMOTED": "green", "APPROVED": "green", "RUNNING": "bold blue"}
    return Text(word, style=styles.get(word, ""))


def summary_view(run: dict[str, Any]) -> RenderableType:
    kind, subject = kind_or_none(run["kind"]), run["subject"]["name"]
    heading = Text.assemble((f"run {run['no']}{f' of {subject}' if subject else ''}", "bold"), "  ", state_of(run))
    labels = kind.figure_labels if kind else {}
    figures = [(label, count_text(run[name])) for name, label in labels.items() if run.get(name) is not None]
    facts = [
        ("kind", kind.label if kind else run["kind"]),
        ("trigger", run["trigger"]),
        ("took", _took(run)),
        ("skipped", run.get("skipped_reason")),
    ]
    holding = [(item["gate"], item["reason"]) for item in run["verdict"] if item["holds"]]
    held = "Held by" if run["outcome"] == "HELD" else "Was held by"
    remarks = []
    if (found := run.get("disappearing")) and found["offers"]:
        count, by = count_text(found["offers"]), moment(found["disappear_by"])
        remarks.append(Text(f"{count} offers disappear by {by} unless a later file contains them.", style="yellow"))
    if run.get("not_visible_because"):
        remarks.append(Text(run["not_visible_because"], style="yellow"))
    if "samples" not in run and (run.get("rejects") or run.get("warnings")):
        remarks.append(Text(f"The rows and their lines: harvester runs show {run['no']}"))
    return stacked(
        heading,
        pairs([(name, value) for name, value in facts if value]),
        table(("figure", "count"), figures, right=("count",)) if any(run.get(name) for name in labels) else None,
        table(("gate", "why"), holding, title=held) if holding else None,
        counts_table("rejected rows", run.get("rejects") or {}),
        counts_table("warnings", run.get("warnings") or {}),
        notices_table(run.get("notices") or []),
        _trouble(run),
        *remarks,
    )


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
        again = Text(f"The file: harvester runs file {run['no']}") if run.get("file_kept") else None
        return stacked(error, advice, again)
    if run["outcome"] == "HELD":
        effects = f"{choices_sentences(run)}\n" if run.get("choices") else ""
        return Text(
            f"{effects}Decide: harvester runs approve {run['no']}, or harvester runs reject {run['no']} --reason WHY"
        )
    return None


def ending_of_job(job_id: int) -> dict[str, Any]:
    """Return how a job without a run ended."""
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
    note = f"There was no run of its own: {ending['note'] or ending['state']}."
    return f"{note} One that began before this request is followed by another. See: {command_line('runs', feed)}"


def command_line(verb: str, feed: str, *words: str) -> str:
    """Return a command about a feed, to be copied unchanged."""
    return shlex.join(("harvester", "feed", verb, feed, *words))


def _took(run: dict[str, Any]) -> str:
    return span(run["duration_ms"] / 1000) if run["duration_ms"] is not None else ""
