"""The states of a job. This diagram is complete.

enqueue ──> PENDING ──claim──> RUNNING ──────────────> SUCCEEDED
│  ▲                │ ├── no retry left ─> FAILED ──┐
│  └─ handed back ──┤ ├── asked to stop ─> CANCELLED ┤
│     or snoozed    │                                │
│                   └── try again ──> RETRYABLE ─────┼─claim──> RUNNING
└── cancel ──> CANCELLED <── cancel ──────┘          │
│
PENDING <────────────────────────────── retry by a person ─────────┘
"""

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job."""

    PENDING = "pending"  # waits for its time and a free slot
    RUNNING = "running"  # a worker holds its lease and sends heartbeats
    RETRYABLE = "retryable"  # failed or lost; waits for its next attempt
    SUCCEEDED = "succeeded"  # done
    FAILED = "failed"  # ended without success; a person may retry it
    CANCELLED = "cancelled"  # stopped on request


#: A worker may claim these.
READY = (JobState.PENDING, JobState.RETRYABLE)
#: A dedupe key is unique among these.
OPEN = (JobState.PENDING, JobState.RUNNING, JobState.RETRYABLE)
#: These change only if a person retries them.
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
