"""Messages to Slack, through an incoming webhook.

TransientError
└── SlackUnavailable    Slack has a problem of its own
TerminalError
└── SlackRefused        Slack does not know the webhook, or does not like the message
"""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from harvester.engine.errors import Snooze
from harvester.guards.egress import EgressPolicy
from harvester.guards.http import HttpAnswer, HttpLimits, request
from harvester.guards.redaction import redact_text, remember
from harvester.guards.remote import quote_reply
from harvester.kernel.errors import TerminalError, TransientError

#: A message is small and so is the answer.
LIMITS = HttpLimits(connect=10.0, read=10.0, total=20.0, body_bytes=64 * 1024, inflated_bytes=64 * 1024)
#: Characters that Slack shows without folding them away.
LONGEST_TEXT = 3_000
#: Seconds to wait where Slack does not say how long, and the most that it is believed.
DEFAULT_WAIT, LONGEST_WAIT = 60.0, 3_600.0
OK, TOO_MANY, SERVER_ERRORS = range(200, 300), 429, range(500, 600)


class SlackUnavailable(TransientError):
    """Slack has a problem of its own."""

    code = "SLACK_UNAVAILABLE"


class SlackRefused(TerminalError):
    """Slack does not take the message."""

    code = "SLACK_REFUSED"


def post(url: str, text: str, *, policy: EgressPolicy) -> None:
    """Send one message; whoever knows the URL may post, so it is treated like a password.

    Raises:
        Snooze: Slack asks to wait.
        SlackUnavailable, SlackRefused, and what the door raises.
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
    _judge(answer)


def escaped(text: str) -> str:
    """Cut, and without what Slack would read as a link, a mention or a call to the whole channel."""
    text = redact_text(text)
    cut = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _judge(answer: HttpAnswer) -> None:
    if answer.status in OK:
        return
    if answer.status == TOO_MANY:
        raise Snooze(_wait(answer.headers.get("retry-after", "")), "Slack asks to wait")
    said = quote_reply(answer.body.decode("utf-8", "replace"))
    if answer.status in SERVER_ERRORS:
        raise SlackUnavailable(f"Slack answered {answer.status}: {said}. It is tried again later.")
    raise SlackRefused(f"Slack answered {answer.status}: {said}. Check HARVESTER_SLACK_WEBHOOK_URL.")


def _wait(retry_after: str) -> float:
    """Seconds, from a number or a date."""
    try:
        seconds = float(retry_after) if retry_after.isdecimal() else _until(retry_after)
    except (TypeError, ValueError):
        seconds = DEFAULT_WAIT
    return min(max(seconds, 1.0), LONGEST_WAIT)


def _until(date: str) -> float:
    moment = parsedate_to_datetime(date)
    return (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds()
