"""What can go wrong with a job, and the signals a handler may raise.

TransientError
└── JobTimeout          the job ran longer than its kind allows
TerminalError
├── UnknownKind         no handler is registered under this name
├── BadArgs             the arguments do not fit the handler
├── SecretInArgs        somebody tried to put a secret into a job
└── Conflict
    └── DuplicateJob    an open job has the same dedupe key
JobSignal               not an error: the handler's way to say how the job goes on
├── Snooze              come back later, without counting the attempt
├── JobCancelled        somebody asked this job to stop, and it did
└── LeaseLost           another worker owns the job now; nothing of this attempt may be written
"""

from harvester.kernel.errors import Conflict, HarvesterError, InvalidInput, TerminalError, TransientError

#: Ten years; what should wait longer was given in the wrong unit.
LONGEST_DELAY_SECONDS = 10 * 366 * 24 * 60 * 60


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
    """Jobs carry ids only; an argument is named like a secret."""

    code = "SECRET_IN_ARGS"


class DuplicateJob(Conflict):
    """An open job has the same dedupe key."""

    code = "DUPLICATE_JOB"


class JobSignal(HarvesterError):
    """The handler says how the job goes on."""


class Snooze(JobSignal):
    """The job goes back to waiting and the attempt is not counted."""

    code = "SNOOZED"

    def __init__(self, seconds: float, reason: str = "") -> None:
        if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_DELAY_SECONDS:
            raise InvalidInput(f"A job cannot snooze for {seconds!r} s; from 0 to {LONGEST_DELAY_SECONDS} is possible.")
        super().__init__(reason)
        self.seconds = seconds


class JobCancelled(JobSignal):
    """Somebody asked the job to stop, and it stopped."""

    code = "CANCELLED"


class LeaseLost(JobSignal):
    """Another worker owns the job now; nothing more of this attempt may be written."""

    code = "LEASE_LOST"
