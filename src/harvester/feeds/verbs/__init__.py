"""What people may do with feeds. Each verb has an actor, is one transaction, and leaves its trace in the audit trail.

Where a verb locks both, it locks the feed before its source, like a run does.
"""

from harvester.feeds.verbs.access import approve_host_key, change_credentials
from harvester.feeds.verbs.activation import enable, pause, re_enable, resume
from harvester.feeds.verbs.configuration import create, delete_draft, set_expiry_hours, update
from harvester.feeds.verbs.locked_feed import feed_named
from harvester.feeds.verbs.retirement import retire
from harvester.feeds.verbs.run_requests import run_now, test_run

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
