"""What people are shown of an alert beside its words: what it is about, and what became of its messages."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings

from harvester.ops.alerts import OPENED
from harvester.ops.models import Alert

#: What the details of an alert name -> the kind of thing that it is.
_THINGS = {"feed_id": "feed", "run_no": "run", "source_id": "source"}


class Delivery(StrEnum):
    """What became of a message to the channel."""

    TOLD = "TOLD"
    NOT_DELIVERED = "NOT_DELIVERED"  # the last attempt failed; another follows
    WAITING = "WAITING"
    NO_CHANNEL = "NO_CHANNEL"  # the log has it, and no other channel is set up


@dataclass(frozen=True, kw_only=True)
class Message:
    """The message about an alert's beginning, or about its end.

    Attributes:
        delivery: what became of it.
        words: the same for a person.
        told_at: when it was delivered.
    """

    delivery: Delivery
    words: str
    told_at: datetime | None = None


def things(alert: Alert) -> dict[str, Any]:
    """Kind -> id or number of each thing that the alert is about."""
    detail: dict[str, Any] = alert.detail if isinstance(alert.detail, dict) else {}
    return {kind: detail[name] for name, kind in _THINGS.items() if detail.get(name)}


def message(alert: Alert, phase: str) -> Message:
    """What became of the message about the alert's beginning (OPENED) or its end (RESOLVED)."""
    told_at = alert.opened_delivered_at if phase == OPENED else alert.resolved_delivered_at
    if told_at:
        return Message(delivery=Delivery.TOLD, words="Told Slack", told_at=told_at)
    if alert.delivery_error:
        return Message(delivery=Delivery.NOT_DELIVERED, words=f"Not delivered yet: {alert.delivery_error}")
    if settings.CONFIG.slack_webhook_url:
        return Message(delivery=Delivery.WAITING, words="Waits to be told to Slack")
    return Message(delivery=Delivery.NO_CHANNEL, words="In the log; no channel is set up")
