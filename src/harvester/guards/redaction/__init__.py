"""Secrets are removed from whatever leaves the process as text: logs, errors of jobs, audit rows, pages.

Three things are hidden, wherever they come from: what stands under a secret name, what looks like a secret,
and the very values that were opened lately (`remember`).
"""

from harvester.guards.redaction.names import is_secret_name
from harvester.guards.redaction.text import REDACTED, live, redact_text
from harvester.guards.redaction.values import redact

remember = live.remember
forget = live.forget
forget_all = live.forget_all

__all__ = ["REDACTED", "forget", "forget_all", "is_secret_name", "redact", "redact_text", "remember"]
