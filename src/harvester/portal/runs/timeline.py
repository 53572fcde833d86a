"""The timeline of a run: the events of its job, and the decisions of people and of the system."""

from typing import Any

from harvester.engine.models import JobEvent
from harvester.ops.models import AuditEvent
from harvester.portal.display import verb
from harvester.runs.models import Run

#: Events of each kind; only a run that failed very often has more, and the page of its job has them all.
MOST = 20
#: Verb -> the state whose color it has.
_TONES = {
    "RUN_HELD": "retryable",
    "RUN_HELD_AGAIN": "retryable",
    "RUN_PROMOTED": "succeeded",
    "ACTIVATION_APPROVED": "succeeded",
    "ACTIVATION_REJECTED": "cancelled",
    "RUN_IGNORED": "failed",
}


def of(run: Run) -> list[dict[str, Any]]:
    """Return the events of a run, newest first."""
    decided = AuditEvent.objects.filter(object_type="run", object_id=str(run.pk)).order_by("-at", "-id")[:MOST]
    found = [_decided(event) for event in decided]
    if run.job_id is not None:
        events = JobEvent.objects.filter(job_id=run.job_id).order_by("-at", "-id")[:MOST]
        found += [_worked(event, run.error or "") for event in events]
    return sorted(found, key=lambda event: event["at"], reverse=True)


def _decided(event: AuditEvent) -> dict[str, Any]:
    who = event.actor_name if event.actor_kind == "person" else ""
    why = event.detail.get("reason")
    return {
        "at": event.at,
        "title": verb(event.verb),
        "who": who,
        "tone": _TONES.get(event.verb, "running"),
        "text": why if isinstance(why, str) else "",
        "event_id": event.pk,
    }


def _worked(event: JobEvent, error: str) -> dict[str, Any]:
    """Return an event of the job, without the error that the page shows above."""
    is_shown_above = bool(error and event.detail and error[:100] in event.detail)
    attempt = f", attempt {event.attempt}" if event.attempt else ""
    return {
        "at": event.at,
        "title": f"Job {event.state}{attempt}",
        "who": event.worker or "",
        "tone": event.state,
        "text": "" if is_shown_above else event.detail or "",
        "event_id": None,
    }
