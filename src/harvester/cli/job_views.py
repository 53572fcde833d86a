"""What the `jobs` commands read, and how it looks. Needs Django."""

from datetime import datetime
from typing import Any

from django.db import connection
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.output import cell, pairs, span, stacked, table, when
from harvester.engine.models import Job, JobEvent
from harvester.engine.states import ENDED, JobState
from harvester.feeds.display_names import subjects_of
from harvester.kernel.errors import NotFound
from harvester.ops import job_figures

#: Characters of an error that a list shows; `jobs show` has all of it.
ERROR_IN_LIST = 70
#: What the engine writes into the history when somebody asks a running job to stop: no new attempt begins.
CANCEL_NOTE = "cancel requested"

_IN_LIST = (
    "id", "kind", "queue", "lane", "state", "priority", "run_at", "attempt", "max_attempts", "worker", "heartbeat_at",
    "progress", "error_type", "error", "created_at", "started_at", "finished_at",
)  # fmt: skip


def database_now() -> datetime:
    """All times are the database's; this machine's clock may differ."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


# -- lists ------------------------------------------------------------------------------------------------------


def newest(*, states: list[str], queue: str, kind: str, limit: int, periodic: bool = False) -> list[dict[str, Any]]:
    """The newest jobs that fit, newest first; periodic ones that succeeded only if asked for."""
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
            _remark(job),
        )
        for job in jobs
    ]
    columns = ("id", "kind", "feed", "queue", "state", "attempt", "when", "remark")
    return table(columns, rows, title=title, right=("id", "attempt"))


def stuck_table(jobs: list[dict[str, Any]], seconds: float) -> RenderableType:
    if not jobs:
        return Text(f"No running job has been silent for {span(seconds)}.")
    now = database_now()
    rows = [
        (job["id"], job["kind"], job["queue"], job["worker"], when(job["heartbeat_at"], now), _attempts(job))
        for job in jobs
    ]
    return table(("id", "kind", "queue", "worker", "last heard of", "attempt"), rows, right=("id", "attempt"))


def _attempts(job: dict[str, Any]) -> str:
    return f"{job['attempt']}/{job['max_attempts']}"


def _timing(job: dict[str, Any], now: datetime) -> str:
    state = job["state"]
    if state == JobState.RUNNING:
        return f"since {span(_seconds(job['started_at'], now))}"
    if state in ENDED:
        return when(job["finished_at"], now)
    late = job["run_at"] <= now
    return f"waits since {span(_seconds(job['run_at'], now))}" if late else when(job["run_at"], now)


def _seconds(start: datetime | None, end: datetime) -> float:
    return max((end - start).total_seconds(), 0.0) if start else 0.0


def _remark(job: dict[str, Any]) -> str:
    if job["state"] == JobState.RUNNING:
        return progress_text(job["progress"])
    if not job["error"]:
        return ""
    return _shortened(f"{job['error_type']}: {job['error']}")


def progress_text(progress: Any) -> str:
    if not isinstance(progress, dict):
        return ""
    done, total, note = progress.get("done") or 0, progress.get("total"), progress.get("note") or ""
    amount = f"{_plain(done)} of {_plain(total)}" if total else _plain(done) if done else ""
    return f"{amount} {note}".strip()


def _plain(number: float) -> str:
    """As people write it, also when it is a count of bytes."""
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


# -- one job ----------------------------------------------------------------------------------------------------


def find(job_id: int) -> Job:
    job = Job.objects.filter(id=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}; `harvester jobs list` shows the newest.")
    return job


def details(job_id: int) -> dict[str, Any]:
    """A job with its attempts and its history."""
    find(job_id)
    job = {name: value for name, value in Job.objects.filter(id=job_id).values().get().items() if name != "lease"}
    history = JobEvent.objects.filter(job_id=job_id).order_by("at", "id")
    events = [dict(event) for event in history.values("at", "state", "attempt", "worker", "detail")]
    return {**_with_feeds([job])[0], "attempts": attempts_of(events), "events": events}


def attempts_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attempts are told by the history: a claim begins one, the next change of state ends it."""
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
    return stacked(
        heading,
        pairs(_facts(job, now)),
        _attempt_table(job["attempts"]),
        _event_table(job["events"], now),
        Text(""),
        _trouble(job),
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
        ("started", when(job["started_at"], now)),
        ("last heard of", when(job["heartbeat_at"], now) if job["state"] == JobState.RUNNING else None),
        ("ended", when(job["finished_at"], now)),
        ("asked to stop", when(job["cancel_requested_at"], now)),
        ("worker", job["worker"]),
        ("progress", progress_text(job["progress"]) if job["state"] not in ENDED else None),
        ("result", job["result"]),
    ]
    return [(name, value) for name, value in facts if value not in (None, "")]


def _attempt_table(attempts: list[dict[str, Any]]) -> RenderableType | None:
    if not attempts:
        return None
    rows = [
        (item["attempt"], item["outcome"], _length(item), item["worker"], _shortened(item["detail"]))
        for item in attempts
    ]
    return table(("attempt", "outcome", "took", "worker", "remark"), rows, title="Attempts", right=("attempt", "took"))


def _length(attempt: dict[str, Any]) -> str:
    return span(_seconds(attempt["started_at"], attempt["ended_at"])) if attempt["ended_at"] else ""


def _event_table(events: list[dict[str, Any]], now: datetime) -> RenderableType | None:
    if not events:
        return None
    rows = [
        (f"{event['at']:%Y-%m-%d %H:%M:%S} UTC", when(event["at"], now), event["state"], _shortened(event["detail"]))
        for event in events
    ]
    return table(("at", "", "state", "remark"), rows, title="History")


def _shortened(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if len(words) <= ERROR_IN_LIST else f"{words[: ERROR_IN_LIST - 4]} ..."


def _trouble(job: dict[str, Any]) -> RenderableType | None:
    if not job["error"]:
        return None
    error = Text.assemble((f"{job['error_type']}: ", "bold red"), cell(job["error"]))
    again = Text(f"Run it again: harvester jobs retry {job['id']}") if job["state"] == JobState.FAILED else None
    return stacked(error, cell(job["traceback"]) if job["traceback"] else None, again)


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
    columns = ("queue", "waiting", "scheduled", "running", "oldest waits", "ended per second", "failed last hour")
    queues = table(columns, rows, title="Queues", right=columns[1:])
    return stacked(states, queues, _old_snapshot(found["oldest_snapshot_seconds"]))


def _old_snapshot(seconds: float) -> RenderableType | None:
    if seconds < job_figures.OLD_SNAPSHOT_SECONDS:
        return None
    return Text(f"A transaction has been open for {span(seconds)}; it slows every claim.", style="yellow")
