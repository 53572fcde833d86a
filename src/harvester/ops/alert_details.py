"""Details of an alert for people: the feed, run or source it is about, and the delivery of its messages."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings

from harvester.ops.models import Alert

#: Key in the details of an alert -> type of the object.
_OBJECTS = {"feed_id": "feed", "run_no": "run", "source_id": "source"}


class Delivery(StrEnum):
    """The delivery of a message."""

    DELIVERED = "DELIVERED"
    NOT_DELIVERED = "NOT_DELIVERED"  # the last attempt failed; another follows
    WAITING = "WAITING"
    NO_CHANNEL = "NO_CHANNEL"  # only in the log; Slack is not set up


@dataclass(frozen=True, kw_only=True)
class Message:
    """The message that an alert was opened, or resolved.

    Attributes:
        delivery: its state.
        words: the same for a person.
        delivered_at: when it was delivered.
    """

    delivery: Delivery
    words: str
    delivered_at: datetime | None = None


def things(alert: Alert) -> dict[str, Any]:
    """Return type -> id or number of each object that the alert is about."""
    detail: dict[str, Any] = alert.detail if isinstance(alert.detail, dict) else {}
    return {kind: detail[name] for name, kind in _OBJECTS.items() if detail.get(name)}


def message(alert: Alert, phase: str) -> Message:
    """Return the message about the start (OPENED) or the end (RESOLVED) of an alert."""
    delivered_at = alert.delivered_at(phase)
    if delivered_at:
        return Message(delivery=Delivery.DELIVERED, words="Sent to Slack", delivered_at=delivered_at)
    if alert.delivery_error:
        return Message(delivery=Delivery.NOT_DELIVERED, words=f"Not delivered yet: {alert.delivery_error}")
    if settings.CONFIG.slack_webhook_url:
        return Message(delivery=Delivery.WAITING, words="Waiting to be sent to Slack")
    return Message(delivery=Delivery.NO_CHANNEL, words="In the log; Slack is not set up")
