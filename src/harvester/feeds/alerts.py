"""Alerts about feeds; those about single runs are in `harvester.runs.alerts`."""

from typing import Final

import structlog
from django.db import transaction

from harvester.feeds.models import Feed
from harvester.feeds.run_context import log_fields
from harvester.ops.alerts import raise_alert, resolve_alert

log = structlog.get_logger(__name__)

#: Codes that mean that a file, or its content, is larger than the feed allows.
LIMITS: Final = (
    *("FILE_SIZE_LIMIT_EXCEEDED", "INFLATE_LIMIT_EXCEEDED", "ROW_COUNT_LIMIT_EXCEEDED"),
    "UNIQUE_PRODUCT_LIMIT_EXCEEDED",
)
_DISABLED: Final = "FEED_AUTO_DISABLED"


def feed_runs_again(feed: Feed) -> None:
    """Resolve the alert of a feed that was re-enabled; if it is disabled again, that is a new alert."""
    resolve_alert(f"{_DISABLED}:feed:{feed.id}", "The feed was re-enabled.")  # mutant: enabled-again


def feed_is_disabled(feed: Feed, failures: int, error: str) -> None:
    fields = {**log_fields(feed), "consecutive_failures": failures, "last_error": error}
    transaction.on_commit(lambda: log.warning(_DISABLED, **fields))
    title = f"{feed}: disabled after {failures} failures"
    body = f"{failures} runs in a row failed; the last one said: {error}\nFix the cause, then re-enable the feed."
    key = f"{_DISABLED}:feed:{feed.id}"
    raise_alert(_DISABLED, key, title, body, severity="warning", detail={"feed_id": str(feed.id)})
