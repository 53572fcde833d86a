"""Bringing alerts to the channels. A channel that fails delays its own messages and nothing else.

A message may arrive twice if a worker dies right after it was sent; it never gets lost.
"""

from django.conf import settings
from django.db.models.functions import Now

from harvester.engine.job import RunningJob
from harvester.guards.egress import EgressPolicy
from harvester.kernel.errors import HarvesterError
from harvester.ops import slack
from harvester.ops.alerts import OPENED
from harvester.ops.models import Alert

SIGNS = {"info": ":information_source:", "warning": ":warning:", "critical": ":rotating_light:"}


def deliver_alert(job: RunningJob, alert_id: int, phase: str) -> str:
    """Tell Slack that a condition began or ended."""
    url = settings.CONFIG.slack_webhook_url
    alert = Alert.objects.filter(id=alert_id).first()
    if not url or alert is None:
        return "no channel but the log" if alert else "cleared away meanwhile"
    if phase == OPENED and alert.resolved_at:
        return "over before it was told; its end tells it"
    if _told_at(alert, phase):
        return "told before"
    _send(job, alert, url, phase)
    with job.transaction():
        Alert.objects.filter(id=alert_id).update(**{f"{phase}_delivered_at": Now()}, delivery_error=None)
        job.finish("told Slack")
    return "told Slack"


def _told_at(alert: Alert, phase: str) -> object:
    return alert.opened_delivered_at if phase == OPENED else alert.resolved_delivered_at


def _send(job: RunningJob, alert: Alert, url: str, phase: str) -> None:
    try:
        slack.post(url, message(alert, phase), policy=EgressPolicy.from_config(settings.CONFIG))
    except HarvesterError as problem:
        with job.transaction():
            Alert.objects.filter(id=alert.id).update(delivery_error=f"{problem.code}: {problem}")
        raise


def message(alert: Alert, phase: str) -> str:
    """The words for a channel."""
    if phase == OPENED:
        return f"{SIGNS[alert.severity]} *{alert.title}*\n{alert.body}\n_{alert.kind}, alert {alert.id}_"
    parts = [f":white_check_mark: *Resolved: {alert.title}*"]
    if alert.opened_delivered_at is None:
        parts.append(alert.body)
    parts += [alert.resolved_note, f"_{alert.kind}, alert {alert.id}, open since {alert.opened_at:%Y-%m-%d %H:%M} UTC_"]
    return "\n".join(part for part in parts if part)
