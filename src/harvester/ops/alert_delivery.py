"""Delivery of alerts to Slack, through an incoming webhook. A failing Slack delays its own messages and nothing else.

A message may arrive twice if a worker dies right after sending it; it never gets lost.

TransientError
└── SlackUnavailable    Slack has a problem of its own
TerminalError
└── SlackRefused        Slack rejects the webhook or the message
"""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from django.conf import settings
from django.db.models.functions import Now

from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.guards.egress import EgressPolicy
from harvester.guards.http import HttpAnswer, HttpLimits, request
from harvester.guards.redaction import redact_text, remember
from harvester.guards.remote import quote_reply
from harvester.kernel.errors import HarvesterError, TerminalError, TransientError
from harvester.ops.alerts import OPENED
from harvester.ops.models import Alert

SIGNS = {"info": ":information_source:", "warning": ":warning:", "critical": ":rotating_light:"}
#: Messages and responses are small.
LIMITS = HttpLimits(connect=10.0, read=10.0, total=20.0, body_bytes=64 * 1024, inflated_bytes=64 * 1024)
#: Characters that Slack shows without folding them away.
LONGEST_TEXT = 3_000
#: Seconds to wait if Slack does not say how long, and the most that we wait.
DEFAULT_WAIT, LONGEST_WAIT = 60.0, 3_600.0
OK, TOO_MANY, SERVER_ERRORS = range(200, 300), 429, range(500, 600)


class SlackUnavailable(TransientError):
    """Slack has a problem of its own."""

    code = "SLACK_UNAVAILABLE"


class SlackRefused(TerminalError):
    """Slack rejects the webhook or the message."""

    code = "SLACK_REFUSED"


def deliver_alert(job: RunningJob, alert_id: int, phase: str) -> str:
    """Send Slack the message that a condition was opened or resolved."""
    url = settings.CONFIG.slack_webhook_url
    alert = Alert.objects.filter(id=alert_id).first()
    if not url or alert is None:
        return "Slack is not set up" if alert else "alert deleted meanwhile"
    if phase == OPENED and alert.resolved_at:
        return "resolved already; only that is sent"
    if alert.delivered_at(phase):
        return "sent before"
    about = f"_{alert.kind}, alert {alert.id}"
    if phase == OPENED:
        text = f"{SIGNS[alert.severity]} *{alert.title}*\n{alert.body}\n{about}_"
    else:
        parts = [f":white_check_mark: *Resolved: {alert.title}*"]
        if not alert.delivered_at(OPENED):
            parts.append(alert.body)
        parts += [alert.resolved_note, f"{about}, open since {alert.opened_at:%Y-%m-%d %H:%M} UTC_"]
        text = "\n".join(part for part in parts if part)
    try:
        _post(url, text, policy=EgressPolicy.from_config(settings.CONFIG))
    except HarvesterError as problem:
        with job.transaction():
            Alert.objects.filter(id=alert_id).update(delivery_error=f"{problem.code}: {problem}")
        raise
    with job.transaction():
        Alert.objects.filter(id=alert_id).update(**{f"{phase}_delivered_at": Now()}, delivery_error=None)
        job.finish("sent to Slack")
    return "sent to Slack"


def _post(url: str, text: str, *, policy: EgressPolicy) -> None:
    """Send one message. Anyone who knows the URL may post, so it is treated like a password.

    Raises:
        Snooze: Slack asks to wait.
        SlackUnavailable, SlackRefused, and the errors of the HTTP client.
    """
    remember(url)
    answer = request(
        "POST",
        url,
        policy=policy,
        headers={"content-type": "application/json"},
        content=json.dumps({"text": escaped(text)}).encode(),
        limits=LIMITS,
    )
    if answer.status in OK:
        return
    if answer.status == TOO_MANY:
        raise Snooze(_wait_seconds(answer), "Slack asks to wait")
    reply = quote_reply(answer.body.decode("utf-8", "replace"))
    if answer.status in SERVER_ERRORS:
        raise SlackUnavailable(f"Slack returned {answer.status}: {reply}. The message is sent again later.")
    raise SlackRefused(f"Slack returned {answer.status}: {reply}. Check HARVESTER_SLACK_WEBHOOK_URL.")


def escaped(text: str) -> str:
    """Return the text shortened, and without links, mentions and calls to the whole channel."""
    text = redact_text(text)
    cut = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _wait_seconds(answer: HttpAnswer) -> float:
    """Return the seconds to wait, from a number or a date."""
    retry_after = answer.headers.get("retry-after", "")
    try:
        if retry_after.isdecimal():
            seconds = float(retry_after)
        else:
            seconds = (parsedate_to_datetime(retry_after).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        seconds = DEFAULT_WAIT
    return min(max(seconds, 1.0), LONGEST_WAIT)
