"""Errors of jobs, and the signals that a handler may raise.

TransientError
└── JobTimeout          the job ran longer than its kind allows
TerminalError
├── UnknownKind         no handler is registered under this name
├── BadArgs             the arguments do not fit the handler
├── SecretInArgs        the arguments contain a secret
└── Conflict
    └── DuplicateJob    an open job has the same dedupe key
JobSignal               not an error: how the handler wants the job to continue
├── Snooze              run again later, without counting the attempt
├── JobCancelled        the job was asked to stop, and it did
└── LeaseLost           another worker owns the job now; this attempt must not write anything
"""

from harvester.kernel.errors import Conflict, HarvesterError, InvalidInput, TerminalError, TransientError

#: Ten years; a longer delay was given in the wrong unit.
LONGEST_DELAY_SECONDS = 10 * 366 * 24 * 60 * 60


def check_delay(seconds: float, what: str) -> None:
    """Raise if this is not a usable number of seconds."""
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_DELAY_SECONDS:
        raise InvalidInput(f"{what} for {seconds!r} s; it must be from 0 to {LONGEST_DELAY_SECONDS}.")


class JobTimeout(TransientError):
    """The job ran longer than its kind allows."""

    code = "JOB_TIMEOUT"


class UnknownKind(TerminalError):
    """No handler is registered for this kind of job."""

    code = "UNKNOWN_KIND"


class BadArgs(TerminalError):
    """The arguments of the job do not fit its handler."""

    code = "BAD_ARGS"


class SecretInArgs(TerminalError):
    """An argument of the job is or contains a secret."""

    code = "SECRET_IN_ARGS"


class DuplicateJob(Conflict):
    """An open job has the same dedupe key."""

    code = "DUPLICATE_JOB"


class JobSignal(HarvesterError):
    """The handler decides how the job continues."""


class Snooze(JobSignal):
    """The job waits again and the attempt is not counted.

    With `rest_lane`, its whole lane rests for that time, and the job keeps its place: it is the first one after the
    rest. That is for reasons that all jobs of the lane share, such as the pace of a site.
    """

    code = "SNOOZED"

    def __init__(self, seconds: float, reason: str = "", *, rest_lane: bool = False) -> None:
        check_delay(seconds, "A job cannot snooze")
        super().__init__(reason)
        self.seconds = seconds
        self.rest_lane = rest_lane


class JobCancelled(JobSignal):
    """The job was asked to stop, and it stopped."""

    code = "CANCELLED"


class LeaseLost(JobSignal):
    """Another worker owns the job now; this attempt must not write anything more."""

    code = "LEASE_LOST"
