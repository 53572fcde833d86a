"""The states and other enumerations of feeds."""

from enum import StrEnum


class FeedStatus(StrEnum):
    """Whether a feed runs.

    DRAFT ─────── enable ──> ENABLED ── pause ──> PAUSED
                              │  ^                   │
            three final failures └────── resume ─────┘
                              v  └─ re-enable ─┐
                           DISABLED ───────────┘
    """

    DRAFT = "DRAFT"  # being set up; never runs
    ENABLED = "ENABLED"  # runs on its schedule and on request
    PAUSED = "PAUSED"  # stopped by a person
    DISABLED = "DISABLED"  # stopped by three final failures in a row


class Transport(StrEnum):
    """How a file is fetched."""

    SFTP = "SFTP"
    FTP = "FTP"  # not encrypted; off unless an operator allows it


class Compression(StrEnum):
    """The compression that the partner names; the first bytes of the file decide."""

    NONE = "NONE"
    GZIP = "GZIP"


class SkipReason(StrEnum):
    """Why a run was skipped."""

    UNCHANGED_MTIME = "UNCHANGED_MTIME"
    UNCHANGED_HASH = "UNCHANGED_HASH"
    UNCHANGED_REJECTED = "UNCHANGED_REJECTED"
    UNCHANGED_IGNORED = "UNCHANGED_IGNORED"  # the file of an ignored run


class FileEnd(StrEnum):
    """How the file of a run ends, and how its last record was treated."""

    NEWLINE = "NEWLINE"  # a line feed ends the last record
    PROVEN = "PROVEN"  # no line feed, but compressed or of exactly the manifest's size: the file is whole
    LEFT_OUT = "LEFT_OUT"  # no line feed: the last record was counted as seen and changed nothing
    TAKEN = "TAKEN"  # no line feed: the last record was taken, because the file stayed the same or a person forced it


#: Hours between two runs; without a schedule, a feed runs only on request.
SCHEDULES = (1, 2, 4, 6, 12, 24)
