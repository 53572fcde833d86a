"""The states of a job. A state that is not on this diagram does not exist.

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
    """Where a job is."""

    PENDING = "pending"  # waits for its time and a free slot
    RUNNING = "running"  # a worker holds its lease and beats for it
    RETRYABLE = "retryable"  # failed or was lost; waits for its next attempt
    SUCCEEDED = "succeeded"  # done
    FAILED = "failed"  # ended without success; a person may drive it again
    CANCELLED = "cancelled"  # ended because somebody asked


#: A worker may claim these.
READY = (JobState.PENDING, JobState.RETRYABLE)
#: A dedupe key is unique among these.
OPEN = (JobState.PENDING, JobState.RUNNING, JobState.RETRYABLE)
#: Nothing happens to these any more unless a person asks.
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
