"""Writes to feeds by people. Each verb has an actor and is one transaction, which includes its audit event.

A verb that locks both locks the feed before its source, like a run does.
"""

from harvester.feeds.verbs.configuration import (
    approve_host_key,
    change_credentials,
    create,
    delete_draft,
    set_expiry_hours,
    update,
)
from harvester.feeds.verbs.lifecycle import enable, pause, re_enable, resume, retire, run_now, test_run
from harvester.feeds.verbs.locked_feed import feed_named

__all__ = [
    "approve_host_key",
    "change_credentials",
    "create",
    "delete_draft",
    "enable",
    "feed_named",
    "pause",
    "re_enable",
    "resume",
    "retire",
    "run_now",
    "set_expiry_hours",
    "test_run",
    "update",
]
