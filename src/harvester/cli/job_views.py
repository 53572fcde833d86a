"""Queries and tables of the `jobs` commands. Needs Django."""

from datetime import datetime
from typing import Any

from django.db import connection
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.output import cell, pairs, span, stacked, table, when
from harvester.engine.models import Job, JobEvent, PeriodicJob
from harvester.engine.states import ENDED, JobState
from harvester.feeds.display_names import subjects_of
from harvester.kernel.errors import NotFound
from harvester.ops import job_figures

#: Characters of an error in a list; `jobs show` prints all of it.
ERROR_IN_LIST = 70
#: The engine's history entry for the cancellation of a running job. It does not begin a new attempt.
CANCEL_NOTE = "cancel requested"

_IN_LIST = (
    "id", "kind", "queue", "lane", "state", "priority", "run_at", "attempt", "max_attempts", "worker", "heartbeat_at",
    "progress", "error_type", "error", "created_at", "started_at", "finished_at",
)  # fmt: skip


def database_now() -> datetime:
    """Return the time of the database, which all times come from; this machine's clock may differ."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


# -- lists ------------------------------------------------------------------------------------------------------


def newest(*, states: list[str], queue: str, kind: str, limit: int, periodic: bool = False) -> list[dict[str, Any]]:
    """Return the newest jobs, newest first; successful periodic ones only with a filter or `periodic`."""
    jobs = Job.objects.order_by("-id")
    if not (periodic or kind or queue or states):
        jobs = jobs.exclude(**job_figures.periodic_done())
    if states:
        jobs = jobs.filter(state__in=states)
    if queue:
        jobs = jobs.filter(queue=queue)
    if kind:
        jobs = jobs.filter(kind=kind)
    return _with_feeds(list(jobs.values(*_IN_LIST)[:limit]))


def _with_feeds(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    about = subjects_of([job["id"] for job in jobs])
    return [{**job, "feed": about[job["id"]].name if job["id"] in about else None} for job in jobs]


def stuck(seconds: float) -> list[dict[str, Any]]:
    return [{name: getattr(job, name) for name in _IN_LIST} for job in job_figures.stuck(seconds)]


def list_table(jobs: list[dict[str, Any]], title: str = "") -> RenderableType:
    if not jobs:
        return Text("There are no such jobs.")
    now = database_now()
    rows = [
        (
            job["id"],
            job["kind"],
            job["feed"],
            job["queue"],
            job["state"],
            f"{job['attempt']}/{job['max_attempts']}",
            _timing(job, now),
            _note(job),
        )
        for job in jobs
    ]
    columns = ("id", "kind", "feed", "queue", "state", "attempt", "when", "note")
    return table(columns, rows, title=title, right=("id", "attempt"))


def stuck_table(jobs: list[dict[str, Any]], seconds: float) -> RenderableType:
    if not jobs:
        return Text(f"Every running job sent a heartbeat in the last {span(seconds)}.")
    now = database_now()
    rows = [
        (
            job["id"],
            job["kind"],
            job["queue"],
            job["worker"],
            when(job["heartbeat_at"], now),
            f"{job['attempt']}/{job['max_attempts']}",
        )
        for job in jobs
    ]
    return table(("id", "kind", "queue", "worker", "last heartbeat", "attempt"), rows, right=("id", "attempt"))


def _timing(job: dict[str, Any], now: datetime) -> str:
    state = job["state"]
    if state == JobState.RUNNING:
        return f"for {span(_seconds(job['started_at'], now))}"
    if state in ENDED:
        return when(job["finished_at"], now)
    is_due = job["run_at"] <= now
    return f"waiting for {span(_seconds(job['run_at'], now))}" if is_due else when(job["run_at"], now)


def _seconds(start: datetime | None, end: datetime) -> float:
    return max((end - start).total_seconds(), 0.0) if start else 0.0


def _note(job: dict[str, Any]) -> str:
    if job["state"] == JobState.RUNNING:
        return progress_text(job["progress"])
    return _shortened(f"{job['error_type']}: {job['error']}") if job["error"] else ""


def progress_text(progress: Any) -> str:
    if not isinstance(progress, dict):
        return ""
    done, total, note = progress.get("done") or 0, progress.get("total"), progress.get("note") or ""
    amount = f"{_plain(done)} of {_plain(total)}" if total else _plain(done) if done else ""
    return f"{amount} {note}".strip()


def _plain(number: float) -> str:
    """Return a whole number without decimals, and with thousands separators."""
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


# -- one job ----------------------------------------------------------------------------------------------------


def find(job_id: int) -> Job:
    job = Job.objects.filter(id=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}; `harvester jobs list` shows the newest.")
    return job


def details(job_id: int) -> dict[str, Any]:
    """Return a job with its attempts and its history."""
    waits_for = job_figures.snooze_reason(find(job_id))
    job = {name: value for name, value in Job.objects.filter(id=job_id).values().get().items() if name != "lease"}
    history = JobEvent.objects.filter(job_id=job_id).order_by("at", "id")
    events = [dict(event) for event in history.values("at", "state", "attempt", "worker", "detail")]
    return {**_with_feeds([job])[0], "waits_for": waits_for, "attempts": attempts_of(events), "events": events}


def attempts_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the attempts in a history: a claim begins one, the next change of state ends it."""
    attempts: list[dict[str, Any]] = []
    for event in events:
        if event["state"] == JobState.RUNNING and event["detail"] != CANCEL_NOTE:
            begun = {"attempt": event["attempt"], "worker": event["worker"], "started_at": event["at"]}
            attempts.append({**begun, "ended_at": None, "outcome": "running", "detail": None})
        elif attempts and attempts[-1]["ended_at"] is None and event["state"] != JobState.RUNNING:
            attempts[-1] |= {"ended_at": event["at"], "outcome": event["state"], "detail": event["detail"]}
    return attempts


def detail_view(job: dict[str, Any]) -> RenderableType:
    now = database_now()
    heading = Text.assemble((f"{job['kind']} {job['id']}", "bold"), "  ", cell(job["state"]))
    attempts = [
        (
            item["attempt"],
            item["outcome"],
            span(_seconds(item["started_at"], item["ended_at"])) if item["ended_at"] else "",
            item["worker"],
            _shortened(item["detail"]),
        )
        for item in job["attempts"]
    ]
    events = [
        (f"{event['at']:%Y-%m-%d %H:%M:%S} UTC", when(event["at"], now), event["state"], _shortened(event["detail"]))
        for event in job["events"]
    ]
    columns = ("attempt", "outcome", "took", "worker", "note")
    error = hint = None
    if job["error"]:
        error = Text.assemble((f"{job['error_type']}: ", "bold red"), cell(job["error"]))
        hint = Text(f"Run it again: harvester jobs retry {job['id']}") if job["state"] == JobState.FAILED else None
    return stacked(
        heading,
        pairs(_facts(job, now)),
        table(columns, attempts, title="Attempts", right=("attempt", "took")) if attempts else None,
        table(("at", "", "state", "note"), events, title="History") if events else None,
        Text(""),
        error,
        cell(job["traceback"]) if job["error"] and job["traceback"] else None,
        hint,
    )


def _facts(job: dict[str, Any], now: datetime) -> list[tuple[str, Any]]:
    facts = [
        ("feed", job["feed"]),
        ("queue", job["queue"]),
        ("lane", job["lane"]),
        ("dedupe key", job["dedupe_key"]),
        ("arguments", job["args"]),
        ("priority", job["priority"] or None),
        ("attempt", f"{job['attempt']} of {job['max_attempts']}"),
        ("enqueued", when(job["created_at"], now)),
        ("due", when(job["run_at"], now) if job["state"] not in ENDED else None),
        ("waits for", job["waits_for"]),
        ("started", when(job["started_at"], now)),
        ("last heartbeat", when(job["heartbeat_at"], now) if job["state"] == JobState.RUNNING else None),
        ("ended", when(job["finished_at"], now)),
        ("cancel requested", when(job["cancel_requested_at"], now)),
        ("worker", job["worker"]),
        ("progress", progress_text(job["progress"]) if job["state"] not in ENDED else None),
        ("result", job["result"]),
    ]
    return [(name, value) for name, value in facts if value not in (None, "")]


def _shortened(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if len(words) <= ERROR_IN_LIST else f"{words[: ERROR_IN_LIST - 4]} ..."


# -- figures ----------------------------------------------------------------------------------------------------


def stats() -> dict[str, Any]:
    tally = job_figures.tally()
    return {
        "states": tally.states,
        "queues": [queue.as_dict() for queue in tally.queues],
        "oldest_snapshot_seconds": round(job_figures.oldest_snapshot_seconds(), 3),
    }


def stats_view(found: dict[str, Any]) -> RenderableType:
    states = table(("state", "jobs"), found["states"].items(), title="Jobs", right=("jobs",))
    rows = [
        (
            queue["queue"],
            queue["waiting"],
            queue["scheduled"],
            queue["running"],
            span(queue["oldest_waiting_seconds"]) if queue["waiting"] else "",
            f"{queue['finished_per_second']:.2f}",
            queue["failed_last_hour"],
        )
        for queue in found["queues"]
    ]
    columns = ("queue", "waiting", "scheduled", "running", "longest wait", "ended per second", "failed last hour")
    queues = table(columns, rows, title="Queues", right=columns[1:])
    age = found["oldest_snapshot_seconds"]
    warning = f"A transaction has been open for {span(age)}. It slows down every claim of a job."
    is_old = age >= job_figures.OLD_SNAPSHOT_SECONDS
    return stacked(states, queues, Text(warning, style="yellow") if is_old else None)


# -- periodic jobs ----------------------------------------------------------------------------------------------


def all_periodic() -> list[dict[str, Any]]:
    shown = ("name", "kind", "cron", "next_at", "last_at", "last_job_id")
    return list(PeriodicJob.objects.order_by("name").values(*shown))


def periodic_table(jobs: list[dict[str, Any]]) -> RenderableType:
    if not jobs:
        return Text("There are no periodic jobs yet. `harvester scheduler` creates them when it starts.")
    now = database_now()
    rows = [
        (
            job["name"],
            job["kind"],
            job["cron"],
            when(job["next_at"], now),
            when(job["last_at"], now) or "never",
            job["last_job_id"],
        )
        for job in jobs
    ]
    return table(("name", "kind", "schedule (UTC)", "next", "last", "last job"), rows, right=("last job",))
