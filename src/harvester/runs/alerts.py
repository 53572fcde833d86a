"""Alerts about runs: one for each condition of a subject, resolved when the condition ends."""

from typing import Any

from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.runs.gates import Verdict
from harvester.runs.kinds import RunKind
from harvester.runs.models import Run


def key_of(alert: str, kind: RunKind, subject: Any) -> str:
    return f"{alert}:{kind.subject}:{subject.pk}"


def run_succeeded(kind: RunKind, subject: Any) -> None:
    """Resolve the alerts about failures of the subject's runs."""
    for alert in kind.failure_alerts:
        resolve_alert(key_of(alert, kind, subject), f"A run of the {kind.subject} succeeded.")


def hold_is_over(kind: RunKind, subject: Any, note: str) -> None:
    """Resolve the alert of a held run that was decided, or that a newer run replaced."""
    resolve_alert(key_of("RUN_HELD", kind, subject), note)


def run_failed(kind: RunKind, subject: Any, run: Run, code: str, message: str) -> None:
    raise_about(kind, subject, kind.alert_for(code), f"{subject}: run {run.no} failed ({code})", message, run_no=run.no)


def job_failed(kind: RunKind, subject: Any, job_id: int, code: str, message: str) -> None:
    """Raise an alert about a job that failed before it had a run."""
    title = f"{subject}: a run could not begin ({code})"
    body = f"{message}\nNothing was changed. `harvester jobs show {job_id}` has the details."
    raise_about(kind, subject, "RUN_FAILED", title, body, job_id=job_id)


def run_is_held(kind: RunKind, subject: Any, run: Run, verdict: Verdict) -> None:
    reasons = "\n".join(f"{finding.gate}: {finding.reason}" for finding in verdict.holding)  # mutant: hold-alert
    body = f"{reasons}\nNothing that consumers see has changed. Approve or reject the run."
    raise_about(kind, subject, "RUN_HELD", f"{subject}: run {run.no} is held", body, run_no=run.no)


def raise_about(kind: RunKind, subject: Any, alert: str, title: str, body: str, **detail: Any) -> None:
    """Raise an alert about a subject."""
    detail = {kind.subject_key: str(subject.pk), **detail}
    raise_alert(alert, key_of(alert, kind, subject), title, body, severity="warning", detail=detail)
